# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What docs/guides/images.md promises of our images, on real Pods, for each Slurm version that we build."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable

import pytest

from .support.images import Cluster, files, memory, pod, probe, secret
from .support.kube import Kube

VERSIONS = ("26.05", "24.11")
RESTRICTED_LABELS = {
    "pod-security.kubernetes.io/enforce": "restricted",
    "pod-security.kubernetes.io/enforce-version": "latest",
}


@pytest.fixture(scope="module", params=VERSIONS)
def cluster(request: pytest.FixtureRequest, kube: Kube, _namespaces: Callable[[str], str]) -> Cluster:
    cluster = Cluster(kube, _namespaces(f"images-{request.param.replace('.', '-')}"), request.param)
    cluster.start()
    return cluster


def process_of_slurmctld(cluster: Cluster) -> int:
    # slurmscriptd, a child, is called slurmctld too; after a reconfigure the name is that of the file behind the link.
    return int(cluster.run("controller", "pgrep -o '^slurmctld'").check().stdout)


def is_up(cluster: Cluster) -> bool:
    return " is UP" in cluster.run("controller", "scontrol ping").stdout


def restarts(cluster: Cluster, name: str) -> int:
    return int(cluster.status(name).get("restartCount", 0))


@pytest.fixture
def job(cluster: Cluster) -> str:
    """A job that runs on w-0 as long as the test does."""
    number = cluster.run("login", "sbatch --parsable -w w-0 --wrap 'sleep 600' -o /dev/null").check().stdout.strip()
    cluster.eventually(lambda: state_of(cluster, number) == "RUNNING", "the job runs")
    return number


def state_of(cluster: Cluster, job: str) -> str:
    return cluster.run("login", f"squeue -h -o %T -j {job}").stdout.strip()


def cancel(cluster: Cluster, job: str) -> None:
    cluster.run("login", f"scancel {job}").check()
    cluster.eventually(lambda: state_of(cluster, job) in ("", "CANCELLED"), "the job is gone")


def test_control_plane_passes_pod_security(cluster: Cluster, kube: Kube, namespace: str) -> None:
    kube.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": RESTRICTED_LABELS}})
    for body in (cluster.database(), cluster.accounting(), cluster.controller(), cluster.restapi()):
        kube.create(f"/api/v1/namespaces/{namespace}/pods?dryRun=All", body)


def test_two_nodes_run_a_job_together(cluster: Cluster) -> None:
    assert sorted(cluster.run("login", "srun -N2 hostname").check().stdout.split()) == ["w-0", "w-1"]


def test_rest_answers(cluster: Cluster) -> None:
    token = cluster.run("controller", "scontrol token lifespan=60").check().stdout.strip().removeprefix("SLURM_JWT=")
    call = f"curl -s -H X-SLURM-USER-TOKEN:{token} http://localhost:6820/slurm/v0.0.42/nodes/ | jq -r '.nodes[].name'"
    assert sorted(cluster.run("restapi", call).check().stdout.split()) == ["w-0", "w-1"]


def test_accounting_keeps_jobs(cluster: Cluster) -> None:
    cluster.run("login", "srun -J accounted true").check()
    query = "sacct -nX -o state --name accounted"
    cluster.eventually(lambda: "COMPLETED" in cluster.run("login", query).stdout, "sacct shows the job")


# -- slurmctld


def test_good_reconfigure_keeps_the_container(cluster: Cluster, job: str) -> None:
    before = process_of_slurmctld(cluster)
    assert cluster.configure("PartitionName=added Nodes=cpu").rc == 0
    assert "added" in cluster.run("login", "sinfo -h -o %R").stdout
    assert process_of_slurmctld(cluster) != before
    assert restarts(cluster, "controller") == 0
    assert cluster.status("controller")["ready"]
    assert state_of(cluster, job) == "RUNNING"
    cancel(cluster, job)
    assert cluster.configure("").rc == 0


def test_bad_reconfigure_leaves_the_old_one_serving(cluster: Cluster) -> None:
    before = process_of_slurmctld(cluster)
    assert cluster.configure("PartitionName=wrong Nodes=nobody[1-3]").rc != 0
    assert is_up(cluster)
    assert process_of_slurmctld(cluster) == before
    assert "wrong" not in cluster.run("login", "sinfo -h -o %R").stdout
    assert restarts(cluster, "controller") == 0
    assert cluster.configure("").rc == 0


