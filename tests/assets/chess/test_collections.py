"""Collections beside the months: sensor, four assets, settings, traces, an older instance."""

import bz2
import csv
import gzip
import io
import json
import shutil
from pathlib import Path
from typing import Any

import chess.pgn
import dagster as dg
import pytest

from assets.chess import FAMILY
from assets.versions import latest
from commands.graph import register
from gristmill import provenance
from gristmill.chess import GameSpliceDataset
from gristmill.chess.raw.drops import available
from gristmill.chess.read.trace import traced
from gristmill.chess.samples import make_games, write_month
from gristmill.families import Request
from resources import Lake
from tests.assets.chess.test_assets import run_of
from tests.assets.helpers import built_by, failure, not_built
from tests.sensors.ticks import Ticks

(INBOX,) = FAMILY.inboxes
ASSETS = [*built_by("chess").values()][:4]
elite_pgn, valid_games, game_dataset, splice_cache = ASSETS
MINE = "chess/dataset/mine_game"

CHESS_COM = """[Event "Live Chess"]
[Site "Chess.com"]
[Date "2024.01.05"]
[White "Ann"]
[Black "bot_b"]
[BlackTitle "BOT"]
[Result "1-0"]
[WhiteElo "2200"]
[BlackElo "1500"]
[TimeControl "600"]
[Termination "Ann won by resignation"]
[Link "https://www.chess.com/game/live/1"]

1. e4 {[%clk 0:10:00]} 1... e5 {[%clk 0:09:58]} 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7 1-0

"""
LATIN = CHESS_COM.replace("Ann", "Jörg").replace("5. O-O Be7", "5. Qe2 d6 6. c3").replace("BOT", "")


@pytest.fixture
def build(lake: Lake, instance: dg.DagsterInstance) -> Any:
    return lambda key, assets=ASSETS, **config: run_of(
        lake, instance, "http://127.0.0.1:1", [key], assets, **config
    )


def mine(lake: Lake, settings: str = "") -> Path:
    """A drop of three files: generated games, games of chess.com, one of them in latin-1."""
    drop = lake.inbox("chess") / "mine"
    (drop / "old").mkdir(parents=True)
    games = "".join(game.pgn() for game in make_games("2024-01", 40, 9))
    (drop / "games.pgn.bz2").write_bytes(bz2.compress(games.encode("latin-1", "replace")))
    (drop / "com.pgn").write_text(CHESS_COM)
    (drop / "old/latin.pgn.gz").write_bytes(gzip.compress(LATIN.encode("latin-1")))
    text = f'[chess.collection]\nencoding = "latin-1"\n[chess.month]\n{settings}'
    (drop / "gristmill.toml").write_text(text)
    return drop


def games_of(drop: Path) -> list[tuple[str, list[str]]]:
    """White and the moves of every game of a drop, as python-chess reads them, file by file."""
    texts = [
        (drop / "com.pgn").read_text("latin-1"),
        bz2.decompress((drop / "games.pgn.bz2").read_bytes()).decode("latin-1"),
        gzip.decompress((drop / "old/latin.pgn.gz").read_bytes()).decode("latin-1"),
    ]
    found = []
    for text in texts:
        file = io.StringIO(text)
        while (game := chess.pgn.read_game(file)) is not None:
            found.append((game.headers["White"], [move.uci() for move in game.mainline_moves()]))
    return found


def rows(lake: Lake, path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (lake.root / path).open()]


