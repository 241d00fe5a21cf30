# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Users of a directory log in, run jobs, and stay out when they should; the directory may be away or look different."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.login import facts

from .support.kube import Kube
from .support.playbook import PlaybookResult
from .support.process import Completed
from .support.ssh import SshClient, conditions

NAMESPACE = "slurm"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
LOGIN = "slurm-login-0"
TAGS = "directory,login"
WRITERS = ("slurm_ops.kubernetes.applyset", "slurm_ops.kubernetes.secret")

ALICE = {"name": "alice", "uid": 10001, "groups": ["hpc"], "gecos": "Alice Example", "generate_ssh_key": True}
BOB = {"name": "bob", "uid": 10002, "groups": ["hpc"], "gecos": "Bób, Example", "generate_ssh_key": True}
CAROL = {"name": "carol", "uid": 10003, "groups": ["hpc", "admins"], "generate_ssh_key": True}
# In the directory, but in no group that may log in; and one whose account is disabled.
DAVE = {"name": "dave", "uid": 10004, "groups": ["guests"], "generate_ssh_key": True}
ERIN = {"name": "erin", "uid": 10005, "groups": ["hpc"], "generate_ssh_key": True, "disabled": True}
FRANK = {"name": "frank", "uid": 10006, "groups": ["hpc"], "generate_ssh_key": True}
GRACE = {"name": "grace", "uid": 10007, "groups": ["hpc"]}
VARIABLES: dict[str, Any] = {
    "directory_groups": [
        {"name": "hpc", "gid": 10000},
        {"name": "admins", "gid": 10100},
        {"name": "guests", "gid": 10200},
    ],
    "directory_users": [ALICE, BOB, CAROL, DAVE, ERIN],
    "login_allowed_groups": ["hpc"],
    "login_sudo_groups": ["admins"],
}

Deploy = Callable[..., PlaybookResult]


@pytest.fixture(scope="module")
def deploy(site: PlaybookResult, run_playbook: Callable[..., PlaybookResult]) -> Iterator[Deploy]:
    """Deploy directory and login with the users above and further variables; as the inventory says at the end."""

    def run(*, check: bool = False, diff: bool = False, fails: bool = False, **variables: Any) -> PlaybookResult:
        return run_playbook(
            "site", extra_vars=VARIABLES | variables, tags=TAGS, check=check, diff=diff, fails=fails, timeout=300
        )

    run()
    yield run
    run_playbook("site", tags=TAGS)


@pytest.fixture(scope="module")
def ssh(kube: Kube, deploy: Deploy) -> Iterator[SshClient]:
    image = kube.get(f"{PODS}/{LOGIN}")["spec"]["containers"][0]["image"]
    with SshClient(kube, NAMESPACE).running(image) as client:
        eventually(client.by_key, "alice")
        yield client


@pytest.fixture
def users(deploy: Deploy) -> Iterator[Callable[..., PlaybookResult]]:
    """Give the directory other users for one test."""

    def change(*people: dict[str, Any]) -> PlaybookResult:
        return deploy(directory_users=list(people))

    yield change
    deploy()


def eventually(attempt: Callable[..., Completed], user: str, *, refused: bool = False, timeout: float = 60) -> float:
    """Seconds until a login works (or is refused): SSSD may still be looking for the directory's new Pod."""
    begun = time.monotonic()
    while (completed := attempt(user)).rc != (255 if refused else 0):
        if time.monotonic() - begun > timeout:
            raise AssertionError(
                f"{user} is {'let in' if refused else 'refused'} after {timeout} s: {completed.stderr}"
            )
        time.sleep(1)
    return time.monotonic() - begun


def refused(completed: Completed) -> bool:
    return completed.rc == 255 and completed.stdout == ""


def on_login(kube: Kube, command: str) -> str:
    return kube.exec(NAMESPACE, LOGIN, ["sh", "-c", command], container="login").check().stdout


def replace_login_pod(kube: Kube) -> None:
    uid = kube.get(f"{PODS}/{LOGIN}")["metadata"]["uid"]
    kube.delete(f"{PODS}/{LOGIN}")
    kube.wait(
        f"{PODS}/{LOGIN}",
        lambda pod: pod and pod["metadata"]["uid"] != uid and conditions(pod).get("Ready") == "True",
        timeout=120,
        what="another login Pod is Ready",
    )


