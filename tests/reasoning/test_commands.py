"""`gristmill stage` and `gristmill unstage` as they are typed."""

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gristmill.contract import GristmillError
from gristmill.reasoning import commands
from gristmill.reasoning.commands import audit, audits_path
from gristmill.reasoning.format import names
from gristmill.reasoning.format.align import rows
from gristmill.reasoning.read import alignment
from gristmill.reasoning.read.alignment import week_of
from gristmill.reasoning.read.shard_reader import ShardReader
from gristmill.vocabularies.pinned import GPT2, find
from tests.reasoning.published import publish
from tests.reasoning.published_root import built, publish_split
from tests.reasoning.shard_folders import write_folder
from tests.reasoning.supervised_folder import write_supervised


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("published")
    publish(root / "data", write_supervised(root / "made", examples=20), root / "work")
    return root / "data"


def run(command: Any, *words: object) -> Result:
    return CliRunner().invoke(command, [str(word) for word in words])


def test_shards_are_staged_read_and_removed(data: Path, tmp_path: Path) -> None:
    words = ("j", "--rank", 0, "--rank", 2, "--world-size", 3, "--to", tmp_path)
    done = run(commands.stage, *words, "--data-root", data, "--steps")
    assert done.exit_code == 0, done.output
    assert f"{tmp_path}/j/shards: " in done.output
    assert "bytes, ranks 0, 2 of 3" in done.output
    shards = tmp_path / "j" / "shards"
    reader = ShardReader(
        shards, rank=2, world_size=3, steps=tmp_path / "j/alignment", verify="hash"
    )
    assert {"step_id", "example"} <= set(next(reader.batches(2)))
    (shards / "manifest.json").write_text("[]")
    left = run(commands.unstage, "j", "--to", tmp_path)
    assert left.exit_code == 1
    assert left.output == f"{shards}/manifest.json: was changed, it stays\n"
    (shards / "manifest.json").unlink()
    gone = run(commands.unstage, "j", "--to", tmp_path)
    assert (gone.exit_code, gone.output) == (0, f"{tmp_path}/j: removed\n")
    assert not (tmp_path / "j").exists()


def test_a_folder_outside_of_a_data_root_is_staged(tmp_path: Path) -> None:
    write_folder(tmp_path / "gpt2", {"gsm8k/test": [2], "wiqa/test": [3]})
    words = ("j", "--rank", 0, "--world-size", 1, "--to", tmp_path, "--from", tmp_path / "gpt2")
    assert run(commands.stage, *words, "--corpus", "wiqa").exit_code == 0
    reader = ShardReader(tmp_path / "j/shards", corpora=["wiqa"])
    assert len(reader) == 3
    steps = run(commands.stage, *words, "--corpus", "wiqa", "--steps")
    assert steps.exit_code == 1
    assert "wiqa/test/index.jsonl: is missing" in str(steps.exception)


@pytest.mark.parametrize("job", ["", ".", "..", "a/b"])
def test_a_job_has_the_name_of_a_folder(job: str, tmp_path: Path) -> None:
    for words in ((commands.unstage, job), (commands.stage, job, "--rank=0", "--world-size=1")):
        done = run(*words, "--to", tmp_path)
        assert done.exit_code == 2
        assert "cannot be the name of a folder" in done.output


def test_an_error_of_the_library_is_left_to_the_group(tmp_path: Path) -> None:
    done = run(commands.unstage, "j", "--to", tmp_path)
    assert isinstance(done.exception, GristmillError)
    assert "nothing is staged there" in str(done.exception)


_RAW = [{"question": f"What is {k}?", "answer": f"It is {k}.\n#### {k}"} for k in range(6)]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, vocabulary_root: Path) -> Path:
    root = tmp_path_factory.mktemp("root")
    publish_split(root, "gsm8k", "test", _RAW, find(GPT2, vocabulary_root))
    return root


@pytest.fixture(autouse=True)
def _without_audits(root: Path) -> None:
    audits_path(root, "gsm8k__test").unlink(missing_ok=True)


