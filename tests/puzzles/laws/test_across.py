"""Test examples of one dataset in training of another one: symmetries, exact places, the note."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from gristmill.cli import main
from gristmill.contract import BadInput
from gristmill.provenance import read_record
from gristmill.provenance.find_artifacts import Artifact
from gristmill.provenance.record import RECORD
from gristmill.provenance.unusual import lines
from gristmill.puzzles import format as names
from gristmill.puzzles.domains.arc_grid import decode
from gristmill.puzzles.domains.domino_augment import augmented
from gristmill.puzzles.domains.domino_rows import Scenario, decoded
from gristmill.puzzles.domains.sudoku_symmetry import Symmetry
from gristmill.puzzles.laws import across
from gristmill.puzzles.raw import samples
from gristmill.puzzles.read.rows import Dataset
from tests.json_lines import jsonl
from tests.puzzles import arc_tasks, sudoku
from tests.reasoning.published_root import built

Place = tuple[str, int, str, int]


def _read(path: Path) -> list[tuple[str, str]]:
    with path.open() as file:
        return [(row["question"], row["answer"]) for row in csv.DictReader(file)]


def _sudoku(sample: Path, drop: Path) -> None:
    random, planted = Random(4), []
    for question, answer in (_read(sample / "test.csv")[at] for at in (2, 5)):
        change = Symmetry(
            bool(random.randrange(2)),
            *(tuple(_lines(random)) for _ in range(2)),
            (0, *random.sample(range(1, 10), 9)),
        )
        boards = (sudoku.applied(change, sudoku.board_of(text)) for text in (question, answer))
        planted.append(tuple("".join(map(str, board)) for board in boards))
    others = sudoku.pairs(200, 7)
    exact = _read(sample / "test.csv")[9]
    sudoku.write_csv(drop / "train.csv", [*others[:3], planted[0], *others[3:5], planted[1], exact])
    sudoku.write_csv(drop / "test.csv", others[5:])


def _lines(random: Random) -> list[int]:
    bands = random.sample(range(3), 3)
    return [3 * band + line for band in bands for line in random.sample(range(3), 3)]


def _turned(text: str) -> str:
    cells = np.array([*text]).reshape(samples.SIDE, samples.SIDE)
    return "".join(np.rot90(cells).T.reshape(-1))


def _maze(sample: Path, drop: Path) -> None:
    own, test = _read(sample / "train.csv"), _read(sample / "test.csv")
    turned = [tuple(map(_turned, test[at])) for at in (2, 5)]
    sudoku.write_csv(drop / "train.csv", [*own[:3], turned[0], *own[3:5], turned[1], test[7]])
    sudoku.write_csv(drop / "test.csv", own[5:7])


def _grid(sample: Path, drop: Path) -> None:
    own, test = (
        [json.loads(line) for line in (sample / f"{split}.jsonl").read_text().splitlines()]
        for split in ("train", "test")
    )
    turned = [{key: _mirrored(grid) for key, grid in test[at].items()} for at in (2, 5)]
    several = {"train": [*own[:3], turned[0], *own[3:5], turned[1], test[7]], "test": own[5:7]}
    for split, rows in several.items():
        jsonl(drop / f"{split}.jsonl", rows)


def _mirrored(grid: list[str]) -> list[str]:
    return ["".join(row) for row in np.array([[*row] for row in grid]).T[::-1]]


KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "sudoku": (_sudoku, {"num_aug": 2}),
    "maze": (_maze, {"aug": True}),
    "grid": (_grid, {"alphabet": samples.ALPHABET, "dihedral": True}),
}


def _recipe(root: Path, name: str, kind: str, sources: list[str], **settings: Any) -> None:
    path = root / f"drops/puzzles/recipes/{name}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    given = "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
    named = f"sources = {json.dumps(sources)}\n" if sources else ""
    path.write_text(f'kind = "{kind}"\n{named}[settings]\n{given}')


def _sample(root: Path, kind: str) -> Path:
    drop = root / f"drops/puzzles/{kind}-sample"
    drop.parent.mkdir(parents=True, exist_ok=True)
    getattr(samples, f"write_{kind}_sample")(drop)
    built(root, f"puzzles/{kind}", f"{kind}-sample")
    return drop


def _seen(root: Path, name: str) -> dict[str, list[Place]]:
    return {each.name: each.places for each in across.seen(root, root / "puzzles" / name)}


def _said(root: Path, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["leaks", *words, "--data-root", str(root)])
    return done.exit_code, done.output


@pytest.mark.parametrize("together", [3, 4096])
@pytest.mark.parametrize("kind", KINDS)
def test_examples_of_another_test_split_are_found_up_to_symmetry(
    tmp_path, monkeypatch, kind, together
):
    monkeypatch.setattr(across, "_TOGETHER", together)
    plant, settings = KINDS[kind]
    plant(_sample(tmp_path, kind), tmp_path / "drops/puzzles/others")
    _recipe(tmp_path, "mine", kind, ["others"], **settings)
    built(tmp_path, f"puzzles/{kind}", "mine")
    name, last = f"{kind}-sample__test", 9 if kind == "sudoku" else 7
    found = _seen(tmp_path, "mine")
    step = 3 if kind == "sudoku" else 8
    own = [3 * step, 6 * step, 7 * step]
    pairs = zip(own, (2, 5, last), strict=True)
    assert found == {name: [("train/all", row, "test/all", at) for row, at in pairs]}
    # The test split of mazes and grids is of the training of the sample.
    some = [] if kind == "sudoku" else [5 * 8, 6 * 8]
    (found,) = _seen(tmp_path, f"{kind}-sample").values()
    assert [row for _, row, _, _ in found] == some

    line = f"puzzles/{kind} mine: 3 of 8 training examples are examples of {name}, up to symmetry"
    status, said = _said(tmp_path, "mine", "--against", name, "--most", "2")
    assert (status, said.splitlines()[0].partition(": train")[0]) == (1, line)
    assert said.splitlines()[1] == f"  train/all row {own[0]} is {name} test/all row 2"
    assert said.splitlines()[3] == "and 1 more: --most 3 shows all"
    status, said = _said(tmp_path, f"puzzles/{kind} mine", "--json")
    (given,) = json.loads(said)["found"]
    assert (status, given["places"][1]) == (1, ["train/all", own[1], "test/all", 5])
    assert _said(tmp_path, "mine", "--against", "x__test")[0] == 2
    folder = tmp_path / "puzzles/mine"
    (note,) = lines(Artifact(folder, folder / RECORD), read_record(folder / RECORD))
    assert note.startswith(
        f"tests_elsewhere: {line.partition('mine: ')[2]}: train/all row {own[0]} is"
    )


def test_pairs_of_tasks_are_found_after_turns_and_other_colours(tmp_path):
    arc_tasks.source(tmp_path / "drops/puzzles/first")
    other, (planted, _) = arc_tasks.task(40, train=3), arc_tasks.task(2, test=2)["test"]
    colours = [0, *np.random.default_rng(1).permutation(range(1, 10)).tolist()]
    turned = {
        key: np.array(colours)[np.rot90(np.array(grid))].tolist() for key, grid in planted.items()
    }
    other["train"][1] = turned
    tasks = {"training/dd": other, "evaluation/ee": arc_tasks.task(50)}
    arc_tasks.write(tmp_path / "drops/puzzles/second", tasks)
    for name, source in (("one", "first"), ("two", "second")):
        _recipe(tmp_path, name, "arc", [source], num_aug=3)
        built(tmp_path, "puzzles/arc", name)
    assert _seen(tmp_path, "one") == {"two__test": []}
    ((_, row, _, at),) = _seen(tmp_path, "two")["one__test"]
    two, one = (Dataset(tmp_path / "puzzles" / name) for name in ("two", "one"))
    for dataset, split, number, pair in ((two, "train", row, turned), (one, "test", at, planted)):
        arrays = dataset.arrays(split, "all")
        sides = (decode(tokens[number]).grid for tokens in (arrays.inputs, arrays.labels))
        assert [each.tolist() for each in sides] == [pair["input"], pair["output"]]


@pytest.mark.parametrize("augmentation", ["reversal", "modular"])
def test_domino_games_are_found_in_both_directions_and_as_training_is_augmented(
    tmp_path, augmentation
):
    for name, seed in (("one", 1), ("two", 2)):
        given = {"num_games": 300, "num_aug": 1, "seed": seed, "augmentation": augmentation}
        _recipe(tmp_path, name, "domino", [], **given)
        built(tmp_path, "puzzles/domino", name)
    own, other = (Dataset(tmp_path / "puzzles" / name) for name in ("one", "two"))
    test, train = other.arrays("test", "all"), own.arrays("train", "all")
    assert _seen(tmp_path, "one") == {"two__test": []}
    given = (np.asarray(each[[4, 9, 11]], np.uint8) for each in (test.inputs, test.labels))
    made = augmented(*given, np.arange(3, dtype=np.uint64), 2, augmentation)
    planted = np.flatnonzero(made[2])
    sources = np.flatnonzero(train.origins[:, 2] == 0)[7 : 7 + len(planted)]
    for field, tokens in zip(("inputs", "labels"), made, strict=False):
        path = tmp_path / "puzzles/one" / names.array("train", "all", field)
        array = np.load(path)
        array[sources] = tokens[planted]
        np.save(path, array)

    def form(inputs: Any, labels: Any, at: int) -> Any:
        return _same(decoded(inputs[at], labels[at]), augmentation)

    rows = {form(test.inputs, test.labels, row): row for row in (4, 9, 11)}
    expected = [
        ("train/all", row, "test/all", rows[form(*made[:2], at)])
        for row, at in zip(sources.tolist(), planted, strict=True)
    ]
    assert _seen(tmp_path, "one")["two__test"] == expected
    assert {at for *_, at in expected} == {4, 9, 11}


def _same(scenario: Scenario, augmentation: str) -> Any:
    """A form of chain and hand by plain Python, whichever way the chain is read."""
    forms = []
    for offset in range(7 if augmentation == "modular" else 1):
        table, hand = (
            [tuple(sorted((value + offset) % 7 for value in tile)) for tile in tiles]
            for tiles in (scenario.table, scenario.hand)
        )
        forms += [(tuple(way), tuple(sorted(hand))) for way in (table, table[::-1])]
    return min(forms)


def test_other_sides_are_not_compared_and_a_damaged_dataset_is_named(tmp_path):
    sample = _sample(tmp_path, "maze")
    small = [("S G" + " " * 6, "SoG" + " " * 6), ("S  G" + " " * 5, "Soo" + "G" + " " * 5)]
    sudoku.write_csv(tmp_path / "drops/puzzles/small/train.csv", small[:1])
    sudoku.write_csv(tmp_path / "drops/puzzles/small/test.csv", [("GS" + " " * 7, "GS" + " " * 7)])
    _recipe(tmp_path, "small", "maze", ["small"])
    built(tmp_path, "puzzles/maze", "small")
    assert _seen(tmp_path, "small") == {} and sample.exists()
    status, said = _said(tmp_path, "small")
    assert (status, said) == (0, "no test example of another dataset was found\n")
    _maze(sample, tmp_path / "drops/puzzles/others")
    _recipe(tmp_path, "mine", "maze", ["others"], aug=True)
    built(tmp_path, "puzzles/maze", "mine")
    path = tmp_path / "puzzles/maze-sample" / names.array("test", "all", "group_indices")
    np.save(path, np.array([0, 9], np.int32))
    with pytest.raises(BadInput, match=r"group_indices.npy: goes from 0 to 9, expected 0 to 8"):
        _seen(tmp_path, "mine")
    status, said = _said(tmp_path, "mine")
    assert status == 1 and "group_indices.npy" in said and "Traceback" not in said
