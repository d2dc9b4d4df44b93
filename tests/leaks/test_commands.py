"""`gristmill leaks`, and what `look` and `drop` say of leaks."""

import json
from unittest.mock import Mock

import pytest
from click.testing import CliRunner

from gristmill.cli import main
from gristmill.leaks import commands, findings
from tests.leaks import plants
from tests.reasoning.published_root import built

TEST, TRAIN = plants.prose(1, 8), plants.prose(2, 6)


def _write(path, questions):
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"question": each, "answer": str(at)} for at, each in enumerate(questions)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("root")
    _write(root / "drops/reasoning/gsm8k/train.jsonl", [*TRAIN, TEST[2], f"So: {TEST[4]} Yes."])
    _write(root / "drops/reasoning/gsm8k/test.jsonl", TEST)
    for split in ("train", "test"):
        built(root, "reasoning/normalized", f"gsm8k__{split}")
    (root / "drops/evals/mine").mkdir(parents=True)
    (root / "drops/evals/mine/a.txt").write_text(f"{TRAIN[1]}\n")
    return root


def _call(*arguments, root=None):
    given = [*arguments, *(["--data-root", str(root)] if root else [])]
    done = CliRunner().invoke(main, given)
    return done.exit_code, done.stdout


def test_leaks_are_listed_the_worst_first_with_status_1(root):
    status, said = _call("leaks", "gsm8k__train", "--against", "gsm8k__test", root=root)
    assert status == 1
    head, first, asked, second, *_ = said.splitlines()
    assert head == (
        "reasoning/normalized gsm8k__train gsm8k/train.jsonl: "
        "2 of 8 rows are questions of gsm8k__test"
    )
    assert first.startswith(f" 100%  gsm8k/train.jsonl row 7 question: {TEST[2][:60]}")
    assert asked.startswith(f"       gsm8k__test row 3 question: {TEST[2][:60]}")
    assert second.startswith(f" 100%  gsm8k/train.jsonl row 8 question: So: {TEST[4][:60]}")
    status, said = _call("leaks", "reasoning/gsm8k", "--most", "1", root=root)
    assert (status, said.splitlines()[-1]) == (1, "and 2 more: --most 3 shows all")
    assert "1 of 8 rows are questions of mine" in said


def test_json_has_all_leaks(root):
    status, said = _call("leaks", "gsm8k__train", "--json", root=root)
    answer = json.loads(said)
    assert status == 1
    assert [(each["set"], each["leaked"], each["rows"]) for each in answer["found"]] == [
        ("gsm8k__test", 2, 8),
        ("mine", 1, 8),
    ]
    assert [each["text"]["row"] for each in answer["leaks"]] == [7, 8, 2]
    assert answer["leaks"][2]["question"] == {
        **{"place": "drops/evals/mine", "file": "a.txt", "row": 1, "column": ""}
    }
    assert answer["leaks"][0]["share"] == 1


def test_status_0_where_nothing_is_found_and_the_words_of_wrong_uses(root, tmp_path):
    assert _call("leaks", "gsm8k__test", root=root) == (0, "no question of mine was found\n")
    done = CliRunner().invoke(
        main, ["leaks", "gsm8k__test", "--against", "min", "--data-root", str(root)]
    )
    assert (done.exit_code, "Did you mean 'mine'?" in done.output) == (2, True)
    _write(tmp_path / "drops/reasoning/gsm8k/train.jsonl", TRAIN)
    done = CliRunner().invoke(main, ["leaks", "reasoning/gsm8k", "--data-root", str(tmp_path)])
    assert (done.exit_code, "there is no evaluation set" in done.output) == (1, True)


def test_look_says_what_files_hold(root, tmp_path, monkeypatch):
    _write(tmp_path / "mine/train.jsonl", [*TRAIN[2:], TEST[1]])
    _, said = _call("look", str(tmp_path / "mine"), root=root)
    (line,) = [each for each in said.splitlines() if "are questions of" in each]
    assert line.startswith(
        "note: 1 of 5 rows are questions of gsm8k__test, e.g. row 5 of train.jsonl is row 2 there: "
        f"{TEST[1][:80]}"
    )
    assert line.endswith(f"`gristmill leaks --data-root {root} {tmp_path / 'mine'}`)")
    monkeypatch.setattr(commands, "_QUICK", 10)
    _, said = _call("look", str(tmp_path / "mine"), root=root)
    assert "evaluation questions were not looked for in" in said
    _, said = _call("look", "--all", str(tmp_path / "mine"), root=root)
    assert "1 of 5 rows are questions of gsm8k__test" in said


def test_look_says_nothing_where_there_is_no_set_or_no_leak(root, tmp_path):
    _write(tmp_path / "mine/train.jsonl", TRAIN[2:])
    for data_root in (tmp_path / "none", root):
        status, said = _call("look", str(tmp_path / "mine"), root=data_root)
        assert (status, "evaluation" in said, "are questions of" in said) == (0, False, False)
    assert not (tmp_path / "none").exists()


def test_a_set_that_is_wrong_does_not_stop_a_look(root, tmp_path):
    (tmp_path / "data/drops/evals/bad").mkdir(parents=True)
    _write(tmp_path / "mine/train.jsonl", TEST[:2])
    status, said = _call("look", str(tmp_path / "mine"), root=tmp_path / "data")
    assert (status, "were not looked for" in said, "holds no questions" in said) == (0, True, True)


def test_a_root_that_cannot_be_written_to_does_not_stop_a_look(root, tmp_path, monkeypatch):
    _write(tmp_path / "mine/train.jsonl", TEST[:2])
    error = OSError(30, "Read-only file system")
    monkeypatch.setattr(findings.Kept, "keep", Mock(side_effect=error))
    status, said = _call("look", str(tmp_path / "mine"), root=root)
    assert (status, "not looked for: [Errno 30] Read-only" in said) == (0, True)


def test_at_most_two_sets_are_named(root):
    several = [f"{TEST[0]} {TRAIN[1]}"]
    for number in range(3):
        folder = root / f"drops/evals/more{number}"
        folder.mkdir()
        (folder / "a.txt").write_text(f"{TEST[0]}\n{plants.prose(20 + number, 1)[0]}\n")
    _write(root / "several/train.jsonl", several)
    *named, last = commands.lines(root, root / "several/train.jsonl")
    assert (len(named), last) == (2, "and questions of 3 more sets")
