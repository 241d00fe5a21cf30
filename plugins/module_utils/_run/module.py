# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The edge to Ansible: options in, result or error out; the only place that knows check mode, diff and fail_json."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NoReturn, Protocol

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.client import KubernetesClient
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.config import ENVIRONMENT, resolve
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.transport import POOL_SIZE
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.arguments import ArgumentSpec
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.progress import Progress
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.result import api_calls, diffs, done_and_not

NOT_SHOWN = "(not shown: may hold secrets)"


class Run:
    """What an operation may use of the outside: its options, the API client, progress lines."""

    def __init__(self, params: Mapping[str, Any], name: str) -> None:
        self.params = params
        self.progress = Progress(name)
        self.slurm_calls: Counter[str] = Counter()
        self.held = ExitStack()  # what an operation needs to its end, such as a temporary file
        self.actions: list[Action] = []  # the plan; an operation may add what it mended while it waited
        self._warnings: list[str] = []
        self._kubernetes: KubernetesClient | None = None

    @property
    def kubernetes(self) -> KubernetesClient:
        """The API client, made on first use."""
        if self._kubernetes is None:
            options = {name: self.params.get(name) for name in ENVIRONMENT}
            self._kubernetes = KubernetesClient(lambda: resolve(options))
        return self._kubernetes

    @property
    def kubernetes_calls(self) -> Counter[str]:
        """The calls made so far, by verb."""
        return self._kubernetes.calls if self._kubernetes else Counter()

    def warn(self, text: str) -> None:
        """Tell something that is no error, once."""
        if text not in self._warnings:
            self._warnings.append(text)

    @property
    def warnings(self) -> Sequence[str]:
        """What is to be told at the end: ours, and what the API server warned of."""
        server = self._kubernetes.warnings if self._kubernetes else ()
        return [*self._warnings, *(f"Kubernetes API server: {text}" for text in server)]

    def close(self) -> None:
        """Give back what is held, and close the connections."""
        self.held.close()
        if self._kubernetes:
            self._kubernetes.close()


class Operation(Protocol):
    """What a module does: read and plan, act, wait, tell."""

    def plan(self) -> Sequence[Action]:
        """Read both sides and return what is to be done. Must not change anything."""

    def act(self, actions: Sequence[Action]) -> None:
        """Carry out neighbours of one stage and mark each as done as soon as it is. Raises OperationError."""

    def wait(self) -> None:
        """Wait, if the options ask for it, until what was asked for is true. Raises OperationError."""

    def result(self) -> Mapping[str, Any]:
        """Return what the module returns beside the common values."""


class Module(AnsibleModule):  # type: ignore[misc]
    """AnsibleModule that keeps sensitive options out of logs and results without blacking out every equal string."""

    argument_spec: dict[str, Any]

    def __init__(self, arguments: ArgumentSpec, **more: Any) -> None:
        self._sensitive = arguments.sensitive
        super().__init__(**arguments.module_arguments(), **more)

    def _log_invocation(self) -> None:
        shown = self.argument_spec
        self.argument_spec = {
            name: {**option, "no_log": True} if name in self._sensitive else option for name, option in shown.items()
        }
        try:
            super()._log_invocation()
        finally:
            self.argument_spec = shown

    def _return_formatted(self, kwargs: dict[str, Any]) -> None:
        params = {
            name: NOT_SHOWN if name in self._sensitive and _may_hold_secrets(value) else value
            for name, value in self.params.items()
        }
        kwargs.setdefault("invocation", {"module_args": params})
        super()._return_formatted(kwargs)


def _may_hold_secrets(value: Any) -> bool:
    """Whether a sensitive option has content, and not just the path of a file."""
    if isinstance(value, str):
        return "\n" in value or value.lstrip().startswith(("{", "["))
    return value is not None


def run(arguments: ArgumentSpec, operation: Callable[[Run], Operation]) -> None:
    """Plan, and unless in check mode act and wait; then exit with the result. The whole life of an action module."""
    begun = time.monotonic()
    module = Module(arguments, supports_check_mode=True)
    context = Run(module.params, str(module.params.get("name") or module._name))
    try:
        work = operation(context)
        result = carry_out(context, work, check=module.check_mode)
    except Exception as error:  # noqa: BLE001 (not swallowed: told with its type)
        _fail(module, context, begun, error)
    finally:
        context.close()
    changed = bool(context.actions) if module.check_mode else any(action.done for action in context.actions)
    module.exit_json(changed=changed, remaining=[], **_common(module, context, begun), **result)


def carry_out(context: Run, work: Operation, *, check: bool = False) -> dict[str, Any]:
    """Plan, and unless only checked act and wait; then the result. An operation without Ansible around it."""
    context.actions += work.plan()
    if not check:
        for batch in stages(context.actions):
            work.act(batch)
        work.wait()
    return dict(work.result())


def do_each(
    kubernetes: KubernetesClient,
    work: Callable[[Action], bool | None],
    actions: Sequence[Action],
    workers: int = POOL_SIZE,
) -> None:
    """Carry out actions side by side and mark each as done as soon as it is; False from ``work`` means it was not.

    Raises the first OperationError; what was not begun by then is not begun any more.
    """
    for action, outcome in kubernetes.map_concurrent(work, actions, workers):
        if isinstance(outcome, OperationError):
            raise outcome
        action.done = outcome is not False


def report(arguments: ArgumentSpec, read: Callable[[Run], Mapping[str, Any]]) -> None:
    """Read and exit with what was read. The whole life of an info module."""
    begun = time.monotonic()
    module = Module(arguments, supports_check_mode=True)
    context = Run(module.params, str(module.params.get("name") or module._name))
    try:
        result = dict(read(context))
    except Exception as error:  # noqa: BLE001 (not swallowed: told with its type)
        _fail(module, context, begun, error)
    finally:
        context.close()
    common = _common(module, context, begun)
    module.exit_json(changed=False, api_calls=common["api_calls"], duration=common["duration"], **result)


def stages(actions: Sequence[Action]) -> list[list[Action]]:
    """Return the actions in groups: neighbours of one stage together, an action without a stage alone."""
    groups: list[list[Action]] = []
    for action in actions:
        if action.stage and groups and groups[-1][0].stage == action.stage:
            groups[-1].append(action)
        else:
            groups.append([action])
    return groups


def _common(module: Module, context: Run, begun: float) -> dict[str, Any]:
    for warning in context.warnings:
        module.warn(warning)
    values: dict[str, Any] = {
        "actions": [action.result() for action in context.actions],
        "api_calls": api_calls(context.kubernetes_calls, context.slurm_calls),
        "duration": round(time.monotonic() - begun, 3),
    }
    if module._diff:
        values["diff"] = diffs(context.actions)
    return values


def _fail(module: Module, context: Run, begun: float, error: Exception) -> NoReturn:
    """End with what went wrong, what was done before it, and what was not."""
    left = [f"{action.kind} {action.target}" for action in context.actions if not action.done]
    so_far = done_and_not(context.actions) if left else ""
    values = _common(module, context, begun) | {
        "changed": any(action.done for action in context.actions),
        "exception": "".join(traceback.format_exception(error)),
    }
    if isinstance(error, OperationError):
        values |= {"reason": error.reason, "hint": error.hint, "remaining": list(error.remaining) or left}
        message = f"{error}{so_far}"
    else:
        values |= {"reason": "Unexpected", "hint": "This is a defect; please report it.", "remaining": left}
        message = f"Unexpected {type(error).__name__}: {error}.{so_far} This is a defect; please report it."
    module.fail_json(msg=message, **values)
    raise SystemExit(1)  # fail_json does not return
