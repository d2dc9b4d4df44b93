"""Audits of evaluation sets: their files, what makes them out of date, laws, and their picture."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from gristmill.browse.opening import open_table
from gristmill.cli import main
from gristmill.contract import BadInput, GristmillError, NothingToBuild
from gristmill.corpora.corpus import CORPORA
from gristmill.corpora.raw import rows as read_rows
from gristmill.corpora.raw.forgotten import add
from gristmill.corpora.split_file import files
from gristmill.data_root import DataRoot
from gristmill.families import Subject
from gristmill.inbox.marks import FORGOTTEN, SAMPLE, sums_in, written_sums
from gristmill.leaks.texts import account, built_sets, set_names
from gristmill.provenance import verify
from gristmill.provenance.find_artifacts import artifacts
from gristmill.publish.publish import is_current, publish, reason_to_build
from gristmill.reasoning.builders import normalize
from gristmill.reasoning.builders.forget import renumbered, tombstones_of
from gristmill.reasoning.format import leaks, names
from gristmill.reasoning.laws.quality import leak_laws
from gristmill.rebuilt import rebuilt
from gristmill.vocabularies.pinned import GPT2, find
from tests.json_lines import jsonl
from tests.leaks import plants
from tests.reasoning.builders.test_forget import build, raw_question, texts
from tests.reasoning.normalized_files import GSM8K
from tests.reasoning.published_root import build_of, built, put_vocabulary

TEST, TRAIN = plants.prose(1, 12), plants.prose(2, 30)
HOSTILE = f'</text><script>alert(1)</script> &amp; "{TEST[7]}" \x07 {"<b>" * 30}'
LEAKS = "audits/leaks"


def _rows(questions: list[str]) -> list[dict[str, str]]:
    return [{"question": each, "answer": f"{at}"} for at, each in enumerate(questions)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of which train holds three questions of its test, a list of texts, and audits."""
    root = tmp_path_factory.mktemp("audited")
    long = f"{' '.join(TRAIN[12:])} {TEST[5]} {TRAIN[11]}"
    train = [*TRAIN[:10], TEST[3], long, HOSTILE]
    jsonl(root / "drops/reasoning/gsm8k/train.jsonl", _rows(train))
    jsonl(root / "drops/reasoning/gsm8k/test.jsonl", _rows(TEST))
    jsonl(root / "drops/evals/mine/a.jsonl", ["Why now?", f"\ud800 {TRAIN[2]}", "Why not?", "No"])
    jsonl(root / "drops/evals/clean/a.jsonl", plants.prose(3, 4))
    for split in ("train", "test"):
        built(root, "reasoning/normalized", f"gsm8k__{split}")
    for name in set_names(root):
        built(root, LEAKS, name)
    return root


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    """A copy of it, which a test may change."""
    return shutil.copytree(made, tmp_path / "root")


