"""Assets whose partitions a calendar gives: months of the drops, or months that are named."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result

from gristmill.chess.samples import write_month
from gristmill.samples import write_samples
from resources import elite_archive
from tests.archive_server import ArchiveServer
from tests.commands.drops import Command, printed

CHAIN = ("elite_pgn", "valid_games", "game_dataset", "splice_cache", "splice_dataset")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ArchiveServer]:
    made = ArchiveServer()
    monkeypatch.setenv(elite_archive.VARIABLE, made.address)
    yield made
    made.close()


@pytest.fixture
def materialize(run: Command, server: ArchiveServer, data: Path) -> Command:
    """`gristmill materialize`, where the archive is a local server."""
    (data / "drops/chess").mkdir()
    return lambda *words: run("materialize", *words)


def table(result: Result) -> set[tuple[str, ...]]:
    """The rows of the table: asset, partition, status. A wide table has one block an asset."""
    rows, asset = set(), ""
    for line in result.stdout.splitlines():
        words = line.split()
        if words and words[0].startswith("chess/"):
            asset = words[0]
            if len(words) > 1 and not words[1].endswith(":"):  # no account of a drop
                rows.add((asset, *words[1:3]))
        elif line.startswith("  ") and len(words) > 1 and words[1] in ("built", "unchanged"):
            rows.add((asset, *words[:2]))
    return rows


@pytest.mark.slow
def test_all_takes_the_sample_months_and_no_others_and_then_finds_nothing_to_do(
    materialize: Command, data: Path, server: ArchiveServer
) -> None:
    write_samples(data)
    shutil.rmtree(data / "drops/macroxue")
    (data / "drops/pools/samples.toml").unlink()
    chain = [f"chess/{name}" for name in CHAIN]
    done = materialize(*chain)
    assert done.exit_code == 0, done.output
    months = ("2024-01", "2024-02")
    assert table(done) == {(name, month, "built") for name in chain for month in months}
    again = materialize(*chain)
    assert table(again) == {(name, month, "unchanged") for name in chain for month in months}
    assert "nothing needed doing" in again.output
    assert server.asked == []


def test_any_month_can_be_named_and_is_built_from_then_on(
    materialize: Command, data: Path, server: ArchiveServer, tmp_path: Path
) -> None:
    assert table(materialize("chess/elite_pgn")) == set()
    write_month(tmp_path / "x.zip", "2021-03", 30, 1)
    server.files["lichess_elite_2021-03.zip"] = (tmp_path / "x.zip").read_bytes()
    done = materialize("chess/elite_pgn", "--partition", "2021-03")
    assert table(done) == {("chess/elite_pgn", "2021-03", "built")}
    assert "there is no drop" not in done.output
    assert table(materialize("chess/elite_pgn")) == {("chess/elite_pgn", "2021-03", "unchanged")}
    assert len(server.asked) == 1


def test_a_month_that_is_named_and_not_published_is_not_built(materialize: Command) -> None:
    done = materialize("chess/elite_pgn", "--partition", "2021-03")
    assert done.exit_code == 1
    assert "1 not built, 0 artifacts unchanged (" in done.output
    assert table(done) == set()
    assert "not built chess/elite_pgn 2021-03: " in done.output
    assert "not published (HTTP 404)" in done.output


def test_a_month_without_a_partition_is_a_usage_error_of_one_line(materialize: Command) -> None:
    said = printed(materialize("chess/elite_pgn", "--partition", "2019-01"), 2)
    assert "has no partition '2019-01'; its partitions: 2020-06, 2020-07 … " in said
