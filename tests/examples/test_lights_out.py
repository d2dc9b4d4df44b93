"""The page docs/adding-a-puzzle.md and its example: Lights Out from the config to the reader."""

import ast
import re
import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from examples.lights_out import (
    CELLS,
    FIRST_SIDE,
    OFF,
    ON,
    PAD,
    SIDES,
    LightsOutConfig,
    build_lights_out,
    lights_out_laws,
    lit,
)
from gristmill.puzzles.read.dataset import PuzzleDataset, PuzzleDatasetConfig
from gristmill.puzzles.read.rows import Dataset
from tests.paths import CHECKOUT

PAGE = CHECKOUT / "docs/adding-a-puzzle.md"
EXAMPLE = CHECKOUT / "examples/lights_out.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("boards") / "out"
    build_lights_out(out, LightsOutConfig(boards=200))
    return out


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def test_the_page_shows_the_whole_example_of_less_than_a_hundred_lines():
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    text = EXAMPLE.read_text()
    head = ast.get_docstring(ast.parse(text), clean=False)
    assert _lines("\n".join(blocks)) == _lines(text.replace(f'"""{head}"""', ""))
    text = EXAMPLE.read_text()
    documented: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(
            node
        ):
            head = node.body[0]
            documented |= set(range(head.lineno, (head.end_lineno or 0) + 1))
    code = [
        number
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and number not in documented
    ]
    assert len(code) < 100


def test_the_dataset_breaks_no_law_has_no_board_twice_and_is_read_by_training(folder):
    assert list(lights_out_laws(folder)) == []
    arrays = Dataset(folder).arrays("train", "all")
    assert len(arrays.inputs) > 4 * (len(arrays.group_indices) - 1) > 100
    assert {*np.unique(arrays.inputs[:, 0])} == {FIRST_SIDE + n for n in range(len(SIDES))}
    train, test = (
        {row.tobytes() for row in Dataset(folder).arrays(split, "all").inputs}
        for split in ("train", "test")
    )
    assert not train & test and len(test) == len(Dataset(folder).arrays("test", "all").inputs)
    data = PuzzleDataset(PuzzleDatasetConfig(0, folder, 32, False, 2, 0, 1))
    batches = [batch for _, batch, _ in data]
    assert len(batches) == data.metadata.total_groups * 2 // 32
    assert all(int(batch["labels"].max()) == ON for batch in batches)
    assert all((np.asarray(batch["labels"])[:, :CELLS] == -100).all() for batch in batches)


def test_every_board_has_one_solution():
    for side in SIDES[:2]:
        count = 1 << side**2
        presses = (np.arange(count)[:, None] >> np.arange(side**2) & 1).astype(np.uint8)
        lights = lit(presses.reshape(count, side, side))
        assert len(np.unique(lights.reshape(count, -1), axis=0)) == count
    one = np.zeros((3, 3), np.uint8)
    one[0, 0] = 1
    assert lit(one).tolist() == [[1, 1, 0], [1, 0, 0], [0, 0, 0]]


@pytest.mark.slow
def test_two_builds_are_equal_at_any_number_of_workers(folder, tmp_path):
    build_lights_out(tmp_path / "out", LightsOutConfig(boards=200, workers=2))
    for path in folder.rglob("*.npy"):
        other = tmp_path / "out" / path.relative_to(folder)
        assert path.read_bytes() == other.read_bytes(), path.name


@pytest.mark.parametrize(
    ("field", "place", "token", "law"),
    [
        ("inputs", CELLS, None, "solution"),
        ("labels", CELLS + 1, None, "solution"),
        ("inputs", 0, FIRST_SIDE, "augmentation"),
        ("inputs", 1, ON, "augmentation"),
        ("inputs", -1, OFF, "augmentation"),
        ("labels", CELLS, PAD, "augmentation"),
        ("inputs", CELLS, 99, "tokens"),
    ],
)
def test_a_changed_token_is_found(folder, tmp_path, field, place, token, law):
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    path = copy / f"train/all__{field}.npy"
    tokens = np.load(path)
    sides = np.load(copy / "train/all__inputs.npy")[:, 0]
    groups = np.load(copy / "train/all__group_indices.npy")
    # The second row of a group of boards of 3 x 3 cells.
    row = next(g + 1 for g, h in pairwise(groups) if h > g + 1 and sides[g] == FIRST_SIDE + 1)
    tokens[row, place] = OFF + ON - tokens[row, place] if token is None else token
    np.save(path, tokens)
    found = list(lights_out_laws(copy))
    assert law in {violation.law for violation in found}
    assert any(f"row {row}" in violation.where for violation in found if violation.law == law)
