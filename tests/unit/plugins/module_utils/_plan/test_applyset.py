# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan for a set of manifests: tables, then that a plan that was carried out leaves nothing to plan."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan import applyset, applyset_parent
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.action import Action
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.applyset import Key, Observed, Refused
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.applyset_parent import Options
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._plan.stamp import stamp

Object = dict[str, Any]
OPTIONS = Options("web", "demo")
ID = OPTIONS.set_id
PART_OF = "applyset.kubernetes.io/part-of"

API = {
    "Namespace": "v1",
    "ConfigMap": "v1",
    "Secret": "v1",
    "Service": "v1",
    "ServiceAccount": "v1",
    "PersistentVolumeClaim": "v1",
    "StatefulSet": "apps/v1",
    "Deployment": "apps/v1",
    "Thing": "example.com/v1",
}


def manifest(kind: str, name: str = "a", namespace: str = "demo", **more: Any) -> Object:
    metadata = {"name": name} if kind == "Namespace" else {"name": name, "namespace": namespace}
    return {"apiVersion": API[kind], "kind": kind, "metadata": metadata, **more}


def wanted_of(items: Iterable[Object], options: Options = OPTIONS) -> dict[Key, Object]:
    return applyset.in_order([stamp(item, options.set_id) for item in items])


def server(item: Object, **metadata: Any) -> Object:
    """The object as the server would hold it."""
    live = copy.deepcopy(item)
    live["metadata"] |= {"uid": f"uid-{item['kind']}-{item['metadata']['name']}", "resourceVersion": "7", **metadata}
    live["status"] = {"phase": "Active"}
    return live


def observed(*live: Object, parent: Object | None = None, predicted: dict[Key, Any] | None = None) -> Observed:
    return Observed(parent, {applyset.key_of(item): item for item in live}, predicted or {})


def parent_of(*items: Object, options: Options = OPTIONS) -> Object:
    return server(
        applyset_parent.parent_manifest(options, {applyset_parent.group_kind(item) for item in items}, ["demo"])
    )


def steps(actions: Iterable[Action]) -> list[str]:
    return [f"{action.kind} {action.target}" for action in actions]


# --- identity -----------------------------------------------------------------------------------------------------


def test_the_id_is_that_of_the_specification() -> None:
    # base64url(sha256("web.demo.ConfigMap.")), computed with openssl and basenc.
    assert ID == "applyset-fB8Dz1OmaRDfsd-c8PGTweCGJduHqTvNCFwNGB5rNK8-v1"


def test_a_first_run_creates_everything_in_order() -> None:
    items = [manifest(kind) for kind in ("Thing", "StatefulSet", "Service", "ConfigMap", "Secret", "Namespace")]
    plan = applyset.plan(wanted_of(items), observed(), OPTIONS)
    assert steps(plan) == [
        "create Namespace a",
        "create ConfigMap demo/web",
        "create Secret demo/a",
        "create ConfigMap demo/a",
        "create Service demo/a",
        "create StatefulSet demo/a",
        "create Thing demo/a",
    ]
    parent = plan[1].subject["metadata"]
    assert parent["labels"]["applyset.kubernetes.io/id"] == ID
    assert parent["annotations"]["applyset.kubernetes.io/tooling"].startswith("slurm_ops.kubernetes/v")
    kinds = parent["annotations"]["applyset.kubernetes.io/contains-group-kinds"]
    assert kinds == "ConfigMap,Secret,Service,StatefulSet.apps,Thing.example.com"


def test_a_namespace_is_no_member() -> None:
    assert PART_OF not in stamp(manifest("Namespace"), ID)["metadata"].get("labels", {})
    assert stamp(manifest("ConfigMap"), ID)["metadata"]["labels"] == {PART_OF: ID}


def test_other_namespaces_are_remembered() -> None:
    plan = applyset.plan(wanted_of([manifest("ConfigMap", namespace="other")]), observed(), OPTIONS)
    annotations = plan[0].subject["metadata"]["annotations"]
    assert annotations["applyset.kubernetes.io/additional-namespaces"] == "other"
    assert applyset_parent.remembered(plan[0].subject) == ({"ConfigMap"}, {"other"})


def test_the_same_object_twice_is_refused() -> None:
    with pytest.raises(OperationError) as caught:
        wanted_of([manifest("ConfigMap"), manifest("ConfigMap", data={"a": "1"})])
    assert "ConfigMap demo/a is given twice" in caught.value.msg