@contextmanager
def no_directory(kube: Kube) -> Iterator[None]:
    """The directory is away, and back again at the end."""
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets/slurm-directory/scale"
    pod = f"{PODS}/slurm-directory-0"
    kube.patch(path, {"spec": {"replicas": 0}})
    try:
        kube.wait(lambda: kube.find(pod), lambda found: found is None, what="the directory is gone")
        yield
    finally:
        kube.patch(path, {"spec": {"replicas": 1}})
        kube.wait(pod, lambda found: found and conditions(found).get("Ready") == "True", what="the directory is back")


# --- who gets in


def test_by_key_and_by_password(ssh: SshClient) -> None:
    identity = "uid=10001(alice) gid=10000(hpc) groups=10000(hpc)"
    assert ssh.by_key("alice", "id").check().stdout.strip() == identity
    assert ssh.by_password("alice", "id").check().stdout.strip() == identity


def test_names_need_not_be_ascii(ssh: SshClient) -> None:
    assert "Bób, Example" in ssh.by_key("bob", "getent passwd bob").check().stdout


def test_a_wrong_password_is_refused_and_locks_nobody_out(ssh: SshClient) -> None:
    for _attempt in range(3):
        assert refused(ssh.by_password("alice", "id", password="wrong"))
    # OpenSSH's penalties would now refuse the client's address, which may be everybody's.
    assert ssh.by_password("alice").rc == 0


def test_somebody_elses_key_is_refused(ssh: SshClient) -> None:
    assert refused(ssh.by_key("bob", "id", login="alice"))
    assert refused(ssh.by_key("bob", "id", login="root"))


def test_nobody_else_gets_in(ssh: SshClient) -> None:
    assert refused(ssh.by_password("nobody-knows-me", "id", password="wrong"))


@pytest.mark.parametrize("user", ["dave", "erin"])
def test_groups_without_access_and_disabled_accounts_stay_out(kube: Kube, ssh: SshClient, user: str) -> None:
    assert f"({user})" in on_login(kube, f"id {user}")
    assert refused(ssh.by_key(user, "id"))
    assert refused(ssh.by_password(user, "id"))


def test_sudo_is_for_its_groups(ssh: SshClient) -> None:
    def sudo(user: str) -> Completed:
        return ssh.by_key(user, f"printf %s {ssh.secret(user + '.password')} | sudo -S id -u")

    assert sudo("carol").check().stdout.strip() == "0"
    assert sudo("alice").rc != 0


def test_the_directory_shows_nothing_to_strangers(kube: Kube, ssh: SshClient) -> None:
    def search(*options: str) -> Completed:
        command = ["env", "LDAPTLS_CACERT=/tls/ca.crt", "ldapsearch", "-LLL", "-x", "-b", "dc=example,dc=org", *options]
        return kube.exec(NAMESPACE, "slurm-directory-0", command, container="slapd")

    url = f"ldap://slurm-directory.{NAMESPACE}.svc:1389"
    account = ("-D", "cn=sssd,dc=example,dc=org", "-w", ssh.secret("bind-password"))
    found = search("-ZZ", "-H", url, *account, "(uid=alice)", "uidNumber", "userPassword").check().stdout
    assert "uidNumber: 10001" in found
    assert "userPassword" not in found
    for stranger in (("-H", url), ("-ZZ", "-H", url), ("-H", url, *account), ("-ZZ", "-H", url, *account[:3], "x")):
        answer = search(*stranger)
        assert answer.rc != 0, stranger
        assert "dn:" not in answer.stdout, stranger


# --- homes and jobs


def test_the_home_is_made_for_its_owner_and_shared_with_the_nodes(ssh: SshClient) -> None:
    assert ssh.by_key("alice", "stat -c '%a %U %G %n' ~").check().stdout.split() == [
        "700",
        "alice",
        "hpc",
        "/home/alice",
    ]
    text = str(time.time())
    ssh.by_key("alice", f"echo {text} > ~/from-login").check()
    assert ssh.by_key("alice", "srun -N2 cat from-login").check().stdout.split() == [text, text]


