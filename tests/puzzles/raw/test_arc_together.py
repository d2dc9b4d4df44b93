"""Tasks in one file, in any form, are named with what makes files of them that are read."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gristmill.contract import BadInput
from gristmill.puzzles.raw.arc_tasks import read_tasks
from gristmill.puzzles.raw.drops import account, tasks_in
from gristmill.untrusted.files import REFUSE_LINKS
from tests.puzzles import arc_tasks
from tests.puzzles.raw.test_arc_collections import TASKS, plain

PAIRS = [[*task["train"], *task["test"]] for task in TASKS.values()]
LISTS = [[[*pair.values()] for pair in pairs] for pairs in PAIRS]


def lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


FORMS: dict[str, str] = {
    "it's one.json": json.dumps(TASKS),
    "by subset.json": json.dumps({"train": TASKS, "eval": TASKS}, indent=1),
    "deeper.json": json.dumps({"data": {"a-b": TASKS}}),
    "list.json": json.dumps([*TASKS.values()]),
    "rows.json": json.dumps({"rows": [{"id": 1, "task": task} for task in TASKS.values()]}),
    "lines.jsonl": lines(*TASKS.values()),
    "nested.ndjson": lines(*({"task": task} for task in TASKS.values())),
    "pairs.jsonl": lines(*({"examples": pairs} for pairs in PAIRS)),
    "BARC.jsonl": lines(*({"source": ["[[1"], "examples": pairs} for pairs in LISTS)),
}


@pytest.mark.parametrize("name", FORMS)
def test_the_cure_makes_the_tasks(name: str, tmp_path: Path) -> None:
    drop = tmp_path / "own"
    drop.mkdir()
    (drop / name).write_text(FORMS[name])
    with pytest.raises(BadInput, match="tasks of ARC in one file") as refused:
        account(drop)
    if shutil.which("jq") is None:
        pytest.skip("there is no jq here")
    for command in re.findall("`(jq .*?)`", str(refused.value)):
        subprocess.run(["sh", "-c", command], cwd=drop, check=True)
    (drop / name).unlink()
    expected = [
        [[pair["input"], pair["output"]] for key in ("train", "test") for pair in task[key]]
        for task in TASKS.values()
    ]
    assert [plain(task) for task in read_tasks(drop)] == expected


@pytest.mark.parametrize(
    "value",
    [
        {"a": [[[1, 2], [3, 4]]]},  # solutions of Kaggle
        [arc_tasks.pair(1)],  # RE-ARC
        {"input": [[1]], "output": [[2]]},  # a row of grids
        {"rows": [[1, 2], [3]], "text": "[[1]]"},
        {"input_ids": [[1, 5]], "image": [[[1, 2, 3]]]},
    ],
)
def test_other_grids_are_no_tasks(value: Any, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(value))
    assert tasks_in(tmp_path, {"a.jsonl": 1}, REFUSE_LINKS) is None
