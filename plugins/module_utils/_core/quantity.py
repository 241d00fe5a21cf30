# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""Kubernetes quantities (500m, 16Gi, 1e3), exactly: no float ever holds one."""

from __future__ import annotations

import re
from fractions import Fraction

from .errors import OperationError

_QUANTITY = re.compile(
    r"(?P<sign>[+-]?)(?P<number>\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?\d{1,2}))?",
    re.ASCII,
)
_FACTORS = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": Fraction(1000),
    **{letter: Fraction(1000**power) for power, letter in enumerate("MGTPE", start=2)},
    **{letter + "i": Fraction(1024**power) for power, letter in enumerate("KMGTPE", start=1)},
}

MIB = 1024 * 1024


def parse(quantity: str | float) -> Fraction:
    """The exact value of a quantity; raises OperationError (InvalidQuantity)."""
    match = None if isinstance(quantity, bool) else _QUANTITY.fullmatch(str(quantity))
    if match is None:
        raise OperationError(
            f"{quantity!r} is not a Kubernetes quantity.", reason="InvalidQuantity", hint="Write 4, 500m, 2G or 16Gi."
        )
    value = Fraction(match["number"])
    if match["suffix"]:
        value *= _FACTORS[match["suffix"]]
    elif match["exponent"]:
        value *= Fraction(10) ** int(match["exponent"])
    return -value if match["sign"] == "-" else value


def whole_bytes(quantity: str | float) -> int:
    """Bytes, rounded up as Kubernetes rounds."""
    return -(-parse(quantity) // 1)


def mebibytes(quantity: str | float) -> int:
    """Whole MiB that fit into a quantity of bytes (Slurm counts memory in MiB)."""
    return int(parse(quantity) // MIB)


def millicores(quantity: str | float) -> int:
    """Thousandths of a CPU, rounded up as Kubernetes rounds."""
    return -(-parse(quantity) * 1000 // 1)


def whole_cpus(quantity: str | float) -> int:
    """Whole CPUs that fit into a quantity of CPUs, at least one: Slurm knows no part of a CPU."""
    return max(1, int(parse(quantity) // 1))
