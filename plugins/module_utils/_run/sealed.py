# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Encryption of an archive's parts: AES-256-GCM in frames, so that a part of any size passes through little memory.

A frame is its length (4 bytes, big-endian) and that many bytes. Each is bound to the archive, the part, its place and
to whether it is the last, so that none can be changed, moved, left out or cut off unseen.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.archive import PARTS, Seal, damaged
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.library import missing_library

FRAME = 2**20  # bytes of text in one frame
LARGEST = FRAME + 16  # with the tag
MOST_WORK = 2**20  # scrypt's n from a manifest: what is more is no honest archive


def new_seal() -> Seal:
    """How a new archive is encrypted: a salt of its own, so that no two archives have the same key."""
    return Seal(salt=secrets.token_hex(16))


class Cipher:
    """Encrypts and decrypts the parts of one archive."""

    def __init__(self, passphrase: str, seal: Seal, archive: str) -> None:
        try:
            from cryptography.exceptions import InvalidTag
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError as error:
            raise missing_library("cryptography", "to encrypt an archive") from error
        if not 2 <= seal.n <= MOST_WORK or seal.r != 8 or seal.p != 1:
            raise OperationError("The manifest asks for an unknown way to make the key.", reason="Damaged")
        key = hashlib.scrypt(
            passphrase.encode(), salt=bytes.fromhex(seal.salt), n=seal.n, r=seal.r, p=seal.p, maxmem=2**31 - 1, dklen=32
        )
        self._cipher = AESGCM(key)
        self._invalid = InvalidTag
        self._archive = archive

    def writer(self, part: str, sink: Callable[[bytes], Any]) -> SealedWriter:
        """A writer whose text goes to ``sink`` encrypted."""
        return SealedWriter(lambda place, last, text: self._seal(part, place, last, text), sink)

    def _seal(self, part: str, place: int, last: bool, text: bytes) -> bytes:
        return bytes(self._cipher.encrypt(_nonce(part, place), text, self._bound(part, place, last)))

    def open(self, path: str, part: str, source: Iterable[bytes]) -> Iterator[bytes]:
        """The text of a part, frame by frame; raises OperationError (WrongPassphrase, Damaged)."""
        frames = _frames(path, part, source)
        for place, (frame, last) in enumerate(frames):
            try:
                yield self._cipher.decrypt(_nonce(part, place), frame, self._bound(part, place, last))
            except self._invalid as error:
                raise OperationError(
                    f"{part} of archive {path} cannot be decrypted.",
                    reason="WrongPassphrase",
                    hint="Give the passphrase that it was made with; else it was changed. Nothing was changed here.",
                ) from error

    def _bound(self, part: str, place: int, last: bool) -> bytes:
        return f"{self._archive}/{part}/{place}/{int(last)}".encode()


class SealedWriter:
    """Gathers text into frames; close() writes the last one."""

    def __init__(self, seal: Callable[[int, bool, bytes], bytes], sink: Callable[[bytes], Any]) -> None:
        self._seal = seal
        self._sink = sink
        self._text = bytearray()
        self._place = 0

    def write(self, text: bytes) -> None:
        """Take some text."""
        self._text += text
        # The last frame is known as such only at the end: one byte more than a frame has to be there.
        while len(self._text) > FRAME:
            self._frame(bytes(self._text[:FRAME]), last=False)
            del self._text[:FRAME]

    def close(self) -> None:
        """Write what is left, which may be nothing, as the last frame."""
        self._frame(bytes(self._text), last=True)

    def _frame(self, text: bytes, last: bool) -> None:
        frame = self._seal(self._place, last, text)
        self._place += 1
        self._sink(len(frame).to_bytes(4, "big") + frame)


def _nonce(part: str, place: int) -> bytes:
    """Different for each frame of an archive, whose key no other archive has."""
    return PARTS.index(part).to_bytes(4, "big") + place.to_bytes(8, "big")


def _frames(path: str, part: str, source: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """The frames, each with whether it is the last."""
    buffer = bytearray()
    held: bytes | None = None
    for data in source:
        buffer += data
        while len(buffer) >= 4:
            length = int.from_bytes(buffer[:4], "big")
            if length > LARGEST:
                raise damaged(path, f"{part} is not encrypted as the manifest says")
            if len(buffer) < 4 + length:
                break
            if held is not None:
                yield held, False
            held = bytes(buffer[4 : 4 + length])
            del buffer[: 4 + length]
    if held is None or buffer:
        raise damaged(path, f"{part} ends in the middle")
    yield held, True
