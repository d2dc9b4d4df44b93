"""Audits of a data root: what they find, what they keep, and what they read again."""

import json
import shutil

import numpy as np
import pytest

from gristmill import leaks
from gristmill.contract import BadInput, GristmillError
from gristmill.leaks import findings as module
from gristmill.leaks.texts import Part, leaves
from tests.leaks import plants
from tests.reasoning.published_root import built

TEST, TRAIN = plants.prose(1, 12), plants.prose(2, 30)


def _jsonl(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _rows(questions):
    return [{"question": each, "answer": f"{at}"} for at, each in enumerate(questions)]


@pytest.fixture(scope="module")
def built_root(tmp_path_factory):
    """A corpus with two leaks in train, a drop of conversations, one of SYNTH, a list of texts."""
    root = tmp_path_factory.mktemp("leaks")
    train = [*TRAIN[:10], TEST[3], *TRAIN[10:], f"Hear this: {TEST[5]} What now?"]
    _jsonl(root / "drops/reasoning/gsm8k/train.jsonl", _rows(train))
    _jsonl(root / "drops/reasoning/gsm8k/test.jsonl", _rows(TEST))
    turns = [{"role": "user", "content": TRAIN[0]}, {"role": "assistant", "content": TEST[1]}]
    _jsonl(root / "drops/chat/talk/a.jsonl", [{"messages": turns}, {"tags": [TEST[2], "b"]}])
    for split in ("train", "test"):
        built(root, "reasoning/normalized", f"gsm8k__{split}")
    evals = root / "drops/evals/mine"
    _jsonl(evals / "a.jsonl", [*TRAIN[:2], "of three words"])
    (evals / "b.txt").write_text(f"{TRAIN[9]}\n\n  {TRAIN[12]}\n")
    return root


@pytest.fixture
def root(built_root, tmp_path):
    """A copy of it, which a test may change."""
    ignored = shutil.ignore_patterns("leaks")
    return shutil.copytree(built_root, tmp_path / "root", ignore=ignored)


@pytest.fixture
def reads(monkeypatch):
    """The names of the files whose texts are read."""
    found, read = [], Part.texts

    def texts(self):
        found.append(self.name)
        return read(self)

    monkeypatch.setattr(Part, "texts", texts)
    return found


def _found(root, target, against=None):
    sets = [each for each in leaks.sets_of(root) if against in (None, each.name)]
    found = leaks.audit(root, leaks.parts_of(root, target), sets)
    return {(each.part.name, each.set.name): each.leaked for each in found if each.leaked}


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (
            "reasoning/normalized gsm8k__train",
            {("gsm8k/train.jsonl", "gsm8k__test"): 2, ("gsm8k/train.jsonl", "mine"): 4},
        ),
        ("gsm8k__test", {}),
        ("reasoning/gsm8k", {("train.jsonl", "gsm8k__test"): 2, ("train.jsonl", "mine"): 4}),
        ("drops/chat", {("a.jsonl", "gsm8k__test"): 2, ("a.jsonl", "mine"): 1}),
    ],
)
def test_leaks_are_found_in_artifacts_and_drops(built_root, target, expected):
    assert _found(built_root, target) == expected


def test_the_worst_come_first_with_both_places_and_texts(built_root):
    parts = leaks.parts_of(built_root, "gsm8k__train")
    sets = [each for each in leaks.sets_of(built_root) if each.name == "gsm8k__test"]
    findings = leaks.audit(built_root, parts, sets)
    first, second = leaks.worst(built_root, findings)
    assert first.text == ("reasoning/normalized gsm8k__train", "gsm8k/train.jsonl", 11, "question")
    assert first.question[1:] == ("gsm8k/test.jsonl", 4, "question")
    assert (first.text_whole, first.question_whole, first.share) == (TEST[3], TEST[3], 1)
    assert (second.text.row, second.question.row) == (32, 6)
    (begin, end), *more = second.marked
    assert (second.text_whole[begin:end], more) == (TEST[5][:-1], [])
    assert [each.text.row for each in leaks.worst(built_root, findings, 1)] == [11]
    shown, asked = second.cut(60)
    assert shown.startswith("Hear this: ") and len(shown) <= 62 and asked.startswith(TEST[5][:9])


