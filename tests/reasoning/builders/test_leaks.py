"""Audits of evaluation sets: their files, what makes them out of date, laws, and their picture."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from gristmill.browse.opening import open_table
from gristmill.contract import BadInput, NothingToBuild
from gristmill.families import Subject
from gristmill.inbox.marks import SAMPLE, sums_in, written_sums
from gristmill.leaks.texts import account, built_sets, set_names
from gristmill.publish.publish import is_current, reason_to_build
from gristmill.reasoning.format import leaks
from gristmill.reasoning.laws.quality import leak_laws
from tests.json_lines import jsonl
from tests.leaks import plants
from tests.reasoning.published_root import build_of, built

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
