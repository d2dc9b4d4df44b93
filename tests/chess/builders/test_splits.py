"""Splits of games, games that equal an earlier one, and subsets that keep their strata."""

import csv
import hashlib
import json
import random
import shutil
from collections import Counter
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import chess
import numpy as np
import pytest
from numpy.typing import NDArray

from gristmill.chess import (
    GameConfig,
    GameSpliceDataset,
    SpliceConfig,
    ValidateConfig,
    build_game_dataset,
    build_splice_dataset,
    validate,
)
from gristmill.chess.builders import splits
from gristmill.chess.builders.splits import SplitLeakage, build_subset, shares
from gristmill.chess.config import SPLITS, SubsetConfig
from gristmill.chess.format.folders import split_of
from gristmill.chess.laws.datasets import dataset_laws, subset_laws
from gristmill.chess.laws.games import deep_contexts, validated_laws, validated_notes
from gristmill.chess.read.row_batches import RowBatch
from gristmill.chess.samples import write_month
from gristmill.contract import BadInput
from gristmill.families import Subject
from tests.chess.both_readers import both_ways
from tests.chess.builders.chain import digests, live_row, rows


@pytest.mark.real
def test_no_leakage_between_real_files_that_share_games(real, tmp_path):
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
    # The shuffle of ids leaks: the same game under both players.
    shuffled = build_game_dataset(tmp_path / "v", tmp_path / "s", GameConfig(split="shuffle"))
    again = tmp_path / "reference"
    validate(pgns, again, ValidateConfig(compat="reference"))
    leaky = build_game_dataset(again, tmp_path / "leaky", GameConfig(split="shuffle"))
    assert leaky.shared_sequences > 0
    assert shuffled.games.keys() == counted.games.keys()


@pytest.mark.parametrize("at_once", [1 << 18, 7])
def test_contexts_that_begin_a_game_of_train_are_counted(valid, tmp_path, monkeypatch, at_once):
    monkeypatch.setattr(splits, "_GAMES_AT_ONCE", at_once)
    found = build_game_dataset(valid, tmp_path / "g", GameConfig(min_context=3, min_target=2))
    games = {s: [tuple(r["moves"]) for r in rows(tmp_path / "g" / f"{s}.jsonl")] for s in SPLITS}
    train = {moves[:depth] for moves in games["train"] for depth in range(len(moves) + 1)}
    wanted = {}
    for split in SPLITS[1:]:
        bands: dict[str, list[bool]] = {}
        for moves in games[split]:
            for depth in range(3, len(moves) - 1):
                band = "3 to 12 plies" if depth < 13 else "13 to 20 plies"
                for name in (split, f"{split}, {band if depth < 21 else '21 plies and more'}"):
                    bands.setdefault(name, []).append(moves[:depth] in train)
        wanted |= {name: round(sum(each) / len(each), 6) for name, each in bands.items()}
    assert found.contexts_in_train == wanted
    assert wanted["val"] > 0
    record = SimpleNamespace(
        artifact="g", counts={f"contexts_in_train/{name}": n for name, n in wanted.items()}
    )
    deep = {name: n for name, n in wanted.items() if "more" in name}
    assert len([*deep_contexts(record, tmp_path)]) == sum(n >= 0.01 for n in deep.values())


def _with_twins(path: Path, games: int) -> list[list[str]]:
    """Rows of games of 30 moves by lot, and of copies that end eight moves earlier."""
    dice = random.Random(5)
    squares = [file + rank for file in "abcdefgh" for rank in "12345678"]
    whole = [["".join(dice.sample(squares, 2)) for _ in range(30)] for _ in range(games)]
    every = [*whole, *(moves[:22] for moves in whole)]
    of_games = [{**live_row(moves_uci=moves), "game_id": str(i)} for i, moves in enumerate(every)]
    path.write_text("".join(json.dumps(row) + "\n" for row in of_games))
    return every


def _openings(out: Path, plies: int) -> list[set[tuple[str, ...]]]:
    """By split, the first moves that its games have."""
    return [{tuple(r["moves"][:plies]) for r in rows(out / f"{s}.jsonl")} for s in SPLITS]


