"""The folder `trm/` of ARC datasets: links of the arrays, names with `|||`, tasks to score by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gristmill.contract import BadInput
from gristmill.hashing import sha256_file
from gristmill.puzzles.builders.arc import build_arc
from gristmill.puzzles.config import ArcConfig
from gristmill.puzzles.laws.contract import contract_laws
from gristmill.puzzles.read.trace import trace
from tests.puzzles import arc_tasks
from tests.puzzles.raw.test_arc_tasks import write

CONFIG = ArcConfig(num_aug=3, dtype="uint8")


def tasks() -> dict[str, Any]:
    return {"tr_1": arc_tasks.task(1), "ev_2": arc_tasks.task(2, train=3, test=2)}


def built(tmp_path: Path, **settings: Any) -> Path:
    source = write(tmp_path / "kaggle", "training", {"tr_1": tasks()["tr_1"]})
    write(source, "evaluation", {"ev_2": tasks()["ev_2"]})
    build_arc(source, tmp_path / "out", ArcConfig(num_aug=3, dtype="uint8", **settings))
    return tmp_path / "out"


def test_the_arrays_are_links_and_the_names_are_those_of_the_source(tmp_path: Path) -> None:
    out = built(tmp_path)
    for split in ("train", "test"):
        names = sorted(path.name for path in (out / split).iterdir())
        assert len(names) == 6
        for name in names:
            assert (out / split / name).samefile(out / "trm" / split / name)
    own, other = (json.loads((out / at / "identifiers.json").read_text()) for at in ("", "trm"))
    assert own[0] == other[0] == "<blank>" and "ev-2" in own
    assert [name.replace("ev-2", "ev_2").replace("tr-1", "tr_1") for name in own] == [
        "_".join(name.split("|||")) for name in other
    ]
    assert sum(name.startswith("ev_2|||t") for name in other) == 3


def test_the_tasks_have_the_pairs_of_the_source(tmp_path: Path) -> None:
    out = built(tmp_path)
    found = json.loads((out / "trm/test_puzzles.json").read_text())
    assert found == {"ev_2": tasks()["ev_2"]}


def test_a_test_pair_that_is_left_out_is_no_task_to_score(tmp_path: Path) -> None:
    trained, tested = tasks()["tr_1"], tasks()["ev_2"]
    tested["test"][0] = trained["train"][0]
    source = arc_tasks.write(tmp_path / "a", {"training/t": trained, "evaluation/e": tested})
    build_arc(source, tmp_path / "out", ArcConfig(num_aug=1, leaks="drop"))
    found = json.loads((tmp_path / "out/trm/test_puzzles.json").read_text())
    assert found["e"] == {"train": tested["train"], "test": tested["test"][1:]}


def test_a_trace_leads_to_the_task_of_the_source(tmp_path: Path) -> None:
    facts = trace(built(tmp_path), 0, "test").facts()
    assert facts["task"] == "ev_2" and facts["identifier"] == "1 ev-2"
    assert facts["source"] == "kaggle/arc-agi_evaluation_challenges.json"
    assert facts["sha256"] == sha256_file(tmp_path / str(facts["source"]))


def test_copies_take_the_place_of_links_where_there_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: object) -> None:
        raise OSError(1, "not permitted")

    monkeypatch.setattr("os.link", refuses)
    out = built(tmp_path)
    one, other = out / "train/all__inputs.npy", out / "trm/train/all__inputs.npy"
    assert one.read_bytes() == other.read_bytes() and not one.samefile(other)


def test_identifiers_begin_at_the_one_that_is_set_and_the_list_is_filled_with_blanks(
    tmp_path: Path,
) -> None:
    out = built(tmp_path, first_identifier=10, num_puzzle_identifiers=30)
    listed = json.loads((out / "identifiers.json").read_text())
    assert len(listed) == 30 and listed[:10] == ["<blank>"] * 10 and listed[10] == "ev-2"
    assert listed[18:] == ["<blank>"] * 12 and list(contract_laws(out)) == []
    assert json.loads((out / "train/dataset.json").read_text())["num_puzzle_identifiers"] == 30
    with pytest.raises(
        BadInput, match="num_puzzle_identifiers = 17: the last puzzle has the ident"
    ):
        built(tmp_path / "again", first_identifier=10, num_puzzle_identifiers=17)
