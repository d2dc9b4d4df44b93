"""What a check shows of the kept verdicts."""

from __future__ import annotations

import re
from pathlib import Path

import dagster as dg
import pytest

from assets.checking.results import (
    FALLING_SHORT,
    TABLE,
    THIS_RUN,
    Known,
    found_by_run,
    state_of,
)
from assets.checking.rules import Looked, Rule
from assets.checking.verdict_file import opened
from assets.checking.verdicts import Verdict
from gristmill.contract import Violation
from gristmill.data_root.reports import BUILT
from gristmill.printable import unbroken
from tests.assets.checking.findings import findings_in

ASSET = "test/tiny"
RULE = Rule(BUILT, "", None, lambda *_: "")


def state_after(root: Path, verdicts: list[Verdict]) -> dg.AssetCheckResult:
    with opened(root) as kept:
        kept.keep(ASSET, BUILT, verdicts)
        return state_of(RULE, ASSET, kept, Known(None, ()))


def table_of(root: Path, verdicts: list[Verdict]) -> dg.TableMetadataValue:
    state = state_after(root, verdicts)
    assert state.metadata[FALLING_SHORT] == len(verdicts)
    found = state.metadata[TABLE]
    assert isinstance(found, dg.TableMetadataValue)
    return found


def test_the_table_has_the_partition_then_the_problem_then_the_cure(tmp_path: Path) -> None:
    found = table_of(tmp_path, [Verdict("a", "", "no game", "mend it")])
    assert [column.name for column in found.schema.columns] == ["partition", "problem", "cure"]
    assert [row.data for row in found.records] == [
        {"partition": "a", "problem": "no game", "cure": "mend it"}
    ]


@pytest.mark.parametrize(("each", "rows"), [(10, 200), (700, 57), (39_990, 1), (50_000, 0)])
def test_the_table_is_bounded_in_rows_and_characters(tmp_path: Path, each: int, rows: int) -> None:
    found = table_of(tmp_path, [Verdict(f"{n:04}", "", "x" * (each - 4)) for n in range(300)])
    assert len(found.records) == rows
    assert sum(len(unbroken(text)) for row in found.records for text in row.data.values()) <= 40_000


def test_an_asset_without_partitions_has_a_row_of_its_own(tmp_path: Path) -> None:
    found = table_of(tmp_path, [Verdict("", "", "no game", "mend it")])
    assert found.records[0].data["partition"] == "(the asset)"
    evaluation = dg.AssetCheckEvaluation(
        asset_key=dg.AssetKey("a"), check_name="c", passed=False, metadata={TABLE: found}
    )
    assert findings_in(evaluation) == {"": ("no game", "mend it")}


def test_a_long_name_in_a_problem_can_be_broken_and_a_key_and_a_command_cannot(
    tmp_path: Path,
) -> None:
    file = "drops/macroxue/broken/depth06_worker00_seed0000000090_game000000.jsonl.gz"
    key = "a_key_of_a_partition_that_is_long"
    cure = f"gristmill retire {key}"
    found = table_of(tmp_path, [Verdict(key, "", f"{file}: no game", cure)])
    (row,) = found.records
    assert max(map(len, re.split("[ \N{ZERO WIDTH SPACE}]", row.data["problem"]))) <= 24
    assert (row.data["partition"], row.data["cure"]) == (key, cure)
    evaluation = dg.AssetCheckEvaluation(
        asset_key=dg.AssetKey("a"), check_name="c", passed=False, metadata={TABLE: found}
    )
    assert findings_in(evaluation) == {key: (f"{file}: no game", cure)}


@pytest.mark.parametrize(("length", "breaks"), [(80, 0), (81, 1), (240, 2)])
def test_the_description_keeps_a_path_whole_that_fits_one_line(
    tmp_path: Path, length: int, breaks: int
) -> None:
    state = state_after(tmp_path, [Verdict("", "", "x" * length)])
    assert state.description.count("\N{ZERO WIDTH SPACE}") == breaks


def test_only_two_numbers_are_plotted_and_a_run_has_one_row(tmp_path: Path) -> None:
    state = state_after(tmp_path, [Verdict("", "", None)])
    assert state.metadata == {FALLING_SHORT: 0, "partitions": 1}
    looked = Looked({"a": "v", "b": "v"}, [("b", Violation("law", "b", "is odd"))])
    shown = found_by_run(looked, ["a", "b"])
    assert shown[THIS_RUN] == "partitions of it: a, b; 2 looked at, findings: 1"
    assert set(shown) == {THIS_RUN, "listed"}
    assert found_by_run(Looked({"a": "v"}), None) == {
        THIS_RUN: "everything published; 1 looked at, nothing found"
    }
    assert found_by_run(None, ["a"]) == {THIS_RUN: "partitions of it: a"}
