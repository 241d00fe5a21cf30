# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The kinds that modules read and write by name."""

from __future__ import annotations

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.paths import Resource

CLAIM = Resource("v1", "PersistentVolumeClaim", "persistentvolumeclaims", True)
CONFIG_MAP = Resource("v1", "ConfigMap", "configmaps", True)
EVENT = Resource("v1", "Event", "events", True)
KUBERNETES_NODE = Resource("v1", "Node", "nodes", False)
NAMESPACE = Resource("v1", "Namespace", "namespaces", False)
POD = Resource("v1", "Pod", "pods", True)
SECRET = Resource("v1", "Secret", "secrets", True)

CONTROLLER_REVISION = Resource("apps/v1", "ControllerRevision", "controllerrevisions", True)
DAEMON_SET = Resource("apps/v1", "DaemonSet", "daemonsets", True)
DEPLOYMENT = Resource("apps/v1", "Deployment", "deployments", True)
REPLICA_SET = Resource("apps/v1", "ReplicaSet", "replicasets", True)
STATEFUL_SET = Resource("apps/v1", "StatefulSet", "statefulsets", True)

JOB = Resource("batch/v1", "Job", "jobs", True)
LEASE = Resource("coordination.k8s.io/v1", "Lease", "leases", True)
