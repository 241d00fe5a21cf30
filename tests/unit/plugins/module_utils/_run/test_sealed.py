# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Encryption of parts: what goes in comes out, and nothing that was changed does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.archive import DATABASE, STATE, Seal
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run import sealed
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._run.sealed import FRAME, Cipher

SEAL = Seal(salt="00" * 16, n=2)  # quick: what scrypt costs is not the subject


def cipher(passphrase: str = "correct horse", archive: str = "id") -> Cipher:
    return Cipher(passphrase, SEAL, archive)


def encrypted(*pieces: bytes, part: str = STATE, by: Cipher | None = None) -> bytes:
    stored = bytearray()
    writer = (by or cipher()).writer(part, stored.extend)
    for piece in pieces:
        writer.write(piece)
    writer.close()
    return bytes(stored)


def decrypted(stored: bytes, part: str = STATE, by: Cipher | None = None, step: int = 70_000) -> bytes:
    pieces = (stored[start : start + step] for start in range(0, len(stored), step))
    return b"".join((by or cipher()).open("a.zip", part, pieces))


@pytest.mark.parametrize("size", [0, 1, FRAME - 1, FRAME, FRAME + 1, 3 * FRAME])
def test_it_comes_out_as_it_went_in(size: int) -> None:
    text = bytes(range(256)) * (size // 256) + bytes(size % 256)
    stored = encrypted(text[: size // 2], text[size // 2 :])
    assert decrypted(stored) == text
    assert len(stored) > size


@given(st.lists(st.binary(max_size=50), max_size=5), st.integers(1, 30))
def test_pieces_do_not_matter(pieces: list[bytes], step: int) -> None:
    assert decrypted(encrypted(*pieces), step=step) == b"".join(pieces)


def frames(stored: bytes) -> list[bytes]:
    found = []
    while stored:
        length = 4 + int.from_bytes(stored[:4], "big")
        found.append(stored[:length])
        stored = stored[length:]
    return found


def test_nothing_that_was_changed_passes() -> None:
    first, second, last = frames(encrypted(bytes(2 * FRAME + 9)))
    flipped = first[:99] + bytes([first[99] ^ 1]) + first[100:]
    for stored in (
        flipped + second + last,
        second + first + last,
        first + last,
        first + second,
        first + second + last[:-1],
        first + second + last + last,
        b"",
    ):
        with pytest.raises(OperationError) as caught:
            decrypted(stored)
        assert caught.value.reason in ("WrongPassphrase", "Damaged")


@pytest.mark.parametrize(
    ("part", "by"),
    [(STATE, cipher("wrong horse")), (DATABASE, cipher()), (STATE, cipher(archive="another"))],
)
def test_passphrase_part_and_archive_have_to_be_the_same(part: str, by: Cipher) -> None:
    with pytest.raises(OperationError) as caught:
        decrypted(encrypted(b"text"), part=part, by=by)
    assert caught.value.reason == "WrongPassphrase"


def test_no_two_archives_have_the_same_salt() -> None:
    assert sealed.new_seal() != sealed.new_seal()


def test_a_manifest_cannot_make_it_work_for_ever() -> None:
    with pytest.raises(OperationError):
        Cipher("x", Seal(salt="00", n=2**40), "id")
