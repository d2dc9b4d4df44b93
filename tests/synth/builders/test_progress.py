"""Every builder of a SYNTH shard reports its progress up to the total."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gristmill.inbox.division import contiguous_run
from gristmill.run.progress import Progress, Report
from gristmill.synth import HarmonyConfig, KDConfig, build_kd_shard, to_harmony
from gristmill.synth.builders import kd_shard
from gristmill.synth.builders.import_harmony import import_shard


@pytest.mark.parametrize(("most", "at_most"), [(-1, 10**9), (7, 7)])
def test_a_conversion_reports_raw_rows(
    raw_files: list[Path], tmp_path: Path, most: int, at_most: int
) -> None:
    reports: list[Report] = []
    config = HarmonyConfig(max_rows=most)
    to_harmony(raw_files, tmp_path / "out", 0, config, progress=Progress(reports.append, 0.0))
    there = sum(pq.read_metadata(path).num_rows for path in contiguous_run(raw_files, 0, 4))
    rows = min(there, at_most)
    assert reports[0] == Report("convert", 0, rows, "rows")
    assert reports[-1] == Report("convert", rows, rows, "rows")


def test_an_imported_shard_reports_its_rows(harmony: Path, tmp_path: Path) -> None:
    reports: list[Report] = []
    import_shard(harmony.parent, tmp_path / "out", "00", progress=Progress(reports.append, 0.0))
    rows = pq.read_metadata(harmony).num_rows
    assert reports[-1] == Report("digest", rows, rows, "rows")


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_kd_shard_reports_harmony_rows_part_by_part(
    harmony: Path,
    vocabulary: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    workers: int,
) -> None:
    monkeypatch.setattr(kd_shard, "_PART_ROWS", 20)
    reports: list[Report] = []
    config = KDConfig(vocabulary, 0.2, workers=workers)
    build_kd_shard(harmony, tmp_path / "out", config, progress=Progress(reports.append, 0.0))
    rows = pq.read_metadata(harmony).num_rows
    done = [report.done for report in reports]
    assert done == [*range(0, rows, 20), rows]
    assert reports[-1] == Report("render", rows, rows, "rows")


def test_a_capped_kd_shard_does_not_know_how_many_rows_it_takes(
    harmony: Path, vocabulary: Path, tmp_path: Path
) -> None:
    reports: list[Report] = []
    config = KDConfig(vocabulary, 0.2, max_rows=7)
    build_kd_shard(harmony, tmp_path / "out", config, progress=Progress(reports.append, 0.0))
    assert reports[-2:] == [Report("render", 7, None, "rows"), Report("render", 7, 7, "rows")]