def _audit(root: Path, name: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    folder = root / LEAKS / name
    lines = (folder / leaks.ROWS).read_text().splitlines()
    return [json.loads(line) for line in lines], json.loads((folder / leaks.SUMMARY).read_text())


def test_both_kinds_of_sets_are_audited_the_worst_leak_first(made: Path) -> None:
    assert set_names(made) == ["clean", "mine", "gsm8k__test"]
    assert built_sets(made) == ["gsm8k__test"]
    rows, summary = _audit(made, "gsm8k__test")
    assert [(each["row"], each["question_row"], each["share"]) for each in rows] == [
        *((11, 4, 1.0), (12, 6, 1.0), (13, 8, 1.0))
    ]
    places = {(each["place"], each["question_place"]) for each in rows}
    assert places == {("reasoning/normalized gsm8k__train", "reasoning/normalized gsm8k__test")}
    for row, question in zip(rows, (TEST[3], TEST[5], TEST[7]), strict=True):
        (begin, end), *others = row["marks"]
        assert (row["text"][begin:end], others) == (question.rstrip("?"), [])
        assert row["question_text"] == question and row["question_marks"] == [
            [0, len(question) - 1]
        ]
    # Of the long text a part around the question.
    assert rows[1]["marks"][0][0] == 40 and len(rows[1]["text"]) < len(" ".join(TRAIN[12:]))
    (text,) = summary.pop("texts")
    assert summary == {
        **{"set": "gsm8k__test", "questions": 12, "short": 0, "leaks": 3},
        **{"changed": 0, "listed": 3},
    }
    assert text.pop("sha256") and text == {
        **{"place": "reasoning/normalized gsm8k__train", "file": "gsm8k/train.jsonl"},
        **{"rows": 13, "leaked": 3, "changed": 0, "unread": 0},
    }
    rows, summary = _audit(made, "mine")
    assert [(each["row"], each["question_row"]) for each in rows] == [(3, 2)]
    assert rows[0]["question_text"] == f"? {TRAIN[2]}" and summary["short"] == 3
    assert _audit(made, "clean")[0] == [] and not [*_broken(made, "clean")]


def test_a_text_makes_audits_out_of_date_and_a_set_makes_nothing_so(root: Path) -> None:
    def current() -> dict[str, bool]:
        audits = {name: is_current(build_of(root, LEAKS, name)) for name in set_names(root)}
        return audits | {
            f"text {key}": is_current(build_of(root, "reasoning/normalized", key))
            for key in ("gsm8k__train", "gsm8k__test")
        }

    assert set(current().values()) == {True}
    jsonl(root / "drops/evals/new/a.jsonl", [TRAIN[4]])
    assert [name for name, is_it in current().items() if not is_it] == ["new"]
    built(root, LEAKS, "new")
    assert [each["row"] for each in _audit(root, "new")[0]] == [5]
    shutil.copytree(root / "drops/reasoning/gsm8k", root / "drops/reasoning/wiqa")
    (root / "drops/reasoning/wiqa/test.jsonl").unlink()
    (root / "drops/reasoning/wiqa/corpus.toml").write_text(
        'schema = 1\nname = "wiqa"\nquestion = "question"\nanswer = "answer"\n'
        'licence = { id = "x", train = true }\n'
    )
    built(root, "reasoning/normalized", "wiqa__train")
    assert {name for name, is_it in current().items() if not is_it} == {*set_names(root)}
    reason = reason_to_build(build_of(root, LEAKS, "mine"))
    assert reason.startswith("config changed (texts ")
    built(root, LEAKS, "mine")
    places = [each["place"] for each in _audit(root, "mine")[0]]
    assert places == [f"reasoning/normalized {corpus}__train" for corpus in ("gsm8k", "wiqa")]
    (root / "drops/evals/mine/a.jsonl").write_text(f'"{TRAIN[3]}"\n')
    assert "input changed" in reason_to_build(build_of(root, LEAKS, "mine"))
    with pytest.raises(NothingToBuild, match="evals/none"):
        build_of(root, LEAKS, "none")


def test_splits_of_samples_are_no_sets(root: Path) -> None:
    drop = root / "drops/reasoning/gsm8k"
    (drop / SAMPLE).write_bytes(written_sums(sums_in(drop)))
    assert built_sets(root) == [] and set_names(root) == ["clean", "mine"]
    (drop / "train.jsonl").write_text('{"question": "Who?", "answer": "I"}\n')
    assert built_sets(root) == ["gsm8k__test"]


def test_a_folder_of_questions_has_an_account(tmp_path: Path) -> None:
    drop = tmp_path / "drops/evals/mine"
    jsonl(drop / "a.jsonl", ["Why?"])
    (drop / "b.txt").write_text("How?\n")
    (drop / "c.pdf").write_text("x")
    found = account(drop)
    assert found.taken == {"": ["a.jsonl", "b.txt"]} and [*found.left_out] == ["c.pdf"]
    (drop / "b.txt").write_bytes((drop / "a.jsonl").read_bytes())
    with pytest.raises(BadInput, match=r"b\.txt"):
        account(drop)
    for name in ("a.jsonl", "b.txt"):
        (drop / name).unlink()
    with pytest.raises(BadInput, match="holds no questions: put a list of texts into it"):
        account(drop)


def _broken(root: Path, name: str = "gsm8k__test") -> list[str]:
    return [each.law for each in leak_laws(Subject(root / LEAKS / name))]


def _row(number: int, **values: Any) -> Callable[[list[Any], dict[str, Any]], None]:
    return lambda rows, _: rows[number].update(values)


@pytest.mark.parametrize(
    ("change", "laws"),
    [
        (lambda rows, summary: None, []),
        (_row(1, share=0.5), ["order"]),
        (_row(2, share=0), ["order"]),
        (_row(0, changed=True), ["order"]),
        (lambda rows, summary: rows.pop(), ["counts"]),
        (lambda rows, summary: summary.update(listed=2), ["counts"]),
        (lambda rows, summary: summary.update(leaks=4), ["counts"]),
        (lambda rows, summary: summary["texts"][0].update(rows=2), ["counts"]),
        (lambda rows, summary: summary.pop("texts"), ["readable"]),
        (_row(0, share="x"), ["readable"]),
    ],
)
def test_what_breaks_a_law_is_found(root: Path, change: Any, laws: list[str]) -> None:
    rows, summary = _audit(root, "gsm8k__test")
    change(rows, summary)
    jsonl(root / LEAKS / "gsm8k__test" / leaks.ROWS, rows)
    (root / LEAKS / "gsm8k__test" / leaks.SUMMARY).write_text(json.dumps(summary))
    assert _broken(root) == laws


def test_altered_questions_are_behind_the_others(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jsonl(root / "drops/evals/mine/a.jsonl", [TRAIN[2], plants.renamed("Tom", 3)])
    train = [
        plants.renamed("Ann Lee", "1,234"),
        *TRAIN[:5],
        f"{plants.half(TRAIN[2])} {plants.renamed('Bob', 5)}",
    ]
    jsonl(root / "drops/reasoning/gsm8k/train.jsonl", _rows(train))
    built(root, "reasoning/normalized", "gsm8k__train")
    record = built(root, LEAKS, "mine")
    facts = ("rows", "leaks", "leaked", "changed")
    assert [record.counts[name] for name in facts] == [4, 2, 2, 2]
    rows, summary = _audit(root, "mine")
    found = [(each["row"], each["question_row"], each["changed"]) for each in rows]
    assert found == [(4, 1, False), (7, 1, False), (1, 2, True), (7, 2, True)]
    # A row that holds a whole question is counted as such.
    assert [(each["leaked"], each["changed"]) for each in summary["texts"]] == [(0, 0), (2, 1)]
    assert _broken(root, "mine") == []
    (picture,) = open_table(root / LEAKS / "mine").rows(2, 1)[0].pictures()
    assert picture.title.endswith("stand in the text, with other names or numbers")
    for most in (3, 1):
        monkeypatch.setattr(leaks, "MOST", most)
        shutil.rmtree(root / LEAKS / "mine")
        built(root, LEAKS, "mine")
        assert [each["row"] for each in _audit(root, "mine")[0]] == [4, 7, 1][:most]
        assert _broken(root, "mine") == []


def test_a_row_is_shown_as_both_texts_with_what_they_share(made: Path) -> None:
    table = open_table(made / LEAKS / "gsm8k__test")
    *_, row = table.rows(0, 3)
    (picture,) = row.pictures()
    assert picture.wide and picture.title == "100% of the question's own runs stand in the text"
    svg = ElementTree.fromstring(picture.svg)  # what the text holds is no element
    assert {each.tag.rpartition("}")[2] for each in svg.iter()} == {"svg", "rect", "text", "tspan"}
    spans = [*svg.iter("{http://www.w3.org/2000/svg}tspan")]
    marked = "".join(each.text or "" for each in spans if each.get("fill"))
    assert "".join(marked.split()) == "".join((TEST[7].rstrip("?") * 2).split())
    shown = "".join(each.text or "" for each in spans)
    assert "</text><script>alert(1)</script>" in "".join(shown.split()).replace("&amp;", "")[:40]
    assert "\x07" not in picture.svg and max(len(each.text or "") for each in spans) <= 46
    assert open_table(made / LEAKS / "clean").rows(0, 3) == []


def test_wide_characters_take_two_places(root: Path) -> None:
    jsonl(root / "drops/evals/han/a.jsonl", plants.chinese(4, 3, 200))
    jsonl(root / "drops/reasoning/gsm8k/train.jsonl", _rows(plants.chinese(4, 3, 200)))
    built(root, "reasoning/normalized", "gsm8k__train")
    built(root, LEAKS, "han")
    (picture,) = open_table(root / LEAKS / "han").rows(0, 1)[0].pictures()
    svg = ElementTree.fromstring(picture.svg)
    lines = [each for each in svg.iter("{http://www.w3.org/2000/svg}text") if len(each)]
    assert [len("".join(each.itertext())) for each in lines] == [*[23] * 8, 17] * 2


NORMALIZED, TRAIN_KEY = "reasoning/normalized", "gsm8k__train"
QUESTIONS, OTHERS = plants.prose(11, 6), plants.prose(12, 40)


def _drop(leaky: Path, *sets: str) -> None:
    (leaky / "gristmill.toml").write_text(f"[leaks]\ndrop = {json.dumps(sets)}\n")


def _said(leaky: Path, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, [*words, "--data-root", str(leaky)])
    return done.exit_code, done.stdout


def _listed(leaky: Path, key: str = TRAIN_KEY) -> list[tuple[str, int, str]]:
    path = leaky / names.NORMALIZED / names.rejected(key)
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [(each["reason"], each["row"], each["rule"]) for each in found]


def _rows_left(questions: list[str]) -> list[dict[str, str]]:
    return [{"question": each, "answer": f"<<{n}+1={n + 1}>>"} for n, each in enumerate(questions)]


@pytest.fixture
def leaky(tmp_path: Path) -> Path:
    """Leaks at the rows 4 and 9 of train, and at the end of it."""
    held = [*OTHERS[:3], QUESTIONS[1], *OTHERS[3:7], f"He asked: {QUESTIONS[4]} Well?"]
    jsonl(
        tmp_path / "drops/reasoning/gsm8k/train.jsonl",
        _rows_left([*held, *OTHERS[7:20], QUESTIONS[0]]),
    )
    jsonl(tmp_path / "drops/reasoning/gsm8k/test.jsonl", _rows_left(QUESTIONS))
    return tmp_path


def test_no_id_of_gsm8k_names_another_record_where_its_test_questions_are_left_out(
    tmp_path, vocabulary_root
):
    put_vocabulary(tmp_path, find(GPT2, vocabulary_root))
    drop, planted = tmp_path / "drops/reasoning/gsm8k", [7, 400, 401, 1003]
    rows = [json.loads(line) for line in (GSM8K / "train.jsonl").read_text().splitlines()[:1000]]
    test = [json.loads(line) for line in (GSM8K / "test.jsonl").read_text().splitlines()]
    for at in planted:
        rows.insert(at, {**test[at], "answer": rows[at - 1]["answer"]})
    jsonl(drop / "train.jsonl", rows)
    shutil.copyfile(GSM8K / "test.jsonl", drop / "test.jsonl")
    build(tmp_path)
    before = texts(tmp_path)
    _drop(tmp_path, "gsm8k__test")
    build(tmp_path)

    built(tmp_path, NORMALIZED, "gsm8k__test")
    status, said = _said(tmp_path, "leaks", TRAIN_KEY, "--against", "gsm8k__test")
    assert (status, said) == (0, "no question of gsm8k__test was found\n")
    listed = {row - 1: rule for reason, row, rule in _listed(tmp_path) if reason == "leak"}
    # Row 20 asks a question of the test with other numbers: docs/leaks.md#measured.
    assert [*listed] == [7, 21, 400, 401, 1003]
    whole = "holds a question of gsm8k__test: drops/reasoning/gsm8k/test.jsonl:{} (100%)"
    assert [listed[at] for at in planted] == [whole.format(at + 1) for at in planted]
    expected = {
        key: value for key, value in before.items() if int(key.rpartition("_")[2]) not in listed
    }
    assert texts(tmp_path) == expected and len(expected) == len(rows) - 5
    for number in (6, 8, 402, 1002):
        asked = raw_question(tmp_path, names.example_id("gsm8k", "train", number))
        assert asked == rows[number]["question"]
    assert verify(tmp_path) == []
    assert [each.violations or each.not_judged for each in rebuilt(artifacts(tmp_path))] == [""] * 6


def test_rows_that_stay_keep_their_numbers_and_nothing_else_is_made_again(leaky):
    plain = built(leaky, NORMALIZED, TRAIN_KEY)
    digest = build_of(leaky, NORMALIZED, TRAIN_KEY).recipe
    assert [item.path for item in plain.inputs] == ["drops/reasoning/gsm8k/train.jsonl"]
    mine = leaky / "drops/evals/mine/a.jsonl"
    jsonl(mine, _rows_left(OTHERS[5:6]))
    _drop(leaky)
    assert build_of(leaky, NORMALIZED, TRAIN_KEY).recipe == digest

    _drop(leaky, "gsm8k__test", "mine", "mine")
    record = built(leaky, NORMALIZED, TRAIN_KEY)
    assert record.counts["left_out_by/leak"] == 4 and record.counts["records"] == 19
    text = leaky / "reasoning/raw/gsm8k/train.jsonl"
    found = [json.loads(line)["question"] for line in text.read_text().splitlines()]
    assert found == [*OTHERS[:5], *OTHERS[6:20]]
    numbers = np.load(text.with_suffix(".numbers.npy")).tolist()
    assert numbers == [n for n in range(22) if n not in (3, 6, 8)]  # the last one leaves no gap
    assert [row for _, row, _ in _listed(leaky)] == [4, 7, 9, 23]
    assert verify(leaky) == []

    # Forgotten rows beside them change no other number, in whatever order both came.
    drop = leaky / "drops/reasoning/gsm8k"
    lake = DataRoot(leaky)
    with pytest.raises(GristmillError, match="leaves rows out of it: take it out of gristmill"):
        renumbered(lake, "gsm8k", drop, keeps=True)
    named = [("train.jsonl", 2), ("train.jsonl", 11)]
    add(drop, tombstones_of(lake, "gsm8k", named, "asked"), CORPORA["gsm8k"].splits)
    built(leaky, NORMALIZED, TRAIN_KEY)
    numbers = np.load(text.with_suffix(".numbers.npy")).tolist()
    assert numbers == [n for n in range(22) if n not in (1, 3, 6, 8, 10)]
    (drop / FORGOTTEN).unlink()
    assert built(leaky, NORMALIZED, TRAIN_KEY).data_version == record.data_version

    # A split that is a set, and any asset that takes no setting, know nothing of it.
    test = built(leaky, NORMALIZED, "gsm8k__test")
    assert (test.counts["records"], test.config["leaks"], len(test.inputs)) == (6, "", 1)
    jsonl(mine, _rows_left([OTHERS[5], OTHERS[0]]))
    assert not publish(build_of(leaky, NORMALIZED, "gsm8k__test")).rebuilt
    again = publish(build_of(leaky, NORMALIZED, TRAIN_KEY))
    assert again.rebuilt and again.record.counts["left_out_by/leak"] == 5
    assert not publish(build_of(leaky, NORMALIZED, TRAIN_KEY)).rebuilt
    recipe = 'schema = 1\nquestion = "question"\nanswer = "answer"\n'
    mine.with_name("corpus.toml").write_text(recipe)
    (why,) = build_of(leaky, NORMALIZED, TRAIN_KEY).changes(again.record)
    assert why.startswith("config changed (leaks")


def test_what_is_built_again_for_its_bytes_leaves_out_what_its_record_says(leaky):
    _drop(leaky, "gsm8k__test")
    built(leaky, NORMALIZED, TRAIN_KEY)
    (leaky / "gristmill.toml").unlink()
    assert [(each.violations, each.not_judged) for each in rebuilt(artifacts(leaky))] == [([], "")]


@pytest.mark.parametrize("workers", [1, 2])
def test_pieces_and_parts_leave_out_the_same_rows(tmp_path, monkeypatch, workers):
    recipe = 'schema = 1\nquestion = "question"\nanswer = "answer"\n'
    planted = [
        text for n, text in enumerate(OTHERS) for text in (text, QUESTIONS[n % 6])[: 1 + n % 2]
    ]
    made = []
    for name in ("whole", "parted"):
        leaky = tmp_path / name
        drop = leaky / "drops/reasoning/own"
        jsonl(drop / "train.jsonl", _rows_left(planted))
        jsonl(leaky / "drops/reasoning/gsm8k/test.jsonl", _rows_left(QUESTIONS))
        (drop / "corpus.toml").write_text(recipe + "part_bytes = 3000\n" * (name == "parted"))
        _drop(leaky, "gsm8k__test")
        if name == "parted":
            monkeypatch.setenv("GRISTMILL_PARTS_SECONDS", "0")
            monkeypatch.setattr(read_rows, "_PIECE_BYTES", 2000)
            monkeypatch.setattr(read_rows, "_LEAST_BYTES", 1)
            if workers == 1:  # it is killed once, and continues
                _killed(leaky, monkeypatch)
        built(leaky, NORMALIZED, "own__train", workers=workers)
        several = files(leaky / "reasoning/raw/own/train.jsonl")
        assert len(several) == (1 if name == "whole" else 4)
        joined = b"".join(path.read_bytes() for path in several)
        numbers = np.load(leaky / "reasoning/raw/own/train.numbers.npy").tolist()
        origins = (leaky / "reasoning/raw/origins/own__train.npy").read_bytes()
        made.append((joined, numbers, origins, _listed(leaky, "own__train")))
        assert verify(leaky) == []
    assert made[0] == made[1] and len(made[0][3]) == 20
    assert made[0][1] == [n for n, text in enumerate(planted) if text not in QUESTIONS]


def _killed(leaky: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, read_piece = [0], normalize._read_piece

    def killed(*given: Any) -> Any:
        made[0] += 1
        if made[0] == 3:
            raise KeyboardInterrupt
        return read_piece(*given)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(normalize, "_read_piece", killed)
        built(leaky, NORMALIZED, "own__train")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gsm8k__tets", r'\[leaks\] drop: no evaluation set is "gsm8k__tets": did you mean '
         r"gsm8k__test\?; the sets are gsm8k__test, mine: correct the name, or put the questions "
         r"into drops/evals/gsm8k__tets/"),
        ("../evals/mine", r'no evaluation set is "../evals/mine"'),
        ("wiqa__test", 'no evaluation set is "wiqa__test"'),
        ("gsm8k__validation", "the set cannot be read: .* has no file of the split validation"),
        ("mine", "mine: .*holds no question"),
    ],
)  # fmt: skip
def test_a_set_that_is_not_there_is_refused_in_words(leaky, name, said):
    (leaky / "drops/evals/mine").mkdir(parents=True)
    (leaky / "drops/evals/mine/a.txt").write_text("\n")
    _drop(leaky, name)
    with pytest.raises(GristmillError, match=said):
        built(leaky, NORMALIZED, TRAIN_KEY)
    built(leaky, NORMALIZED, "gsm8k__test")


