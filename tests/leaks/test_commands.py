"""`gristmill leaks`, and what `look` and `drop` say of leaks."""

import gzip
import json
import os
import shutil
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from gristmill.cli import main
from gristmill.contract import BadInput
from gristmill.leaks import commands, texts
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


def test_json_has_all_leaks_and_the_worst_come_first(root):
    status, said = _call("leaks", "gsm8k__train", "--against", "gsm8k__test", root=root)
    assert status == 1
    head, first, asked, second, *_ = said.splitlines()
    train = "reasoning/normalized gsm8k__train gsm8k/train.jsonl"
    test = "gsm8k__test: reasoning/normalized gsm8k__test gsm8k/test.jsonl"
    assert head == f"{train}: 2 of 8 rows are questions of gsm8k__test"
    assert first.startswith(f" 100%  {train} row 7 question: {TEST[2][:60]}")
    assert asked.startswith(f"       {test} row 3 question: {TEST[2][:60]}")
    assert second.startswith(f" 100%  {train} row 8 question: So: {TEST[4][:60]}")
    status, said = _call("leaks", "reasoning/gsm8k", "--most", "1", root=root)
    assert (status, said.splitlines()[-1]) == (1, "and 2 more: --most 3 shows all")
    assert "1 of 8 rows are questions of mine" in said
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


def test_questions_with_other_names_or_numbers_are_a_kind_of_their_own(root, tmp_path):
    for name in ("evals/asked/a.txt", "chat/changed/a.txt"):
        (tmp_path / "drops" / name).parent.mkdir(parents=True)
        text = plants.renamed(*(("Tom", 3) if "asked" in name else ("Ann Lee", "1,234")))
        (tmp_path / "drops" / name).write_text(f"{text}\n")
    status, said = _call("leaks", "chat/changed", root=tmp_path)
    first, asked, last = said.splitlines()
    assert (status, first[:6], asked.split(":")[0].strip()) == (1, " 100% ", "asked")
    of = "1 of 1 rows are questions of asked with other names or numbers"
    assert last == f"drops/chat/changed a.txt: {of}"
    answer = json.loads(_call("leaks", "chat/changed", "--json", root=tmp_path)[1])
    assert [(each["leaked"], each["changed"]) for each in answer["found"]] == [(0, 1)]
    assert [each["changed"] for each in answer["leaks"]] == [True]
    assert [of in line for line in commands.lines(tmp_path, tmp_path / "drops/chat")] == [True]


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
    _write(tmp_path / "mine/test.jsonl", TEST)  # to be held out: nothing trains on it
    _, said = _call("look", str(tmp_path / "mine"), root=root)
    (line,) = [each for each in said.splitlines() if "are questions of" in each]
    assert line.startswith(
        f"note: 1 of 5 rows are questions of gsm8k__test, e.g. {tmp_path}/mine train.jsonl row 5 "
        "question is reasoning/normalized gsm8k__test gsm8k/test.jsonl row 2 question: "
        f"{TEST[1][:80]}"
    )
    assert line.endswith(f"`gristmill leaks --data-root {root} {tmp_path / 'mine'}`)")
    monkeypatch.setattr(commands, "_QUICK", 10)
    _, said = _call("look", str(tmp_path / "mine"), root=root)
    assert "evaluation questions were not looked for in" in said
    _, said = _call("look", "--all", str(tmp_path / "mine"), root=root)
    assert "1 of 5 rows are questions of gsm8k__test" in said


def test_at_most_two_sets_are_named(root):
    several = [f"{TEST[0]} {TRAIN[1]}"]
    for number in range(3):
        folder = root / f"drops/evals/more{number}"
        folder.mkdir()
        (folder / "a.txt").write_text(f"{TEST[0]}\n{plants.prose(20 + number, 1)[0]}\n")
    _write(root / "several/train.jsonl", several)
    *named, last = commands.lines(root, root / "several/train.jsonl")
    assert (len(named), last) == (2, "and questions of 3 more sets")


