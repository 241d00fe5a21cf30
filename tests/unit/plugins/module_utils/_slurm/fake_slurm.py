# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""As much of Slurm's REST API as drains and scaling need: nodes and jobs in memory, behind the real client."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import hostlist
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._slurm.transport import Answer

Object = dict[str, Any]


class Slurm:
    """A Transport. ``written`` are the calls that could change something; ``before`` may refuse or change things."""

    where = "here"

    def __init__(self, parser: str = "v0.0.45") -> None:
        self.parser = parser
        self.nodes: dict[str, Object] = {}
        self.jobs: dict[int, Object] = {}
        self.reservations: list[Object] = []
        self.written: list[tuple[str, str, Any]] = []
        self.reads = 0
        self.unchanged = False  # what a read that asks for changes since then is told
        self.before: Callable[[str, str], None] = lambda _method, _path: None

    def node(self, name: str, state: str = "IDLE", reason: str = "", **more: Any) -> None:
        features = [name.rpartition("-")[0]]
        known = {"name": name, "hostname": name, "features": features}
        self.nodes[name] = known | {"state": state.split("+"), "reason": reason, **more}

    def job(self, number: int, nodes: str, *, user: str = "ann", state: str = "RUNNING", **more: Any) -> None:
        entry = {"job_id": number, "user_name": user, "nodes": nodes, "job_state": state.split("+"), **more}
        self.jobs[number] = entry
        for name in hostlist.expand(nodes):
            self.nodes[name]["state"][0] = "MIXED"

    def end(self, number: int, state: str = "CANCELLED") -> None:
        job = self.jobs[number]
        job["job_state"] = [state]
        for name in hostlist.expand(job["nodes"]):
            if name in self.nodes:
                self.nodes[name]["state"][0] = "IDLE"

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, timeout: float) -> Answer:
        self.before(method, path)
        _slash, _plugin, parser, what = path.split("/", 3)
        if parser != self.parser:
            return Answer(404, {}, b"")
        what, _mark, query = what.partition("?")
        if "update_time" in query and self.unchanged:
            return Answer(304, {}, b"")
        content = json.loads(body) if body else None
        if method != "GET":
            self.written.append((method, what, content))
        else:
            self.reads += 1
        return Answer(200, {}, json.dumps(self._answer(method, what, content)).encode())

    def _answer(self, method: str, what: str, content: Any) -> Object:
        if what == "ping/":
            return {"pings": [{"responding": True}], "meta": {"slurm": {"release": "26.05.5"}}}
        if (method, what) == ("GET", "nodes/"):
            return {"nodes": list(self.nodes.values()), "last_update": 1}
        if (method, what) == ("GET", "jobs/"):
            return {"jobs": list(self.jobs.values()), "last_update": 1}
        if (method, what) == ("GET", "reservations/"):
            return {"reservations": self.reservations, "last_update": 1}
        if (method, what) == ("POST", "nodes/"):
            for name in hostlist.expand(content["name"][0]):
                self._update(self.nodes[name], content)
        elif (method, what) in (("DELETE", "jobs/"), ("POST", "jobs/requeue")):
            for number in content["jobs"]:
                self.end(int(number), "PENDING" if method == "POST" else "CANCELLED")
        elif method == "DELETE" and what.startswith("node/"):
            for name in hostlist.expand(unquote(what.removeprefix("node/"))):
                del self.nodes[name]
        else:
            raise OperationError(f"{method} {what}", reason="NotFaked")
        return {}

    def _update(self, node: Object, content: Object) -> None:
        if "topology_str" in content:
            node["topology"] = content["topology_str"]
        elif content["state"] == ["DRAIN"]:
            node["state"] = [*(word for word in node["state"] if word != "DRAIN"), "DRAIN"]
            node["reason"] = content["reason"]
        else:
            node["state"] = [word for word in node["state"] if word != "DRAIN"]
            node["reason"] = ""
