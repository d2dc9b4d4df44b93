"""Chess through Dagster: months that are dropped, downloaded, broken, not published yet."""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets import versions
from assets.chess import FAMILY, ChessMonth
from commands.graph import Graph
from gristmill import provenance
from gristmill.browse.shown import show
from gristmill.chess import GameSpliceDataset
from gristmill.chess.builds import has_subset
from gristmill.chess.raw.drops import available
from gristmill.chess.read.trace import traced
from gristmill.chess.samples import write_month
from gristmill.contract import BadInput
from gristmill.data_root.states import FILE
from gristmill.families import Request
from resources import EliteArchive, Lake
from tests.archive_server import ArchiveServer
from tests.assets.helpers import built_by, failure, not_built, sha256

elite_pgn, valid_games, game_dataset, splice_cache, splice_dataset = MONTH = [
    *built_by("chess").values()
][:5]
GAMES = "chess/dataset/elite_2024-01_game"
CACHE = f"{GAMES}/runtime_splice_cache"


@pytest.fixture
def instance(instance: dg.DagsterInstance) -> dg.DagsterInstance:
    for name, months in FAMILY.inboxes[0].built_in().items():
        instance.add_dynamic_partitions(name, months)
    return instance


@pytest.fixture
def server() -> Iterator[ArchiveServer]:
    made = ArchiveServer()
    yield made
    made.close()


def run_of(
    lake: Lake,
    instance: dg.DagsterInstance,
    address: str,
    keys: Sequence[str],
    assets: Any,
    **config: Any,
) -> dg.ExecuteInProcessResult:
    """Materialize assets of a month or a collection, or of a range of months in one run."""
    archive = EliteArchive(base_address=address, timeout_seconds=5, attempts=1, backoff_seconds=0)
    return dg.materialize(
        [*FAMILY.assets],
        selection=list(assets),
        instance=instance,
        resources={"lake": lake, "elite_archive": archive, "chess_month": ChessMonth(**config)},
        tags=versions.run_tags(keys),
        raise_on_error=False,
    )


@pytest.fixture
def build(lake: Lake, instance: dg.DagsterInstance, server: ArchiveServer) -> Any:
    return lambda *months, assets=MONTH, **config: run_of(
        lake, instance, server.address, months, assets, **config
    )


def drop(lake: Lake, name: str, games: int = 60, seed: int = 3) -> Path:
    path = lake.inbox("chess") / name
    path.parent.mkdir(parents=True, exist_ok=True)
    write_month(path, "2024-01", games, seed)
    return path


def archive(tmp_path: Path, month: str = "2024-02", games: int = 60, seed: int = 5) -> bytes:
    write_month(tmp_path / "month.zip", month, games, seed)
    return (tmp_path / "month.zip").read_bytes()


def built(instance: dg.DagsterInstance, month: str) -> set[str]:
    return {
        asset.key.path[-1]
        for asset in MONTH
        if month in instance.get_materialized_partitions(asset.key)
    }


def metadata(result: dg.ExecuteInProcessResult, asset: dg.AssetsDefinition) -> dict[str, Any]:
    event = result.asset_materializations_for_node(asset.op.name)[-1]
    return {name: value.value for name, value in event.metadata.items()}


def hashes(folder: Path, pattern: str = "*") -> dict[str, str]:
    """The sha256 of each file, but for the one that each run writes its reports to."""
    return {
        str(path.relative_to(folder)): sha256(path)
        for path in sorted(folder.rglob(pattern))
        if path.is_file() and path.name != FILE
    }


def test_a_dropped_month_becomes_all_five_and_is_then_left_alone(build, lake, server):
    drop(lake, "lichess_elite_2024-01.zip")
    first = build("2024-01")
    assert first.success
    assert server.asked == []
    assert provenance.verify(lake.root) == []
    record = provenance.read_record(lake.root / "chess/validated/elite_2024-01/provenance.json")
    assert record.config["source_names"] == ["lichess_elite_2024-01.pgn"]
    before = hashes(lake.root)
    again = build("2024-01")
    assert again.success
    assert {metadata(again, asset)["status"] for asset in MONTH} == {"unchanged"}
    assert hashes(lake.root) == before
    assert len(GameSpliceDataset(lake.root / GAMES, require_cache=True)) > 1000


@pytest.mark.slow
def test_what_a_month_shows(build, lake):
    drop(lake, "a_2024-01.pgn", games=80)
    drop(lake, "b_2024-02.pgn", games=80, seed=4)
    build("2024-01")
    result = build("2024-02")
    shown = metadata(result, valid_games)
    rows = (lake.root / "chess/validated/elite_2024-02/valid_games.jsonl").read_bytes().count(b"\n")
    assert shown["white_wins"] + shown["black_wins"] + shown["draws"] == rows
    assert shown["dagster/row_count"] == shown["valid_games"] == rows
    assert shown["reasons/too_short"] > 0
    assert sum(n for name, n in shown.items() if name.startswith("phases/")) == shown["plies"]
    for asset in MONTH:
        is_drawn = asset is not elite_pgn
        assert metadata(result, asset).get("picture", "").startswith("![ply") == is_drawn
    assert metadata(result, splice_cache)["samples/train"] > 1000


