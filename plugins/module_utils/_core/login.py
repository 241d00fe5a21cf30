# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""What the login Pods are made of, from the login_* variables: configuration files, the Service, what is mounted."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import names, sshd, sssd, sudoers
from .fields import Fields
from .problems import Problems

KEYS = (
    "slurm_name",
    "slurm_image_contract",
    "slurm_images",
    "slurm_auth_secret",
    "login_replicas",
    "login_host_keys_secret",
    "login_sssd_secret",
    "login_service_port",
    "login_service_node_port",
    "login_service_source_ranges",
    "login_service_load_balancer_class",
    "login_services",
    "login_oneshots",
    *sssd.KEYS,
    *sshd.KEYS,
    *sudoers.KEYS,
)
SERVICE_TYPES = ("ClusterIP", "NodePort", "LoadBalancer")
# Where the init container finds its input, see roles/login/files/compose.sh.
_PASSWORD_PATH = "ldap/password"
_OWN_SSSD_PATH = "sssd/own.conf"
_CONFIG_PATHS = {"sudoers": "sudoers", "authorized_keys": "root/authorized_keys"}


def facts(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that the template of role ``login`` needs; raises OperationError (InvalidVariables).

    ``sssd`` and ``config``: data of the two ConfigMaps. ``sources``: of the projected volume that the init container
    reads. ``restart_on``: the objects whose change needs new Pods. ``service``: spec of the Service.
    ``key_sources``: of the volume with the keys, which go to ``keys_folder``.
    ``service_files``, ``service_items``: data and items of the ConfigMap of supervised services (empty: none).
    """
    problems = Problems()
    fields = Fields(variables, "", problems, KEYS)
    name = fields.text("slurm_name", required=True)
    own_sssd = _reference(fields, "login_sssd_secret")
    sssd_files = {} if own_sssd else {"sssd.conf": sssd.render(fields)}
    config = sshd.render(fields)
    if text := sudoers.render(fields):
        config["sudoers"] = text
        _check_sudo(fields)
    if keys := fields.words("login_root_ssh_keys"):
        config["authorized_keys"] = "".join(f"{key}\n" for key in keys)
    sources = _sources(fields, name, config, own_sssd)
    auth_secret = fields.text("slurm_auth_secret", names.auth_secret(name))
    service_files, service_items = _services(fields)
    result = {
        "sssd": sssd_files,
        "config": config,
        "sources": sources,
        "restart_on": ",".join(_named(sources, without=(auth_secret,))),
        "key_sources": _keys(auth_secret),
        # Where sackd has its keys: the images of this collection copy them, as sackd wants to own them.
        "keys_folder": "/run/slurm-keys" if fields.text("slurm_image_contract") == "slurm_ops" else "/etc/slurm",
        "service": _service(fields),
        "service_files": service_files,
        "service_items": service_items,
        "has_sudo": "sudoers" in config,
        "has_root_keys": "authorized_keys" in config,
    }
    problems.raise_if_any("The login Pods cannot be described")
    return result


def _sources(
    fields: Fields, name: str, config: Iterable[str], own_sssd: tuple[str, str] | None
) -> list[dict[str, Any]]:
    """Sources of the projected volume: two ConfigMaps of ours, then Secrets."""
    host_keys = fields.text("login_host_keys_secret", f"{name}-login-hostkeys")
    key_files = [f"ssh_host_{kind}_key{end}" for kind in sshd.KEY_TYPES for end in ("", ".pub")]
    sources: list[dict[str, Any]] = [
        _config_map(
            f"{name}-login-config",
            {"compose.sh": "compose.sh", **{file: _CONFIG_PATHS.get(file, f"sshd/{file}") for file in config}},
        ),
        *_keys(fields.text("slurm_auth_secret", names.auth_secret(name)), "slurm/"),
        _secret(host_keys, {file: f"hostkeys/{file}" for file in key_files}),
    ]
    if own_sssd:
        return [*sources, _secret(own_sssd[0], {own_sssd[1]: _OWN_SSSD_PATH}), *_tls(fields)]
    sources.append(
        {"configMap": {"name": f"{name}-login-sssd", "items": [{"key": "sssd.conf", "path": "sssd/sssd.conf"}]}}
    )
    if bind := _reference(fields, "login_ldap_bind_secret"):
        sources.append(_secret(bind[0], {bind[1]: _PASSWORD_PATH}))
    return sources + _tls(fields)


def _tls(fields: Fields) -> list[dict[str, Any]]:
    """Sources for the directory's CA and for our certificate."""
    sources: list[dict[str, Any]] = []
    if fields.mapping("login_ldap_ca"):
        ca = Fields(
            fields.raw("login_ldap_ca"), fields.at("login_ldap_ca"), fields.problems, ("secret", "config_map", "key")
        )
        secret, config_map = ca.text("secret"), ca.text("config_map")
        items = {ca.text("key", "ca.crt"): "ldap/ca.crt"}
        if bool(secret) == bool(config_map):
            fields.problems.add(ca.path, "must name either secret or config_map")
        elif secret:
            sources.append(_secret(secret, items))
        else:
            sources.append(_config_map(config_map, items))
    if client := fields.text("login_ldap_client_certificate_secret"):
        sources.append(_secret(client, {"tls.crt": "ldap/tls.crt", "tls.key": "ldap/tls.key"}))
    return sources


def _reference(fields: Fields, key: str) -> tuple[str, str] | None:
    """(Secret, key) of a variable like {name: ..., key: ...}; None when it is empty."""
    if not fields.mapping(key):
        return None
    reference = Fields(fields.raw(key), fields.at(key), fields.problems, ("name", "key"))
    return reference.text("name", required=True), reference.text("key", required=True)


def _secret(name: str, items: Mapping[str, str]) -> dict[str, Any]:
    return {"secret": {"name": name, "items": _items(items)}}


def _config_map(name: str, items: Mapping[str, str]) -> dict[str, Any]:
    return {"configMap": {"name": name, "items": _items(items)}}


def _items(items: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "path": path} for key, path in items.items()]