def test_columns_name_turns_and_lists(built_root):
    sets = leaks.sets_of(built_root)[:1]
    found = leaks.worst(
        built_root, leaks.audit(built_root, leaks.parts_of(built_root, "chat/talk"), sets)
    )
    assert {each.text[2:] for each in found} == {(1, "messages[1].content"), (2, "tags")}


def test_what_did_not_change_is_not_read(root, reads):
    first = _found(root, "drops")
    assert sorted(reads) == ["a.jsonl", "test.jsonl", "train.jsonl"]
    reads.clear()
    assert (_found(root, "drops"), reads) == (first, [])
    _jsonl(root / "drops/chat/more/b.jsonl", [{"text": TEST[7]}])
    assert _found(root, "drops") == first | {("b.jsonl", "gsm8k__test"): 1}
    assert reads == ["b.jsonl"]
    reads.clear()
    (root / "drops/evals/mine/b.txt").write_text(f"{TRAIN[9]}\n")
    assert _found(root, "chat")[("a.jsonl", "mine")] == 1
    assert sorted(reads) == ["a.jsonl", "b.jsonl"]  # the set changed


def test_kept_files_that_are_damaged_are_made_again(root, reads):
    first = _found(root, "drops")
    kept = sorted(path for path in (root / ".gristmill/leaks").rglob("*") if path.is_file())
    assert {path.suffix for path in kept} == {".json", ".npy"}
    for path in kept:
        octets = path.read_bytes()
        for damaged in (octets[:-1], b"", octets[:20] + b"\0" + octets[21:]):
            path.write_bytes(damaged)
            reads.clear()
            assert (_found(root, "drops"), len(reads)) == (first, 1), path.name
            assert path.read_bytes() == octets


def test_a_killed_audit_continues_with_what_is_left(root, reads, monkeypatch):
    look, done = module._look, []

    def killed(task):
        if done:
            raise KeyboardInterrupt
        done.append(task.part.name)
        return look(task)

    monkeypatch.setattr(module, "_look", killed)
    with pytest.raises(KeyboardInterrupt):
        _found(root, "drops")
    monkeypatch.setattr(module, "_look", look)
    reads.clear()
    _found(root, "drops")
    assert len(reads) == 2 and done[0] not in reads


def test_workers_find_the_same(root, built_root):
    parts, sets = leaks.parts_of(root, "drops"), leaks.sets_of(root)
    found = leaks.audit(root, parts, sets, workers=2)
    assert {
        (each.part.name, each.set.name): each.leaked for each in found if each.leaked
    } == _found(built_root, "drops")


def test_the_place_of_a_text_is_found_by_its_words(built_root):
    found = leaks.where_is(built_root, f"  {TEST[3].upper()} ")
    assert sorted(each[:3] for each in found) == [
        ("drops/reasoning/gsm8k", "test.jsonl", 4),
        ("drops/reasoning/gsm8k", "train.jsonl", 11),
        ("reasoning/normalized gsm8k__test", "gsm8k/test.jsonl", 4),
        ("reasoning/normalized gsm8k__train", "gsm8k/train.jsonl", 11),
    ]
    assert leaks.where_is(built_root, "nowhere at all it stands") == []
    assert leaks.where_is(built_root, "") == []


@pytest.mark.parametrize(("segment", "span"), [(1 << 20, 1 << 22), (5, 4)])
def test_exact_duplicates_across_drops(root, monkeypatch, segment, span):
    monkeypatch.setattr(module, "_SEGMENT", segment)
    monkeypatch.setattr(module, "_RANGE", span)
    monkeypatch.setattr(module, "_MOST_TEXTS", 4)
    parts = leaks.parts_of(root, "drops")
    found = {
        tuple(sorted((each.place, each.row) for each in group))
        for group in leaks.duplicates(root, parts)
    }
    talk, corpus = "drops/chat/talk", "drops/reasoning/gsm8k"
    assert found == {((talk, 1), (corpus, 1)), ((talk, 1), (corpus, 2))}
    assert len(leaks.where_is(root, TRAIN[0], parts)) == 2