@pytest.mark.parametrize("plies", [1, 16, 22])
def test_no_opening_is_in_two_splits_where_it_decides(tmp_path, plies):
    path = tmp_path / "valid_games.jsonl"
    every = _with_twins(path, 60)
    build_game_dataset(path, tmp_path / "moves_game")
    by_split = _openings(tmp_path / "moves_game", 22)
    assert by_split[0] & by_split[1] and by_split[0] & by_split[2]
    config = GameConfig(split="opening", opening_plies=plies, share_bytes=4_000)
    build_game_dataset(path, tmp_path / "x_game", config)
    train, val, test = _openings(tmp_path / "x_game", plies)
    assert train and val and test and not (train & val or train & test or val & test)
    # The rule, in other words than those of the code.
    keys = [hashlib.sha256(" ".join(moves[:plies]).encode()).digest()[:8] for moves in every]
    places = split_of(
        np.array([int.from_bytes(key, "big") for key in keys], np.uint64), 7, 0.8, 0.1
    )
    for number, split in enumerate(SPLITS):
        ids = [row["game_id"] for row in rows(tmp_path / "x_game" / f"{split}.jsonl")]
        assert ids == [str(i) for i in np.flatnonzero(places == number)]
    build_splice_dataset(
        path, tmp_path / "x_cap", SpliceConfig(split="opening", opening_plies=plies)
    )
    for split in SPLITS:
        of_games = {row["game_id"] for row in rows(tmp_path / "x_game" / f"{split}.jsonl")}
        assert {row["game_id"] for row in rows(tmp_path / "x_cap" / f"{split}.jsonl")} == of_games
    said = {"split_rule": "opening_key", "opening_plies": plies}
    stats = json.loads((tmp_path / "x_game" / "stats.json").read_text())
    params = json.loads((tmp_path / "x_cap" / "stats.json").read_text())["params"]
    assert said.items() <= stats.items() and said.items() <= params.items()
    assert params["seed"] == 7


def test_short_games_are_placed_by_all_moves_and_live_archives_refused(tmp_path):
    path = tmp_path / "valid_games.jsonl"
    _with_twins(path, 60)
    build_game_dataset(path, tmp_path / "moves_game")
    long = GameConfig(split="opening", opening_plies=30)
    build_game_dataset(path, tmp_path / "x_game", long)
    for split in SPLITS:
        placed = (tmp_path / "x_game" / f"{split}.jsonl").read_bytes()
        assert placed == (tmp_path / "moves_game" / f"{split}.jsonl").read_bytes()
    home = tmp_path / "Lichess_Bot_Archive"
    home.mkdir()
    path = home / "valid_games.jsonl"
    path.write_text(json.dumps(live_row()) + "\n")
    with pytest.raises(BadInput, match="archive of live bot games"):
        build_game_dataset(path, tmp_path / "out")


def test_another_seed_gives_another_split(valid, tmp_path):
    build_game_dataset(valid, tmp_path / "a", GameConfig(seed=7))
    build_game_dataset(valid, tmp_path / "b", GameConfig(seed=8))
    assert (tmp_path / "a" / "val.jsonl").read_bytes() != (
        tmp_path / "b" / "val.jsonl"
    ).read_bytes()


@pytest.mark.parametrize(
    "row",
    [
        live_row(source_file="lichess_live_bot"),
        live_row(headers={"LichessGameId": "abc"}),
        live_row(headers={"Event": "Lichess Bot Live"}),
    ],
)
def test_live_bot_games_are_refused(tmp_path, row):
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


def test_a_split_that_leaks_is_not_built(valid, tmp_path, monkeypatch):
    def by_place(_: object, batch: RowBatch) -> NDArray[np.uint8]:
        return (np.arange(len(batch.columns)) % 2).astype(np.uint8)

    monkeypatch.setattr("gristmill.chess.builders.splits.SplitTask.places", by_place)
    for build, config in (
        (build_game_dataset, GameConfig(games="all", min_context=1)),
        (build_splice_dataset, SpliceConfig(split="opening", games="all", min_context=1)),
    ):
        with pytest.raises(SplitLeakage, match="move sequences are in more than one split"):
            build(valid, tmp_path / build.__name__, config)  # type: ignore[operator]


