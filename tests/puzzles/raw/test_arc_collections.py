"""ARC as Kaggle and TRM hold it: challenges with their solutions are tasks, others are refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gristmill.contract import BadInput
from gristmill.puzzles.raw.arc_tasks import ArcTask, Parts, parse_task, read_tasks, subsets_of
from tests.puzzles import arc_tasks

TASKS = {"aa": arc_tasks.task(1, train=3, test=2), "ca_1": arc_tasks.task(2)}


def write(source: Path, subset: str, tasks: Mapping[str, Any], prefix: str = "arc-agi_") -> Path:
    """Write a subset of whole tasks as Kaggle does: the outputs of test pairs in a second file."""
    source.mkdir(parents=True, exist_ok=True)
    hidden = {
        name: {**task, "test": [{"input": pair["input"]} for pair in task["test"]]}
        for name, task in tasks.items()
    }
    outputs = {name: [pair["output"] for pair in task["test"]] for name, task in tasks.items()}
    (source / f"{prefix}{subset}_challenges.json").write_text(json.dumps(hidden))
    (source / f"{prefix}{subset}_solutions.json").write_text(json.dumps(outputs))
    return source


def plain(task: ArcTask) -> list[Any]:
    return [[before.tolist(), after.tolist()] for before, after in task.pairs]


def test_the_tasks_of_two_files_are_those_of_a_file_each(tmp_path: Path) -> None:
    source = write(write(tmp_path, "training", TASKS), "evaluation", {"bb": arc_tasks.task(3)})
    (source / "sample_submission.json").write_text('{"bb": [{"attempt_1": [[0]]}]}')
    found = {task.base: task for task in read_tasks(source)}
    assert list(found) == ["bb", "aa", "ca-1"]
    for name, base in (("aa", "aa"), ("ca_1", "ca-1")):
        alone = parse_task(json.dumps(TASKS[name]).encode(), tmp_path, f"training/{name}.json")
        assert plain(found[base]) == plain(alone) and found[base].is_test == alone.is_test
        lists = {key: [[*pair.values()] for pair in TASKS[name][key]] for key in ("train", "test")}
        again = parse_task(json.dumps(lists).encode(), tmp_path, f"training/{name}.json")
        assert plain(again) == plain(alone) and again.is_test == alone.is_test
        assert (found[base].task, found[base].is_evaluation) == (name, False)
        assert found[base].file == "arc-agi_training_challenges.json"
    octets = (source / "arc-agi_training_challenges.json").read_bytes()
    assert found["aa"].sha256 == hashlib.sha256(octets).hexdigest()
    assert found["bb"].is_evaluation and found["bb"].numbers("test") == (2,)


def test_a_byte_order_mark_is_skipped_and_utf_16_is_refused(tmp_path: Path) -> None:
    source = write(tmp_path, "evaluation", TASKS)
    plainly = [plain(task) for task in read_tasks(source)]
    paths = sorted(source.glob("*.json"))
    texts = [path.read_text() for path in paths]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text, encoding="utf-8-sig")
    found = read_tasks(source)
    assert [plain(task) for task in found] == plainly
    assert {task.sha256 for task in found} == {hashlib.sha256(paths[0].read_bytes()).hexdigest()}
    paths[1].write_text(texts[1], encoding="utf-16")
    with pytest.raises(BadInput, match=r"_solutions\.json: is UTF-16: save it as UTF-8"):
        read_tasks(source)


def test_subsets_are_chosen_and_the_hidden_one_is_left_out(tmp_path: Path) -> None:
    write(write(tmp_path, "training2", TASKS, ""), "evaluation2", {"bb": arc_tasks.task(3)}, "x-")
    (tmp_path / "arc-agi_test_challenges.json").write_text("{}")
    names = [path.name for path in tmp_path.iterdir()]
    assert [each.name for each in subsets_of(tmp_path, names)] == ["training2", "evaluation2"]
    with pytest.raises(BadInput, match=r"arc-agi_test_solutions\.json: is missing beside arc-agi"):
        subsets_of(tmp_path, names, ["test"])
    parts = Parts(evaluation=("evaluation2",), subsets=("evaluation2",))
    (only,) = read_tasks(tmp_path, parts=parts)
    assert only.base == "bb" and only.is_evaluation


GRID = [[1]]
ONE = {"train": [{"input": GRID, "output": GRID}], "test": [{"input": GRID}]}


@pytest.mark.parametrize(
    ("challenges", "solutions", "file", "rule"),
    [
        ({"a": ONE}, {}, "solutions", "has no solution of the task 'a'"),
        ({"a": ONE}, {"a": []}, "solutions", "task a: has 0 outputs for 1 test pairs"),
        ({"a": ONE}, {"a": {"0": GRID}}, "solutions", "task a: has no list of outputs"),
        ({"a": ONE}, {"a": [None]}, "challenges", "task a: test pair 0, output: a grid is a list"),
        ({"a": ONE}, {"a": [[[10]]]}, "challenges", "output, row 0: 10 is not a colour"),
        ({"a": ONE}, {"a": [GRID], "b": [GRID]}, "solutions", "has the task 'b', which arc"),
        ({"a": 7}, {"a": [GRID]}, "challenges", "task a: must be an object"),
        ({"a": {"train": 1}}, {"a": [GRID]}, "challenges", "task a: train must be a list"),
        ({"<a": ONE}, {"<a": [GRID]}, "challenges", "the id '<a'"),
        ([ONE], [[GRID]], "solutions", "must hold an object"),
        ('{"a": 1, "a": 2}', {"a": [GRID]}, "challenges", "has the task 'a' twice"),
        ('{"a": {"b": 1, "b": 2}}', {"a": [GRID]}, "challenges", "has a key twice"),
        ("{", {"a": [GRID]}, "challenges", "not JSON"),
        ('{"a": ' + "[" * 20 + "]" * 20 + "}", {"a": [GRID]}, "challenges", "nested deeper"),
        (
            {"a": {**ONE, "test": [{"input": GRID, "output": [[2]]}]}},
            {"a": [GRID]},
            "solutions",
            "task a: test pair 0 has another output itself",
        ),
    ],
)
def test_a_task_without_its_outputs_never_becomes_a_grid(
    tmp_path: Path, challenges: Any, solutions: Any, file: str, rule: str
) -> None:
    for role, value in (("challenges", challenges), ("solutions", solutions)):
        text = value if isinstance(value, str) else json.dumps(value)
        (tmp_path / f"arc_training_{role}.json").write_text(text)
    with pytest.raises(BadInput) as refused:
        read_tasks(tmp_path)
    assert refused.value.file == str(tmp_path / f"arc_training_{file}.json")
    assert rule in refused.value.rule