def test_a_job_of_a_user_is_that_user_everywhere(ssh: SshClient) -> None:
    lines = {
        "id": "uid=10003(carol) gid=10000(hpc) groups=10000(hpc),10100(admins)",
        "whoami": "carol",
        "getent passwd carol | cut -d: -f3,6": "10003:/home/carol",
        "getent group hpc | cut -d: -f1,3": "hpc:10000",
        "echo ~carol $HOME $USER $PWD": "/home/carol /home/carol carol /home/carol",
        'touch "by-$SLURMD_NODENAME"; stat -c %U:%G "by-$SLURMD_NODENAME"': "carol:hpc",
    }
    script = "\n".join(["#!/bin/bash", *(f"srun sh -c {command!r}" for command in lines)])
    ssh.by_key("carol", f"cat > job.sh <<'END'\n{script}\nEND").check()
    ssh.by_key("carol", "sbatch --wait -N2 --ntasks-per-node=1 --time=2 -J whoami -o job.out job.sh").check()
    output = ssh.by_key("carol", "cat job.out").check().stdout.splitlines()
    assert output == [line for expected in lines.values() for line in (expected, expected)]
    row = ssh.by_key("carol", "sacct -n -P -X --name=whoami -o User,Group,UID,NNodes,State | tail -n 1").check().stdout
    assert row.strip() == "carol|hpc|10003|2|COMPLETED"


# --- what breaks


def test_host_keys_are_those_of_the_secret_in_every_pod(kube: Kube, ssh: SshClient) -> None:
    ssh.by_key("alice", strict="accept-new").check()
    replace_login_pod(kube)
    ssh.by_key("alice", strict="yes").check()
    for kind in ("ed25519", "ecdsa", "rsa"):
        public = ssh.secret(f"ssh_host_{kind}_key.pub", "login-hostkeys").split()[:2]
        shown = on_login(kube, f"ssh-keyscan -t {kind} localhost 2>/dev/null | grep -v '^#'")
        assert shown.split()[1:3] == public


@pytest.mark.parametrize("daemon", ["sshd", "sssd", "sackd"])
def test_a_killed_daemon_is_back_at_once(kube: Kube, ssh: SshClient, daemon: str) -> None:
    before = kube.get(f"{PODS}/{LOGIN}")["status"]["containerStatuses"][0]["restartCount"]
    on_login(kube, f"pkill -KILL -o -x {daemon}")
    assert eventually(lambda user: ssh.by_key(user, "srun -n1 true"), "alice", timeout=30) < 15
    assert kube.get(f"{PODS}/{LOGIN}")["status"]["containerStatuses"][0]["restartCount"] == before


def test_without_the_directory_who_is_known_gets_in_also_to_a_new_pod(kube: Kube, ssh: SshClient) -> None:
    known = ((ssh.by_key, "alice"), (ssh.by_password, "alice"), (ssh.by_password, "carol"))
    for attempt, user in known:
        eventually(attempt, user)
    with no_directory(kube):
        for attempt, user in known:
            attempt(user, "id").check()
        assert refused(ssh.by_password("alice", password="wrong"))
        assert refused(ssh.by_key("dave"))
        replace_login_pod(kube)
        for attempt, user in known:
            attempt(user, "id; srun -n1 id").check()
    # Nobody has to mend anything: bob, whom the cache may not know, gets in when SSSD has noticed.
    assert eventually(ssh.by_password, "bob") < 45


def test_a_new_user_gets_in_and_a_removed_one_stays_out(ssh: SshClient, users: Callable[..., PlaybookResult]) -> None:
    eventually(ssh.by_key, "bob")
    changed = users(ALICE, CAROL, FRANK)
    # Sessions go on: the login Pods have nothing to do with it.
    assert {task.role for task in changed.changed} == {"slurm_ops.kubernetes.directory"}
    assert eventually(ssh.by_key, "frank") < 45
    eventually(ssh.by_key, "bob", refused=True, timeout=30)
    assert refused(ssh.by_password("bob"))
    assert ssh.by_key("alice").rc == 0


# --- what Ansible says


