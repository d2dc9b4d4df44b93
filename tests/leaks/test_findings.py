"""Audits of a data root: what they find, what they keep, and what they read again."""

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from gristmill import leaks
from gristmill.contract import BadInput, GristmillError
from gristmill.leaks import blocks, texts
from gristmill.leaks import findings as module
from gristmill.leaks.texts import Counts, Part, hashed, leaves
from gristmill.untrusted.files import LinkRule
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

    def texts(self, counts):
        found.append(self.name)
        return read(self, counts)

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
    assert {path.suffix for path in kept} == {".facts", ".npy"}
    for path in kept:
        octets = path.read_bytes()
        for damaged in (octets[:-1], b"", octets[:20] + b"\0" + octets[21:]):
            path.write_bytes(damaged)
            reads.clear()
            is_text = path.parent.name != "sets"
            assert (_found(root, "drops"), len(reads)) == (first, is_text), path.name
            assert path.read_bytes() == octets


_SEGMENT = 1000


def _killed(root, kind, times):
    """Audit all drops in a process that kills itself when it kept so many of a kind."""
    code = f"""
import os, signal
from pathlib import Path
from gristmill import leaks
from gristmill.leaks import findings
keep, done = findings.Kept.keep, []
findings._SEGMENT = {_SEGMENT}
def killed(self, name, made):
    keep(self, name, made)
    done.append(name.partition("/")[0])
    if done.count({kind!r}) == {times}:
        os.kill(os.getpid(), signal.SIGKILL)
findings.Kept.keep = killed
root = Path({str(root)!r})
leaks.audit(root, leaks.parts_of(root, "drops"), leaks.sets_of(root))
"""
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -signal.SIGKILL


def test_an_audit_that_was_killed_continues_with_the_next_file(root, reads):
    _killed(root, "texts", 5)  # a segment and the facts of each file
    assert len([*(root / ".gristmill/leaks").rglob("texts/*.facts")]) == 2
    found = _found(root, "drops")
    assert len(reads) == 1
    shutil.rmtree(root / ".gristmill/leaks")
    assert (_found(root, "drops"), len(reads)) == (found, 4)


@pytest.mark.parametrize("is_damaged", [False, True])
def test_an_audit_that_was_killed_continues_within_a_file(root, monkeypatch, is_damaged):
    texts = [TEST[0], *plants.prose(31, 6000), TEST[1], *TRAIN[:3]]
    _jsonl(root / "drops/chat/large/a.jsonl", _rows(texts))
    large, begins = root / "drops/chat/large", []
    assert (large / "a.jsonl").stat().st_size > 1 << 20
    _killed(root, "begun", 1)
    (begun,) = (root / ".gristmill/leaks").rglob("begun/*.facts")
    if is_damaged:
        begun.write_bytes(begun.read_bytes()[:-1])
    read = blocks._of_piece

    def of_piece(part, piece, *given):
        begins.append(piece.begin)
        return read(part, piece, *given)

    monkeypatch.setattr(blocks, "_of_piece", of_piece)
    monkeypatch.setattr(module, "_SEGMENT", _SEGMENT)
    found = _found(root, large)
    assert found == {("a.jsonl", "gsm8k__test"): 2, ("a.jsonl", "mine"): 2}
    assert (begins[0] == 0) == is_damaged
    assert not begun.exists()
    places = [(each.row, each.column) for each in leaks.where_is(root, TEST[1]) if each.row > 5999]
    assert places == [(6002, "question")]


def test_workers_find_the_same(root, built_root):
    parts, sets = leaks.parts_of(root, "drops"), leaks.sets_of(root)
    found = leaks.audit(root, parts, sets, workers=2)
    assert {
        (each.part.name, each.set.name): each.leaked for each in found if each.leaked
    } == _found(built_root, "drops")


