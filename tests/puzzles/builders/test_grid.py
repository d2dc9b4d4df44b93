"""Datasets of grids: their rows, groups, splits and sets; the same bytes after a kill."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.puzzles.builders.grid import GridSummary, build_grid
from gristmill.puzzles.config import GridConfig
from gristmill.puzzles.domains.grid import transform
from gristmill.puzzles.laws.contract import contract_laws, trace_laws
from gristmill.puzzles.laws.games import grid_laws
from gristmill.puzzles.read.examples import trace
from tests.puzzles import grids

TRAIN = [grids.row(k, 2 + k % 2, 3, group=f"g{k // 2}") for k in range(6)]
TEST = [grids.row(k, 1, 2, set="hard") for k in range(20, 22)] + [grids.row(22, 3, 3)]


def drop(folder: Path) -> Path:
    grids.write(folder / "test.jsonl", TEST)
    return grids.write(folder / "train.jsonl", TRAIN)


def build(source: Path | list[Path], out: Path, **config: Any) -> GridSummary:
    summary = build_grid(source, out, GridConfig(**{"values": 4, **config}))
    assert [*contract_laws(out), *trace_laws(out), *grid_laws(out)] == []
    assert not [*out.parent.glob(".scratch-*")]
    return summary


def load(out: Path, name: str) -> np.ndarray:
    loaded: np.ndarray = np.load(out / f"{name}.npy")
    return loaded


def tokens(grid: list[list[int]], side: int = 3) -> list[int]:
    cells = np.zeros((side, side), int)
    cells[: len(grid), : len(grid[0])] = np.array(grid) + 1
    return list(map(int, cells.reshape(-1)))


def test_rows_become_examples_at_the_upper_left_in_groups_and_sets(tmp_path):
    out = tmp_path / "out"
    summary = build(drop(tmp_path / "mine"), out)
    assert load(out, "train/all__inputs").tolist() == [tokens(row["input"]) for row in TRAIN]
    assert load(out, "train/all__labels").tolist() == [tokens(row["output"]) for row in TRAIN]
    assert load(out, "train/all__group_indices").tolist() == [0, 2, 4, 6]
    assert load(out, "train/all__puzzle_indices").tolist() == [*range(7)]
    assert load(out, "test/hard__inputs").tolist() == [tokens(row["input"]) for row in TEST[:2]]
    assert load(out, "trace/train/all").tolist() == [[1, k + 1, 0] for k in range(6)]
    assert json.loads((out / "test/dataset.json").read_text())["sets"] == ["all", "hard"]
    sources = json.loads((out / "trace/sources.json").read_text())
    assert (sources["config"]["height"], sources["config"]["width"]) == (3, 3)
    assert (summary.rows_read, summary.groups) == (9, {"train": 3, "test": 3})


def test_rows_of_one_puzzle_are_its_examples_and_give_it_an_identifier(tmp_path):
    named = [grids.row(k, puzzle=f"p{k // 2}", group="g") for k in range(4)]
    source = grids.write(tmp_path / "mine/train.jsonl", [*named, grids.row(9, puzzle="alone")])
    grids.write(source / "test.jsonl", [grids.row(10, puzzle="p1", group="g")])
    out = tmp_path / "out"
    build(source, out, identifiers=True, first_identifier=5)
    assert load(out, "train/all__puzzle_indices").tolist() == [0, 2, 4, 5]
    assert load(out, "train/all__group_indices").tolist() == [0, 2, 3]
    listed = json.loads((out / "identifiers.json").read_text())
    assert listed == ["<blank>"] * 5 + ["g/p0", "g/p1", "alone"]
    assert load(out, "test/all__puzzle_identifiers").tolist() == [6]


def test_symmetries_follow_each_training_puzzle_and_a_trace_names_them(tmp_path):
    out = tmp_path / "out"
    summary = build(drop(tmp_path / "mine"), out, dihedral=True)
    found = load(out, "train/all__inputs")
    for place, row in enumerate(TRAIN):
        for symmetry in range(8):
            turned = transform(np.array(row["input"]), symmetry).tolist()
            assert found[8 * place + symmetry].tolist() == tokens(turned)
    assert load(out, "train/all__group_indices").tolist() == [0, 16, 32, 48]
    assert summary.examples == {"train": 48, "test": 3} and summary.augmented == 42
    facts = trace(out, 11).facts()
    assert facts["source"] == "mine/train.jsonl" and facts["place"] == "line 2"
    assert facts["symmetry"] == "3: rotated by 270° counter-clockwise"


def test_a_file_without_a_split_is_divided_by_groups(tmp_path):
    rows = [grids.row(k, 3, 3, 9, group=f"g{k // 4}") for k in range(80)]
    source = grids.write(tmp_path / "mine/all.jsonl", rows)
    out = tmp_path / "out"
    summary = build(source, out, values=9, test_share=0.3)
    assert 2 <= summary.groups["test"] <= 12 and sum(summary.groups.values()) == 20
    assert sum(summary.examples.values()) == 80
    again = tmp_path / "again"
    build(grids.write(tmp_path / "other/all.jsonl", rows[::-1]), again, values=9, test_share=0.3)
    one, other = (
        sorted(map(bytes, load(each, "test/all__inputs").astype(np.uint8))) for each in (out, again)
    )
    assert one == other


@pytest.mark.parametrize("dihedral", [False, True])
def test_test_examples_that_training_has_are_refused_or_left_out(tmp_path, dihedral):
    leak = {
        key: transform(np.array(TRAIN[1][key]), 1 if dihedral else 0).tolist()
        for key in ("input", "output")
    }
    source = drop(tmp_path / "mine")
    grids.write(source / "test.jsonl", [*TEST, {**leak, "set": "hard"}])
    with pytest.raises(BadInput, match=r"1 examples .* mine/test\.jsonl:4 is mine/train\.jsonl:2"):
        build(source, tmp_path / "out", dihedral=dihedral)
    summary = build(source, tmp_path / "kept", dihedral=dihedral, leaks="drop")
    assert (summary.leaks_dropped, summary.examples["test"]) == (1, 3)
    if dihedral:
        assert build(source, tmp_path / "plain").leaks_dropped == 0


@pytest.mark.parametrize(
    ("config", "rule"),
    [
        ({"values": None}, "its cells are not known: write alphabet"),
        ({"height": 2, "width": 3}, "train.jsonl:2: the input has 3 x 3 cells, and 2 x 3 fit"),
        ({"identifiers": True}, "test.jsonl:1: has no key puzzle, which names its identifier"),
        ({"values": 300, "dtype": "uint8"}, "301 tokens do not fit into uint8"),
    ],
)
def test_what_a_config_does_not_allow_is_refused(tmp_path, config, rule):
    with pytest.raises(BadInput) as refused:
        build(drop(tmp_path / "mine"), tmp_path / "out", **config)
    assert rule in str(refused.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["a/b", "p_t3"])
def test_names_that_would_be_those_of_two_puzzles_are_refused(tmp_path, name):
    source = grids.write(tmp_path / "mine/a.jsonl", [grids.row(1, puzzle=name)])
    with pytest.raises(BadInput, match="rename"):
        build(source, tmp_path / "out", identifiers=True, dihedral=True)


@pytest.mark.parametrize(
    ("config", "rule"),
    [
        ({"alphabet": "ab", "values": 2}, "alphabet and values: set one of them"),
        ({"alphabet": "aba"}, "must be different characters"),
        ({"alphabet": ""}, "must be different characters"),
        ({"alphabet": "ab", "pad": "c"}, "pad = 'c': must be one of the cells"),
        ({"values": 3, "pad": "3"}, "pad = '3': must be one of the cells"),
        ({"values": 1, "pad": "0"}, "a grid needs a cell that is no padding"),
        ({"values": 3, "dihedral": True, "height": 2, "width": 3}, "height and width are equal"),
    ],
)
def test_settings_that_exclude_each_other_are_refused(config, rule):
    with pytest.raises(ValueError, match=rule):
        GridConfig(**config)