def test_a_second_run_writes_nothing(deploy: Deploy) -> None:
    again = deploy()
    assert [str(task) for task in again.changed] == []
    calls = [task.result["api_calls"]["writes"] for task in again.tasks if task.action in WRITERS]
    assert len(calls) == 4
    assert set(calls) == {0}
    assert [str(task) for task in deploy(check=True, diff=True).changed] == []


def test_check_mode_tells_what_a_user_more_changes(ssh: SshClient, deploy: Deploy) -> None:
    predicted = deploy(check=True, diff=True, directory_users=[*VARIABLES["directory_users"], GRACE])
    targets = [action["target"] for task in predicted.changed for action in task.result["actions"]]
    assert targets == [
        f"Secret {NAMESPACE}/slurm-directory",
        f"ConfigMap {NAMESPACE}/slurm-directory-config",
        f"StatefulSet {NAMESPACE}/slurm-directory",
    ]
    assert ssh.secret("alice.password") not in predicted.output


def test_daemons_check_their_configuration_and_a_good_one_mends_it(ssh: SshClient, deploy: Deploy) -> None:
    wrong: dict[str, dict[str, Any]] = {
        "Bad SSH2 cipher spec": {"login_sshd_options": {"Ciphers": "rot13"}},
        "'ldap_access_oder' is not allowed": {"login_sssd": {"domain": {"ldap_access_oder": "expire"}}},
    }
    for message, variables in wrong.items():
        failed = deploy(fails=True, **variables).failed[0].result
        assert message in failed["msg"]
        assert failed["duration"] < 90
    deploy()
    eventually(ssh.by_key, "alice")


def test_mistakes_are_refused_before_anything_is_sent(kube: Kube, deploy: Deploy) -> None:
    def version() -> str:
        path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/slurm-login-config"
        return str(kube.get(path)["metadata"]["resourceVersion"])

    before = version()
    failed = deploy(
        fails=True,
        login_sshd_options={"Banner": "/etc/issue\nPermitRootLogin yes", "MaxSesions": 1},
        login_sssd={"domain": {"ldap_default_authtok": "geheim"}},
    )
    text = failed.failed[0].result["msg"]
    assert "login_sshd_options.Banner: must not hold line breaks" in text
    assert "did you mean MaxSessions?" in text
    assert "login_ldap_bind_secret" in text
    assert "geheim" not in failed.failed[0].result["msg"]
    assert version() == before


# --- other directories


PRESETS: dict[str, dict[str, Any]] = {
    "openldap_rfc2307": {},
    "openldap_rfc2307bis": {"login_ldap_bind_dn": "cn=x", "login_ldap_bind_secret": {"name": "x", "key": "x"}},
    "active_directory": {"login_ldap_access_filter": "(memberOf=cn=hpc)", "login_ldap_ca": {"secret": "x"}},
    "authentik": {"login_ldap_user_search_base": "ou=users,dc=example,dc=org"},
    "okta": {"login_sssd": {"nss": {"homedir_substring": "/home"}}},
    "google": {"login_ldap_client_certificate_secret": "x"},
}


@pytest.mark.parametrize("preset", PRESETS)
def test_sssd_knows_every_option_of_every_preset(kube: Kube, site: PlaybookResult, preset: str) -> None:
    variables = {
        "slurm_name": "slurm",
        "login_ldap_preset": preset,
        "login_ldap_uri": ["ldaps://ldap.example.org"],
        "login_ldap_search_base": "dc=example,dc=org",
        **PRESETS[preset],
    }
    text = facts(variables)["sssd"]["sssd.conf"]
    folder = f"/tmp/preset-{preset}"
    report = on_login(
        kube,
        f"mkdir -p {folder}/conf.d; umask 077; cat > {folder}/sssd.conf <<'END'\n{text}\nEND\n"
        f"sssctl config-check -c {folder}/sssd.conf -s {folder}/conf.d; rm -r {folder}",
    )
    assert "Issues identified by validators: 0" in report


# With the identity numbers of the directory; then with those that SSSD makes of SIDs. slapd knows no tokenGroups.
OTHERS: list[tuple[str, dict[str, Any], int]] = [
    ("rfc2307bis", {}, 10001),
    ("active_directory", {"ldap_id_mapping": False}, 10001),
    ("active_directory", {"ldap_use_tokengroups": False}, 0),
]


