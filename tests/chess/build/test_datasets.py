"""Datasets, caches and splices: identity, leakage, workers, kills, odd rows, empty splits."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.chess import (
    CacheConfig,
    GameConfig,
    MonthConfig,
    SpliceConfig,
    ValidateConfig,
    build_game_dataset,
    build_splice_cache,
    build_splice_dataset,
    validate,
)
from gristmill.chess.config import SPLITS
from gristmill.chess.format.cache_arrays import LAYOUT
from gristmill.contract import BadInput
from gristmill.run.parts import PartStore
from gristmill.run.sections import _into_store
from tests.chess import plain

VOLATILE = {"manifest.json", "stats.json", "paths.json", "vocab_rows_meta.json"}


def digests(root: Path) -> dict[str, str]:
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name not in VOLATILE
    }


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def chain(pgns: list[Path], root: Path, workers: int, parts: bool) -> dict[str, str]:
    """The whole month with small shares; digests of its payload."""

    def store(name: str) -> PartStore | None:
        folder = root / "parts" / name
        folder.mkdir(parents=True, exist_ok=True)
        return PartStore(folder) if parts else None

    out = root / "out"
    out.mkdir(parents=True)
    config = ValidateConfig(share_bytes=30_000, workers=workers)
    validate(pgns, out / "valid", config, parts=store("valid"))
    game = GameConfig(share_bytes=40_000, workers=workers)
    build_game_dataset(out / "valid", out / "game", game, parts=store("game"))
    cache = CacheConfig(share_games=50, workers=workers)
    build_splice_cache(out / "game", out / "cache", cache, parts=store("cache"))
    splice = SpliceConfig(max_samples_per_game=8, share_bytes=40_000, workers=workers)
    build_splice_dataset(out / "valid", out / "splice", splice, parts=store("splice"))
    return digests(out)


def test_bytes_do_not_depend_on_workers_parts_or_shares(month: Path, tmp_path: Path) -> None:
    one = chain([month], tmp_path / "one", 1, parts=False)
    assert chain([month], tmp_path / "two", 2, parts=False) == one
    assert chain([month], tmp_path / "kept", 2, parts=True) == one
    whole = tmp_path / "whole"
    whole.mkdir()
    validate([month], whole / "valid")
    build_game_dataset(whole / "valid", whole / "game")
    assert {k: v for k, v in one.items() if k.startswith(("valid", "game"))} == digests(whole)
    assert not list((tmp_path / "two").rglob("*.part"))


def test_a_killed_build_goes_on_with_its_parts(
    month: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "parts").mkdir()
    store = PartStore(tmp_path / "parts")
    config = ValidateConfig(share_bytes=30_000)
    validate([month], tmp_path / "whole", config)
    done: list[str] = []

    class Killed(Exception):
        pass

    def dying(job: Any) -> Any:
        if len(done) == 3:
            raise Killed
        done.append(job.name)
        return _into_store(job)

    monkeypatch.setattr("gristmill.run.sections._into_store", dying)
    with pytest.raises(Killed):
        validate([month], tmp_path / "first", config, parts=store)
    monkeypatch.undo()
    before = {path: path.stat().st_mtime_ns for path in store.folder.glob("*.part")}
    assert len(before) == 3
    validate([month], tmp_path / "second", config, parts=store)
    assert digests(tmp_path / "second") == digests(tmp_path / "whole")
    assert all(path.stat().st_mtime_ns == at for path, at in before.items())


def test_ids_do_not_depend_on_the_file_and_games_keep_their_split(
    month: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "some where" / "other.pgn"
    elsewhere.parent.mkdir()
    # The same games in the reverse order, in another file, beside the first.
    games = month.read_text().split("[Event ")[1:]
    elsewhere.write_text("".join("[Event " + game for game in reversed(games)))
    for name, pgns in (("a", [month]), ("b", [elsewhere]), ("both", [month, elsewhere])):
        validate(pgns, tmp_path / name)
        build_game_dataset(tmp_path / name, tmp_path / f"{name}_game")
    ids = [
        sorted(row["game_id"] for row in rows(tmp_path / name / "valid_games.jsonl"))
        for name in ("a", "b")
    ]
    assert ids[0] == ids[1]
    for split in SPLITS:
        a, b, both = (
            [tuple(row["moves"]) for row in rows(tmp_path / f"{name}_game" / f"{split}.jsonl")]
            for name in ("a", "b", "both")
        )
        assert sorted(a) == sorted(b)
        assert both == a + b
        assert a


@pytest.mark.real
def test_no_leakage_between_real_files_that_share_games(real: Path, tmp_path: Path) -> None:
    pgns = [real / "pgn" / f"pgnmentor_{name}.pgn" for name in ("Ding", "Caruana")]
    summary = validate(pgns, tmp_path / "v")
    assert summary.duplicate_games > 20
    counted = build_game_dataset(tmp_path / "v", tmp_path / "g")
    assert counted.shared_sequences == 0
    assert counted.duplicate_games > 0
    sequences = [
        {tuple(row["moves"]) for row in rows(tmp_path / "g" / f"{s}.jsonl")} for s in SPLITS
    ]
    assert not (sequences[0] & sequences[1] or sequences[0] & sequences[2])
    assert not sequences[1] & sequences[2]
    total = sum(counted.games.values())
    assert abs(counted.games["train"] / total - 0.8) < 0.03
    # The earlier shuffle of ids leaks: the same game under both players.
    shuffled = build_game_dataset(tmp_path / "v", tmp_path / "s", GameConfig(split="shuffle"))
    again = tmp_path / "reference"
    validate(pgns, again, ValidateConfig(compat="reference"))
    leaky = build_game_dataset(again, tmp_path / "leaky", GameConfig(split="shuffle"))
    assert leaky.shared_sequences > 0
    assert shuffled.games.keys() == counted.games.keys()


def test_another_seed_gives_another_split(valid: Path, tmp_path: Path) -> None:
    build_game_dataset(valid, tmp_path / "a", GameConfig(seed=7))
    build_game_dataset(valid, tmp_path / "b", GameConfig(seed=8))
    assert (tmp_path / "a" / "val.jsonl").read_bytes() != (
        tmp_path / "b" / "val.jsonl"
    ).read_bytes()


@pytest.mark.parametrize("field", ["moves", "moves_uci"])
def test_rows_with_either_field_of_moves(valid: Path, tmp_path: Path, field: str) -> None:
    lines = []
    for row in rows(valid / "valid_games.jsonl"):
        del row["moves_uci" if field == "moves" else "moves"]
        lines.append(json.dumps(row, separators=(",", ":"), ensure_ascii=False))
    (tmp_path / "in").mkdir()
    bare = tmp_path / "in" / "valid_games.jsonl"
    bare.write_text("\n\n".join(lines) + "\n")
    build_game_dataset(bare, tmp_path / "bare", GameConfig(keep_headers=True, share_bytes=9_999))
    build_game_dataset(valid, tmp_path / "full", GameConfig(keep_headers=True))
    build_splice_cache(tmp_path / "bare", tmp_path / "bare_cache")
    build_splice_cache(tmp_path / "full", tmp_path / "full_cache")
    for split in SPLITS:
        name = f"{split}.jsonl"
        assert (tmp_path / "bare" / name).read_bytes() == (tmp_path / "full" / name).read_bytes()
        assert rows(tmp_path / "full" / name)[0]["headers"]["White"]
    assert digests(tmp_path / "bare_cache") == digests(tmp_path / "full_cache")


@pytest.mark.parametrize(("cap", "k", "min_context", "min_target"), [(0, 4, 8, 1), (5, 3, 3, 2)])
def test_splice_rows_are_those_of_a_plain_loop(
    valid: Path, tmp_path: Path, cap: int, k: int, min_context: int, min_target: int
) -> None:
    config = SpliceConfig(
        k=k,
        min_context=min_context,
        min_target=min_target,
        max_samples_per_game=cap,
        share_bytes=60_000,
        allow_draws=True,
    )
    build_splice_dataset(valid, tmp_path / "out", config)
    game = GameConfig(min_context=min_context, min_target=min_target, allow_draws=True)
    build_game_dataset(valid, tmp_path / "game", game)
    for split in SPLITS:
        told = "".join(
            plain.splices(row, k, min_context, min_target, cap, 7)
            for row in rows(tmp_path / "game" / f"{split}.jsonl")
        )
        assert (tmp_path / "out" / f"{split}.jsonl").read_text() == told
        assert told


def test_draws_only_on_request(valid: Path, tmp_path: Path) -> None:
    without = build_game_dataset(valid, tmp_path / "a")
    everything = build_game_dataset(valid, tmp_path / "b", GameConfig(allow_draws=True))
    assert without.input_games == everything.input_games
    drawn = [
        row
        for s in SPLITS
        for row in rows(tmp_path / "b" / f"{s}.jsonl")
        if row["winner_side"] == "D"
    ]
    assert drawn
    assert everything.spliceable_games == without.spliceable_games + len(drawn)


def live_row(**more: Any) -> dict[str, Any]:
    moves = ["e2e4", "e7e5", "g1f3", "b8c6", "f1b5", "a7a6", "b5a4", "g8f6", "e1g1", "f8e7"]
    base = {"game_id": "x", "headers": {}, "result": "1-0", "winner_side": "W", "plies": 10}
    return {**base, "moves_uci": moves, **more}


@pytest.mark.parametrize(
    "row",
    [
        live_row(source_file="lichess_live_bot"),
        live_row(headers={"LichessGameId": "abc"}),
        live_row(headers={"Event": "Lichess Bot Live"}),
    ],
)
def test_live_bot_games_are_refused(tmp_path: Path, row: dict[str, Any]) -> None:
    path = tmp_path / "valid_games.jsonl"
    path.write_text(json.dumps(live_row(headers={"LichessGameId": ""})) + "\n" + json.dumps(row))
    for build, allow in (
        (build_game_dataset, GameConfig(allow_live_bot_games=True)),
        (build_splice_dataset, SpliceConfig(allow_live_bot_games=True)),
    ):
        with pytest.raises(BadInput, match="live bot game") as caught:
            build(path, tmp_path / "no")  # type: ignore[operator]
        assert caught.value.row == 2
        assert not (tmp_path / "no").exists()
        build(path, tmp_path / build.__name__, allow)  # type: ignore[operator]
        made = "".join((tmp_path / build.__name__ / f"{s}.jsonl").read_text() for s in SPLITS)
        assert made.count("e2e4") >= 2


def test_an_archive_of_live_games_is_refused_by_its_path(tmp_path: Path) -> None:
    home = tmp_path / "Lichess_Bot_Archive"
    home.mkdir()
    path = home / "valid_games.jsonl"
    path.write_text(json.dumps(live_row()) + "\n")
    with pytest.raises(BadInput, match="archive of live bot games"):
        build_game_dataset(path, tmp_path / "out")


def test_empty_input_and_empty_splits_give_empty_files(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "valid_games.jsonl"
    for name, text in (("none", ""), ("one", json.dumps(live_row()) + "\n")):
        path.write_text(text)
        build_game_dataset(path, tmp_path / name)
        summary = build_splice_cache(tmp_path / name, tmp_path / name / "runtime_splice_cache")
        assert sum(summary.samples.values()) == (2 if text else 0)
        for split in SPLITS:
            for array in LAYOUT:
                size = (tmp_path / name / "runtime_splice_cache" / split / array).stat().st_size
                assert size == summary.samples[split] * np.dtype(LAYOUT[array]).itemsize
        build_splice_dataset(path, tmp_path / f"{name}_splice")
    pgn = tmp_path / "empty.pgn"
    pgn.write_text("\n\n")
    assert validate([pgn], tmp_path / "valid").total_games == 0


@pytest.mark.parametrize("separators", [(", ", ": "), (",", ":")])
@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("result", "", ""),
        ("result", "1-0 forfeit", "1-0 forfeit"),
        ("result", None, "*"),
        ("plies", 12, 12),
        ("plies", None, 10),
        ("plies", True, 10),
        ("plies", -3, 10),
        ("plies", 10**12, 10),
    ],
)
def test_odd_fields_are_read_alike_in_every_shape_of_row(
    tmp_path: Path, separators: tuple[str, str], field: str, value: object, told: object
) -> None:
    path = tmp_path / "valid_games.jsonl"
    moves = live_row()["moves_uci"]
    row = {"game_id": "x", "source_file": "s.pgn", "headers": {}, "result": "1-0"}
    row |= {"winner_side": "W", "plies": 10, "moves": moves, "moves_uci": moves, field: value}
    path.write_text(json.dumps(row, separators=separators) + "\n")
    build_game_dataset(path, tmp_path / "out")
    made = [row for split in SPLITS for row in rows(tmp_path / "out" / f"{split}.jsonl")]
    assert [row[field] for row in made] == [told]


@pytest.mark.parametrize("line", ["{nonsense", "[1]", '{"moves": ["é"]}', '{"moves": ["a b"]}'])
def test_rows_that_cannot_be_read_are_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "valid_games.jsonl"
    path.write_text((json.dumps(live_row()) + "\n\n") * 30 + line + "\n")
    for share_bytes in (1, 1000, 1 << 20):
        config = GameConfig(share_bytes=share_bytes)
        with pytest.raises(BadInput, match=r"row|JSON") as caught:
            build_game_dataset(path, tmp_path / f"out_{share_bytes}", config)
        assert caught.value.row == 31
        assert "valid_games.jsonl:31: " in str(caught.value)


def test_a_sidecar_of_other_rows_is_refused(valid: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(valid, tmp_path / "v")
    path = tmp_path / "v" / "valid_games.jsonl"
    path.write_text(path.read_text().replace('"e2e4"', '"e2e3"', 1))
    with pytest.raises(BadInput, match="sidecar"):
        build_game_dataset(tmp_path / "v", tmp_path / "out")
    shutil.rmtree(tmp_path / "v" / "sidecar")
    build_game_dataset(tmp_path / "v", tmp_path / "again")


def test_a_dataset_that_changed_under_its_sidecar_is_refused(valid: Path, tmp_path: Path) -> None:
    build_game_dataset(valid, tmp_path / "d")
    path = tmp_path / "d" / "train.jsonl"
    path.write_bytes(path.read_bytes().replace(b"1-0", b"0-1", 1))
    with pytest.raises(BadInput, match="has changed since its sidecar"):
        build_splice_cache(tmp_path / "d", tmp_path / "c")


def test_files_name_the_place_where_they_will_stand(valid: Path, tmp_path: Path) -> None:
    home = tmp_path / "lake" / "elite_2024-01_game"
    build_game_dataset(valid, tmp_path / "staged", published=home)
    assert json.loads((tmp_path / "staged" / "stats.json").read_text())["output_dir"] == str(home)
    place = home / "runtime_splice_cache"
    build_splice_cache(tmp_path / "staged", tmp_path / "cache", published=place)
    for split in SPLITS:
        paths = json.loads((tmp_path / "cache" / split / "paths.json").read_text())
        assert paths == [str(home / f"{split}.jsonl")]
    manifest = json.loads((tmp_path / "cache" / "manifest.json").read_text())
    assert manifest["dataset_dir"] == str(home)


def test_one_config_for_the_month() -> None:
    month = MonthConfig(min_context=10, min_target=2, seed=3, cache_cap=6, legacy_cap=9, workers=2)
    assert month.game().min_context == month.cache().min_context == month.splice().min_context == 10
    assert month.cache().contract() == {
        "min_context": 10, "min_target": 2, "max_samples_per_game": 6, "seed": 3
    }  # fmt: skip
    assert month.splice().max_samples_per_game == 9
    assert month.validate().workers == 2
    assert (MonthConfig().cache_cap, MonthConfig().legacy_cap, MonthConfig().legacy) == (0, 8, True)
    for bad in ({"min_context": 0}, {"min_target": 0}, {"train_ratio": 0.9, "val_ratio": 0.2}):
        with pytest.raises(ValueError, match=r"min_context|min_target|ratio"):
            MonthConfig(**bad)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="time controls"):
        ValidateConfig(time_controls=("slow",))