MOVES = "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7"
# The second form goes to python-chess.
FORMS = (MOVES, MOVES.replace("e4 e5", "e2e4 e5"))


def game(moves: str = MOVES, /, **more: str | None) -> str:
    result = more.pop("result", "1-0")
    tags = {"Event": "E", "White": "A", "Black": "B", "UTCDate": "2024.02.03", **more}
    lines = [f'[{name} "{value}"]\n' for name, value in tags.items() if value is not None]
    return "".join(lines) + f'[Result "{result}"]\n\n{moves} {result}\n\n'


def month(tmp_path: Path, text: str) -> tuple[Path, dict[str, Any]]:
    pgn = tmp_path / "lichess_elite_2024-02.pgn"
    pgn.write_text(text)
    validate([pgn], tmp_path / "valid", ValidateConfig(share_bytes=400))
    assert list(validated_laws(Subject(tmp_path / "valid"))) == []
    both_ways(pgn, ValidateConfig())
    both_ways(pgn, ValidateConfig(compat="reference"))
    return tmp_path / "valid", json.loads((tmp_path / "valid/summary.json").read_text())


@pytest.mark.parametrize("moves", FORMS)
def test_valid_games_without_a_player_are_flagged_and_counted(tmp_path, moves):
    missing: list[dict[str, str | None]] = [
        {"White": None, "Black": None}, {"White": "?", "Black": "?"}, {"White": ""},
        {"Black": None}, {"White": "?", "Event": "J\u00fcrgen"},
    ]  # fmt: skip
    named: list[dict[str, str | None]] = [{}, {"White": "??"}, {"Black": "!"}, {"White": "1"}]
    text = "".join(game(moves, **tags) for tags in [*missing, *named])
    valid, summary = month(tmp_path, text)
    assert summary["flag_counts"] == {"no_players": 5}
    with (valid / "flagged_games.csv").open(newline="") as table:
        flagged = [int(row["pgn_offset"]) for row in csv.DictReader(table)]
    starts = [len("".join(game(moves, **tags) for tags in missing[:n]).encode()) for n in range(5)]
    assert flagged == starts


@pytest.mark.parametrize("moves", FORMS)
def test_dates_outside_the_month_are_counted_and_noted(tmp_path, moves):
    inside: list[dict[str, str | None]] = [
        {}, {"UTCDate": "2024.02.??"}, {"UTCDate": "????.??.??", "Date": "2024.02.29"},
        {"UTCDate": None}, {"UTCDate": None, "Date": "2023.??.??"}, {"Date": "2020.01.01"},
    ]  # fmt: skip
    outside: list[dict[str, str | None]] = [
        {"UTCDate": None, "Date": "2024.01.31"}, {"UTCDate": "2023.02.03", "Date": "2024.02.03"},
        {"UTCDate": "????.??.??", "Date": "2024.03.01"},
    ]  # fmt: skip
    first = "".join(game(moves, **tags) for tags in inside)
    valid, summary = month(tmp_path, first + "".join(game(moves, **tags) for tags in outside))
    assert summary["games_outside_month"] == {
        "games": 3,
        "first": {"tag": "Date", "value": "2024.01.31", "pgn_offset": len(first)},
    }
    (note,) = [note for note in validated_notes(valid) if note.law == "other_month"]
    assert note.found == (
        f"3 games have a date outside of the month, such as Date 2024.01.31 at byte {len(first)}"
    )
    (tmp_path / "x.pgn").write_text(first)
    named = validate([tmp_path / "x.pgn"], tmp_path / "any")
    assert named.games_outside_month == 0