@pytest.mark.parametrize("handed_over", [False, True], ids=["first", "successor"])
def test_killed_slurmctld_is_back_at_once(cluster: Cluster, job: str, handed_over: bool) -> None:
    """Both the process that the supervisor started and one that took over at a reconfigure."""
    if handed_over:
        cluster.run("controller", "scontrol reconfigure").check()
    # One that dies right after its start is given a pause.
    cluster.run("controller", "sleep 6").check()
    before = process_of_slurmctld(cluster)
    cluster.run("controller", f"kill -9 {before}").check()
    took = cluster.eventually(lambda: is_up(cluster), "slurmctld answers", timeout=20)
    assert took < 10
    assert process_of_slurmctld(cluster) != before
    assert restarts(cluster, "controller") == 0
    assert state_of(cluster, job) == "RUNNING"
    cancel(cluster, job)


def test_stopped_slurmctld_saves_its_state(cluster: Cluster, job: str) -> None:
    # SIGTERM as the kubelet sends it; the container ends and is started again with the same volumes.
    cluster.run("controller", "kill -TERM 1")
    cluster.eventually(lambda: restarts(cluster, "controller") == 1, "the container has ended", timeout=30)
    assert cluster.status("controller")["lastState"]["terminated"]["exitCode"] == 0
    cluster.wait_ready("controller")
    cluster.eventually(lambda: is_up(cluster), "slurmctld answers")
    assert state_of(cluster, job) == "RUNNING"
    cancel(cluster, job)


def test_slurmctld_that_cannot_start_ends_the_container(cluster: Cluster) -> None:
    """Kubernetes has to see it: CrashLoopBackOff is what people and tools look for."""
    wrong = f"{cluster.slurm_conf}PartitionName=wrong Nodes=nobody[1-3]\n".replace("=controller(", "=wrong(")
    cluster.config_map("wrong", cluster.configuration(wrong))
    cluster.create_pod(cluster.controller("wrong", config="wrong"))
    cluster.eventually(lambda: restarts(cluster, "wrong") > 0, "the container has been started again", timeout=90)
    assert cluster.status("wrong")["lastState"]["terminated"]["exitCode"] == 1
    cluster.kube.delete(f"{cluster.path}/pods/wrong")


# -- slurmd


