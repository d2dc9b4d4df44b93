"""What a check shows of the kept verdicts."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from assets.checking.results import FALLING_SHORT, TABLE, Known, findings_in, state_of
from assets.checking.rules import Rule
from assets.checking.verdict_file import opened
from assets.checking.verdicts import BUILT, Verdict

ASSET = "test/tiny"
RULE = Rule(BUILT, "", None, lambda *_: "")


def table_of(root: Path, verdicts: list[Verdict]) -> dg.TableMetadataValue:
    with opened(root) as kept:
        kept.keep(ASSET, BUILT, verdicts)
        state = state_of(RULE, ASSET, kept, Known(None, ()))
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
    assert sum(len(text) for row in found.records for text in row.data.values()) <= 40_000


def test_an_asset_without_partitions_has_a_row_of_its_own(tmp_path: Path) -> None:
    found = table_of(tmp_path, [Verdict("", "", "no game", "mend it")])
    assert found.records[0].data["partition"] == "(the asset)"
    evaluation = dg.AssetCheckEvaluation(
        asset_key=dg.AssetKey("a"), check_name="c", passed=False, metadata={TABLE: found}
    )
    assert findings_in(evaluation) == {"": ("no game", "mend it")}
