"""Laws of the Harmony shards."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from gristmill.contract import Violation
from gristmill.families import Subject
from gristmill.synth.laws import harmony_law as law


def test_a_built_shard_breaks_no_law(harmony: Path) -> None:
    assert list(law(Subject(harmony.parent, "00"))) == []
    assert list(law(Subject(harmony.parent))) == []


def test_a_missing_shard_is_a_violation_with_its_name(harmony: Path, tmp_path: Path) -> None:
    assert list(law(Subject(harmony.parent, "01"))) == [
        Violation("shards", ".", "there is no synth_harmony_shard_01.parquet")
    ]
    assert [v.found for v in law(Subject(tmp_path))] == [
        "there is no synth_harmony_shard_XX.parquet"
    ]


def test_wrong_types_and_nulls_are_violations(tmp_path: Path) -> None:
    wrong = pa.table({"messages_json": pa.array([1]), "synth_id": pa.array([None], pa.string())})
    pq.write_table(wrong, tmp_path / "synth_harmony_shard_00.parquet")
    assert [v.law for v in law(Subject(tmp_path))] == ["columns", "no nulls"]