def test_what_could_not_be_read_is_said(root, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"a": "no"}\n{"a":\n')
    unread = f"1 row of {tmp_path} a.jsonl could not be read"
    status, said = _call("leaks", str(tmp_path), "--against", "mine", root=root)
    none = "no question of mine was found in the rows that could be read"
    assert (status, said.splitlines()) == (0, [unread, none])
    assert commands.lines(root, tmp_path) == [unread]
    status, said = _call("leaks", str(tmp_path), "--against", "mine", "--json", root=root)
    assert (json.loads(said)["notes"], json.loads(said)["found"][0]["unread"]) == ([unread], 1)


def test_columns_of_bytes_are_named(root, tmp_path):
    texts, octets = [TRAIN[1], "a"], [TEST[0].encode(), b""]
    for name in ("a", "b"):
        pq.write_table(pa.table({"t": texts, "raw": octets}), tmp_path / f"{name}.parquet")
    said = f"{tmp_path}: columns of bytes were not looked at: raw"
    status, lines = _call("leaks", str(tmp_path), root=root)
    assert (status, lines.splitlines()[-1], lines.count("raw")) == (1, said, 1)
    assert said in commands.lines(root, tmp_path)


@pytest.mark.parametrize("name", ["pipe.jsonl", "a" * 300, "gone.jsonl", "nul\0.jsonl"])
def test_what_is_no_file_is_refused_in_words(root, tmp_path, name):
    os.mkfifo(tmp_path / "pipe.jsonl")
    done = CliRunner().invoke(main, ["leaks", str(tmp_path / name), "--data-root", str(root)])
    assert (done.exit_code, done.output.startswith("Error: ")) == (1, True)
    assert isinstance(done.exception, SystemExit)


def test_a_recorded_file_that_is_gone_and_a_set_that_is_wrong_stop_what_needs_them(root, tmp_path):
    copy = shutil.copytree(root, tmp_path / "root")
    (copy / "drops/evals/bad").mkdir()
    (copy / "drops/evals/bad/a.jsonl").write_text("5\n")
    (copy / "drops/evals/b.txt").write_text("Why?\n")
    status, said = _call("leaks", "gsm8k__test", "--against", "mine", root=copy)
    stray = "drops/evals/b.txt is no set: put it into a folder, as drops/evals/NAME/b.txt"
    assert (status, said.splitlines()) == (0, ["no question of mine was found", stray])
    (copy / "reasoning/raw/gsm8k/train.jsonl").unlink()
    for against, rule in ((["--against", "mine"], "No such file"), ([], "a.jsonl:1: is no JSON")):
        call = ["leaks", "gsm8k__train", *against, "--data-root", str(copy)]
        done = CliRunner().invoke(main, call)
        assert (done.exit_code, rule in done.output) == (1, True), done.output


def test_look_makes_no_key_and_reads_nothing_without_need(root, tmp_path, monkeypatch):
    (tmp_path / "data/drops/evals").mkdir(parents=True)
    (tmp_path / "data/drops/evals/README.md").write_text("words")
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(json.dumps({"a": TEST[0]}).encode()))
    assert commands.lines(tmp_path / "data", tmp_path / "a.jsonl.gz") == []
    (tmp_path / "data/drops/evals/bad").mkdir()
    assert "holds no questions" in commands.lines(tmp_path / "data", tmp_path / "a.jsonl.gz")[0]
    assert not (tmp_path / "data/.gristmill/key").exists()
    monkeypatch.setattr(commands, "_QUICK", 8 * (tmp_path / "a.jsonl.gz").stat().st_size - 1)
    monkeypatch.setattr(texts, "sha256_file", Mock(side_effect=AssertionError))
    assert "were not looked for in" in commands.lines(root, tmp_path / "a.jsonl.gz")[0]


@pytest.mark.parametrize(
    "error", [BadInput("a", "is wrong"), OSError(5, "bad disk"), UnicodeError()]
)
def test_nothing_that_goes_wrong_stops_a_look(root, tmp_path, monkeypatch, error):
    monkeypatch.setattr(texts, "set_names", Mock(side_effect=error))
    (line,) = commands.lines(root, tmp_path)
    assert line.startswith("evaluation questions could not be looked for: ")
