"""What breaks the folder `trm/` is found."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gristmill.puzzles.builders.arc import build_arc
from gristmill.puzzles.config import ArcConfig
from gristmill.puzzles.laws.arc import arc_laws, trm_laws
from gristmill.puzzles.laws.contract import contract_laws
from tests.puzzles import arc_tasks
from tests.puzzles.raw.test_arc_collections import write


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trm")
    source = write(folder / "k", "training", {"tr_1": arc_tasks.task(1)})
    write(source, "evaluation", {"ev_2": arc_tasks.task(2), "c": arc_tasks.task(3, test=2)})
    build_arc([source, arc_tasks.source(folder / "a")], folder / "out", ArcConfig(num_aug=2))
    return folder / "out"


def test_a_built_folder_breaks_nothing_and_is_a_dataset_of_trm(dataset: Path) -> None:
    assert list(trm_laws(dataset)) == []
    trm = dataset / "trm"
    assert list(contract_laws(trm)) == [] and list(arc_laws(trm)) == []


def test_a_dataset_of_before_has_no_such_folder(copy: Path) -> None:
    shutil.rmtree(copy / "trm")
    assert list(trm_laws(copy)) == []


def _json(name: str, change: Callable[[Any], Any]) -> Callable[[Path], object]:
    def apply(trm: Path) -> None:
        value = json.loads((trm / name).read_text())
        (trm / name).write_text(json.dumps(change(value)))

    return apply


def _swapped(value: Any) -> Any:
    value["ev_2"]["test"], value["c"]["test"] = value["c"]["test"], value["ev_2"]["test"]
    return value


def _recoloured(split: str) -> Callable[[Any], Any]:
    def change(value: Any) -> Any:
        line = value["c"][split][0]["output"][0]
        line[0] = (line[0] + 1) % 10
        return value

    return change


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda trm: (trm / "test/all__labels.npy").unlink(), "trm/test/all__labels.npy"),
        (lambda trm: (trm / "train/all__inputs.npy").write_bytes(b"x"), "is not that of the set"),
        (_json("identifiers.json", lambda names: names[:-1]), "names, expected"),
        (_json("identifiers.json", lambda names: [*names[:-1], names[1]]), "identifiers.json"),
        (
            _json("identifiers.json", lambda n: [x.replace("|||", "_") for x in n]),
            "is not the name of 'bb_t",
        ),
        (_json("test_puzzles.json", lambda puzzles: {**puzzles, "x": {}}), "test_puzzles.json x"),
        (_json("test_puzzles.json", _swapped), "test_puzzles.json ev-2: trm: has not the pairs"),
        (_json("test_puzzles.json", _recoloured("test")), "json c: trm: has not the pairs"),
        (_json("test_puzzles.json", _recoloured("train")), "json c: trm: has not the pairs"),
        (_json("test_puzzles.json", lambda puzzles: {**puzzles, "c": None}), "json c: trm"),
        (_json("test_puzzles.json", lambda _: []), "must hold an object"),
        (lambda trm: (trm / "test_puzzles.json").write_text("{"), "cannot be read"),
        (lambda trm: (trm / "identifiers.json").unlink(), "is missing"),
    ],
)
def test_what_breaks_the_folder_is_found(
    copy: Path, change: Callable[[Path], object], found: str
) -> None:
    change(copy / "trm")
    violations = [str(violation) for violation in trm_laws(copy)]
    assert any(found in violation for violation in violations), violations