def test_a_set_reads_its_questions_by_its_recipe(root):
    drop = root / "drops/evals/asked"
    _jsonl(drop / "test.jsonl", [{"q": TRAIN[4], "prompt": "solve it", "a": "7"}])
    (drop / "corpus.toml").write_text(
        'schema = 1\nname = "asked"\n[[form]]\nname = "f"\nquestion = "q"\nanswer = "a"\n'
    )
    assert _found(root, "gsm8k__train", "asked") == {("gsm8k/train.jsonl", "asked"): 1}
    (drop / "corpus.toml").unlink()
    assert _found(root, "gsm8k__train", "asked") == {}


@pytest.mark.parametrize(
    ("name", "octets", "rule"),
    [
        ("a.jsonl", b'{"n": 1}\n', "has no column that may be its question"),
        ("a.jsonl", b'"a"\n{"n": 1\n', "is no UTF-8, or no JSON"),
        ("a.txt", b"\xff\xfe\n", "is no UTF-8"),
        ("a.txt", b"\n \n", "holds no question"),
        ("a.parquet", b"PAR1", "parquet|Parquet"),
        ("README.md", b"words", "holds no questions: put a list of texts into it"),
    ],
)
def test_a_set_that_holds_no_questions_is_refused(tmp_path, name, octets, rule):
    drop = tmp_path / "drops/evals/bad"
    drop.mkdir(parents=True)
    (drop / name).write_bytes(octets)
    _jsonl(tmp_path / "drops/chat/talk/a.jsonl", [{"text": TEST[0]}])
    with pytest.raises(BadInput, match=rule):
        _found(tmp_path, "drops/chat")


def test_a_root_without_sets_and_a_name_without_text(tmp_path, built_root):
    assert (leaks.has_sets(tmp_path), leaks.has_sets(built_root)) == (False, True)
    (tmp_path / "drops/puzzles/x").mkdir(parents=True)
    for target in ("puzzles/x", "gone", "drops"):
        with pytest.raises(GristmillError, match="no artifact or drop of this name holds text"):
            leaks.parts_of(tmp_path, target)


def test_hostile_texts_are_read(root):
    odd = ["\ud800 \udfff", "a" * 100_000, "\u0301" * 500, "\u200d,1,,234", TEST[0][:-1] + "\u0301"]
    (root / "drops/chat/odd").mkdir()
    (root / "drops/chat/odd/a.jsonl").write_text(
        "".join(
            json.dumps({f"k{at}\n": {"": [each, None, 3]}}) + "\n" for at, each in enumerate(odd)
        )
    )
    assert _found(root, "chat/odd") == {("a.jsonl", "gsm8k__test"): 1}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"a": "x", "b": None, "c": 3}, [("a", "x")]),
        ({"a": ["x", "y"], "b": []}, [("a", "x\ny")]),
        ({"a": [{"b": "x"}, "y"]}, [("a[0].b", "x"), ("a[1]", "y")]),
        ("x", [("", "x")]),
        (7, []),
    ],
)
def test_the_texts_of_a_row(row, expected):
    assert [*leaves(row)] == expected


def test_more_columns_than_are_named_are_still_found(root, monkeypatch):
    monkeypatch.setattr(module, "_COLUMNS", 2)
    _jsonl(root / "drops/chat/wide/a.jsonl", [{"a": "no", "b": "of no use", "c": TEST[0]}])
    sets = leaks.sets_of(root)[:1]
    findings = leaks.audit(root, leaks.parts_of(root, "chat/wide"), sets)
    assert [each.leaked for each in findings] == [1]
    assert np.array_equal(findings[0].numbers[:2], [[1], [0]])
    (leak,) = leaks.worst(root, findings)
    assert (leak.text_whole, leak.text.column) == (f"no\nof no use\n{TEST[0]}", "")