def test_months_without_equal_games_have_no_word_and_rows_need_no_id(tmp_path):
    valid, summary = month(tmp_path, game() + game(White="C"))
    assert list(summary)[-3:] == ["compat", "flag_counts", "duplicate_games"]
    assert summary["duplicate_games"] == 1
    assert list(validated_notes(valid)) == []
    moves = ["e2e4", "e7e5", "g1f3", "b8c6", "f1b5", "a7a6", "b5a4", "g8f6", "e1g1", "f8e7"]
    line = json.dumps({"game_id": "", "winner_side": "W", "moves": moves}) + "\n"
    (tmp_path / "valid_games.jsonl").write_text(line * 3)
    config = GameConfig(drop_duplicates=True)
    summary = build_game_dataset(tmp_path / "valid_games.jsonl", tmp_path / "x_game", config)
    assert (summary.spliceable_games, summary.dropped_duplicates) == (3, 0)


def test_equal_games_are_counted_noted_and_dropped_if_asked(tmp_path):
    """The first of the equal games that can be spliced is taken; a draw is none of them."""
    games = [game(result="1/2-1/2"), game(), game(White="C"), game(), game(White="C"), game()]
    valid, summary = month(tmp_path, "".join(games))
    of_rows = rows(valid / "valid_games.jsonl")
    first = {"game_id": of_rows[1]["game_id"], "pgn_offset": len(games[0])}
    assert summary["equal_games"] == {"games": 4, "first": first}
    (note,) = validated_notes(valid)
    assert note.law == "equal_games"
    assert note.found.startswith(f"4 games are in the PGN once more, such as {first['game_id']}")

    every = build_game_dataset(valid, tmp_path / "every_game")
    assert (every.spliceable_games, every.dropped_duplicates) == (5, 0)
    assert not (tmp_path / "every_game/dropped_games.csv").exists()
    for share_bytes in (1, 1 << 20):
        out = tmp_path / f"{share_bytes}_game"
        config = GameConfig(drop_duplicates=True, share_bytes=share_bytes)
        once = build_game_dataset(valid, out, config)
        assert (once.spliceable_games, once.dropped_duplicates) == (2, 3)
        taken = [row["game_id"] for split in SPLITS for row in rows(out / f"{split}.jsonl")]
        ids = [row["game_id"] for row in of_rows]
        assert taken == [ids[1], ids[2]]
        assert (out / "dropped_games.csv").read_bytes().decode().split("\r\n") == [
            "game_id,row,first_row", f"{ids[3]},3,1", f"{ids[4]},4,2", f"{ids[5]},5,1", "",
        ]  # fmt: skip
        assert json.loads((out / "stats.json").read_text())["dropped_duplicates"] == 3
        assert list(dataset_laws(Subject(out))) == []
    assert digests(tmp_path / "1_game") == digests(tmp_path / f"{1 << 20}_game")
    shuffled = GameConfig(drop_duplicates=True, split="shuffle")
    assert build_game_dataset(valid, tmp_path / "s_game", shuffled).spliceable_games == 2
    spliced = build_splice_dataset(valid, tmp_path / "cap", SpliceConfig(drop_duplicates=True))
    assert spliced.spliceable_games == 2
    listed = (tmp_path / "cap/dropped_games.csv").read_bytes()
    assert listed == (tmp_path / "1_game/dropped_games.csv").read_bytes()