def test_texts_that_hold_a_text_are_found_whatever_others_are_asked(built_root, reads):
    parts, beyond = leaks.parts_of(built_root, "drops/reasoning"), f"{TEST[5]} What now?"
    alone, both = {("test.jsonl", 6), ("train.jsonl", 32)}, {("train.jsonl", 32)}
    for asked, least, expected in (
        ([TEST[5]], 1, [alone]),
        ([beyond, TEST[5]], 1, [both, alone]),
        ([beyond], 0.8, [alone]),
        (["of no use here"], 1, [set()]),
    ):
        found = [*leaks.holding(built_root, asked, parts, least)]
        for at, places in enumerate(expected):
            assert {place[1:3] for place, text, _ in found if text == at} == places
        assert {place.column for place, *_ in found} <= {"question"}
        assert all(least <= share <= 1 for *_, share in found)
    reads.clear()
    assert [*leaks.holding(built_root, ["of no use here"], parts)] == reads == []


def test_texts_are_found_while_another_set_is_looked_for(root, monkeypatch):
    places, read = leaks.where_is(root, TEST[3]), module.blocks
    assert len(places) == 4
    (root / "drops/evals/mine/b.txt").write_text(f"{TEST[3]}\n")
    meanwhile = []

    def looked(*given):
        for block in read(*given):
            meanwhile.append(leaks.where_is(root, TEST[3]))
            yield block

    monkeypatch.setattr(module, "blocks", looked)
    assert _found(root, "drops/reasoning", "mine")
    assert len(meanwhile) > 1 and all(each == places for each in meanwhile)


@pytest.mark.parametrize(("segment", "span"), [(1 << 20, 1 << 22), (5, 4)])
def test_exact_duplicates_across_drops(root, monkeypatch, segment, span):
    monkeypatch.setattr(module, "_SEGMENT", segment)
    monkeypatch.setattr(module, "_RANGE", span)
    monkeypatch.setattr(blocks, "_MOST_TEXTS", 4)
    parts = leaks.parts_of(root, "drops")
    found = {
        tuple(sorted((each.place, each.row) for each in group))
        for group in leaks.duplicates(root, parts)
    }
    talk, corpus = "drops/chat/talk", "drops/reasoning/gsm8k"
    assert found == {((talk, 1), (corpus, 1)), ((talk, 1), (corpus, 2))}
    assert len(leaks.where_is(root, TRAIN[0], parts)) == 2