def test_slurmd_options(cluster: Cluster) -> None:
    """--conf with several words; what the Pod may not use of the machine is kept from jobs."""
    node = cluster.run("login", "scontrol show node w-1").check().stdout
    hardware = cluster.run("w-1", "slurmd -C").check().stdout
    cores, memory_size = (int(found[1]) for found in re.finditer(r"(?:CoresPerSocket|RealMemory)=(\d+)", hardware))
    sockets = int(re.findall(r"SocketsPerBoard=(\d+)", hardware)[0])
    threads = int(re.findall(r"ThreadsPerCore=(\d+)", hardware)[0])
    reserved = min(cores * sockets - 1 // threads, cores * sockets - 1)
    assert "ActiveFeatures=cpu\n" in node
    assert re.search(r"\bWeight=7\b", node)
    assert re.search(rf"\bMemSpecLimit={memory_size - 1000}\b", node)
    assert not reserved or re.search(rf"\bCoreSpecCount={reserved}\b", node)
    if cluster.version > "25":
        assert "Topology=default:s1\n" in node
        shown = cluster.run("login", "scontrol show topology").check().stdout
        assert re.search(r"SwitchName=s1 .*Nodes=w-\[0-1\]", shown)


def test_reconfigure_keeps_workers_and_jobs(cluster: Cluster, job: str) -> None:
    before = cluster.run("w-0", "pgrep -o '^slurmd'").check().stdout
    assert cluster.configure("PartitionName=again Nodes=cpu").rc == 0
    cluster.eventually(lambda: cluster.run("w-0", "pgrep -o '^slurmd'").stdout != before, "slurmd has a successor")
    assert restarts(cluster, "w-0") == 0
    assert state_of(cluster, job) == "RUNNING"
    assert cluster.run("login", "srun -w w-0 hostname").check().stdout == "w-0\n"
    cancel(cluster, job)
    assert cluster.configure("").rc == 0


@pytest.mark.parametrize("victim", ["^slurmd", "-f supervise.py"], ids=["slurmd", "supervisor"])
def test_killed_slurmd_is_back_and_its_job_runs_on(cluster: Cluster, job: str, victim: str) -> None:
    cluster.run("w-0", f"kill -9 $(pgrep -o {victim})").check()
    cluster.eventually(lambda: cluster.run("w-0", f"pgrep -o {victim}").rc == 0, "it is back", timeout=20)
    cluster.eventually(lambda: cluster.run("login", "srun -w w-0 true", timeout=30).rc == 0, "w-0 takes jobs", 40)
    # Not a second slurmd beside an orphan.
    assert cluster.run("w-0", "pgrep -c '^slurmd(-wlm)?$'").stdout == "1\n"
    assert restarts(cluster, "w-0") == 0
    assert state_of(cluster, job) == "RUNNING"
    cancel(cluster, job)


def test_mounted_services_run(cluster: Cluster) -> None:
    cluster.run("w-0", "test -e /run/served").check()
    cluster.run("w-0", "s6-svc -wR -t -r /run/slurm-services/extra").check()


def test_workers_run_sshd_where_it_is_configured(cluster: Cluster) -> None:
    assert cluster.run("w-0", "pgrep sshd").rc == 1
    cluster.run("w-1", "pgrep sshd").check()
    # Who has no job there does not get in.
    cluster.run(
        "w-1", "grep -q '^account required pam_slurm_adopt.so action_adopt_failure=deny' /etc/pam.d/sshd"
    ).check()
    cluster.run("w-1", "test -e /lib/$(uname -m)-linux-gnu/security/pam_slurm_adopt.so").check()


def test_jobs_know_their_user(cluster: Cluster) -> None:
    """libnss_slurm: alice is known to the login Pod only."""
    cluster.run(
        "login",
        "groupadd -g 6001 physics; groupadd -g 6002 chemistry; useradd -u 5001 -g 6001 -G 6002 -c 'Alice A.' "
        "-d /tmp/alice -s /bin/bash alice 2>/dev/null",
    ).check()
    assert cluster.run("w-0", "id alice").rc == 1
    commands = {
        "whoami": "alice",
        "id": "uid=5001(alice) gid=6001(physics) groups=6001(physics),6002(chemistry)",
        "id alice": "uid=5001(alice) gid=6001(physics) groups=6001(physics),6002(chemistry)",
        "eval echo ~alice": "/tmp/alice",
        "getent passwd alice": "alice:*:5001:6001:Alice A.:/tmp/alice:/bin/bash",
        "getent passwd | grep -c alice": "1",
        "getent group 6002": "chemistry:*:6002:alice",
        "getent group chemistry": "chemistry:*:6002:alice",
        "getent group | grep -c '^\\(physics\\|chemistry\\):'": "2",
        "id root -un": "root",
    }
    script = "cd /tmp; " + "; ".join(f'echo "$({command})"' for command in commands)
    cluster.run("login", f"cat > /tmp/who <<'END'\n{script}\nEND").check()
    answer = cluster.run("login", "runuser -u alice -- srun -D /tmp -w w-0 bash -s < /tmp/who").check().stdout
    assert dict(zip(commands, answer.splitlines(), strict=True)) == commands


def test_jobs_of_two_users_do_not_mix(cluster: Cluster) -> None:
    cluster.run("login", "useradd -u 5002 -s /bin/bash bert; useradd -u 5003 -s /bin/bash cora").check()
    cluster.run("login", "runuser -u bert -- sbatch -o /dev/null -D /tmp -w w-0 --wrap 'sleep 30'").check()
    answer = cluster.run("login", "runuser -u cora -- srun -D /tmp -w w-0 sh -c 'id -un; id bert'", timeout=60)
    assert answer.stdout == "cora\n"
    assert answer.rc == 1
    cluster.run("login", "scancel -u bert").check()


# -- login


@pytest.mark.parametrize("daemon", ["sackd", "sssd", "sshd"])
def test_killed_login_daemon_is_back(cluster: Cluster, daemon: str) -> None:
    cluster.eventually(lambda: cluster.run("login", f"pgrep -o {daemon}").rc == 0, f"{daemon} runs")
    before = cluster.run("login", f"pgrep -o {daemon}").check().stdout
    cluster.run("login", f"kill -9 {before}").check()

    def is_back() -> bool:
        found = cluster.run("login", f"pgrep -o {daemon}")
        return found.rc == 0 and found.stdout != before

    assert cluster.eventually(is_back, f"{daemon} is back", timeout=20) < 10
    assert restarts(cluster, "login") == 0


def test_login_serves(cluster: Cluster) -> None:
    banner = "timeout 5 bash -c 'head -c 7 < /dev/tcp/127.0.0.1/22'"
    cluster.eventually(lambda: cluster.run("login", banner).stdout == "SSH-2.0", "sshd answers", timeout=20)
    cluster.eventually(lambda: cluster.run("login", "sinfo -h").rc == 0, "sackd serves commands", timeout=30)


def test_images_carry_no_host_keys(cluster: Cluster) -> None:
    # All images of Slurm share what they consist of; only where sshd runs are keys made, at the start.
    assert cluster.run("controller", "compgen -G '/etc/ssh/ssh_host_*'").rc == 1
    assert cluster.run("login", "compgen -G '/etc/ssh/ssh_host_*'").rc == 0


# -- MariaDB


def sql(cluster: Cluster, statement: str, password: str) -> str:
    command = f'MYSQL_PWD="$(cat /secret/{password})" mariadb -h 127.0.0.1 -u slurm -N -e "{statement}" slurm_acct_db'
    return cluster.run("database", command).check().stdout


def test_database_reads_its_settings(cluster: Cluster) -> None:
    assert sql(cluster, "SELECT @@innodb_buffer_pool_size", "password") == "33554432\n"


def test_killed_database_keeps_its_data(cluster: Cluster) -> None:
    mark = secrets.token_hex(4)
    sql(cluster, f"CREATE TABLE kept (mark CHAR(8)); INSERT INTO kept VALUES ('{mark}')", "password")
    before = restarts(cluster, "database")
    cluster.run("database", "kill -9 $(pgrep -x mariadbd) || kill -TERM 1")
    cluster.eventually(lambda: restarts(cluster, "database") > before, "the container has ended", timeout=30)
    cluster.wait_ready("database")
    assert sql(cluster, "SELECT mark FROM kept", "password") == f"{mark}\n"
    # slurmdbd finds its way back.
    cluster.run("login", "srun -J after true").check()
    query = "sacct -nX -o state --name after"
    cluster.eventually(lambda: "COMPLETED" in cluster.run("login", query).stdout, "sacct shows the job", timeout=60)


@pytest.mark.parametrize("user", ["root", "mysql"])
def test_nobody_gets_in_without_a_password(cluster: Cluster, user: str) -> None:
    assert cluster.run("accounting", "timeout 5 bash -c '</dev/tcp/database/3306'").rc == 0
    assert cluster.run("database", f"mariadb -h 127.0.0.1 -u {user} -e 'SELECT 1'").rc == 1


# -- OpenLDAP


SLAPD_CONF = """
include /etc/ldap/schema/core.schema
pidfile /run/slapd/slapd.pid
modulepath /usr/lib/ldap
moduleload back_mdb
database mdb
suffix "dc=example"
rootdn "cn=admin,dc=example"
rootpw secret
directory /var/lib/ldap
maxsize 16777216
"""
SEEDS = {
    "1.ldif": "dn: dc=example\nobjectClass: dcObject\nobjectClass: organization\no: example\ndc: example",
    "2.ldif": "dn: ou=people,dc=example\nobjectClass: organizationalUnit\nou: people\n",
}


def test_directory_is_seeded_once(kube: Kube, namespace: str) -> None:
    cluster = Cluster(kube, namespace, "openldap")
    cluster.secret("config", {"slapd.conf": SLAPD_CONF})
    cluster.secret("seed", SEEDS)
    volumes = {
        "/config": files(secret("config"), mode=0o440),
        "/seed": files(secret("seed"), mode=0o440),
        "/var/lib/ldap": {"emptyDir": {}},
        "/run/slapd": memory(),
    }
    body = pod("directory", "openldap:debian13", volumes, user=1001, readinessProbe=probe(tcpSocket={"port": 1389}))
    cluster.create_pod(body)
    cluster.wait_ready("directory")
    tool = "-x -H ldap://localhost:1389 -D cn=admin,dc=example -w secret"
    cluster.run("directory", f"ldapdelete {tool} ou=people,dc=example").check()
    cluster.run("directory", "kill -TERM 1")
    cluster.eventually(lambda: restarts(cluster, "directory") == 1, "the container has ended", timeout=30)
    cluster.wait_ready("directory")
    found = cluster.run("directory", f"ldapsearch {tool} -LLL -b dc=example dn").check().stdout
    assert found.split("\n")[0] == "dn: dc=example"
    assert "people" not in found