@pytest.mark.parametrize(("schema", "options", "uid"), OTHERS)
def test_other_schemas(
    kube: Kube, ssh: SshClient, deploy: Deploy, schema: str, options: dict[str, Any], uid: int
) -> None:
    ldaps = [f"ldaps://slurm-directory.{NAMESPACE}.svc:1636"]
    deploy(directory_schema=schema, login_sssd={"domain": options}, login_ldap_uri=ldaps)
    kube.wait(
        # By name, once: Active Directory finds a group by its SID as text, and slapd cannot.
        lambda: on_login(kube, "getent group hpc admins | wc -l").strip(),
        lambda groups: groups == "2",
        what="SSSD knows the groups",
    )
    eventually(ssh.by_key, "alice")
    names = ssh.by_key("carol", "id -un; id -gn; id -Gn").check().stdout.split("\n")
    assert names[:2] == ["carol", "hpc"]
    assert sorted(names[2].split()) == ["admins", "hpc"]
    number = int(ssh.by_password("alice", "id -u").check().stdout)
    assert number == uid or (uid == 0 and number > 100_000 and number % 100_000 == 10001)
    assert refused(ssh.by_key("dave"))
    assert refused(ssh.by_key("erin")), "disabled accounts are known as such in this schema too"


def test_what_was_cached_of_another_directory_is_gone(ssh: SshClient, deploy: Deploy) -> None:
    deploy()
    eventually(lambda user: ssh.by_key(user, "test $(id -u) = 10001"), "alice")


def test_more_in_the_pods(kube: Kube, ssh: SshClient, deploy: Deploy) -> None:
    key = ssh.secret("carol.ssh_key.pub").strip()
    deploy(
        login_services={"ticker": "#!/bin/sh\nwhile :; do date +%s > /run/ticker; sleep 1; done\n"},
        login_oneshots={"10-hello": "#!/bin/sh\necho hello > /run/hello\n"},
        login_root_ssh_keys=[key],
        login_sshd_match={"User alice": {"ForceCommand": "echo forced"}},
        login_service_type="NodePort",
        login_service_external_traffic_policy="Local",
        login_pod_spec={"tolerations": [{"key": "example.org/login", "operator": "Exists"}]},
        login_env={"SSSD_OPTIONS": "--debug-level=1"},
    )
    try:
        eventually(ssh.by_key, "bob")
        assert on_login(kube, "cat /run/hello") == "hello\n"
        assert time.time() - int(on_login(kube, "cat /run/ticker")) < 30
        assert ssh.by_key("alice", "id").check().stdout == "forced\n"
        assert ssh.by_key("carol", "id -u", login="root").check().stdout == "0\n"
        assert refused(ssh.by_key("bob", login="root"))
        assert "PerSourcePenaltyExemptList" in on_login(kube, "cat /etc/ssh/sshd_config.d/20-penalties.conf")
        assert kube.get(f"{PODS}/{LOGIN}")["spec"]["tolerations"][0]["key"] == "example.org/login"
    finally:
        deploy()


# --- how little they may do


@pytest.mark.parametrize(("pod", "level"), [("slurm-directory-0", "restricted"), (LOGIN, "baseline")])
def test_pod_security_level(kube: Kube, deploy: Deploy, pod: str, level: str) -> None:
    name = f"live-level-{level}"
    metadata = {"name": name, "labels": {"pod-security.kubernetes.io/enforce": level}}
    kube.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    try:
        # Made again without what belongs to its own namespace; it need not run to be let in.
        own = ("nodeName", "serviceAccount", "serviceAccountName")
        spec = {key: value for key, value in kube.get(f"{PODS}/{pod}")["spec"].items() if key not in own}
        # A namespace is ready for Pods when it has its account.
        kube.wait(f"/api/v1/namespaces/{name}/serviceaccounts/default", bool, what="the namespace is ready")
        again = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod}, "spec": spec}
        kube.create(f"/api/v1/namespaces/{name}/pods", again)
    finally:
        kube.delete(f"/api/v1/namespaces/{name}")