@pytest.mark.parametrize(
    ("name", "octets", "rule"),
    [
        ("a.jsonl", b'{"n": 1}\n', "has no column that may be its question"),
        ("a.jsonl", b'"a"\n{"n": 1\n', "a.jsonl:2: not JSON"),
        ("a.jsonl", b'"a"\n\n5\n', "a.jsonl:3: is no JSON object, and no text"),
        ("a.json", b'["a", ["x"]]', "a.json:2: is no JSON object, and no text"),
        ("a.txt", b"a\n\xff\n", "a.txt:2: is not UTF-8"),
        ("a.txt", b"\xff\xfe\n", "is UTF-16"),
        ("a.txt", b"\n \n", "holds no question"),
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


def test_a_root_without_sets_has_no_findings_and_places_are_found_by_words(tmp_path, built_root):
    assert (leaks.set_names(tmp_path), leaks.set_names(built_root)) == ([], ["mine", "gsm8k__test"])
    (tmp_path / "drops/puzzles/x").mkdir(parents=True)
    for target in ("puzzles/x", "gone", "drops"):
        with pytest.raises(GristmillError, match="no artifact or drop of this name holds text"):
            leaks.parts_of(tmp_path, target)
    found = leaks.where_is(built_root, f"  {TEST[3].upper()} ")
    assert sorted(each[:3] for each in found) == [
        ("drops/reasoning/gsm8k", "test.jsonl", 4),
        ("drops/reasoning/gsm8k", "train.jsonl", 11),
        ("reasoning/normalized gsm8k__test", "gsm8k/test.jsonl", 4),
        ("reasoning/normalized gsm8k__train", "gsm8k/train.jsonl", 11),
    ]
    assert leaks.where_is(built_root, "nowhere at all it stands") == []
    assert leaks.where_is(built_root, "") == []


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
    for each in (module, blocks):
        monkeypatch.setattr(each, "COLUMNS", 2)
    _jsonl(root / "drops/chat/wide/a.jsonl", [{"a": "no", "b": "of no use", "c": TEST[0]}])
    sets = leaks.sets_of(root)[:1]
    findings = leaks.audit(root, leaks.parts_of(root, "chat/wide"), sets)
    assert [each.leaked for each in findings] == [1]
    assert np.array_equal(findings[0].numbers[:2], [[1], [0]])
    (leak,) = leaks.worst(root, findings)
    assert (leak.text_whole, leak.text.column) == (f"no\nof no use\n{TEST[0]}", "")


def test_a_copy_of_a_set_is_a_leak_and_its_own_files_are_none(root):
    copies = root / "drops/chat/copy"
    shutil.copytree(root / "drops/evals/mine", copies)
    shutil.copy(root / "drops/reasoning/gsm8k/test.jsonl", copies)
    wanted = {("a.jsonl", "mine"): 3, ("b.txt", "mine"): 2, ("test.jsonl", "gsm8k__test"): 12}
    assert _found(root, "chat/copy") == wanted
    shutil.copytree(copies, root / "drops/chat/copy2")
    found = leaks.audit(root, leaks.parts_of(root, "drops/chat"), leaks.sets_of(root, ["mine"]))
    of_copies = [each for each in leaks.worst(root, found) if "copy" in each.text.place]
    assert len(of_copies) == 10 and all(
        each.text_whole == each.question_whole for each in of_copies
    )
    shutil.rmtree(root / "drops/chat/copy2")
    assert {each for each in _found(root, "drops") if each[1] == "gsm8k__test"} == {
        *(("a.jsonl", "gsm8k__test"), ("train.jsonl", "gsm8k__test")),
        ("test.jsonl", "gsm8k__test"),  # the copy
    }
    assert _found(root, "drops/evals/mine") == {}
    (root.parent / "link").symlink_to(root / "drops/evals", target_is_directory=True)
    assert _found(root, root.parent / "link/mine") == {}


def test_what_is_kept_is_kept_by_all_that_decides_what_is_read(tmp_path):
    (tmp_path / "corpus.toml").write_text('schema = 1\nname = "x"\nquestion = "q"\nanswer = "a"\n')
    corpus = texts.corpus_of(tmp_path, name="x")
    one = Part("", tmp_path / "a.jsonl", "a.jsonl", "0" * 64)
    assert one.key == replace(one, file=tmp_path / "B.JSONL", name="b").key
    others = [
        replace(one, sha256="1" * 64),
        replace(one, file=tmp_path / "a.jsonl.gz"),
        replace(one, file=tmp_path / "a.TXT"),
        replace(one, links=LinkRule(follow=True)),
        replace(one, corpus=corpus),
        replace(one, corpus=replace(corpus, table=f"{corpus.table} ")),
    ]
    assert len({each.key for each in (one, *others)}) == 7
    sets = [leaks.EvaluationSet("s", (each,), frozenset()) for each in (one, *others)]
    assert (
        len({each.digest for each in (*sets, replace(sets[0], parts=(replace(one, name="c"),)))})
        == 8
    )


@pytest.mark.parametrize(
    ("target", "file", "rule"),
    [
        ("chat/talk", "drops/chat/talk/a.jsonl", "changed while it was read"),
        (
            "gsm8k__train",
            "reasoning/raw/gsm8k/train.jsonl",
            "is not as its record says: `gristmill v",
        ),
    ],
)
@pytest.mark.parametrize("is_early", [True, False])
def test_nothing_is_kept_of_a_file_of_other_bytes(root, monkeypatch, target, file, rule, is_early):
    parts, sets, read = hashed(root, leaks.parts_of(root, target)), leaks.sets_of(root), texts.rows

    def change():
        octets = (root / file).read_bytes()
        (root / file).write_bytes(octets.swapcase())

    def rows(*arguments):
        for row in read(*arguments):
            yield row
            if arguments[0] == root / file:
                change()

    if is_early:
        change()
    else:
        leaks.audit(root, parts, sets)
        for segment in (root / ".gristmill/leaks").rglob(f"texts/{parts[0].key}*.npy"):
            segment.unlink()
        monkeypatch.setattr(texts, "rows", rows)
    with pytest.raises(BadInput, match=rule if is_early else "changed while it was read"):
        leaks.audit(root, parts, sets)
    assert not [*(root / ".gristmill/leaks").rglob(f"{parts[0].key}*.facts")]


@pytest.mark.parametrize(
    ("name", "octets", "expected"),
    [
        ("a.jsonl", b'{"a": "x"}\n\n"y"\n{"a": \n5\n', (["x", "y"], 4, 2)),
        ("a.jsonl", b'\xef\xbb\xbf"x"\n{"a": "y"}\n', (["x", "y"], 2, 0)),
        ("a.JSONL.gz", gzip.compress(b'"x"\n"y"\n', mtime=0), (["x", "y"], 2, 0)),
        ("a.json", b'["x", {"a": "y"}, 5]', (["x", "y"], 3, 1)),
        ("a.TXT", b"\xef\xbb\xbfx\n\n\xff\ny", (["x", "y"], 3, 1)),
        ("a.csv", b"a,b\nx,y\nz\n", (["x", "y"], 2, 1)),
        ("a.jsonl", b'{"a": 1}\n{"b": null}\n', ([], 2, 0)),
        ("a.jsonl", b'{"a": "x", "a": "z"}\n{"b": {"c": "y", "c": 1}}\n', ([], 2, 2)),
        ("a.jsonl", b'{"a": {"b": "x"}}\n', (["x"], 1, 0)),
    ],
)
def test_texts_are_read_line_by_line_and_what_is_none_is_counted(tmp_path, name, octets, expected):
    (tmp_path / name).write_bytes(octets)
    (part,) = hashed(tmp_path, leaks.parts_of(tmp_path / "root", tmp_path))
    counts = Counts()
    assert ([each.text for each in part.texts(counts)], counts.rows, counts.unread) == expected


def test_names_that_are_no_utf8_and_removed_folders_stop_no_audit(root, monkeypatch):
    folder, look = root.parent / "odd", module._look
    folder.mkdir()
    name = os.fsdecode(b"a\xff.jsonl")
    (folder / name).write_text(json.dumps({"a": TEST[3]}) + "\n")

    def removed(task):
        found = look(task)
        shutil.rmtree(root / ".gristmill/leaks")
        return found

    monkeypatch.setattr(module, "_look", removed)
    assert _found(root, folder) == {(name, "gsm8k__test"): 1}


def test_a_recipe_says_which_files_are_read(root):
    for drop in (root / "drops/evals/asked", root / "drops/reasoning/own"):
        for name in ("test", "notes", "other"):
            _jsonl(drop / f"{name}.jsonl", [{"q": TRAIN[4], "a": "7"}])
        (drop / "readme.txt").write_text("no question\n")
        (drop / "corpus.toml").write_text(
            f'schema = 1\nname = "{drop.name}"\nquestion = "q"\nanswer = "a"\nleave = ["notes*"]\n'
            '[files]\ntest = ["test*", "notes*"]\n'
        )
    (asked,) = leaks.sets_of(root, ["asked"])
    assert [each.name for each in asked.parts] == ["test.jsonl"]
    assert _found(root, "gsm8k__train", "asked") == {("gsm8k/train.jsonl", "asked"): 1}
    assert [each.name for each in leaks.parts_of(root, "reasoning/own")] == ["test.jsonl"]