# --- unchanged, update --------------------------------------------------------------------------------------------


def test_what_is_as_wanted_needs_neither_a_dry_run_nor_an_action() -> None:
    wanted = wanted_of([manifest("ConfigMap", data={"a": "1"}), manifest("Service", spec={"ports": [{"port": 80}]})])
    live = [server(item) for item in wanted.values()]
    live[1]["spec"]["clusterIP"] = "10.0.0.1"
    assert applyset.undecided(wanted, observed(*live).live) == []
    assert applyset.plan(wanted, observed(*live, parent=parent_of(*live)), OPTIONS) == []


def test_a_key_that_left_the_manifest_is_noticed() -> None:
    old = wanted_of([manifest("ConfigMap", data={"a": "1", "b": "2"})])
    live = server(next(iter(old.values())))
    wanted = wanted_of([manifest("ConfigMap", data={"a": "1"})])
    (key,) = applyset.undecided(wanted, observed(live).live)
    after = server(wanted[key])
    plan = applyset.plan(wanted, observed(live, parent=parent_of(live), predicted={key: after}), OPTIONS)
    assert steps(plan) == ["update ConfigMap demo/a"]
    assert (plan[0].before, plan[0].after) == ({"data.b": "2"}, {"data.b": None})


def test_what_only_seems_to_differ_is_no_change() -> None:
    wanted = wanted_of([manifest("Deployment", spec={"minReadySeconds": 0})])
    live = server(next(iter(wanted.values())))
    live["spec"] = {"paused": False}
    (key,) = applyset.undecided(wanted, observed(live).live)
    plan = applyset.plan(
        wanted, observed(live, parent=parent_of(live), predicted={key: {**live, "status": {}}}), OPTIONS
    )
    assert plan == []


def test_secrets_do_not_show_in_a_plan() -> None:
    wanted = wanted_of([manifest("Secret", data={"k": "bmV3"})])
    live = server(next(iter(wanted_of([manifest("Secret", data={"k": "b2xk"})]).values())))
    (key,) = wanted
    predicted = {key: server(wanted[key])}
    (action,) = applyset.plan(wanted, observed(live, parent=parent_of(live), predicted=predicted), OPTIONS)
    assert (action.before, action.after) == ({"data.k": "(hidden)"}, {"data.k": "(hidden, changed)"})
    assert "bmV3" not in str((action.result(), action.diff))
    assert "b2xk" not in str((action.result(), action.diff))


def test_an_object_on_its_way_out_is_made_again() -> None:
    wanted = wanted_of([manifest("ConfigMap")])
    live = server(next(iter(wanted.values())), deletionTimestamp="now")
    (action,) = applyset.plan(wanted, observed(live, parent=parent_of(live)), OPTIONS)
    assert (action.kind, action.target) == ("create", "ConfigMap demo/a")
    assert "being deleted" in action.why


# --- whose is it --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "words"),
    [({}, "was made by kubectl-create"), ({PART_OF: "applyset-other-v1"}, "belongs to the ApplySet applyset-other-v1")],
)
def test_objects_of_others_are_refused(labels: dict[str, str], words: str) -> None:
    wanted = wanted_of([manifest("ConfigMap"), manifest("Secret")])
    theirs = server(manifest("ConfigMap"), labels=labels, managedFields=[{"manager": "kubectl-create"}])
    with pytest.raises(OperationError) as caught:
        applyset.plan(wanted, observed(theirs), OPTIONS)
    assert caught.value.reason == "NameClash"
    assert words in caught.value.msg
    assert "adopt" in caught.value.hint


def test_objects_of_others_are_adopted_if_told_to() -> None:
    wanted = wanted_of([manifest("ConfigMap")])
    (key,) = wanted
    theirs = server(manifest("ConfigMap"))
    options = Options("web", "demo", adopt=True)
    plan = applyset.plan(wanted, observed(theirs, predicted={key: server(wanted[key])}), options)
    assert steps(plan) == ["create ConfigMap demo/web", "update ConfigMap demo/a"]


