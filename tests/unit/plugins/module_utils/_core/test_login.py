# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the login Pods are made of: the Service, the sources of the volume, sudo, supervised services."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.login import facts

MINIMAL: dict[str, Any] = {
    "slurm_name": "slurm",
    "slurm_image_contract": "slurm_ops",
    "login_ldap_uri": ["ldaps://ldap.example.org"],
    "login_ldap_search_base": "dc=example,dc=org",
}


def items(source: dict[str, Any]) -> dict[str, str]:
    return {item["key"]: item["path"] for item in source["items"]}


def by_name(sources: list[dict[str, Any]]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for entry in sources:
        for kind, source in entry.items():
            found.setdefault(f"{kind}/{source['name']}", {}).update(items(source))
    return found


def problems_of(**variables: Any) -> str:
    with pytest.raises(OperationError) as caught:
        facts(MINIMAL | variables)
    assert caught.value.reason == "InvalidVariables"
    return str(caught.value)


def test_the_least_that_is_needed() -> None:
    found = facts(MINIMAL)
    assert list(found["sssd"]) == ["sssd.conf"]
    assert sorted(found["config"]) == ["10-slurm-ops.conf", "20-penalties.conf"]
    assert found["service"] == {"type": "ClusterIP", "ports": [{"name": "ssh", "port": 22, "targetPort": "ssh"}]}
    assert found["service_files"] == {}
    assert not found["has_sudo"]
    assert not found["has_root_keys"]
    sources = by_name(found["sources"])
    assert set(sources) == {
        "configMap/slurm-login-config",
        "configMap/slurm-login-sssd",
        "secret/slurm-auth",
        "secret/slurm-login-hostkeys",
    }
    assert sources["configMap/slurm-login-config"]["10-slurm-ops.conf"] == "sshd/10-slurm-ops.conf"
    assert sources["configMap/slurm-login-config"]["compose.sh"] == "compose.sh"
    assert sources["secret/slurm-auth"] == {"slurm.key": "slurm/slurm.key", "slurm.jwks": "slurm/slurm.jwks"}
    assert "slurm-auth" not in found["restart_on"], "new keys end no session"


def test_only_the_keys_that_are_read_restart_the_pods() -> None:
    found = facts(
        MINIMAL
        | {
            "login_ldap_bind_dn": "cn=sssd",
            "login_ldap_bind_secret": {"name": "slurm-directory", "key": "bind-password"},
            "login_ldap_ca": {"secret": "slurm-directory-tls", "key": "ca.crt"},
        }
    )
    named = found["restart_on"].split(",")
    assert "secret/slurm-directory/bind-password" in named
    assert "secret/slurm-directory-tls/ca.crt" in named
    assert "configmap/slurm-login-sssd" in named
    assert "secret/slurm-directory" not in named


def test_a_whole_sssd_conf_of_ones_own() -> None:
    found = facts(
        {
            "slurm_name": "x",
            "login_sssd_secret": {"name": "mine", "key": "sssd.conf"},
            "login_ldap_ca": {"config_map": "ca", "key": "root.pem"},
        }
    )
    assert found["sssd"] == {}
    sources = by_name(found["sources"])
    assert sources["secret/mine"] == {"sssd.conf": "sssd/own.conf"}
    assert sources["configMap/ca"] == {"root.pem": "ldap/ca.crt"}
    assert "configMap/x-login-sssd" not in sources


def test_service_of_a_load_balancer() -> None:
    found = facts(
        MINIMAL
        | {
            "login_service_type": "LoadBalancer",
            "login_service_port": 2222,
            "login_service_source_ranges": ["192.0.2.0/24", "2001:db8::/32"],
            "login_service_external_traffic_policy": "Local",
            "login_service_load_balancer_class": "internal",
        }
    )
    assert found["service"] == {
        "type": "LoadBalancer",
        "ports": [{"name": "ssh", "port": 2222, "targetPort": "ssh"}],
        "externalTrafficPolicy": "Local",
        "loadBalancerClass": "internal",
        "loadBalancerSourceRanges": ["192.0.2.0/24", "2001:db8::/32"],
    }


def test_sudo_groups_become_sudoers() -> None:
    found = facts(MINIMAL | {"login_sudo_groups": ["admins", {"name": "domain admins", "nopasswd": True}, "x=y"]})
    assert found["has_sudo"]
    assert found["config"]["sudoers"] == (
        '%admins ALL=(ALL:ALL) ALL\n"%domain admins" ALL=(ALL:ALL) NOPASSWD: ALL\n"%x=y" ALL=(ALL:ALL) ALL\n'
    )
    assert by_name(found["sources"])["configMap/slurm-login-config"]["sudoers"] == "sudoers"


def test_services_are_laid_out_for_the_supervisor() -> None:
    found = facts(
        MINIMAL | {"login_services": {"jupyter": "#!/bin/sh\n"}, "login_oneshots": {"10-motd": "#!/bin/sh\n"}}
    )
    assert found["service_files"] == {"service-jupyter": "#!/bin/sh\n", "oneshot-10-motd": "#!/bin/sh\n"}
    assert found["service_items"] == [
        {"key": "service-jupyter", "path": "services/jupyter/run", "mode": 0o755},
        {"key": "oneshot-10-motd", "path": "oneshots/10-motd", "mode": 0o755},
    ]


def test_public_images_lack_supervised_services_and_sudo() -> None:
    text = problems_of(
        slurm_image_contract="slinky",
        login_services={"a": "#!/bin/sh"},
        login_oneshots={"b": "#!/bin/sh"},
        login_sudo_groups=["x"],
    )
    assert "login_services: needs an image of this collection" in text
    assert "login_oneshots: needs an image of this collection" in text
    assert "login_sudo_groups: the public login image has no sudo" in text


def test_an_image_that_the_site_names_may_have_sudo() -> None:
    variables = {
        "slurm_image_contract": "slinky",
        "slurm_images": {"login": "example.org/login:1"},
        "login_sudo_groups": ["x"],
    }
    assert facts(MINIMAL | variables)["has_sudo"]


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        ({"slurm_name": None}, "slurm_name: is required"),
        ({"login_service_type": "Headless"}, "login_service_type: must be one of"),
        ({"login_service_port": 0}, "login_service_port: must be from 1"),
        ({"login_service_node_port": 30022}, "login_service_node_port: has no effect but with"),
        ({"login_service_source_ranges": ["10.0.0.0/8"]}, "login_service_source_ranges: has no effect but with"),
        (
            {"login_service_type": "LoadBalancer", "login_service_source_ranges": ["home"]},
            "login_service_source_ranges[0]: is no network",
        ),
        (
            {"login_service_external_traffic_policy": "Local"},
            "login_service_external_traffic_policy: has no effect but with",
        ),
        ({"login_service_load_balancer_class": "x"}, "login_service_load_balancer_class: has no effect but with"),
        ({"login_ldap_ca": {"secret": "a", "config_map": "b"}}, "login_ldap_ca: must name either"),
        ({"login_ldap_ca": {"key": "b"}}, "login_ldap_ca: must name either"),
        ({"login_ldap_ca": {"sercet": "b"}}, "login_ldap_ca.sercet: unknown key (did you mean secret?)"),
        ({"login_ldap_bind_secret": {"name": "a"}}, "login_ldap_bind_secret.key: is required"),
        ({"login_services": {"../x": "#!/bin/sh"}}, "login_services.../x: '../x' must be letters"),
        ({"login_services": {"x": "exec sleep"}}, "login_services.x: must be a script"),
        ({"login_sudo_groups": ["%wheel"]}, "login_sudo_groups[0].name: '%wheel' must be the name"),
        ({"login_sudo_groups": [{"name": "x", "nopasword": True}]}, "login_sudo_groups[0].nopasword: unknown key"),
        ({"login_sudo_groups": ['a" ALL']}, "login_sudo_groups[0].name"),
        ({"login_sudo_groups": ["a\nALL ALL=ALL"]}, "login_sudo_groups[0].name: must not hold line breaks"),
    ],
)
def test_what_is_refused(variables: dict[str, Any], text: str) -> None:
    assert text in problems_of(**variables)


def test_everything_wrong_is_said_at_once() -> None:
    text = problems_of(login_ldap_uri=["x"], login_service_port=0, login_sshd_options={"Prot": 1})
    assert "3 problems" in text
    assert "Nothing was sent" in text