def rejected(lake: Lake) -> list[dict[str, str]]:
    with (lake.root / "chess/validated/mine/invalid_games.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_every_game_of_a_collection_is_the_one_that_python_chess_reads(build, lake, instance):
    drop = mine(lake)
    assert register(instance, lake, INBOX) == []
    assert build("mine").success
    read = games_of(drop)
    valid = rows(lake, "chess/validated/mine/valid_games.jsonl")
    places = [(row["source_file"], row["headers"]["White"], row["moves"]) for row in valid]
    short = [each for each in rejected(lake) if each["reason"] != "result_mismatch"]
    assert len(read) == 42 and len(valid) + len(rejected(lake)) == 42
    assert {each["reason"] for each in short} == {"too_short"}
    for name, white, moves in places:
        assert (white, moves) in read, name
    assert places[0][0] == "com.pgn"
    assert places[-1][:2] == ("old__latin.pgn", "Jörg")
    assert {name for name, _, _ in places} == {"com.pgn", "games.pgn", "old__latin.pgn"}
    assert provenance.verify(lake.root) == []
    dataset = GameSpliceDataset(lake.root / MINE, require_cache=True, horizon=500)
    moves = [game for _, game in read]
    assert len(dataset) > 500
    for number in range(0, len(dataset), 29):
        assert [*dataset[number].context, *dataset[number].target] in moves
    again = build("mine")
    assert again.success
    assert {path.name for path in (lake.root / "chess/raw/collections/mine").iterdir()} >= {
        "com.pgn", "games.pgn", "old__latin.pgn", "source.json"
    }  # fmt: skip


def test_games_are_traced_to_their_file_of_the_drop(build, lake, instance):
    drop = mine(lake)
    register(instance, lake, INBOX)
    assert build("mine").success
    valid = lake.root / "chess/validated/mine"
    last = len(rows(lake, "chess/validated/mine/valid_games.jsonl")) - 1
    *_, raw = traced("chess/game_dataset", Request(valid, str(last), {}))
    facts = raw.facts()
    assert facts["raw_file"] == "drops/chess/mine/old/latin.pgn.gz"
    begin, end = map(int, str(facts["raw_unpacked_bytes"]).split("-"))
    packed = gzip.decompress((drop / "old/latin.pgn.gz").read_bytes())
    # The name has a letter that is one byte in the drop, and two in the artifact.
    assert begin == 0 and packed[begin:end] == packed
    *_, raw = traced("chess/game_dataset", Request(valid, "0", {}))
    facts = raw.facts()
    begin, end = map(int, str(facts["raw_bytes"]).split("-"))
    assert facts["raw_file"] == "drops/chess/mine/com.pgn"
    assert (drop / "com.pgn").read_bytes()[begin:end].strip() == CHESS_COM.strip().encode()
    files = [
        origin.facts()["raw_file"]
        for origin in traced(
            "chess/elite_pgn", Request(lake.root / "chess/raw/collections/mine", "0", {})
        )
        if "raw_file" in origin.facts()
    ]
    assert files == [
        f"drops/chess/mine/{name}" for name in ("com.pgn", "games.pgn.bz2", "old/latin.pgn.gz")
    ]
    *_, raw = traced(
        "chess/splice_cache", Request(lake.root / MINE / "runtime_splice_cache", "0", {})
    )
    assert str(raw.facts()["raw_file"]).startswith("drops/chess/mine/")


def test_settings_of_a_collection_stand_in_its_drop_and_no_month_reads_them(build, lake, instance):
    drop = mine(lake, 'elo_floor = 2000\ntime_controls = ["rapid"]\n')
    write_month(lake.inbox("chess") / "a_2024-01.pgn", "2024-01", 20, 3)
    register(instance, lake, INBOX)
    for key in ("mine", "2024-01"):
        assert build(key, ASSETS[:2]).success
    assert {each["reason"] for each in rejected(lake)} >= {"below_elo", "other_time_control"}
    (first, *_) = rejected(lake)
    assert (first["source_file"], first["reason"]) == ("com.pgn", "below_elo")
    month = provenance.read_record(lake.root / "chess/validated/elite_2024-01/provenance.json")
    assert (month.config["elo_floor"], month.config["time_controls"]) == (0, [])
    (drop / "gristmill.toml").write_text("[chess.month]\ndrop_bots = true\n")
    assert build("mine", ASSETS[:2]).success
    assert [each["source_file"] for each in rejected(lake) if each["reason"] == "bot_player"] == [
        "com.pgn"
    ]
    latin = rows(lake, "chess/validated/mine/valid_games.jsonl")[-1]
    assert latin["headers"]["White"] == "J\ufffdrg"
    (drop / "gristmill.toml").write_text("[chess.month]\nelo = 2000\n")
    assert "unknown key" in failure(build("mine", [elite_pgn]))


def test_one_name_for_several_files_is_refused(build, lake, instance):
    mine(lake)
    register(instance, lake, INBOX)
    assert build("mine", [elite_pgn]).success
    assert "names one PGN, and mine has 3: leave it out of" in failure(
        build("mine", [valid_games], source_name="one.pgn")
    )


def test_a_collection_that_arrives_becomes_a_partition_with_a_run(lake, instance):
    mine(lake)
    tick = Ticks(INBOX, instance, lake)
    assert not tick().dynamic_partitions_requests
    second = tick()
    (request,) = second.run_requests or ()
    (added,) = second.dynamic_partitions_requests or ()
    assert request.partition_key == "mine"
    assert (added.partitions_def_name, added.partition_keys) == ("chess_collections", ["mine"])
    assert set(request.asset_selection or ()) >= {asset.key for asset in ASSETS}
    assert tick().run_requests == []


def test_a_collection_that_is_gone_is_named_and_its_artifacts_stay(build, lake, instance):
    drop = mine(lake)
    write_month(lake.inbox("chess") / "a_2024-01.pgn", "2024-01", 20, 3)
    register(instance, lake, INBOX)
    assert build("mine").success
    assert available(lake) == ["2024-01", "mine"]
    shutil.rmtree(drop)
    (lake.inbox("chess") / "a_2024-01.pgn").unlink()
    gone = register(instance, lake, INBOX)
    assert [(each.key, each.state) for each in gone] == [("2024-01", "gone"), ("mine", "gone")]
    assert available(lake) == ["mine"]
    assert "the drop is gone" in not_built(build("mine", [elite_pgn]))
    assert build("mine", [valid_games]).success
    assert provenance.verify(lake.root) == []


BEFORE = dg.MonthlyPartitionsDefinition(start_date="2020-06", fmt="%Y-%m")


@dg.asset(key=["chess", "valid_games"], partitions_def=BEFORE)
def valid_games_before() -> None:
    """The asset with the partitions of the version before."""


@dg.asset(key=["chess", "raw_drop"], partitions_def=BEFORE)
def raw_drop_before() -> None:
    """The drops with the partitions of the version before."""


def test_months_of_the_version_before_stay_materialized_and_are_not_built_again(lake, instance):
    for month in ("2024-01", "2024-03"):
        dg.materialize([valid_games_before], instance=instance, partition_key=month)
    dg.materialize([raw_drop_before], instance=instance, partition_key="2024-01")
    before = latest(instance, valid_games.key, ["2024-01", "2024-03"])
    mine(lake)
    gone = register(instance, lake, INBOX)
    assert [(each.key, each.state) for each in gone] == [("2024-01", "gone")]
    known = instance.get_dynamic_partitions("chess_collections")
    assert known == ["2024-01", "2024-03", "mine"]
    assert instance.get_materialized_partitions(valid_games.key) == {"2024-01", "2024-03"}
    assert latest(instance, valid_games.key, ["2024-01", "2024-03"]) == before
    assert not Ticks(INBOX, instance, lake)().run_requests
