"""The table of outcomes, the reasons below it, and the summary."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from commands import checkout
from commands import outcomes as table
from commands.outcomes import MAY_FOLLOW, TO_BUILD, Outcome, show

PLACE = Path("/checkout/data/macroxue/packs/d1")
BUILT = Outcome("macroxue/pack", "d1", "built", 1234, 56789, 1.5, place=str(PLACE))
UNCHANGED = Outcome("macroxue/pack", "d2", "unchanged", 1, 48, 0.25, place=str(PLACE))
NOT_BUILT = Outcome("chess/elite_pgn", "2024-01", "not built", reason="not published [404]")
FAILED = Outcome("macroxue/pack", "d3", "failed", reason="line 3: [99] is not a rank")


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """What is printed of some outcomes, on a terminal of some width."""

    def lines(
        *outcomes: Outcome, below: str = "/", width: int = 160, named: bool = False
    ) -> list[str]:
        console = Console(width=width, highlight=False)
        monkeypatch.setattr(checkout, "console", console)
        monkeypatch.setattr(table, "console", console)
        show(outcomes, 2.04, Path(below), named)
        return [line.rstrip() for line in capsys.readouterr().out.splitlines() if line.strip()]

    return lines


def test_what_a_dry_run_would_build_has_no_numbers(printed):
    lines = printed(Outcome("a/b", "k", TO_BUILD), Outcome("a/b", "l", MAY_FOLLOW))
    assert lines == [
        "a/b",
        "  k                        to build",
        "  l                        may follow",
        "dry run: 1 to build, 1 may follow (2.0 s)",
    ]


def test_the_account_and_what_was_not_checked_follow_the_table(printed):
    said = replace(BUILT, account="2 files taken", not_checked="not checked: [games]")
    assert printed(said, UNCHANGED)[-3:] == [
        "macroxue/pack d1: 2 files taken",
        "macroxue/pack d1: not checked: [games]",
        "1 built in 2.0 s, 1 unchanged; `gristmill ui` shows them",
    ]


def test_what_becomes_of_columns_in_several_partitions_is_said_once(printed):
    both = "read: [q]\nnot read: b"
    first, second = (replace(BUILT, partition=key, columns=both) for key in ("d1", "d2"))
    other = replace(BUILT, partition="d3", columns="read: [q]\nnot read: c")
    assert printed(first, second, other)[-4:-1] == [
        "macroxue/pack d1 and 2 more: read: [q]",
        "macroxue/pack d1 and 1 more: not read: b",
        "macroxue/pack d3: not read: c",
    ]


def test_partitions_that_are_not_published_have_a_line_for_each_reason(printed):
    lines = printed(FAILED, NOT_BUILT)
    assert lines == [
        "failed macroxue/pack d3: line 3: [99] is not a rank",
        "not built chess/elite_pgn 2024-01: not published [404]",
        "0 built in 2.0 s, 1 not built, 1 failed; `gristmill ui` shows them",
    ]
    items = [Outcome("a/b", f"k{number}", "failed", reason="full") for number in range(7)]
    other = Outcome("a/b", "k7", "failed", reason="wrong")
    lines = printed(*items, other)
    assert lines[:2] == ["failed a/b k0, k1, k2, k3, k4 and 2 more: full", "failed a/b k7: wrong"]
    assert printed(Outcome("a/m", "", "failed", reason="x"))[0] == "failed a/m: x"


def test_nothing_needed_doing_only_if_nothing_was_built_or_failed(printed):
    end = "; `gristmill ui` shows them"
    assert printed(UNCHANGED)[-1] == "nothing needed doing (1 artifact, 2.0 s)"
    assert printed(UNCHANGED, NOT_BUILT)[-1] == (
        "nothing needed doing (1 artifact, 2.0 s; 1 not built)"
    )
    assert printed(NOT_BUILT)[-1] == "nothing needed doing (0 artifacts, 2.0 s; 1 not built)"
    assert printed(NOT_BUILT, UNCHANGED, named=True)[-1] == (
        "1 not built, 1 artifact unchanged (2.0 s)"
    )
    assert printed(UNCHANGED, BUILT)[-1] == f"1 built in 2.0 s, 1 unchanged{end}"
    assert printed(UNCHANGED, FAILED)[-1] == f"0 built in 2.0 s, 1 unchanged, 1 failed{end}"


@pytest.mark.parametrize(("count", "listed"), [(10, 10), (11, 0)])
def test_many_unchanged_artifacts_are_counted_and_not_listed(printed, count, listed):
    items = [Outcome("a/b", f"k{number}", "unchanged", place="/x") for number in range(count)]
    lines = printed(*items, BUILT)
    assert sum(" unchanged " in line and "k" in line.split()[0] for line in lines[:-1]) == listed
    assert any(" d1 " in line for line in lines)
    assert f"{count} unchanged" in lines[-1]


KEY = "a_key_of_sixty_letters_" * 3
LONG = Outcome(
    "reasoning/gpt2_shards",
    KEY,
    "built",
    999_999_999,
    999_900_000_000,
    7199,
    place=f"/checkout/data/macroxue/{KEY}",
)
SHARED = [
    Outcome("synth/kd_shards", f"0{number}", "unchanged", 5, 7, 0.1, place="/checkout/data/kd")
    for number in range(2)
]


def test_80_columns_have_each_asset_once_and_each_folder_whole(printed):
    lines = printed(LONG, BUILT, *SHARED, below="/checkout", width=80)
    assert lines[:-1] == [
        "reasoning/gpt2_shards",
        f"  data/macroxue/{KEY}",
        f"  {KEY}",
        "                           built      999,999,999 rows   999.9 GB   1 h 59 min",
        "macroxue/pack",
        "  data/macroxue/packs/d1",
        "  d1                       built            1,234 rows    56.8 kB        1.5 s",
        "synth/kd_shards",
        "  data/kd",
        "  00                       unchanged            5 rows    7 bytes        0.1 s",
        "  01                       unchanged            5 rows    7 bytes        0.1 s",
    ]
    assert all(cell_len(line) <= 80 or KEY in line for line in lines)


def test_partitions_in_folders_of_their_own_have_a_line_each_and_brackets_keep_the_columns(printed):
    other = Outcome("macroxue/pack", "d2", "built", place="/checkout/data/macroxue/packs/d2")
    lines = printed(BUILT, other, below="/checkout", width=60)
    assert [line for line in lines if "data/" in line] == [
        "    data/macroxue/packs/d1",
        "    data/macroxue/packs/d2",
    ]
    assert sum(line == "macroxue/pack" for line in lines) == 1
    assert f"  {PLACE}" in printed(BUILT, below="/other")


def test_brackets_in_a_key_are_shown_and_keep_the_columns(printed):
    wild = Outcome("a/b", "[bold]x", "built", 1, 48, 0.1, place="/" + "f" * 200)
    plain = Outcome("a/b", "y", "built", 1, 48, 0.1, place="/" + "f" * 200)
    rows = [line for line in printed(wild, plain, width=80) if "rows" in line]
    assert rows[0].startswith("  [bold]x ")
    assert rows[0].index("built") == rows[1].index("built")
