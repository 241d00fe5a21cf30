# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""What the API server (or the way to it) answered, said so that a person knows what to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError


class ApiError(OperationError):
    """An answer of the API server that is not success; ``status`` is its HTTP code, ``body`` its Status object."""

    def __init__(
        self, msg: str, *, reason: str, hint: str = "", status: int = 0, body: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(msg, reason=reason, hint=hint)
        self.status = status
        self.body = dict(body or {})

    @property
    def causes(self) -> list[dict[str, Any]]:
        """The causes that the Status object lists: for 422 one for each field, for 409 one for each conflict."""
        return list((self.body.get("details") or {}).get("causes") or [])

    def missing_namespace(self) -> str | None:
        """Return the namespace that does not exist, if that is why; a missing object is another thing."""
        details = self.body.get("details") or {}
        if self.status == 404 and details.get("kind") == "namespaces":
            return str(details.get("name"))
        return None


class Unreachable(OperationError):
    """No answer at all: name, route, refused connection, TLS, or silence until the deadline."""


# A manifest that does not fit the schema is a fault of the manifest, but some API servers (1.35, for one) answer 500.
_UNFIT = re.compile(
    r"^failed to (create typed (patch|live) object|convert (new|patched) object)|field not declared in schema"
    r"|unable to convert unstructured object"
)


def is_unfit(text: str) -> bool:
    """Whether the message of a 500 means that the manifest is wrong, so that trying again is of no use."""
    return bool(_UNFIT.search(text))


def explain(status: int, body: Mapping[str, Any], verb: str, target: str, source: str) -> ApiError:
    """Turn one unsuccessful answer into the error to raise.

    ``verb`` and ``target`` say what was asked for ("apply", "StatefulSet slurm/slurm-controller"); ``source`` says
    which credentials were used.
    """
    text = str(body.get("message") or body.get("raw") or "no message").strip().rstrip(".")

    def error(reason: str, msg: str, hint: str = "") -> ApiError:
        return ApiError(msg, reason=reason, hint=hint, status=status, body=body)

    if status == 401:
        return error(
            "Unauthorized",
            f"The API server does not accept the credentials ({source}): wrong or expired.",
            "Log in again or renew the token, then run again.",
        )
    if status == 403:
        return _forbidden(error, text, verb, target)
    if status == 404:
        details = body.get("details") or {}
        if details.get("kind") == "namespaces":
            name = details.get("name")
            return error(
                "NamespaceMissing",
                f"Cannot {verb} {target}: there is no namespace {name!r}.",
                f"Create it (kubectl create namespace {name}), or add a Namespace to the manifests.",
            )
        return error("NotFound", f"Cannot {verb} {target}: {text}.")
    if status == 409:
        return _conflict(error, body, text, verb, target)
    if status in (400, 422) or (status == 500 and is_unfit(text)):
        return _invalid(error, body, text, verb, target)
    if status == 410:
        return error("Expired", f"Cannot {verb} {target}: {text}.")
    if status == 413:
        return error(
            "TooLarge",
            f"Cannot {verb} {target}: it is too large for the API server ({text}).",
            "A ConfigMap or Secret holds at most 1 MiB; split it.",
        )
    if status == 415:
        return error(
            "Unsupported",
            f"Cannot {verb} {target}: {text}.",
            "Server-side apply needs Kubernetes 1.22 or newer.",
        )
    if status == 429:
        return error(
            "TooManyRequests",
            f"Cannot {verb} {target}: {text}.",
            "The API server is overloaded, or a PodDisruptionBudget forbids it now; run again later.",
        )
    return error(
        "ServerError", f"Cannot {verb} {target}: the API server answered {status}: {text}.", "Run again later."
    )


def _forbidden(error: Callable[..., ApiError], text: str, verb: str, target: str) -> ApiError:
    if "exceeded quota" in text:
        quota = text[text.index("exceeded quota") :]
        return error(
            "QuotaExceeded",
            f"Cannot {verb} {target}: {quota}.",
            "Ask for a larger ResourceQuota, or lower requests, limits or replicas.",
        )
    if "violates PodSecurity" in text:
        return error(
            "PodSecurity",
            f"Cannot {verb} {target}: {text}.",
            "Meet that level in the Pod template, or label the namespace with a lower one "
            "(pod-security.kubernetes.io/enforce).",
        )
    if "is being terminated" in text:
        return error(
            "NamespaceTerminating",
            f"Cannot {verb} {target}: its namespace is being deleted.",
            "Wait until it is gone, then run again.",
        )
    if "admission webhook" in text or "ValidatingAdmissionPolicy" in text:
        return error(
            "AdmissionDenied",
            f"Cannot {verb} {target}: {text}.",
            "That policy belongs to the cluster's administrators.",
        )
    found = re.search(
        r'User "(?P<user>[^"]+)" cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
        r'(?: in the namespace "(?P<namespace>[^"]+)"| at the cluster scope)?',
        text,
    )
    if not found:
        return error("Forbidden", f"Cannot {verb} {target}: {text}.", "Grant the right, or use other credentials.")
    group, namespace = found["group"], found["namespace"]
    resource = f"{found['resource']}.{group}" if group else found["resource"]
    where = f"in namespace {namespace}" if namespace else "at cluster scope"
    role = f"a Role in namespace {namespace}" if namespace else "a ClusterRole"
    rule = f'{{apiGroups: ["{group}"], resources: ["{found["resource"]}"], verbs: ["{found["verb"]}"]}}'
    return error(
        "Forbidden",
        f"Cannot {verb} {target}: {found['user']} may not {found['verb']} {resource} {where}.",
        f"Bind it to {role} with the rule {rule}.",
    )


def _conflict(error: Callable[..., ApiError], body: Mapping[str, Any], text: str, verb: str, target: str) -> ApiError:
    causes: Sequence[Mapping[str, Any]] = (body.get("details") or {}).get("causes") or []
    conflicts = [cause for cause in causes if cause.get("reason") == "FieldManagerConflict"]
    if conflicts:
        owners = sorted({owner for cause in conflicts for owner in re.findall(r'"([^"]+)"', str(cause.get("message")))})
        fields = ", ".join(str(cause.get("field")) for cause in conflicts)
        return error(
            "FieldConflict",
            f"Cannot {verb} {target}: {fields} is managed by {', '.join(owners) or 'somebody else'}.",
            "Leave these fields out of the manifest, or set force_conflicts to take them over.",
        )
    if body.get("reason") == "AlreadyExists":
        return error("AlreadyExists", f"Cannot {verb} {target}: it exists already.")
    return error("Conflict", f"Cannot {verb} {target}: {text}.", "Somebody changed it at the same moment; run again.")


def _invalid(error: Callable[..., ApiError], body: Mapping[str, Any], text: str, verb: str, target: str) -> ApiError:
    causes: Sequence[Mapping[str, Any]] = (body.get("details") or {}).get("causes") or []
    lines = [f"{cause.get('field') or 'object'}: {cause.get('message')}" for cause in causes]
    what = "; ".join(dict.fromkeys(line.rstrip(".") for line in lines)) or _schema_error(text)
    if "immutable" in what or "updates to statefulset spec for fields other than" in what:
        return error("Immutable", f"Cannot {verb} {target}: {what}.")
    return error("Invalid", f"Cannot {verb} {target}: the API server refuses it: {what}.", "Correct the manifest.")


def _schema_error(text: str) -> str:
    """Return the part of a schema error that tells something: which field, and what is wrong with it."""
    text = re.sub(r"^failed to [a-z ]+ \([^)]*\)(?: to proper version)?: ", "", text)
    text = re.sub(r"^unable to convert unstructured object to [^:]*: ", "", text)
    return re.sub(r"&(?:value\.valueUnstructured)?\{(?:Value:)?([^}]*)\}", r"\1", text)
