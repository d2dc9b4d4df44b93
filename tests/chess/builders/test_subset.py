"""Subsets: shares of the strata, rows as they were, the vocabulary, and what breaks the laws."""

import csv
import json
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import chess
import numpy as np
import pytest

from gristmill.chess import (
    GameConfig,
    GameSpliceDataset,
    SpliceConfig,
    build_game_dataset,
    build_splice_dataset,
    validate,
)
from gristmill.chess.builders.subset import build_subset, shares
from gristmill.chess.config import SPLITS, SubsetConfig
from gristmill.chess.laws.datasets import subset_laws
from gristmill.chess.samples import write_month
from gristmill.contract import BadInput
from gristmill.families import Subject


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
def test_a_subset_has_the_shares_that_were_asked_for_and_rows_as_they_were(
    home: Path, tmp_path: Path, name: str
) -> None:
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


def test_the_vocabulary_is_a_table_of_the_moves_of_train(home: Path, tmp_path: Path) -> None:
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


def test_a_larger_subset_holds_a_smaller_one_and_a_seed_changes_it(
    home: Path, tmp_path: Path
) -> None:
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
def test_shares(sizes: Any, most: int, is_equal: bool, expected: Any) -> None:
    assert shares(sizes, most, is_equal) == expected


def test_bad_input_names_file_and_cure(home: Path, tmp_path: Path) -> None:
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


def stratum_enlarged(out: Path) -> None:
    report = json.loads((out / "subset.json").read_bytes())
    for each in report["splits"]["train"]["strata"].values():
        each[1] += 500
    report["splits"]["train"]["rows_of"] += 500 * len(report["splits"]["train"]["strata"])
    (out / "subset.json").write_text(json.dumps(report))


def limit_raised(out: Path) -> None:
    report = json.loads((out / "subset.json").read_bytes())
    report["config"]["train"] += 1
    (out / "subset.json").write_text(json.dumps(report))


def move_left_out(out: Path) -> None:
    rows = (out / "vocabulary.csv").read_text().splitlines()
    (out / "vocabulary.csv").write_text("\n".join(rows[:-1]))


@pytest.mark.parametrize(
    ("damage", "law"),
    [
        (rows_renumbered, "rows_numbered"),
        (line_lost, "subset_counted"),
        (stratum_enlarged, "strata_shared"),
        (limit_raised, "subset_sized"),
        (move_left_out, "vocabulary"),
    ],
)
def test_damage_breaks_a_law(
    home: Path, tmp_path: Path, damage: Callable[[Path], None], law: str
) -> None:
    out = tmp_path / "out"
    build_subset(home / "games", out, SubsetConfig(train=40, by=("result",)))
    damage(out)
    assert law in {each.law for each in subset_laws(Subject(out))}
