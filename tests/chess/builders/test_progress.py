"""Every builder of a month reports its progress up to the total."""

import json
from pathlib import Path

import pytest

from gristmill.chess import (
    CacheConfig,
    GameConfig,
    SpliceConfig,
    ValidateConfig,
    build_game_dataset,
    build_splice_cache,
    build_splice_dataset,
    validate,
)
from gristmill.run.progress import Progress, Report


class Reports:
    """A sink that keeps the reports of each stage."""

    def __init__(self) -> None:
        self.stages: dict[str, list[Report]] = {}
        self.progress = Progress(self, every=0.0)

    def __call__(self, report: Report) -> None:
        self.stages.setdefault(report.stage, []).append(report)

    def end_of(self, stage: str) -> tuple[int, int | None, str]:
        """The last report, after the stage has been seen to rise in several steps."""
        done = [report.done for report in self.stages[stage]]
        assert done == sorted(done)
        assert len(done) > 3
        last = self.stages[stage][-1]
        return last.done, last.total, last.unit


@pytest.fixture
def reports() -> Reports:
    return Reports()


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_validation_reports_the_bytes_of_its_pgn(
    month: Path, tmp_path: Path, reports: Reports, workers: int
) -> None:
    config = ValidateConfig(share_bytes=30_000, workers=workers)
    validate([month, month], tmp_path / "valid", config, progress=reports.progress)
    size = 2 * month.stat().st_size
    assert reports.end_of("validate") == (size, size, "bytes")
    last = reports.stages["hash input"][-1]
    assert (last.done, last.total, last.unit) == (size, size, "bytes")


def test_datasets_report_the_bytes_of_their_rows(
    valid: Path, tmp_path: Path, reports: Reports
) -> None:
    size = (valid / "valid_games.jsonl").stat().st_size
    game = GameConfig(share_bytes=40_000, split="shuffle")
    build_game_dataset(valid, tmp_path / "game", game, progress=reports.progress)
    splice = SpliceConfig(share_bytes=40_000)
    build_splice_dataset(valid, tmp_path / "splice", splice, progress=reports.progress)
    for stage in ("split", "games", "splices"):
        assert reports.end_of(stage) == (size, size, "bytes")


def test_a_cache_reports_the_games_of_all_splits(
    valid: Path, tmp_path: Path, reports: Reports
) -> None:
    summary = build_game_dataset(valid, tmp_path / "game")
    games = sum(summary.games.values())
    config = CacheConfig(share_games=20)
    build_splice_cache(tmp_path / "game", tmp_path / "cache", config, progress=reports.progress)
    assert reports.end_of("samples") == (games, games, "games")


def test_a_cache_of_rows_without_a_sidecar_does_not_know_how_many_games_there_are(
    valid: Path, tmp_path: Path, reports: Reports
) -> None:
    summary = build_game_dataset(valid, tmp_path / "game")
    for path in (tmp_path / "game" / "sidecar").iterdir():
        path.unlink()
    build_splice_cache(tmp_path / "game", tmp_path / "cache", progress=reports.progress)
    games = sum(summary.games.values())
    totals = [report.total for report in reports.stages["samples"]]
    assert set(totals[:-1]) == {None}
    assert reports.end_of("samples") == (games, games, "games")
    manifest = json.loads((tmp_path / "cache/manifest.json").read_bytes())
    assert manifest["game_rows_total"] == sum(summary.games.values())