def _keys(secret: str, folder: str = "") -> list[dict[str, Any]]:
    """Sources with the keys between Slurm's daemons; slurm.jwks is there while slurm.key is being rotated."""
    rotated = _secret(secret, {"slurm.jwks": f"{folder}slurm.jwks"})["secret"]
    return [_secret(secret, {"slurm.key": f"{folder}slurm.key"}), {"secret": {**rotated, "optional": True}}]


def _named(sources: list[dict[str, Any]], without: Sequence[str]) -> list[str]:
    """configmap/NAME and secret/NAME/KEY of all that is read: a Secret may hold more that is not for us.

    Not Secrets in ``without``: module key_rotation brings their keys into the Pods and ends no session.
    """
    found = []
    for entry in sources:
        for kind, source in entry.items():
            if source["name"] in without:
                continue
            keys = [f"/{item['key']}" for item in source["items"]] if kind == "secret" else [""]
            found += [f"{kind.lower()}/{source['name']}{key}" for key in keys]
    return found


def _service(fields: Fields) -> dict[str, Any]:
    """The variable part of the Service's spec."""
    kind = fields.choice("login_service_type", SERVICE_TYPES, "ClusterIP")
    port: dict[str, Any] = {
        "name": "ssh",
        "port": fields.integer("login_service_port", 22, minimum=1, maximum=65535),
        "targetPort": "ssh",
    }
    spec: dict[str, Any] = {"type": kind, "ports": [port]}
    outside = kind != "ClusterIP"
    balanced = kind == "LoadBalancer"
    if node_port := fields.integer("login_service_node_port", 0, maximum=65535):
        _only(fields, "login_service_node_port", outside, "NodePort and LoadBalancer")
        port["nodePort"] = node_port
    if fields.text("login_service_external_traffic_policy"):
        _only(fields, "login_service_external_traffic_policy", outside, "NodePort and LoadBalancer")
        spec["externalTrafficPolicy"] = fields.choice(
            "login_service_external_traffic_policy", ("Cluster", "Local"), "Cluster"
        )
    if balancer_class := fields.text("login_service_load_balancer_class"):
        _only(fields, "login_service_load_balancer_class", balanced, "LoadBalancer")
        spec["loadBalancerClass"] = balancer_class
    if ranges := fields.words("login_service_source_ranges"):
        _only(fields, "login_service_source_ranges", balanced, "LoadBalancer")
        spec["loadBalancerSourceRanges"] = ranges
        for index, item in enumerate(ranges):
            try:
                ipaddress.ip_network(item)
            except ValueError as error:
                fields.problems.add(f"{fields.at('login_service_source_ranges')}[{index}]", f"is no network: {error}")
    return spec


def _only(fields: Fields, key: str, allowed: bool, kinds: str) -> None:
    if not allowed:
        fields.problems.add(fields.at(key), f"has no effect but with login_service_type {kinds}")


def _services(fields: Fields) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Data of the ConfigMap of supervised services and one-shots, and the paths where the supervisor finds them."""
    data: dict[str, str] = {}
    items: list[dict[str, Any]] = []
    for key, prefix, path in (
        ("login_services", "service", "services/{}/run"),
        ("login_oneshots", "oneshot", "oneshots/{}"),
    ):
        scripts = fields.texts(key)
        if scripts and fields.text("slurm_image_contract", "slinky") != "slurm_ops":
            fields.problems.add(
                fields.at(key),
                "needs an image of this collection (slurm_image_contract: slurm_ops); with the public images run a"
                " sidecar (login_sidecars) instead",
            )
        for script, text in scripts.items():
            if why := names.file_name(script):
                fields.problems.add(f"{fields.at(key)}.{script}", why)
            elif not text.startswith("#!"):
                fields.problems.add(f"{fields.at(key)}.{script}", "must be a script whose first line begins with #!")
            data[f"{prefix}-{script}"] = text
            items.append({"key": f"{prefix}-{script}", "path": path.format(script), "mode": 0o755})
    return data, items


def _check_sudo(fields: Fields) -> None:
    """The public image has no sudo; an image that the site names itself may have it."""
    if fields.text("slurm_image_contract", "slinky") == "slinky" and not fields.mapping("slurm_images").get("login"):
        fields.problems.add(
            fields.at("login_sudo_groups"),
            "the public login image has no sudo: name an image that has it in slurm_images.login",
        )