def test_a_split_of_questions_alone_is_refused_and_a_damaged_set_named(leaky):
    test = leaky / "drops/reasoning/gsm8k/test.jsonl"
    shutil.copyfile(test, test.with_name("train.jsonl"))
    _drop(leaky, "gsm8k__test")
    with pytest.raises(BadInput, match=r"no record of the split is left \(6 leak\)"):
        built(leaky, NORMALIZED, TRAIN_KEY)
    test.write_text("{")
    with pytest.raises(BadInput, match=r"test.jsonl:1: "):
        built(leaky, NORMALIZED, TRAIN_KEY)


def test_conversations_of_train_are_left_out_and_those_of_validation_stay(leaky):
    drop = leaky / "drops/chat/talk"
    talks = [[f"tell {n}: {text}", "Yes,\nof course."] for n, text in enumerate(OTHERS)]
    talks[7][1] = QUESTIONS[2].replace(" ", "\n")
    talks[8][0] = f"As a friend asks: {QUESTIONS[3]} Can you say?"
    jsonl(drop / "train.jsonl", [{"m": _turns(each)} for each in talks])
    jsonl(drop / "validation.jsonl", [{"m": _turns(talks[8])}])
    (drop / "corpus.toml").write_text('schema = 1\nkind = "chat"\nmessages = "m"\n')
    plain = built(leaky, "chat/conversations", "talk__00")
    whole = pq.read_table(leaky / "chat/conversations/talk__00/shard_00.parquet").to_pylist()
    _drop(leaky, "gsm8k__test")
    record = built(leaky, "chat/conversations", "talk__00")
    assert record.counts["left_out_by/leak"] == 2
    assert record.counts["messages"] == plain.counts["messages"] - 4
    found = pq.read_table(leaky / "chat/conversations/talk__00/shard_00.parquet").to_pylist()
    assert found == [each for n, each in enumerate(whole) if n not in (7, 8)]
    said = (leaky / "chat/conversations/talk__00/rejected.jsonl").read_text()
    assert [json.loads(line)["row"] for line in said.splitlines()] == [8, 9]
    assert verify(leaky) == []
    assert [each.not_judged for each in rebuilt(artifacts(leaky / "chat"))] == [""]
    built(leaky, NORMALIZED, "gsm8k__test")
    assert _said(leaky, "leaks", "talk__00")[0] == 1  # validation holds one
    (drop / "validation.jsonl").unlink()
    built(leaky, "chat/conversations", "talk__00")
    assert _said(leaky, "leaks", "talk__00") == (0, "no question of gsm8k__test was found\n")


def _turns(said: list[str]) -> list[dict[str, str]]:
    return [
        {"role": role, "content": each}
        for role, each in zip(("user", "assistant"), said, strict=True)
    ]
