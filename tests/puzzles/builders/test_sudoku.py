"""Sudoku datasets: the bytes of the page, at any worker count and order, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.hashing import sha256_file
from gristmill.puzzles.builders.sudoku import SudokuSummary, build_sudoku
from gristmill.puzzles.config import SudokuConfig
from gristmill.puzzles.domains.grid import text_of
from gristmill.puzzles.domains.randomness import source_key
from gristmill.puzzles.domains.sudoku_symmetry import augmentation
from gristmill.puzzles.laws.contract import contract_laws
from gristmill.puzzles.laws.games import sudoku_laws
from tests.paths import REAL_DATA
from tests.puzzles import sudoku
from tests.puzzles.sudoku import applied, board_of

PAIRS = sudoku.pairs(0, 16)
TRAIN, TEST = PAIRS[:12], PAIRS[12:]
REAL = REAL_DATA / "puzzles" / "sudoku_bank"


def _drop(folder: Path, train: Any = TRAIN, test: Any = TEST) -> Path:
    return sudoku.write_drop(folder / "drop", train, test)


def _build(folder: Path | list[Path], out: Path, **config: Any) -> SudokuSummary:
    summary = build_sudoku(folder, out, SudokuConfig(**config))
    assert [*contract_laws(out), *sudoku_laws(out)] == []
    assert not [*out.parent.glob(".scratch-*")]
    return summary


def _load(out: Path, name: str) -> np.ndarray:
    loaded: np.ndarray = np.load(out / f"{name}.npy")
    return loaded


def _questions(out: Path, split: str) -> list[str]:
    """The sources of a split, in the order of the dataset."""
    inputs, draws = _load(out, f"{split}/all__inputs"), _load(out, f"trace/{split}/all")[:, 2]
    return [text_of(row - 1) for row in inputs[draws == 0]]


def test_a_dataset_is_the_one_of_the_page(tmp_path):
    out = tmp_path / "out"
    summary = _build(_drop(tmp_path), out, num_aug=3, seed=5)
    rows = [
        [*sudoku.augmented(5, question, (question, answer), k)] if k else [question, answer]
        for question, answer in TRAIN
        for k in range(4)
    ]
    for which, field in enumerate(("inputs", "labels")):
        found = _load(out, f"train/all__{field}")
        assert found.dtype == np.int32
        assert (found == sudoku.tokens([row[which] for row in rows])).all()
        expected = sudoku.tokens([pair[which] for pair in TEST])
        assert (_load(out, f"test/all__{field}") == expected).all()
    assert _load(out, "train/all__puzzle_indices").tolist() == [*range(49)]
    assert _load(out, "train/all__group_indices").tolist() == [*range(0, 49, 4)]
    assert not _load(out, "train/all__puzzle_identifiers").any()
    assert _load(out, "trace/train/all").tolist() == [[1, 2 + k // 4, k % 4] for k in range(48)]
    assert _load(out, "trace/test/all").tolist() == [[0, 2 + k, 0] for k in range(4)]
    assert (out / "train/dataset.json").read_text() == (
        '{"pad_id": 0, "ignore_label_id": 0, "blank_identifier_id": 0, "vocab_size": 11, '
        '"seq_len": 81, "num_puzzle_identifiers": 1, "total_groups": 12, '
        '"mean_puzzle_examples": 1.0, "sets": ["all"], "total_puzzles": 48}'
    )
    assert (out / "identifiers.json").read_text() == '["<blank>"]'
    sources = json.loads((out / "trace/sources.json").read_text())
    assert sources["files"] == [
        {"path": f"drop/{name}.csv", "sha256": sha256_file(tmp_path / f"drop/{name}.csv")}
        for name in ("test", "train")
    ]
    assert summary.examples == {"train": 48, "test": 4}
    assert (summary.augmented, summary.augmentations_missing, summary.sources_read) == (36, 0, 16)


def test_a_subsample_is_drawn_by_the_seed_and_its_puzzles_alone(tmp_path):
    drop = _drop(tmp_path)
    keys = [source_key(9, "sudoku:subsample", question) for question, _ in TRAIN]
    drawn = [TRAIN[k][0] for k in np.argsort(np.array(keys, np.uint64)).tolist()]
    for size in (1, 5, 11):
        out = tmp_path / f"{size}"
        _build(drop, out, subsample_size=size, seed=9, num_aug=2)
        assert _questions(out, "train") == drawn[:size]
        assert _questions(out, "test") == [question for question, _ in TEST]
    _build(drop, tmp_path / "all", subsample_size=12, seed=9, num_aug=2)
    assert _questions(tmp_path / "all", "train") == [question for question, _ in TRAIN]
    # A group is the same in any subsample.
    small, large = (_load(tmp_path / name, "train/all__inputs") for name in ("5", "11"))
    assert (small == large[:15]).all()


def test_the_least_rating_holds_for_both_splits(tmp_path):
    sudoku.write_csv(tmp_path / "drop/train.csv", TRAIN, [*range(12)])
    sudoku.write_csv(tmp_path / "drop/test.csv", TEST, [7, -1, 6, 100])
    summary = _build(tmp_path / "drop", tmp_path / "out", min_difficulty=7)
    assert _questions(tmp_path / "out", "train") == [question for question, _ in TRAIN[7:]]
    assert _questions(tmp_path / "out", "test") == [TEST[0][0], TEST[3][0]]
    assert (summary.below_difficulty, summary.sources_read) == (9, 16)
    sudoku.write_csv(tmp_path / "drop/test.csv", TEST, [7, "7.2", 6, 100])
    _build(tmp_path / "drop", tmp_path / "unrated")
    with pytest.raises(BadInput, match="convert the ratings") as caught:
        build_sudoku(tmp_path / "drop", tmp_path / "no", SudokuConfig(min_difficulty=1))
    assert (caught.value.file, caught.value.row) == (str(tmp_path / "drop/test.csv"), 3)


def test_repeated_questions_are_left_out_and_too_few_puzzles_are_named(tmp_path):
    repeated = [TRAIN[0], TRAIN[1], TRAIN[0], TRAIN[2], TRAIN[1], TRAIN[0]]
    summary = _build(_drop(tmp_path, repeated), tmp_path / "out")
    assert _questions(tmp_path / "out", "train") == [question for question, _ in TRAIN[:3]]
    assert summary.duplicates_removed == 3
    (tmp_path := tmp_path / "next").mkdir()
    with pytest.raises(BadInput, match=r"test\.csv: has no row below its header"):
        build_sudoku(_drop(tmp_path, TRAIN, []), tmp_path / "no", SudokuConfig())
    with pytest.raises(BadInput, match="drop: is named twice"):
        build_sudoku([tmp_path / "drop"] * 2, tmp_path / "no", SudokuConfig())
    (tmp_path := tmp_path / "next").mkdir()
    (tmp_path / "s.csv").write_text("quizzes,solutions\n" + ",".join(PAIRS[0]) + "\n")
    with pytest.raises(BadInput, match=r"s\.csv: of 1 puzzles of the sources none is for the"):
        build_sudoku(tmp_path, tmp_path / "out", SudokuConfig())
    assert not (tmp_path / "out").exists()


def _twin(pair: tuple[str, str], number: int = 1) -> tuple[str, str]:
    symmetry = augmentation(99, pair[0], number)
    question, answer = (text_of(applied(symmetry, board_of(board))) for board in pair)
    return question, answer


def test_twins_of_training_puzzles_are_leaks(tmp_path):
    test = [TEST[0], _twin(TRAIN[3]), TEST[1], TRAIN[7]]
    drop = _drop(tmp_path, TRAIN, test)
    with pytest.raises(BadInput) as caught:
        build_sudoku(drop, tmp_path / "no", SudokuConfig())
    assert "2 puzzles of the test split are twins" in str(caught.value)
    assert "drop/test.csv:3 of drop/train.csv:5, drop/test.csv:5 of drop/train.csv:9" in str(
        caught.value
    )
    summary = _build(drop, tmp_path / "out", leaks="drop")
    assert _questions(tmp_path / "out", "test") == [TEST[0][0], TEST[1][0]]
    assert summary.leaks_dropped == 2


def test_leaks_are_those_of_the_subsample_which_has_its_size(tmp_path):
    keys = [source_key(42, "sudoku:subsample", question) for question, _ in TRAIN]
    last = TRAIN[int(np.argmax(np.array(keys, np.uint64)))]
    drop = _drop(tmp_path, TRAIN, [*TEST, _twin(last)])
    assert _build(drop, tmp_path / "out", subsample_size=11).leaks_dropped == 0
    with pytest.raises(BadInput, match="twins"):
        build_sudoku(drop, tmp_path / "no", SudokuConfig())
    (tmp_path := tmp_path / "next").mkdir()
    keys = [source_key(42, "sudoku:subsample", question) for question, _ in [*TRAIN, _ambiguous()]]
    order = np.argsort(np.array(keys, np.uint64)).tolist()
    drawn = [TRAIN[k][0] for k in order if k < 12]
    drop = _drop(tmp_path, [*TRAIN, _ambiguous()])
    _build(drop, tmp_path / "out", unique="drop", subsample_size=12)
    assert _questions(tmp_path / "out", "train") == drawn


def _ambiguous() -> tuple[str, str]:
    """A puzzle with more solutions than one: clues are removed until there are two."""
    question, answer = TRAIN[5]
    for cell in range(81):
        if question[cell] != "0":
            question = question[:cell] + "0" + question[cell + 1 :]
            if len(sudoku.solutions(question)) > 1:
                break
    return question, answer


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_puzzle_with_two_solutions_is_refused_dropped_or_kept(tmp_path, split):
    train, test = [*TRAIN[:3]], [*TEST]
    (train if split == "train" else test).insert(1, _ambiguous())
    drop = _drop(tmp_path, train, test)
    with pytest.raises(BadInput, match="more than one solution") as caught:
        build_sudoku(drop, tmp_path / "no", SudokuConfig())
    assert (caught.value.file, caught.value.row) == (str(drop / f"{split}.csv"), 3)
    summary = _build(drop, tmp_path / "out", unique="drop")
    assert summary.ambiguous_dropped == 1
    assert summary.first_ambiguous == {f"drop/{split}.csv": 3}
    assert _questions(tmp_path / "out", "train") == [question for question, _ in TRAIN[:3]]
    assert _questions(tmp_path / "out", "test") == [question for question, _ in TEST]
    _build(drop, tmp_path / "off", unique="off")
    kept = _questions(tmp_path / "off", split)
    assert kept[1] == _ambiguous()[0]


@pytest.mark.parametrize(
    ("question", "answer", "rule"),
    [
        ("x" + TRAIN[0][0][1:], TRAIN[0][1], "character 1, counted from 1, but 'x': correct"),
        (
            TRAIN[0][0],
            TRAIN[0][1][:80] + ":",
            "the answer has no digit at character 81, counted from 1, but ':'",
        ),
        (TRAIN[0][0], TRAIN[1][1], "clue_mismatch"),
        (TRAIN[0][0], "0" + TRAIN[0][1][1:], "label_digit_out_of_range"),
        ("0" * 81, "123456789" * 9, "col_dup_0"),
        (
            TRAIN[0][0][1:],
            TRAIN[0][1],
            "80 characters, must have 81: correct the row, or take it out; a program that",
        ),
        (TRAIN[0][0], TRAIN[0][1] + "1", "the answer has 82 characters, must have 81"),
    ],
)
def test_a_wrong_row_is_refused_by_file_and_line(tmp_path, question, answer, rule):
    drop = _drop(tmp_path, [*TRAIN[:2], (question, answer), TRAIN[2]])
    with pytest.raises(BadInput) as caught:
        build_sudoku(drop, tmp_path / "no", SudokuConfig())
    assert rule in caught.value.rule
    assert (caught.value.file, caught.value.row) == (str(drop / "train.csv"), 4)


def test_a_bank_is_solved_and_split_so_that_twins_stay_together(tmp_path):
    twins = [_twin(pair, number) for pair in PAIRS for number in (1, 2)]
    lines = [question for question, _ in PAIRS]
    lines += [f"{question} {answer}" for question, answer in twins[::2]]
    lines += [f"a{k} {question} {k}.5" for k, (question, _) in enumerate(twins[1::2])]
    (tmp_path / "bank").mkdir()
    (tmp_path / "bank/all.txt").write_text("\n".join(lines))
    (tmp_path / "bank/LICENSE.txt").write_text("no puzzle")
    out = tmp_path / "out"
    summary = _build(tmp_path / "bank", out, test_share=0.2)
    answers = dict([*PAIRS, *twins])
    found: dict[str, set[str]] = {}
    for split in ("train", "test"):
        rows = [text_of(row - 1) for row in _load(out, f"{split}/all__labels")]
        found[split] = set(_questions(out, split))
        assert rows == [answers[question] for question in _questions(out, split)]
        order = [pair[0] for pair in (*PAIRS, *twins[::2], *twins[1::2])]
        assert _questions(out, split) == [q for q in order if q in found[split]]
    assert found["train"] | found["test"] == set(answers) and summary.sources_read == 48
    for k, (question, _) in enumerate(PAIRS):
        family = {question, twins[2 * k][0], twins[2 * k + 1][0]}
        assert family <= found["train"] or family <= found["test"]
    assert 1 <= len(found["test"]) // 3 <= 6


def test_a_bank_compares_decimal_ratings(tmp_path):
    (tmp_path / "bank").mkdir()
    lines = [f"id {question} {k / 2}\n" for k, (question, _) in enumerate(PAIRS)]
    (tmp_path / "bank/all.txt").write_text("".join(lines))
    summary = _build(tmp_path / "bank", tmp_path / "out", min_difficulty=2, test_share=0.5)
    assert (summary.below_difficulty, sum(summary.examples.values())) == (4, 12)


@pytest.mark.parametrize(
    ("line", "rule"),
    [("11" + "0" * 79, "has no solution"), (_ambiguous()[0], "more than one solution")],
)
def test_a_puzzle_of_a_bank_that_cannot_be_solved_is_refused(tmp_path, line, rule):
    (tmp_path / "bank").mkdir()
    lines = [question for question, _ in PAIRS]
    (tmp_path / "bank/all.txt").write_text("\n".join([*lines[:4], line, *lines[4:]]))
    with pytest.raises(BadInput, match=rule) as caught:
        build_sudoku(tmp_path / "bank", tmp_path / "no", SudokuConfig(test_share=0.5))
    assert caught.value.row == 5
    summary = _build(tmp_path / "bank", tmp_path / "out", test_share=0.5, unique="drop")
    assert summary.ambiguous_dropped == 1
    assert summary.first_ambiguous == {"bank/all.txt": 5}
    kept = [*_questions(tmp_path / "out", "train"), *_questions(tmp_path / "out", "test")]
    assert sorted(kept) == sorted(lines)


def test_every_field_that_changes_the_output_is_in_the_sources(tmp_path):
    _build(_drop(tmp_path), tmp_path / "out", seed=3)
    config = json.loads((tmp_path / "out/trace/sources.json").read_text())["config"]
    assert SudokuConfig(**config) == replace(SudokuConfig(), seed=3)


@pytest.mark.real
@pytest.mark.skipif(not REAL.is_dir(), reason="needs the real Sudoku bank")
def test_the_real_bank_is_built_without_findings(tmp_path):
    summary = _build(REAL, tmp_path / "out", num_aug=4, workers=1)
    lines = [
        line.split()
        for path in sorted(REAL.glob("*_puzzle_and_solution.txt"))
        for line in path.read_text().splitlines()
    ]
    answers = dict(lines)
    assert len(lines) == summary.sources_read == 3000
    assert summary.duplicates_removed == 3000 - len(answers) == 320
    found = {split: _questions(tmp_path / "out", split) for split in ("train", "test")}
    assert sorted([*found["train"], *found["test"]]) == sorted(answers)
    assert 0.15 < len(found["test"]) / len(answers) < 0.25
    labels = _load(tmp_path / "out", "test/all__labels")
    assert [text_of(row - 1) for row in labels] == [answers[q] for q in found["test"]]


def test_tables_of_kaggle_are_banks_and_other_signs_are_settings(tmp_path):
    rows = [f"{q.replace('.', '0')},{a}\n" for q, a in (*TRAIN, *TEST)]
    kaggle, bank = tmp_path / "kaggle/sudoku.csv", tmp_path / "bank/sudoku.txt"
    for path, text in (
        (kaggle, "quizzes,solutions\n" + "".join(rows)),
        (bank, "\n" + "".join(rows).replace(",", " ")),
    ):
        path.parent.mkdir()
        path.write_text(text)
        _build(path.parent, path.parent / "out", num_aug=1, test_share=0.3)
    for split in ("train", "test"):
        for name in (f"{split}/all__inputs", f"{split}/all__labels", f"trace/{split}/all"):
            one, other = (_load(path.parent / "out", name) for path in (kaggle, bank))
            assert len(one) and (one == other).all()
    rows = [f"{k},{q.replace('0', '_')},{a}\n" for k, (q, a) in enumerate((*TRAIN, *TEST))]
    for name, header in (("own", "quiz,grid,key\n"), ("known", "id,puzzle,solution\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "s.csv").write_text(header + "".join(rows))
    with pytest.raises(BadInput, match=r"s\.csv:2: the question has no digit at character"):
        _build(tmp_path / "known", tmp_path / "out")
    _build(tmp_path / "known", tmp_path / "known_out", blank="_")
    columns = {"question_column": "grid", "answer_column": "key"}
    _build(tmp_path / "own", tmp_path / "own_out", blank="_", **columns)
    one, other = (_load(tmp_path / f"{name}_out", "train/all__inputs") for name in ("own", "known"))
    assert (one == other).all() and one.min() == 1


@pytest.mark.parametrize("blank", ["7", "", "xx", "é", " "])
def test_a_sign_that_cannot_be_a_blank_is_refused(blank):
    with pytest.raises(ValueError, match="must be one character of ASCII, and no digit"):
        SudokuConfig(blank=blank)
