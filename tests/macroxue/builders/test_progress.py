"""Packs, value sidecars and pools report their progress up to the total."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.macroxue import MergeConfig, PackConfig, ValueConfig, merge, pack, value_sidecar
from gristmill.macroxue.builders import pack_parts
from gristmill.macroxue.samples import write_drop
from gristmill.run.progress import Progress, Report


@pytest.mark.parametrize("workers", [1, 2])
def test_a_pack_reports_the_compressed_bytes_part_by_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.setattr(pack_parts, "PART_BYTES", 1)
    write_drop(tmp_path / "drop", 1, 5, 60, 6)
    sizes = [path.stat().st_size for path in (tmp_path / "drop").rglob("*.jsonl.gz")]
    reports: list[Report] = []
    config = PackConfig(workers=workers)
    pack(tmp_path / "drop", tmp_path / "pack", config, progress=Progress(reports.append, 0.0))
    assert len(reports) == len(sizes) + 1
    assert reports[-1] == Report("read", sum(sizes), sum(sizes), "bytes")


def test_values_and_pools_report_rows(tmp_path: Path) -> None:
    write_drop(tmp_path / "drop", 1, 5, 60, 6)
    rows = [pack(tmp_path / "drop", tmp_path / name, PackConfig()).rows for name in ("one", "two")]
    reports: list[Report] = []
    progress = Progress(reports.append, 0.0)
    value_sidecar(tmp_path / "one", tmp_path / "values", ValueConfig(), progress=progress)
    assert reports[-1] == Report("values", rows[0], rows[0], "rows")
    packs = [tmp_path / "one", tmp_path / "two"]
    merge(packs, tmp_path / "pool", MergeConfig(workers=2), progress=progress)
    assert reports[-1] == Report("merge", sum(rows), sum(rows), "rows")
