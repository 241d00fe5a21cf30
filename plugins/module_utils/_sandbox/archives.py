# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Image archives: what identifies one, and how the one image is written that the sandbox makes itself."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError

from .settings import PAUSE_IMAGE

# The file that names all content of an archive by digest: OCI layout, or what `docker save` writes.
_INDEXES = ("index.json", "manifest.json")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def identity(path: Path) -> str:
    """A digest that changes when, and only when, the images of the archive do. Reads the archive's index only."""
    try:
        with tarfile.open(path, "r:") as archive:
            indexes = {
                member.name.removeprefix("./"): archive.extractfile(member)
                for member in archive
                if member.name.removeprefix("./") in _INDEXES
            }
            for name in _INDEXES:
                file = indexes.get(name)
                if file is not None:
                    return hashlib.sha256(file.read()).hexdigest()
    except (OSError, tarfile.TarError) as error:
        raise OperationError(f"Image archive {path} cannot be read: {error}.", reason="InvalidArchive") from error
    raise OperationError(
        f"{path} is not an image archive: it holds neither {_INDEXES[0]} nor {_INDEXES[1]}.", reason="InvalidArchive"
    )


def collection_identity(identities: Iterable[str], runtime: str) -> str:
    """A digest for a set of archives, unpacked by one version of the runtime."""
    text = "\n".join([runtime, *sorted(identities)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def architecture() -> str:
    machine = platform.machine()
    return _ARCHITECTURES.get(machine, machine)


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), mode
    archive.addfile(member, io.BytesIO(content))


def _tar(files: Mapping[str, tuple[bytes, int]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, (content, mode) in files.items():
            _add(archive, name, content, mode)
    return buffer.getvalue()


def _descriptor(kind: str, content: bytes, **more: Any) -> dict[str, Any]:
    digest = hashlib.sha256(content).hexdigest()
    media = f"application/vnd.oci.image.{kind}"
    return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(content), **more}


def _encode(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True).encode()


def image_archive(name: str, files: Mapping[str, tuple[bytes, int]], config: Mapping[str, Any]) -> bytes:
    """An OCI archive with one image of one layer. The same files (content and mode by path) give the same bytes."""
    layer = _tar(files)
    compressed = gzip.compress(layer, mtime=0)
    machine = {"architecture": architecture(), "os": "linux"}
    configuration = _encode(
        {
            **machine,
            "config": dict(config),
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        }
    )
    manifest = _encode(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": _descriptor("config.v1+json", configuration),
            "layers": [_descriptor("layer.v1.tar+gzip", compressed)],
        }
    )
    annotations = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
    index = _encode(
        {
            "schemaVersion": 2,
            "manifests": [_descriptor("manifest.v1+json", manifest, platform=machine, annotations=annotations)],
        }
    )
    blobs = {
        f"blobs/sha256/{hashlib.sha256(blob).hexdigest()}": (blob, 0o644)
        for blob in (compressed, configuration, manifest)
    }
    return _tar(
        {"oci-layout": (_encode({"imageLayoutVersion": "1.0.0"}), 0o644), "index.json": (index, 0o644), **blobs}
    )


def pause_archive(program: bytes) -> bytes:
    """The image of the container that holds a Pod's namespaces."""
    config = {"Entrypoint": ["/pause"], "User": "65534:65534", "WorkingDir": "/"}
    return image_archive(PAUSE_IMAGE, {"pause": (program, 0o755)}, config)