def _run(root: Path, *arguments: str, answers: str | None = None) -> Result:
    return CliRunner().invoke(audit, ["--data-root", str(root), *arguments], input=answers)


def _verdicts(root: Path) -> list[tuple[str, str, str, str]]:
    path = audits_path(root, "gsm8k__test")
    found = alignment.read(path) if path.exists() else ()
    return [(each.example_id, each.verdict, each.by, each.notes) for each in found]


def test_the_sample_is_listed(root: Path) -> None:
    lines = _run(root, "--list", "--count", "4", "--week", "2026-W47").output.splitlines()
    assert len(lines) == 4
    assert lines[0].endswith("  0.85  heuristic:lines; pending manual audit")
    assert lines == _run(root, "--list", "--count", "4", "--week", "2026-W47").output.splitlines()
    assert lines != _run(root, "--list", "--count", "4", "--week", "2026-W48").output.splitlines()


def test_verdicts_are_asked_for_and_recorded(root: Path) -> None:
    drawn = [line.split()[0] for line in _run(root, "--list").output.splitlines()]
    result = _run(root, "--by", "Ana", answers="r\n\nx\nw\nno step\ns\nq\n")
    assert result.exit_code == 0, result.output
    assert _verdicts(root) == [
        (drawn[0], "right", "Ana", ""),
        (drawn[1], "wrong", "Ana", "no step"),
    ]
    assert drawn[3] in result.output and drawn[4] not in result.output
    assert (
        "What is" in result.output and "gristmill materialize reasoning/alignment" in result.output
    )
    left = [line.split()[0] for line in _run(root, "--list").output.splitlines()]
    assert set(left).isdisjoint(drawn[:2]) and len(left) == 4


def test_a_verdict_is_recorded_without_questions(root: Path) -> None:
    result = _run(
        *(root, "--example", "gsm8k_test_000002", "--verdict", "right"),
        *("--by", "Ana", "--notes", "fine"),
    )
    assert result.exit_code == 0 and result.output.startswith("gsm8k_test_000002: right, in ")
    assert _verdicts(root) == [("gsm8k_test_000002", "right", "Ana", "fine")]


def test_the_next_alignment_is_verified(tmp_path: Path, root: Path) -> None:
    again = shutil.copytree(root, tmp_path / "root")
    _run(again, "--example", "gsm8k_test_000002", "--verdict", "right")
    built(again, "reasoning/alignment", "gsm8k__test")
    found = rows(again / names.ALIGNMENT / "gsm8k/test.align.jsonl")
    states = [row.notes.partition("; ")[2] for row in found]
    assert states[2] == "verified" and states.count("verified") == 1


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["--example", "gsm8k_test_000002"], "belong together"),
        (["--verdict", "right"], "belong together"),
        (["--example", "x", "--verdict", "right"], "is no id of an example"),
        (["--example", "gsm8k_test_000099", "--verdict", "right"], "has no row gsm8k_test_000099"),
        (["--example", "gsm8k_train_000001", "--verdict", "right"], "is not there"),
        (["--example", "gsm8k_test_000002", "--verdict", "good"], "Invalid value"),
        (["--corpus", "wiqa"], "no aligned example without an audit"),
        (["--corpus", "gsm9k"], "--corpus gsm9k: aligned are gsm8k"),
        (["--count", "0"], "Invalid value"),
    ],
)
def test_a_wrong_call_is_refused(root: Path, arguments: list[str], rule: str) -> None:
    result = _run(root, *arguments)
    assert result.exit_code != 0
    assert rule in result.output + str(result.exception)
    assert _verdicts(root) == []


def test_the_week_of_today_is_the_seed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    module = "gristmill.reasoning.commands"

    def draw(*arguments: object) -> list[object]:
        seen.append(str(arguments[4]))
        return []

    monkeypatch.setattr(f"{module}.draw", draw)
    before = week_of(datetime.now(UTC).date())
    _run(root, "--list")
    after = week_of(datetime.now(UTC).date())
    assert len(seen) == 1 and set(seen) <= {before, after}
