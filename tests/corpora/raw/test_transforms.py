"""Templates that are filled in, and patterns that divide a text.

Transforms of installed distributions: found by name, held to the form of a record, recorded.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from gristmill.contract import BadInput
from gristmill.corpora.corpus import CORPORA
from gristmill.corpora.raw import drops
from gristmill.corpora.raw.texts import Unfit, text
from gristmill.corpora.raw.transforms import Pattern, filled, transform, versions
from gristmill.reasoning.builders.normalize import normalize
from gristmill.reasoning.config import CorpusConfig
from tests.paths import CHECKOUT


@pytest.mark.parametrize(
    ("stem", "expected"),
    [
        ("suppose a happens, how will it affect B c.", ("a", "B c")),
        ("suppose a happens, how will it affect b..", ("a", "b.")),
        ("Now suppose a\nb  happens, how will it affect c", ("a\nb", "c")),
        (
            "suppose x happens happens, how will it affect y happens, how will it affect z.",
            ("x happens", "y happens, how will it affect z"),
        ),
        ("suppose a happens", (None, None)),
        ("", (None, None)),
    ],
)
def test_a_pattern_divides_a_text(stem, expected):
    pattern = Pattern("suppose {one} happens, how will it affect {two}", ".")
    found = pattern.divided(stem)
    assert (found.get("one"), found.get("two")) == expected


@pytest.mark.parametrize("pattern", ["{a}{b}", "{a} {a}", "a", "{}"])
def test_a_pattern_that_cannot_divide_is_refused(pattern):
    with pytest.raises(ValueError, match=r"names|without a name"):
        Pattern(pattern)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{a}\n\n{b}", "x\n\ny"),
        ("{none}\n\n{b}", "y"),
        ("{a}\n\n{none}", "x"),
        ("{a} {none}\n{b}", "x \ny"),
        ("{{{a}}}", "{x}"),
        ("a\n\n{b}", "a\n\ny"),
    ],
)
def test_an_empty_column_takes_its_line_with_it(template, expected):
    fill = filled(template, lambda name: lambda row: text(row.get(name)))
    assert fill({"a": "x", "b": "y", "none": None}) == expected


PAGE = (CHECKOUT / "docs/formats/reasoning.md").read_text()
(EXAMPLE,) = re.findall(r"```python\n(from gristmill\.reasoning import Record.*?)```", PAGE, re.S)
ENTRY = "my_steps = "
NUMBERS = iter(range(100))


def install(
    folder: Path, monkeypatch: pytest.MonkeyPatch, source: str = EXAMPLE, version: str = "1.0"
) -> str:
    """Install a distribution with one module and the transform `my_steps`; the module's name."""
    module = f"planted_package_{next(NUMBERS)}"
    package = folder / f"{module}-site"
    info = package / f"{module}-{version}.dist-info"
    info.mkdir(parents=True)
    (package / f"{module}.py").write_text(source)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: {version}\n")
    points = f"[gristmill.transforms]\n{ENTRY}{module}:TRANSFORM\n"
    (info / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(package)
    return module


def drop(folder: Path, *rows: Any) -> Path:
    made = folder / "mine"
    made.mkdir()
    (made / "corpus.toml").write_text('schema = 1\nname = "mine"\npython = "my_steps"\n')
    (made / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return made


def returning(what: str) -> str:
    begin = "from gristmill.reasoning import Record, Transform\n"
    return (
        f"{begin}def read(row, form):\n    return {what}\nTRANSFORM = Transform(read, ('parts',))\n"
    )


def test_the_transform_of_the_page_reads_the_rows_of_a_drop(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch)
    folder = drop(
        tmp_path, {"parts": ["Why?", "first", "second", "So."], "other": 1}, {"parts": []}
    )
    corpus = drops.corpus_of(folder)
    config = CorpusConfig(corpus=corpus.table, bad_rows=1)
    summary = normalize(folder, tmp_path / "out", config, corpus="mine", split="train")
    assert (summary.records, summary.rejected_by) == (1, {"python": 1})
    assert json.loads((tmp_path / "out/mine/train.jsonl").read_bytes()) == {
        **{"question": "Why?", "answer": "So.", "cot": "first\nsecond", "source_dataset": "mine"},
        "cot_steps": ["first", "second"],
    }
    assert "it has no parts" in (tmp_path / "out/rejected/mine__train.jsonl").read_text()


@pytest.mark.parametrize(
    ("what", "rule"),
    [
        ("1 // 0", "fails: ZeroDivisionError"),
        ("row", "gives no record: it is a dict"),
        ("Record(1, 'a', None)", "question and answer must be texts"),
        ("Record('q', 'a', 1)", "cot must be a text or None"),
        ("Record('q', 'a', None, ('x',))", "a tuple of 0 values"),
        ("Record('q', 'a', None, (), 'steps')", "steps must be a list of texts"),
    ],
)
def test_what_a_transform_does_wrong_refuses_the_row(tmp_path, monkeypatch, what, rule):
    install(tmp_path, monkeypatch, returning(what))
    with pytest.raises(Unfit, match=re.escape(rule)):
        transform("my_steps", 0).read({"parts": []}, "own")


def test_an_extra_of_a_transform_is_a_value_that_json_has(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, returning("Record('q', 'a', None, (float('nan'),))"))
    with pytest.raises(Unfit, match="an extra must be"):
        transform("my_steps", 1).read({}, "own")


def test_a_transform_that_is_not_installed_or_broken_or_there_twice_is_named(tmp_path, monkeypatch):
    folder = drop(tmp_path, {"parts": []})
    with pytest.raises(BadInput, match=r"corpus\.toml: python = 'my_steps': no such .*known: trip"):
        drops.account(folder)
    module = install(tmp_path, monkeypatch, "TRANSFORM = 1\n")
    with pytest.raises(BadInput, match=f"{module}:TRANSFORM, .*is no Transform"):
        drops.account(folder)
    install(tmp_path, monkeypatch, "import nothing_like_it\n")
    with pytest.raises(BadInput, match=r"TRANSFORM and planted.* have this name"):
        drops.account(folder)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if module not in str(each)])
    with pytest.raises(BadInput, match="cannot be loaded: No module"):
        drops.account(folder)


def test_the_version_names_the_distribution_and_changes_with_its_sources(tmp_path, monkeypatch):
    assert versions(CORPORA["trip"]) == CORPORA["trip"].version
    module = install(tmp_path, monkeypatch, version="2.5")
    corpus = drops.corpus_of(drop(tmp_path, {}))
    before = versions(corpus)
    assert re.fullmatch(rf"1, my_steps of {module} 2\.5 [0-9a-f]{{64}}", before)
    (tmp_path / f"{module}-site/{module}.py").write_text(EXAMPLE + "\n")
    assert versions(corpus) != before