def test_a_month_without_a_drop_is_downloaded(build, lake, server, tmp_path):
    server.files["lichess_elite_2024-02.zip"] = archive(tmp_path)
    assert build("2024-02").success
    assert build("2024-02").success
    assert server.asked == [("lichess_elite_2024-02.zip", "")]
    assert provenance.verify(lake.root) == []


def test_a_download_that_broke_off_goes_on_in_the_next_run(build, lake, server, tmp_path):
    data = server.files["lichess_elite_2024-02.zip"] = archive(tmp_path)
    server.cut = 1000
    result = build("2024-02")
    assert f"ended after 1000 of {len(data)} bytes" in failure(result)
    assert not (lake.root / "chess/raw/elite/2024-02").exists()
    server.cut = None
    assert build("2024-02").success
    assert server.asked[-1] == ("lichess_elite_2024-02.zip", "bytes=1000-")


def test_a_month_on_disk_stays_when_the_server_moves(build, lake, server, tmp_path):
    server.files["lichess_elite_2024-02.zip"] = archive(tmp_path)
    assert build("2024-02", assets=[elite_pgn]).success
    folder, first = lake.root / "chess/raw/elite/2024-02", server.address
    before = {path.name: (path.stat().st_ino, path.read_bytes()) for path in folder.iterdir()}
    asked = len(server.asked)
    server.address = f"{first}/moved"
    result = build("2024-02", assets=[elite_pgn])
    assert result.success
    assert len(server.asked) == asked
    after = {path.name: (path.stat().st_ino, path.read_bytes()) for path in folder.iterdir()}
    assert after["lichess_elite_2024-02.pgn"] == before["lichess_elite_2024-02.pgn"]
    recorded = json.loads((folder / "source.json").read_bytes())
    assert recorded["origin"] == f"{first}/lichess_elite_2024-02.zip"


def test_a_month_that_is_not_published_is_observed_and_not_built(build, lake, instance):
    result = build("2024-05")
    assert result.success
    assert built(instance, "2024-05") == set()
    (observed,) = result.get_asset_observation_events()
    recorded = observed.asset_observation_data.asset_observation
    assert recorded.partition == "2024-05"
    assert "not published (HTTP 404)" in recorded.metadata["reason"].value
    assert not (lake.root / "chess/raw").exists() or not list(lake.root.glob("chess/raw/elite/2*"))
    drop(lake, "x_2024-01.zip")
    assert build("2024-01", "2024-02").success
    assert len(built(instance, "2024-01")) == 5
    assert built(instance, "2024-02") == set()


def test_in_a_batch_the_bad_month_fails_alone(build, lake, instance, server, tmp_path):
    drop(lake, "x_2024-01.zip")
    (lake.inbox("chess") / "x_2024-02.zip").write_bytes(b"<html>sign in</html>")
    server.files["lichess_elite_2024-04.zip"] = archive(tmp_path, "2024-04")
    months = ("2024-01", "2024-02", "2024-03", "2024-04")
    result = build(*months, assets=[elite_pgn])
    assert "1 of 4 partitions failed" in failure(result)
    assert "x_2024-02.zip: not a ZIP" in failure(result)
    assert instance.get_materialized_partitions(elite_pgn.key) == {"2024-01", "2024-04"}
    observed = [
        event.asset_observation_data.asset_observation
        for event in result.get_asset_observation_events()
    ]
    said = {item.partition: item.metadata["status"].value for item in observed}
    assert said == {"2024-02": "failed", "2024-03": "not built"}


def test_each_step_of_a_backfill_goes_on_with_the_months_that_came_through():
    for asset in MONTH:
        parents = {parent for parent in MONTH if parent.key in asset.asset_deps[asset.key]}
        assert all(parent.backfill_policy != asset.backfill_policy for parent in parents)
        assert asset.backfill_policy.max_partitions_per_run > 1


def test_legacy_splices_only_where_they_are_asked_for(build, lake, instance):
    drop(lake, "x_2024-01.pgn")
    (lake.root / "gristmill.toml").write_text("[chess.month]\nlegacy = false\n")
    assert build("2024-01").success
    assert built(instance, "2024-01") == {
        "elite_pgn",
        "valid_games",
        "game_dataset",
        "splice_cache",
    }
    assert build("2024-01", assets=[splice_dataset], legacy=True, legacy_cap=2).success
    assert (lake.root / "chess/dataset/elite_2024-01_cap2/train.jsonl").stat().st_size > 0


def test_one_config_serves_the_whole_month(build, lake):
    drop(lake, "x_2024-01.pgn")
    config = {"compat": "reference", "source_name": "mine.pgn", "split": "shuffle"}
    assert build("2024-01", min_context=10, seed=9, cache_cap=3, **config).success
    record = provenance.read_record(lake.root / "chess/validated/elite_2024-01/provenance.json")
    assert (record.config["compat"], record.config["source_names"]) == ("reference", ["mine.pgn"])
    manifest = json.loads((lake.root / CACHE / "manifest.json").read_text())
    stats = json.loads((lake.root / GAMES / "stats.json").read_text())
    assert manifest["config"] == {
        "min_context": 10, "min_target": 1, "max_samples_per_game": 3, "seed": 9
    }  # fmt: skip
    assert stats["runtime_splice_defaults"]["min_context"] == 10
    assert (stats["split_seed"], "split_rule" in stats) == (9, False)


