# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Generic resources of a NodeSet: what the user writes, what --conf and gres.conf say, what must be registered.

A GPU without a device file is ignored by slurmd and the node becomes invalid ("count reported lower than configured"),
so a GPU needs files or detection. Device lines go into a gres.conf of the NodeSet's own, which the cluster's gres.conf
includes: dynamic nodes have no names known beforehand, and a File= that is missing on a node ends its slurmd.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import hostlist, names
from .errors import OperationError
from .fields import Fields
from .problems import Problems

AUTO_DETECT = ("off", "nvidia", "nvml", "rsmi", "oneapi", "nrt", "full")
KEYS = ("name", "type", "count", "files", "flags", "cores", "links", "auto_detect", "no_consume")
FLAGS = ("CountOnly", "explicit", "nvidia_gpu_env", "amd_gpu_env", "intel_gpu_env", "opencl_env", "no_gpu_env",
         "one_sharing", "all_sharing", "env_uuid")  # fmt: skip
# Needs no vendor library in the image: it reads /proc/driver/nvidia.
DETECT_BY_DEFAULT = "nvidia"

_COUNT = re.compile(r"\d{1,15}[KkMmGgTtPp]?", re.ASCII)
_FILES = re.compile(r"/[A-Za-z0-9_./,\[\]-]+", re.ASCII)
_CORES = re.compile(r"\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*", re.ASCII)
_LINKS = re.compile(r"-?\d+(?:,-?\d+)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Gres:
    """One kind of generic resource of each node of a NodeSet."""

    name: str
    type: str
    count: str
    files: str
    flags: tuple[str, ...]
    cores: str
    links: str
    auto_detect: str
    no_consume: bool = False

    @property
    def spec(self) -> str:
        """As ``Gres=`` wants it: gpu:h100:8."""
        parts = [self.name, self.type, "no_consume" if self.no_consume else "", self.count]
        return ":".join(part for part in parts if part)

    @property
    def line(self) -> str:
        """Its line in gres.conf, or empty text when the count says all."""
        if not (self.files or self.flags or self.cores or self.links):
            return ""
        pairs = [
            ("Name", self.name),
            ("Type", self.type),
            ("File", self.files),
            ("Count", "" if self.files else self.count),
            ("Flags", ",".join(self.flags)),
            ("Cores", self.cores),
            ("Links", self.links),
        ]
        return " ".join(f"{key}={value}" for key, value in pairs if value)

    def plain(self) -> dict[str, Any]:
        """As plain values, for templates."""
        return {
            "name": self.name,
            "type": self.type or None,
            "count": int(self.count) if self.count.isdigit() else self.count,
            "files": self.files or None,
            "flags": list(self.flags),
        }


def parse_gres(written: Sequence[Any], path: str, problems: Problems) -> tuple[Gres, ...]:
    """The GRES of a NodeSet; what is wrong goes to ``problems``."""
    found: list[Gres] = []
    for index, item in enumerate(written):
        at = f"{path}[{index}]"
        gres = _from_text(item, at, problems) if isinstance(item, str) else _from_mapping(item, at, problems)
        if gres is not None:
            _check(gres, found, at, problems)
            found.append(gres)
    return tuple(found)


def auto_detect(gres: Sequence[Gres], cluster_default: str) -> str:
    """The AutoDetect of a NodeSet's gres.conf: what a GRES asks for, else detection when a GPU has no files."""
    asked = [item.auto_detect for item in gres if item.auto_detect]
    if asked:
        return asked[0]
    if any(item.name == "gpu" and not item.files for item in gres):
        return DETECT_BY_DEFAULT if cluster_default == "off" else cluster_default
    return "off"


def gres_conf(gres: Sequence[Gres], cluster_default: str) -> str:
    """The NodeSet's own gres.conf."""
    # AutoDetect counts once, and off must be said: slurmd -Z of 26.05 looks for GPUs when it is not.
    lines = [f"AutoDetect={auto_detect(gres, cluster_default)}", *(item.line for item in gres if item.line)]
    return "".join(f"{line}\n" for line in lines)


def _from_text(text: str, path: str, problems: Problems) -> Gres | None:
    parts = text.split(":")
    count = parts.pop() if len(parts) > 1 and _COUNT.fullmatch(parts[-1]) else ""
    no_consume = "no_consume" in parts[1:]
    if no_consume:
        parts.remove("no_consume")
    if not count:
        problems.add(path, f"{text!r} has no count; write name:count or name:type:count, such as gpu:h100:8")
        return None
    if len(parts) > 2:
        problems.add(path, f"{text!r} has too many parts; write name:count or name:type:count, such as gpu:h100:8")
        return None
    return Gres(parts[0], parts[1] if len(parts) == 2 else "", count, "", (), "", "", "", no_consume)


def _from_mapping(item: Any, path: str, problems: Problems) -> Gres | None:
    if not isinstance(item, Mapping):
        problems.add(path, "must be text such as gpu:h100:8 or a dictionary with name, type, count, files, flags")
        return None
    fields = Fields(item, path, problems, KEYS)
    count = fields.text("count")
    files = ",".join(fields.words("files"))
    if files and not count:
        count = str(_file_count(files, f"{path}.files", problems))
    if not count:
        problems.add(f"{path}.count", "is required (or files, which are counted)")
    elif not _COUNT.fullmatch(count):
        problems.add(f"{path}.count", f"must be a number such as 8 or 4G, is {count!r}")
    if files and not _FILES.fullmatch(files):
        problems.add(f"{path}.files", f"must be device paths such as /dev/nvidia[0-7], is {files!r}")
    for key, pattern in (("cores", _CORES), ("links", _LINKS)):
        value = fields.text(key)
        if value and not pattern.fullmatch(value):
            problems.add(f"{path}.{key}", f"must be numbers such as 0-7,16, is {value!r}")
    detect = fields.text("auto_detect")
    if detect and detect not in AUTO_DETECT:
        problems.add(f"{path}.auto_detect", f"must be one of {', '.join(AUTO_DETECT)}, is {detect!r}")
    flags = tuple(fields.words("flags"))
    for flag in flags:
        if flag.lower() not in {known.lower() for known in FLAGS}:
            problems.add(f"{path}.flags", f"{flag!r} is none of {', '.join(FLAGS)}")
    return Gres(
        fields.text("name", required=True), fields.text("type"), count, files, flags, fields.text("cores"),
        fields.text("links"), detect, fields.flag("no_consume", False),
    )  # fmt: skip


def _check(gres: Gres, before: Sequence[Gres], path: str, problems: Problems) -> None:
    for value in (gres.name, gres.type):
        why = names.slurm_word(value) if value else ""
        if why:
            problems.add(path, why)
    if gres.files and gres.count.isdigit() and _FILES.fullmatch(gres.files):
        number = _file_count(gres.files, path, problems)
        if number and number != int(gres.count):
            problems.add(
                path, f"declares {gres.count} but names {number} device files; slurmd does not start like that"
            )
    for other in before:
        if other.name != gres.name:
            continue
        if other.type == gres.type:
            problems.add(path, f"{gres.name}{':' + gres.type if gres.type else ''} is declared twice")
        elif not other.type or not gres.type:
            problems.add(path, f"some {gres.name} have a type and some have none; slurmd does not start like that")
        if bool(other.files) != bool(gres.files):
            problems.add(path, f"some {gres.name} have files and some have none; slurmd does not start like that")
    asked = {item.auto_detect for item in (*before, gres) if item.auto_detect}
    if len(asked) > 1:
        problems.add(path, f"one NodeSet can have one auto_detect, not {' and '.join(sorted(asked))}")
    if gres.name == "gpu" and not gres.files and gres.auto_detect == "off":
        problems.add(path, "a gpu needs files or an auto_detect that finds it; slurmd ignores a GPU without a device")


def _file_count(files: str, path: str, problems: Problems) -> int:
    try:
        return len(hostlist.expand(files))
    except OperationError as error:
        problems.add(path, str(error))
        return 0
