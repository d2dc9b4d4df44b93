"""ARC tasks: which files, and what a file must hold."""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from gristmill.contract import BadInput
from gristmill.puzzles.raw.arc_tasks import (
    MOST_PAIRS,
    ArcTask,
    Parts,
    parse_task,
    read_tasks,
    subsets_of,
)
from gristmill.untrusted.files import LinkRule
from tests.bombs import lines_of
from tests.marked import mark
from tests.puzzles import arc_tasks
from tests.puzzles.raw import bombs

PAIR = {"input": [[0, 1], [2, 9]], "output": [[3]]}
TASK = {"train": [PAIR], "test": [PAIR]}


def parsed(value: Any, name: str = "training/x.json") -> Any:
    text = value if isinstance(value, str) else json.dumps(value)
    return parse_task(text.encode(), Path("drop"), name)


def test_a_task_is_read_in_the_order_of_its_keys_with_any_mark_and_ending():
    other = {"input": [[5]], "output": [[6, 7]]}
    task = parsed({"test": [other], "train": [PAIR, PAIR]}, "evaluation/ab.c.json")
    assert task.base == "ab.c" and task.path == Path("drop/evaluation/ab.c.json")
    assert [before.tolist() for before, _ in task.pairs] == [[[5]], PAIR["input"], PAIR["input"]]
    assert [after.tolist() for _, after in task.pairs] == [[[6, 7]], [[3]], [[3]]]
    assert task.is_test == (True, False, False)
    assert task.is_evaluation
    assert task.numbers("train") == (1, 2) and task.numbers("test") == (0,)
    text = json.dumps({"test": [other], "train": [PAIR, PAIR]}).encode()
    assert task.sha256 == hashlib.sha256(text).hexdigest()
    octets = json.dumps(TASK, indent=1).replace("\n", "\r").encode()
    plain, marked = (
        parse_task(text, Path("drop"), "training/x.JSON")
        for text in (octets, b"\xef\xbb\xbf" + octets)
    )
    assert (marked.base, marked.is_test) == ("x", (False, True)) == (plain.base, plain.is_test)
    assert [pair[0].tolist() for pair in marked.pairs] == [PAIR["input"]] * 2
    assert marked.sha256 == hashlib.sha256(b"\xef\xbb\xbf" + octets).hexdigest() != plain.sha256
    with pytest.raises(BadInput, match=r"x\.json: is UTF-16: save it as UTF-8"):
        parse_task(json.dumps(TASK).encode("utf-16"), Path("drop"), "training/x.json")


def test_names_may_hold_anything_and_evaluation_alone_has_pairs_of_the_test_split():
    task = parsed(TASK, "evaluations/x.json")
    assert not task.is_evaluation
    assert task.numbers("train") == (0, 1) and task.numbers("test") == ()
    task = parsed(TASK, "training/1d_fill_0.json")
    assert (task.base, task.task) == ("1d-fill-0", "1d_fill_0")
    assert parsed({**TASK, "name": "00d62c1b"}).task == "00d62c1b"
    assert parsed({**TASK, "name": "other"}).base == "other"
    assert parsed({**TASK, "name": "[[[[[[[[[[{"}).base == "[[[[[[[[[[{"
    assert parsed({**TASK, "name": 'a"]\\'}).base == 'a"]\\'
    assert MOST_PAIRS == 100
    task = parsed({"train": [PAIR] * 99, "test": [PAIR]})
    assert len(task.pairs) == 100 and task.numbers("train") == tuple(range(100))
    for train, test in ((100, 1), (1, 100), (50, 51)):
        with pytest.raises(BadInput, match="has more than 100 pairs"):
            parsed({"train": [PAIR] * train, "test": [PAIR] * test})