def test_a_namespace_that_exists_is_shared() -> None:
    wanted = wanted_of([manifest("Namespace")])
    live = server(manifest("Namespace"))
    (key,) = wanted
    plan = applyset.plan(wanted, observed(live, parent=parent_of(), predicted={key: live}), OPTIONS)
    assert plan == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"labels": {}}, "not the parent of a set"),
        ({"labels": {"applyset.kubernetes.io/id": "applyset-other-v1"}}, "not the parent of a set"),
        ({"annotations": {"applyset.kubernetes.io/tooling": "kubectl/v1.35"}}, "managed by kubectl/v1.35"),
        ({"annotations": {}}, "managed by another tool"),
    ],
)
def test_a_parent_of_others_is_refused(change: Object, words: str) -> None:
    parent = parent_of()
    parent["metadata"] |= change
    for planned in (
        lambda: applyset.plan({}, observed(parent=parent), OPTIONS),
        lambda: applyset.plan_absent(observed(parent=parent), OPTIONS),
    ):
        with pytest.raises(OperationError) as caught:
            planned()
        assert caught.value.reason == "NameClash"
        assert words in caught.value.msg


# --- prune --------------------------------------------------------------------------------------------------------


def members(*kinds: str) -> list[Object]:
    return [server(stamp(manifest(kind, "old"), ID)) for kind in kinds]


def test_what_left_the_manifests_is_pruned_in_reverse_order() -> None:
    live = members("Secret", "Service", "StatefulSet", "Thing")
    plan = applyset.plan({}, observed(*live, parent=parent_of(*live)), OPTIONS)
    assert steps(plan) == [
        "prune Thing demo/old",
        "prune StatefulSet demo/old",
        "prune Service demo/old",
        "prune Secret demo/old",
        "update ConfigMap demo/web",
    ]
    assert applyset_parent.remembered(plan[-1].subject) == (set(), set())


def test_the_parent_grows_before_and_shrinks_after() -> None:
    live = members("Secret")
    plan = applyset.plan(wanted_of([manifest("Service")]), observed(*live, parent=parent_of(*live)), OPTIONS)
    assert steps(plan) == [
        "update ConfigMap demo/web",
        "create Service demo/a",
        "prune Secret demo/old",
        "update ConfigMap demo/web",
    ]
    assert applyset_parent.remembered(plan[0].subject)[0] == {"Secret", "Service"}
    assert applyset_parent.remembered(plan[-1].subject)[0] == {"Service"}


def test_volumes_and_namespaces_are_not_pruned() -> None:
    live = members("PersistentVolumeClaim", "Service")
    namespace = server(manifest("Namespace"), labels={PART_OF: ID})
    plan = applyset.plan({}, observed(*live, namespace, parent=parent_of(*live)), OPTIONS)
    assert "prune Service demo/old" in steps(plan)
    assert not [step for step in steps(plan) if "Namespace" in step or "PersistentVolumeClaim" in step]
    assert "PersistentVolumeClaim" in applyset_parent.remembered(plan[-1].subject)[0]
    options = Options("web", "demo", delete_volumes=True)
    plan = applyset.plan({}, observed(*live, namespace, parent=parent_of(*live)), options)
    assert "prune PersistentVolumeClaim demo/old" in steps(plan)
    assert not [step for step in steps(plan) if "Namespace" in step]


def test_nothing_is_pruned_when_told_so() -> None:
    live = members("Service")
    options = Options("web", "demo", prune=False)
    assert applyset.plan({}, observed(*live, parent=parent_of(*live)), options) == []


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": {PART_OF: "applyset-other-v1"}},
        {"labels": {}},
        {"ownerReferences": [{"uid": "x"}]},
        {"deletionTimestamp": "now"},
    ],
)
def test_what_is_not_ours_to_prune(metadata: Object) -> None:
    (live,) = members("Service")
    live["metadata"] |= metadata
    plan = applyset.plan({}, observed(live, parent=parent_of()), OPTIONS)
    assert plan == []


def test_an_absent_set_goes_with_its_parent_but_without_its_volumes() -> None:
    live = members("PersistentVolumeClaim", "ConfigMap", "StatefulSet")
    plan = applyset.plan_absent(observed(*live, parent=parent_of(*live)), OPTIONS)
    assert steps(plan) == ["delete StatefulSet demo/old", "delete ConfigMap demo/old", "delete ConfigMap demo/web"]
    assert "kept: PersistentVolumeClaim demo/old" in plan[-1].why
    assert applyset.plan_absent(observed(), OPTIONS) == []


# --- what cannot be done ------------------------------------------------------------------------------------------


