# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""slurmdbd.conf without its password, which joins it inside the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import keys, names, slurm_conf
from .fields import Fields
from .problems import Problems
from .slurm_conf import Line

KEYS = ("name", "namespace", "version", "storage_host", "storage_port", "storage_user", "storage_loc", "conf")
_SECRET = ("storagepass", "storagepassscript")


def render(data: Any, problems: Problems, conf_path: str = "slurmdbd_settings") -> str:
    """The text of slurmdbd.conf; ``conf_path`` is how the user's free-form keys are called in messages."""
    fields = Fields(data, "slurmdbd", problems, KEYS)
    name = fields.text("name", required=True)
    settings = {
        "DbdHost": f"{name}-accounting-0",
        "DbdPort": "6819",
        "SlurmUser": "slurm",
        "AuthType": "auth/slurm",
        "AuthInfo": "use_client_ids",
        "AuthAltTypes": "auth/jwt",
        "AuthAltParameters": "jwt_key=/etc/slurm/jwt.key,jwks=/etc/slurm/jwks.json,use_jwt_client_ids",
        "PidFile": "/run/slurmdbd/slurmdbd.pid",
        "StorageType": "accounting_storage/mysql",
        "StorageHost": fields.text("storage_host", required=True),
        "StoragePort": str(fields.integer("storage_port", 3306, minimum=1, maximum=65535)),
        "StorageUser": fields.text("storage_user", "slurm"),
        "StorageLoc": fields.text("storage_loc", "slurm_acct_db"),
    }
    for key in ("StorageHost", "StorageUser", "StorageLoc"):
        if any(character in settings[key] for character in '"'):
            problems.add(conf_path, f"{key} must not hold a double quote")
    why = names.dns_label(name) if name else ""
    if why:
        problems.add("slurmdbd.name", why)
    _add(settings, fields.mapping("conf"), conf_path, problems)
    return slurm_conf.render([Line(((key, value),)) for key, value in settings.items()])


def _add(settings: dict[str, str], written: Mapping[str, Any], path: str, problems: Problems) -> None:
    """The user's keys: added to, or instead of, what is not needed as it is."""
    ours = dict(settings)
    found: set[str] = set()
    for key, value in sorted(written.items(), key=lambda item: item[0].lower()):
        at = f"{path}.{key}"
        spelled = keys.spelled(key, keys.SLURMDBD_CONF)
        if key.lower() in _SECRET:
            problems.add(at, "is a secret, which stays out of a ConfigMap; name the Secret that holds it instead")
        elif spelled is None:
            problems.add(at, keys.unknown_key(key, keys.SLURMDBD_CONF))
        elif spelled in found:
            problems.add(at, "is given twice, in two spellings")
        elif value is not None:
            found.add(spelled)
            try:
                text = slurm_conf.value_text(value)
            except ValueError as error:
                problems.add(at, str(error))
                continue
            if spelled in ("AuthInfo", "AuthAltTypes", "AuthAltParameters"):
                text = slurm_conf.union(ours[spelled].split(","), text, at, problems.add)
            elif spelled in ours and text != ours[spelled]:
                problems.add(at, f"must be {ours[spelled]}, as the collection sets it")
            settings[spelled] = text