def test_a_cache_cannot_differ_from_its_dataset(build, lake):
    drop(lake, "x_2024-01.pgn")
    assert build("2024-01", min_context=10).success
    # Nothing said: as the dataset was built. Something else said: refused.
    assert build("2024-01", assets=[splice_cache], cache_cap=2).success
    manifest = json.loads((lake.root / CACHE / "manifest.json").read_text())
    assert manifest["config"]["min_context"] == 10
    text = failure(build("2024-01", assets=[splice_cache], min_context=12))
    assert "built with min_context = 10" in text


@pytest.mark.slow
def test_a_cache_is_carried_by_an_equal_dataset_and_dropped_by_another(build, lake):
    drop(lake, "x_2024-01.pgn")
    assert build("2024-01").success
    os.utime(lake.root / GAMES / "train.jsonl")
    result = build("2024-01", assets=[game_dataset])
    assert r"kept runtime_splice_cache" in metadata(result, game_dataset)["notes"]
    assert metadata(build("2024-01"), splice_cache)["status"] == "unchanged"
    result = build("2024-01", assets=[game_dataset], seed=8)
    assert r"removed runtime_splice_cache" in metadata(result, game_dataset)["notes"]
    assert not (lake.root / CACHE).exists()
    assert build("2024-01", assets=[splice_cache]).success
    assert provenance.verify(lake.root) == []


def test_a_drop_may_go_once_it_was_taken(build, lake, server):
    path = drop(lake, "x_2024-01.pgn")
    assert build("2024-01").success
    path.unlink()
    result = build("2024-01")
    assert metadata(result, elite_pgn)["status"] == "unchanged"
    assert server.asked == []
    (lake.root / "chess/raw/elite/2024-01/lichess_elite_2024-01.pgn").unlink()
    assert "the drop is gone: bring it back" in failure(build("2024-01"))


def test_a_validation_needs_its_month(build):
    assert "chess/raw/elite/2024-01" in failure(build("2024-01", assets=[valid_games]))


def test_known_months_are_those_dropped_and_those_taken_before(build, lake, server, tmp_path):
    assert available(lake) == []
    drop(lake, "x_2024-01.pgn")
    drop(lake, "nonsense.pgn")
    server.files["lichess_elite_2024-02.zip"] = archive(tmp_path)
    assert build("2024-02", assets=[elite_pgn]).success
    assert available(lake) == ["2024-01", "2024-02"]


@pytest.mark.slow
def test_a_subset_is_built_where_it_is_asked_for_and_traced_to_the_drop(build, lake, instance):
    drop(lake, "x_2024-01.pgn", games=120)
    assert build("2024-01").success
    (subset,) = [each for key, each in built_by("chess").items() if key == "chess/subset"]
    assert list(Graph(instance, lake).keys(subset.key, ())) == []
    assert list(Graph(instance, lake).keys(splice_cache.key, ())) == ["2024-01"]
    assert "no subset is asked for: set train, val and test" in not_built(
        build("2024-01", assets=[subset])
    )
    for of, ending in (("games", "game"), ("rows", "rows")):
        text = f'[chess.subset]\nof = "{of}"\ntrain = 30\nval = 3\nby = ["result", "ply"]\n'
        (lake.root / "gristmill.toml").write_text(text)
        assert has_subset(lake, "2024-01")
        assert list(Graph(instance, lake).keys(subset.key, ())) == ["2024-01"]
        result = build("2024-01", assets=[subset])
        assert [metadata(result, subset)[f"samples/{split}"] for split in ("train", "val")] == [
            30,
            3,
        ]
        folder = lake.root / f"chess/subset/elite_2024-01_subset_{ending}"
        assert provenance.verify(lake.root) == []
        cache = folder / "runtime_splice_cache"
        assert cache.is_dir() == (of == "games")
        if of == "games":
            cached = json.loads((cache / "manifest.json").read_bytes())["splits"]
            assert [cached[split]["game_rows_total"] for split in ("train", "val")] == [30, 3]
            assert json.loads((cache / "val/paths.json").read_bytes()) == [
                str(folder / "val.jsonl")
            ]
        first, *_, last = traced("chess/subset", Request(folder, "29", {}))
        assert first.facts()["row"] == "29 of train"
        assert last.facts()["raw_file"] == "drops/chess/x_2024-01.pgn"
        assert "val: row 2 of 3" in map(str, show(Request(folder, "2", {"split": "val"})))
        with pytest.raises(BadInput, match="has 30 rows, no row 30"):
            list(traced("chess/subset", Request(folder, "30", {})))
    assert metadata(build("2024-01", assets=[subset]), subset)["status"] == "unchanged"