def test_all_refusals_are_told_at_once() -> None:
    wanted = wanted_of([manifest("ConfigMap"), manifest("Service"), manifest("Secret")])
    keys = list(wanted)
    predicted = {keys[0]: Refused("Secret: no", "h", "Invalid"), keys[2]: Refused("Service: no", "h", "Forbidden")}
    with pytest.raises(OperationError) as caught:
        applyset.plan(wanted, observed(predicted=predicted), OPTIONS)
    assert "2 manifests cannot be applied; nothing was sent" in caught.value.msg
    assert "Secret: no" in caught.value.msg
    assert "Service: no" in caught.value.msg


def fixed(recreate: bool, instead: bool) -> tuple[dict[Key, Object], Observed, Options]:
    wanted = wanted_of([manifest("StatefulSet", spec={"serviceName": "new", "replicas": 2})])
    old = wanted_of([manifest("StatefulSet", spec={"serviceName": "old", "replicas": 1})])
    live = server(next(iter(old.values())))
    (key,) = wanted
    refused = Refused("spec: Forbidden: ...", "", "Immutable", server(wanted[key]) if instead else None)
    return (
        wanted,
        observed(live, parent=parent_of(live), predicted={key: refused}),
        Options("web", "demo", recreate=recreate),
    )


def test_a_field_that_cannot_be_changed_is_named() -> None:
    with pytest.raises(OperationError) as caught:
        applyset.plan(*fixed(recreate=False, instead=False))
    assert caught.value.reason == "Immutable"
    assert "StatefulSet demo/a: spec.serviceName cannot be changed" in caught.value.msg
    assert "recreate" in caught.value.hint


def test_a_statefulset_is_made_again_if_told_to() -> None:
    (action,) = applyset.plan(*fixed(recreate=True, instead=True))
    assert (action.kind, action.target) == ("recreate", "StatefulSet demo/a")
    assert "spec.serviceName" in action.why
    assert action.after == {"spec.replicas": 2, "spec.serviceName": "new"}


def test_volumes_that_left_a_statefulset_are_named_too() -> None:
    wanted, seen, _options = fixed(recreate=False, instead=False)
    (live,) = seen.live.values()
    live["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "v"}}]  # type: ignore[index]
    with pytest.raises(OperationError) as caught:
        applyset.plan(wanted, seen, OPTIONS)
    assert "spec.serviceName, spec.volumeClaimTemplates" in caught.value.msg


def test_other_kinds_are_not_made_again() -> None:
    wanted = wanted_of([manifest("Deployment", spec={"selector": {}})])
    live = server(next(iter(wanted_of([manifest("Deployment", spec={"selector": {"a": "b"}})]).values())))
    (key,) = wanted
    predicted = {key: Refused("spec.selector: field is immutable", "", "Immutable")}
    with pytest.raises(OperationError) as caught:
        applyset.plan(wanted, observed(live, parent=parent_of(live), predicted=predicted), OPTIONS)
    assert "Delete Deployment demo/a first" in caught.value.hint


def test_data_is_not_to_be_deleted_for_a_change() -> None:
    wanted = wanted_of([manifest("PersistentVolumeClaim", spec={"accessModes": ["ReadWriteMany"]})])
    (other,) = wanted_of([manifest("PersistentVolumeClaim", spec={"accessModes": ["ReadWriteOnce"]})]).values()
    live = server(other)
    (key,) = wanted
    predicted = {key: Refused("spec: Forbidden: spec is immutable", "", "Immutable")}
    with pytest.raises(OperationError) as caught:
        applyset.plan(wanted, observed(live, parent=parent_of(live), predicted=predicted), OPTIONS)
    assert "Its data would go with it" in caught.value.hint
    assert "elete" not in caught.value.hint


# --- stamps -------------------------------------------------------------------------------------------------------


def pod_workload(kind: str = "Deployment", **pod: Any) -> Object:
    return manifest(kind, spec={"template": {"metadata": {}, "spec": pod}})


def test_a_content_hash_goes_into_the_pod_template() -> None:
    stamped = stamp(pod_workload(), ID, "0123")
    assert stamped["spec"]["template"]["metadata"]["annotations"] == {"slurm-ops.kubernetes/content-hash": "0123"}
    assert stamped != stamp(pod_workload(), ID, "4567")


def test_claims_of_a_statefulset_carry_the_label_of_the_set() -> None:
    claims = [{"metadata": {"name": "state"}}, "nonsense"]
    stamped = stamp(manifest("StatefulSet", spec={"volumeClaimTemplates": claims}), ID)
    assert stamped["spec"]["volumeClaimTemplates"] == [
        {"metadata": {"name": "state", "labels": {PART_OF: ID}}},
        "nonsense",
    ]


def test_a_service_account_that_left_the_manifest_is_reset() -> None:
    live = server(pod_workload(serviceAccountName="x", serviceAccount="x"))
    stamped = stamp(pod_workload(), ID, live=live)
    assert stamped["spec"]["template"]["spec"]["serviceAccountName"] == "default"
    # The hash is that of the manifest, so that the run after that one has nothing to do.
    again = stamp(pod_workload(), ID, live=server(stamped))
    assert again["metadata"]["annotations"] == stamped["metadata"]["annotations"]
    assert applyset.undecided(applyset.in_order([again]), observed(server(stamped)).live) == []


# --- a plan that was carried out leaves nothing to plan -----------------------------------------------------------


class Model:
    """A cluster in memory that carries out actions."""

    def __init__(self) -> None:
        self.live: dict[Key, Object] = {}
        self.parent: Object | None = None

    def observe(self, wanted: dict[Key, Object]) -> Observed:
        predicted = {key: self.applied(wanted[key]) for key in applyset.undecided(wanted, self.live)}
        return Observed(self.parent, dict(self.live), predicted)

    def applied(self, item: Object) -> Object:
        old = self.live.get(applyset.key_of(item))
        result = server(item)
        if old is not None:
            result["metadata"]["uid"] = old["metadata"]["uid"]
        return result

    def carry_out(self, actions: Iterable[Action]) -> None:
        for action in actions:
            item = action.subject
            is_parent = applyset_parent.ID_LABEL in (item["metadata"].get("labels") or {})
            if action.kind in ("prune", "delete"):
                self.parent = None if is_parent else self.parent
                self.live.pop(applyset.key_of(item), None)
            elif is_parent:
                self.parent = server(item)
            else:
                self.live[applyset.key_of(item)] = self.applied(item)

    def check_that_the_parent_knows_every_member(self) -> None:
        kinds = {applyset_parent.group_kind(item) for item in self.live.values() if item["kind"] != "Namespace"}
        assert kinds <= applyset_parent.remembered(self.parent)[0]


data = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.sampled_from(["1", "2", ""]), max_size=3)
manifests = st.builds(
    lambda kind, name, namespace, content: manifest(kind, name, namespace, data=content),
    st.sampled_from(sorted(API)),
    st.sampled_from(["x", "y"]),
    st.sampled_from(["demo", "other"]),
    data,
)
sets = st.lists(manifests, max_size=6, unique_by=applyset.key_of)


