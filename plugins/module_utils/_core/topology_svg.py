# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""A topology as a picture: a line for each switch, with a bar of its free, busy and other nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape, quoteattr

from .topology import Topology, compress
from .topology_report import Unit

ROW, INDENT, MARGIN = 24, 22, 16  # pixels
CHARACTER = 7.3  # width of one in the names
BAR = 360
# Told apart by people who see no red or green, too.
FREE, BUSY, AWAY = "#4daf8c", "#3465a4", "#c8c8c8"


def picture(found: Sequence[tuple[Topology, Sequence[Unit]]], title: str) -> str:
    """The SVG of all topologies, one below the other; the same for the same cluster."""
    names = [INDENT * unit.depth + CHARACTER * len(unit.name) for _topology, units in found for unit in units]
    column = MARGIN + round(max(names, default=0)) + 24
    width = column + BAR + 220
    body: list[str] = []
    y = MARGIN + ROW
    body.append(_text(MARGIN, y, title, "title"))
    body += _legend(column, y)
    for topology, units in found:
        y += ROW + ROW // 2
        body.append(_text(MARGIN, y, f"{topology.name} ({topology.kind})", "name"))
        largest = max((len(unit.nodes) for unit in units), default=1) or 1
        rows: dict[str, int] = {}
        for unit in units:
            y += ROW
            rows[unit.name] = y
            body += _row(unit, y, rows.get(unit.parent), column, largest)
    height = y + MARGIN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        f' role="img" aria-label={quoteattr(title)}>\n'
        "<style>text{font:13px system-ui,sans-serif;fill:#222}.title{font-size:16px;font-weight:600}"
        ".name{font-weight:600}.few{fill:#666}path{stroke:#999;fill:none}</style>\n"
        f'<rect width="{width}" height="{height}" fill="#fff"/>\n'
    )
    return head + "".join(f"{line}\n" for line in body) + "</svg>\n"


def _row(unit: Unit, y: int, above: int | None, column: int, largest: int) -> Iterator[str]:
    x = MARGIN + INDENT * unit.depth
    if above is not None:
        yield f'<path d="M{x - INDENT + 6} {above + 5}V{y - 4}H{x - 4}"/>'
    tip = f"{unit.name}: {compress(unit.nodes)}" if unit.leaf else unit.name
    yield f"<g><title>{escape(tip)}</title>"
    yield _text(x, y, unit.name)
    left = float(column)
    for count, colour in ((unit.free, FREE), (unit.busy, BUSY), (unit.away, AWAY)):
        if count:
            wide = BAR * count / largest
            yield f'<rect x="{left:.1f}" y="{y - 12}" width="{wide:.1f}" height="14" fill="{colour}"/>'
            left += wide
    yield _text(round(left) + 8, y, f"{unit.free} of {len(unit.nodes)} free", "few") + "</g>"


def _legend(x: int, y: int) -> Iterator[str]:
    for word, colour in (("free", FREE), ("busy", BUSY), ("away", AWAY)):
        yield f'<rect x="{x}" y="{y - 11}" width="12" height="12" fill="{colour}"/>'
        yield _text(x + 17, y, word)
        x += 75


def _text(x: int, y: int, text: str, kind: str = "") -> str:
    mark = f' class="{kind}"' if kind else ""
    return f'<text x="{x}" y="{y}"{mark}>{escape(text)}</text>'