def test_other_folders_may_have_the_test_split_and_links_are_refused(tmp_path):
    for name in ("training/a.json", "evaluation/b.json", "evaluation2/c.json"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(json.dumps(TASK))
    parts = Parts(evaluation=("evaluation2",), subsets=("training", "evaluation2"))
    found = read_tasks(tmp_path, parts=parts)
    assert [(task.base, task.is_evaluation) for task in found] == [("c", True), ("a", False)]
    source = tmp_path / "source"
    (source / "training").mkdir(parents=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (source / "more").symlink_to(elsewhere)
    with pytest.raises(BadInput, match=r"source/more: .*link"):
        read_tasks(source)


def _with(change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(json.dumps(TASK))
    change(value["train"][0])
    return value


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ("[1", "not JSON"),
        ('{"train": NaN}', "not JSON: NaN is no JSON"),
        ('{"train": -Infinity}', "not JSON: -Infinity is no JSON"),
        ("", "is empty: get the file again, or remove it"),
        ("\ufeff\r\n", "is empty"),
        ([PAIR], "is of RE-ARC's form"),
        ({"00d62c1b": TASK}, "holds several tasks: Kaggle's form of ARC is two files"),
        ({"00d62c1b": [[[1]]]}, "holds several tasks: Kaggle's form of ARC is two files"),
        ({"pad_id": 0}, "is of a dataset of the HRM project"),
        ("[]", "must hold an object"),
        ('{"train": [], "train": []}', "key twice"),
        ("[" * 20, "nested deeper"),
        ({**TASK, "extra": [1]}, "has the key 'extra': the lists of pairs of a task are"),
        ({"train": [PAIR]}, "lacks the key test, and a task has train and test; mend the task"),
        ({"test": [PAIR]}, "lacks the key train"),
        ({**TASK, "test": []}, "test must be a list of at least one pair"),
        ({**TASK, "test": {}}, "test must be a list of at least one pair; mend the task"),
        ({**TASK, "train": [PAIR] * (MOST_PAIRS + 1)}, "more than 100 pairs"),
        ({**TASK, "train": [1]}, "train pair 0 must be an object"),
        ({**TASK, "test": [PAIR, {"input": [[1]]}]}, "hidden tests of Kaggle do not have"),
        ({**TASK, "train": [{"output": [[1]]}]}, "train pair 0 has no input"),
        (_with(lambda pair: pair.update({"": 1})), "train pair 0 has the key ''"),
        (_with(lambda pair: pair.update(more=1)), "input and output only"),
        (
            _with(lambda pair: pair.update(input=[])),
            "input: a grid is a list of 1 to 30 rows; mend the task",
        ),
        (_with(lambda pair: pair.update(input=[[1]] * 31)), "1 to 30 rows"),
        (_with(lambda pair: pair.update(output=[[]])), "train pair 0, output, row 0: a row"),
        (_with(lambda pair: pair.update(output=[[1] * 31])), "1 to 30 colours"),
        (_with(lambda pair: pair.update(output=["12"])), "row 0: a row is a list"),
        (
            _with(lambda pair: pair["input"].append([1])),
            "row 2: has 1 cells, row 0 has 2; mend the task",
        ),
        (
            _with(lambda pair: pair["input"][1].__setitem__(0, 10)),
            "row 1: 10 is not a colour, which is an integer from 0 to 9; mend",
        ),
        (_with(lambda pair: pair["input"][1].__setitem__(0, -1)), "-1 is not a colour"),
        (_with(lambda pair: pair["input"][1].__setitem__(1, True)), "True is not a colour"),
        (_with(lambda pair: pair["input"][1].__setitem__(1, 1.0)), "1.0 is not a colour"),
        (_with(lambda pair: pair["input"][1].__setitem__(1, None)), "None is not a colour"),
        (_with(lambda pair: pair["input"][1].__setitem__(1, 10**15)), "is not a colour"),
        ({**TASK, "name": "a|||b"}, "'a|||b' has '|||'"),
        ({**TASK, "name": "a|"}, "ends with '|'"),
        ({**TASK, "name": "<blank>"}, "begins with '<'"),
        ({**TASK, "name": ""}, "no text of 1 to 255"),
        ({**TASK, "name": "x" * 256}, "no text of 1 to 255"),
        ({**TASK, "name": "a\nb"}, "no text of 1 to 255"),
        ({**TASK, "name": 7}, "name 7"),
    ],
)
def test_what_is_no_task_is_refused(value, rule):
    with pytest.raises(BadInput, match=r"drop/training/x\.json: ") as refused:
        parsed(value)
    assert rule in str(refused.value)


def test_the_tasks_of_a_source_come_in_the_order_of_their_paths(tmp_path):
    source = arc_tasks.source(tmp_path / "arc")
    (source / "LICENSE").write_text("free")
    (source / "training" / "notes.txt").write_text("no task")
    (source / "training" / ".hidden.json").write_text("no task")
    (source / ".git" / "x").mkdir(parents=True)
    (source / ".git" / "x" / "y.json").write_text("no task")
    tasks = read_tasks(source)
    assert [task.file for task in tasks] == [
        *("evaluation/bb.json", "evaluation/cc.json", "evaluation/wide.json"),
        *("training/aa.json", "training/one.json"),
    ]
    assert [task.base for task in tasks] == ["bb", "named-cc", "wide", "aa", "one"]


def test_a_real_task_takes_the_place_of_all_tasks_of_a_sample(tmp_path):
    for name in ("training/a.json", "evaluation/b.json"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(json.dumps(TASK))
    mark(tmp_path)
    assert [task.base for task in read_tasks(tmp_path)] == ["b", "a"]
    (tmp_path / "training/c.json").write_text(json.dumps(TASK))
    assert [task.base for task in read_tasks(tmp_path)] == ["c"]


def test_links_are_followed_where_they_are_allowed_only(tmp_path):
    source = tmp_path / "arc"
    arc_tasks.write(source, {"training/a": TASK})
    arc_tasks.write(tmp_path, {"kept/b": TASK})
    (source / "training" / "b.json").symlink_to(tmp_path / "kept" / "b.json")
    with pytest.raises(BadInput, match=r"b\.json: is a link"):
        read_tasks(source)
    links = LinkRule(follow=True, roots=(str(tmp_path / "kept"),))
    assert [task.base for task in read_tasks(source, links)] == ["a", "b"]


def test_too_large_files_and_too_many_values_are_refused(tmp_path):
    arc_tasks.write(tmp_path, {"training/a": TASK})
    with (tmp_path / "training" / "a.json").open("ab") as file:
        file.truncate((16 << 20) + 1)
    with pytest.raises(BadInput, match="has more than"):
        read_tasks(tmp_path)
    octets = b'{"train":[' + b"{}," * (1 << 17) + b"{}]}"
    with pytest.raises(BadInput, match="more than 262,144 values"):
        parse_task(octets, tmp_path, "training/t.json")
    grid = [[9] * 30] * 30
    task = {key: [{"input": grid, "output": grid}] * 50 for key in ("train", "test")}
    assert len(parse_task(json.dumps(task).encode(), tmp_path, "training/t.json").pairs) == 100


@pytest.mark.parametrize(
    "text",
    [
        "[" * 9 + "]" * 9,
        '{"a":' * 9 + "1" + "}" * 9,
        '["]",' * 9 + "1" + "]" * 9,
        '["\\"]",' * 900 + "1" + "]" * 900,
        "[" * 100_000,
        '"[' * 20,
    ],
)
def test_a_text_that_is_nested_too_deep_is_refused(text):
    with pytest.raises(BadInput, match=r"nested deeper than 8|not JSON|must hold an object"):
        parsed(text)
    if text.endswith("]") or text.endswith("}"):
        with pytest.raises(BadInput, match="nested deeper than 8"):
            parsed(text)


@pytest.mark.parametrize(
    ("tasks", "name", "rule"),
    [
        (["training/a"], "x.json", r"x\.json: is not in a sub-folder of the source"),
        (["training/a"], "training/deeper/x.json", r"x\.json: is not in a sub-folder of the"),
        (["training/a"], "B.JSON", r"B\.JSON: is not in a sub-folder"),
        (["training/a"], "training/b.JSON.gz", r"training/b\.JSON\.gz: .*unpack it"),
        (["training/a"], "training/b.json.gz", r"training/b\.json\.gz: .*unpack it"),
        (["training/a"], "evaluation/b.json.zip", r"evaluation/b\.json\.zip: .*unpack it"),
        ([], "training/notes.txt", "holds no ARC task"),
        ([], "ARC-AGI.zip", r"holds no ARC task: .*; unpack ARC-AGI\.zip$"),
    ],
)
def test_a_source_with_other_files_or_without_tasks_is_refused(tmp_path, tasks, name, rule):
    arc_tasks.write(tmp_path, dict.fromkeys(tasks, TASK))
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("{}")
    with pytest.raises(BadInput, match=rule):
        read_tasks(tmp_path)


@pytest.mark.parametrize("folder", ["Evaluation", "EVALUATION"])
def test_a_folder_that_is_nearly_named_evaluation_is_refused(folder, tmp_path):
    arc_tasks.write(tmp_path, {"evaluation/a": TASK, "evaluations/b": TASK})
    assert [task.is_evaluation for task in read_tasks(tmp_path)] == [True, False]
    arc_tasks.write(tmp_path, {f"{folder}/c": TASK})
    with pytest.raises(BadInput, match=f"{folder}: is not named evaluation"):
        read_tasks(tmp_path)


@pytest.mark.slow
def test_hostile_puzzle_files_are_refused_in_bounded_memory(tmp_path):
    bombs.write(tmp_path)
    lines = lines_of("tests.puzzles.raw.bombs", tmp_path)
    said = {name: rule for name, _, _, rule in lines}
    assert len(said) == 20
    assert "0 batches" not in said.values()
    assert said["blank_lines.txt"].startswith("has 10,001 blank lines and 0 others: ")
    many = "more than 262,144 values: brackets and commas are counted"
    names = ["deep", "keys", "lists", "numbers", "objects"]
    assert [said[f"{name}.json"] for name in names] == [many] * 5


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


def test_the_tasks_of_two_files_are_those_of_a_file_each(tmp_path):
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


def test_a_byte_order_mark_is_skipped_and_utf_16_is_refused(tmp_path):
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


def test_subsets_are_chosen_and_the_hidden_one_is_left_out(tmp_path):
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
def test_a_task_without_outputs_becomes_no_grid(tmp_path, challenges, solutions, file, rule):
    for role, value in (("challenges", challenges), ("solutions", solutions)):
        text = value if isinstance(value, str) else json.dumps(value)
        (tmp_path / f"arc_training_{role}.json").write_text(text)
    with pytest.raises(BadInput) as refused:
        read_tasks(tmp_path)
    assert refused.value.file == str(tmp_path / f"arc_training_{file}.json")
    assert rule in refused.value.rule