@pytest.mark.parametrize("text", ["", "\n\n", ";c\n", "Some words\n\nof a person\n", "{c}\n\n*\n"])
def test_a_file_without_a_game_is_refused(tmp_path, text):
    pgn = tmp_path / "x.pgn"
    pgn.write_text(text)
    with pytest.raises(BadInput, match=r"x\.pgn: holds no game: no tag and no move.*bring a PGN"):
        validate([pgn], tmp_path / "out")
    pgn.write_text(text + "\n" + game("1. e4 e5"))
    summary = validate([pgn], tmp_path / "result")
    assert summary.valid_games == 0
    assert summary.reasons["too_short"] == 1


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A game dataset with headers, and legacy rows of the same games."""
    root = tmp_path_factory.mktemp("subset")
    write_month(root / "x.pgn", "2024-01", 260, 4)
    validate([root / "x.pgn"], root / "valid")
    config = GameConfig(keep_headers=True, games="finished", min_context=4)
    build_game_dataset(root / "valid", root / "games", config)
    build_splice_dataset(root / "valid", root / "rows", SpliceConfig(max_samples_per_game=4))
    return root


def lines(folder: Path, split: str) -> list[bytes]:
    return (folder / f"{split}.jsonl").read_bytes().splitlines(keepends=True)


def stratum(row: dict[str, Any], config: SubsetConfig) -> str:
    """By python-chess and the tags, without our readers."""
    moves = row["context"] if "context" in row else row["moves"]
    ply = len(moves) // config.ply_step * config.ply_step
    elo = [int(row["headers"][tag]) for tag in ("WhiteElo", "BlackElo")] if "headers" in row else []
    parts = {
        "phase": row.get("phase") or _last_phase(tuple(moves)),
        "result": row["winner_side"],
        "ply": f"ply {ply}",
        "elo": f"elo {sum(elo) // 2 // config.elo_step * config.elo_step}",
    }
    return "|".join(parts[by] for by in config.by)


@cache
def _last_phase(moves: tuple[str, ...]) -> str:
    """The rule of docs/formats/chess.md#phases for the position after all moves."""
    board = chess.Board()
    for move in moves:
        board.push_uci(move)
    values = {chess.KNIGHT: 3, chess.BISHOP: 3, chess.ROOK: 5, chess.QUEEN: 9}
    material = sum(values.get(piece.piece_type, 0) for piece in board.piece_map().values())
    queens = len(board.pieces(chess.QUEEN, True)) + len(board.pieces(chess.QUEEN, False))
    if material <= 14 or (queens == 0 and material <= 20):
        return "endgame"
    return "opening" if len(moves) <= 20 and board.castling_rights else "middlegame"