@given(st.lists(sets, min_size=1, max_size=4))
def test_a_plan_that_was_carried_out_leaves_nothing_to_plan(history: list[list[Object]]) -> None:
    model = Model()
    for items in history:
        wanted = wanted_of(items)
        model.carry_out(applyset.plan(wanted, model.observe(wanted), OPTIONS))
        model.check_that_the_parent_knows_every_member()
        assert applyset.undecided(wanted, model.live) == []
        assert applyset.plan(wanted, model.observe(wanted), OPTIONS) == []
        left = {key for key, item in model.live.items() if item["kind"] not in applyset.PROTECTED}
        assert left == {key for key in wanted if key.group_kind not in applyset.PROTECTED}


@given(sets, sets, st.integers(0, 12))
def test_a_run_that_was_killed_is_finished_by_the_next(first: list[Object], second: list[Object], at: int) -> None:
    model = Model()
    wanted = wanted_of(first)
    model.carry_out(applyset.plan(wanted, model.observe(wanted), OPTIONS))
    wanted = wanted_of(second)
    for action in applyset.plan(wanted, model.observe(wanted), OPTIONS)[:at]:
        model.carry_out([action])
        model.check_that_the_parent_knows_every_member()
    model.carry_out(applyset.plan(wanted, model.observe(wanted), OPTIONS))
    assert applyset.plan(wanted, model.observe(wanted), OPTIONS) == []
    assert set(wanted) <= set(model.live)


@given(sets)
def test_an_absent_set_leaves_only_what_is_protected(items: list[Object]) -> None:
    model = Model()
    wanted = wanted_of(items)
    model.carry_out(applyset.plan(wanted, model.observe(wanted), OPTIONS))
    model.carry_out(applyset.plan_absent(model.observe({}), OPTIONS))
    assert model.parent is None
    assert {item["kind"] for item in model.live.values()} <= applyset.PROTECTED
    assert applyset.plan_absent(model.observe({}), OPTIONS) == []
