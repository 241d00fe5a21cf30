# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""slurm.conf and its relatives: read, written, compared. What Slurm makes of it was seen on slurmctld 26.05."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core import slurm_conf
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError

TEXT = r"""
# a comment
clustername=demo   # and one behind a value
SlurmctldHost=a(b)
slurmctldhost=c
MailProg=/bin/tr\#ue
NodeName=n[1-2] CPUs=4 \
  RealMemory=100 Gres=gpu:1
NodeName=n3 CPUs=8
PartitionName=a Nodes=ALL Default=YES
MailDomain="a b c" KillWait=30
INCLUDE /etc/slurm/more.conf
"""


def test_reads_a_file_as_slurm_does() -> None:
    assert slurm_conf.from_lines(slurm_conf.parse(TEXT)) == {
        "clustername": "demo",
        "SlurmctldHost": ["a(b)", "c"],
        "MailProg": "/bin/tr#ue",
        "NodeName": [
            {"NodeName": "n[1-2]", "CPUs": "4", "RealMemory": "100", "Gres": "gpu:1"},
            {"NodeName": "n3", "CPUs": "8"},
        ],
        "PartitionName": [{"PartitionName": "a", "Nodes": "ALL", "Default": "YES"}],
        "MailDomain": "a b c",
        "KillWait": "30",
        "Include": ["/etc/slurm/more.conf"],
    }


def test_writes_what_it_reads() -> None:
    once = slurm_conf.render(slurm_conf.parse(TEXT))
    assert slurm_conf.render(slurm_conf.parse(once)) == once
    assert slurm_conf.differences(TEXT, once) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("ClusterName", 1),
        ("\nA=1\nMailDomain=", 3),
        ("A+=1", 1),
        ("A=1 b", 1),
        ("A=1 \\\n  = 2", 1),
        ("NodeName n1", 1),
    ],
)
def test_refuses_what_slurm_cannot_parse(text: str, line: int) -> None:
    with pytest.raises(OperationError) as caught:
        slurm_conf.parse(text)
    assert caught.value.reason == "InvalidSlurmConf"
    assert f"Line {line}" in caught.value.msg


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "YES"), (False, "NO"), (3, "3"), (1.5, "1.5"), ("a", "a"), (["a", 1, True], "a,1,YES"), ([], ""),
        (("a", ""), "a"),
    ],
)  # fmt: skip
def test_values_from_yaml(value: Any, text: str) -> None:
    assert slurm_conf.value_text(value) == text


@pytest.mark.parametrize(
    "value", ["a\nb", "a\x00", "a\tb", 'a"b', {"a": 1}, [["a"]], ["a,b"], "a\u2028b", "a\x85b", None]
)
def test_values_that_could_smuggle_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="must"):
        slurm_conf.value_text(value)


def test_all_that_is_wrong_is_told_at_once() -> None:
    settings = {
        "A B": 1,
        "Good": None,
        "Bad": "x\ny",
        "NodeName": [{"CPUs": 1}, "n1", {"NodeName": "n", "CPU s": 1}, {"NodeName": "n", "nodename": "m"}],
    }
    with pytest.raises(OperationError) as caught:
        slurm_conf.to_lines(settings)
    for part in (
        "'A B'",
        "Bad must not",
        "[0].NodeName: is required",
        "[1]: must be",
        "[2].CPU s is not",
        "[3]: two keys",
    ):
        assert part in caught.value.msg


def test_differences_are_of_meaning() -> None:
    before = (
        "ClusterName=demo\nNodeName=a CPUs=1 State=UP\nPrologFlags=Alloc\nSlurmctldHost=a\nSlurmctldHost=b\nOld=1\n"
    )
    after = '# new\nNodeName=a State=UP cpus=2\nclustername="demo"\nPrologFlags=Alloc,Contain\nSlurmctldHost=a\nNew=2\n'
    assert slurm_conf.differences(before, after) == [
        ("NodeName=a", "nodename=a cpus=1 state=UP", "nodename=a state=UP cpus=2"),
        ("PrologFlags", "Alloc", "Alloc,Contain"),
        ("SlurmctldHost", "a, b", "a"),
        ("Old", "1", None),
        ("New", None, "2"),
    ]


def test_union_keeps_ours_and_adds_theirs() -> None:
    refused: list[tuple[str, str]] = []

    def refuse(path: str, text: str) -> None:
        refused.append((path, text))

    ours = ["jwt_key=/k", "use_client_ids"]
    assert (
        slurm_conf.union(ours, " a, USE_CLIENT_IDS ,jwt_key=/k,b=1,", "p", refuse) == "jwt_key=/k,use_client_ids,a,b=1"
    )
    assert refused == []
    slurm_conf.union(ours, "JWT_KEY=/other", "p", refuse)
    assert refused == [("p", "JWT_KEY=/other contradicts jwt_key=/k, as the collection sets it")]


plain = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp"), exclude_characters='"'))
keys = st.from_regex(r"[A-Z][A-Za-z0-9_]{0,10}", fullmatch=True).filter(
    lambda key: key.lower() not in {**slurm_conf.RECORD_KEYS, **slurm_conf.REPEATED_KEYS}
)


@given(st.dictionaries(keys, plain))
def test_any_value_survives_writing_and_reading(settings: dict[str, str]) -> None:
    lowered = {key.lower(): value for key, value in settings.items()}
    text = slurm_conf.render(slurm_conf.to_lines(lowered))
    assert slurm_conf.from_lines(slurm_conf.parse(text)) == lowered
    assert text.count("\n") == len(lowered)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        lines = slurm_conf.parse(text)
    except OperationError:
        return
    assert all(line.pairs for line in lines)