CONFIGS = {
    "kept": SubsetConfig(train=50, val=7, test=0),
    "equal": SubsetConfig(train=41, val=9, by=("result",), shares="equal"),
    "elo and ply": SubsetConfig(train=60, val=999, test=3, by=("elo", "ply"), elo_step=100),
    "rows": SubsetConfig(of="rows", train=77, val=5, by=("phase", "ply"), ply_step=40),
    "no strata": SubsetConfig(train=10, by=()),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_subset_has_the_shares_that_were_asked_for_and_rows_as_they_were(home, tmp_path, name):
    config, source = CONFIGS[name], home / CONFIGS[name].of
    out = tmp_path / "out"
    summary = build_subset(source, out, config)
    report = json.loads((out / "subset.json").read_bytes())["splits"]
    for split in SPLITS:
        every, taken = lines(source, split), lines(out, split)
        numbers = np.load(out / f"{split}_rows.npy")
        assert [every[number] for number in numbers] == taken
        assert len(taken) == min(len(every), getattr(config, split)) == summary.samples[split]
        there = Counter(stratum(json.loads(line), config) for line in every)
        found = Counter(stratum(json.loads(line), config) for line in taken)
        strata = {key: (found[key], count) for key, count in there.items()}
        assert {key: tuple(each) for key, each in report[split]["strata"].items()} == strata
        if config.shares == "kept" and taken:
            for got, size in strata.values():
                assert abs(got - size * len(taken) / len(every)) < 1
    assert list(subset_laws(Subject(out))) == []


def test_the_vocabulary_is_a_table_of_the_moves_of_train(home, tmp_path):
    out = tmp_path / "out"
    build_subset(home / "games", out, CONFIGS["kept"])
    words = Counter(move for line in lines(out, "train") for move in json.loads(line)["moves"])
    with (out / "vocabulary.csv").open(newline="") as file:
        table = [(row["move"], int(row["count"])) for row in csv.DictReader(file)]
    assert table == [("<PAD>", 0), ("<UNK>", 0), *sorted(words.items())]
    samples = GameSpliceDataset(out)
    assert list(samples.vocabulary()) == [move for move, _ in table]
    # The config of the dataset that it was taken of.
    assert min(len(samples[n].context) for n in range(len(samples))) == 4


@pytest.mark.parametrize("damage", [{"target": 5}, {"target": None}])
def test_a_row_without_moves_is_refused_by_its_number(home, tmp_path, damage):
    shutil.copytree(home / "rows", tmp_path / "rows")
    every = lines(tmp_path / "rows", "train")
    bad = json.dumps(json.loads(every[1]) | damage).encode() + b"\n"
    (tmp_path / "rows/train.jsonl").write_bytes(b"".join([every[0], bad, *every[2:]]))
    config = SubsetConfig(of="rows", train=10**6, by=())
    with pytest.raises(BadInput, match="is no row") as raised:
        build_subset(tmp_path / "rows", tmp_path / "out", config)
    assert raised.value.row == 2


def test_a_larger_subset_holds_a_smaller_one_and_a_seed_changes_it(home, tmp_path):
    def taken(name: str, **config: Any) -> set[bytes]:
        build_subset(home / "games", tmp_path / name, SubsetConfig(by=("result",), **config))
        return set(lines(tmp_path / name, "train"))

    small, large = taken("small", train=20), taken("large", train=90)
    assert small < large and len(small) == 20
    assert taken("other", train=20, seed=8) != small
    assert taken("again", train=20) == small


@pytest.mark.parametrize(
    ("sizes", "most", "is_equal", "expected"),
    [
        ({"a": 5, "b": 5}, 20, False, {"a": 5, "b": 5}),
        ({"a": 1, "b": 1, "c": 1}, 2, False, {"a": 1, "b": 1, "c": 0}),
        ({"a": 90, "b": 9, "c": 1}, 10, False, {"a": 9, "b": 1, "c": 0}),
        ({"a": 90, "b": 9, "c": 1}, 10, True, {"a": 5, "b": 4, "c": 1}),
        ({"a": 3, "b": 3}, 0, True, {"a": 0, "b": 0}),
        ({}, 5, True, {}),
    ],
)
def test_shares(sizes, most, is_equal, expected):
    assert shares(sizes, most, is_equal) == expected


def test_bad_input_names_file_and_cure(home, tmp_path):
    by_elo = SubsetConfig(of="rows", train=3, by=("elo",))
    with pytest.raises(BadInput, match=r"train.jsonl: has no ratings: take games, with keep_head"):
        build_subset(home / "rows", tmp_path / "a", by_elo)
    (tmp_path / "bad").mkdir()
    for split in SPLITS:
        (tmp_path / f"bad/{split}.jsonl").write_bytes(b'{"winner_side": "W"}\nnot JSON\n')
    with pytest.raises(BadInput, match=r"train.jsonl: has a line that is no row"):
        build_subset(tmp_path / "bad", tmp_path / "b", SubsetConfig(train=1))
    with pytest.raises(ValueError, match="by = "):
        SubsetConfig(by=("age",))  # type: ignore[arg-type]


def rows_renumbered(out: Path) -> None:
    rows = np.load(out / "train_rows.npy")
    np.save(out / "train_rows.npy", rows[::-1])


def line_lost(out: Path) -> None:
    (out / "train.jsonl").write_bytes(b"".join(lines(out, "train")[:-1]))


def limit_raised(out: Path) -> None:
    report = json.loads((out / "subset.json").read_bytes())
    report["config"]["train"] += 1
    (out / "subset.json").write_text(json.dumps(report))


@pytest.mark.parametrize(
    ("damage", "law"),
    [
        (rows_renumbered, "rows_numbered"),
        (line_lost, "subset_counted"),
        (limit_raised, "subset_sized"),
    ],
)
def test_damage_breaks_a_law(home, tmp_path, damage, law):
    out = tmp_path / "out"
    build_subset(home / "games", out, SubsetConfig(train=40, by=("result",)))
    damage(out)
    assert law in {each.law for each in subset_laws(Subject(out))}
