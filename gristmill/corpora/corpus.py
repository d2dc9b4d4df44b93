"""What a corpus is: names, splits, terms, forms of its rows; the seven that are built in.

A corpus is a file `corpus.toml`: those of the package are beside this module; `raw/corpus_file.py`
checks that of a drop. Source: `docs/formats/reasoning.md#corpora`.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

Value = str | Mapping[str, Any]
"""Where a text comes from: the name of a column, or a table as `{ column = "a", map = {..} }`."""


@dataclass(frozen=True)
class Licence:
    """The terms of a corpus.

    redistributable, training_allowed: what the terms allow; None where they are unknown.
    """

    id: str
    url: str
    redistributable: bool | None
    training_allowed: bool | None
    confirmed: bool


@dataclass(frozen=True)
class Form:
    """One form of a corpus' rows.

    when: columns that a row of this form has, null or not; unless: columns that it does not have.
    values: where question, answer, cot and extras come from; an extra without a value is null.
    parse: `column`, `pattern` and `end` of a text that holds several extras.
    group: `by` and `order` of a form whose rows are steps of a record.
    python: name of a transform of the package that reads the row instead.
    """

    name: str
    when: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    values: Mapping[str, Value] = field(default_factory=dict)
    parts: Mapping[str, Value] = field(default_factory=dict)
    parse: Mapping[str, str] | None = None
    group: Mapping[str, str] | None = None
    python: str | None = None

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(self.when)})"


@dataclass(frozen=True)
class Corpus:
    """One corpus: its nine keys of the raw manifest, and what else its file says.

    hf_path, subset: where the seed takes it from; of a drop's own corpus, the repository.
    splits: in the order of the manifest; of a drop's own corpus those that its file names.
    question_column, answer_column, cot_column: of the last form, which is the seed's.
    public_path, public_subset: the public release, None where there is none.
    revision: branch, tag or commit of it. paths: globs of its files; none for all.
    quotes: whether cells of its tables are in quotes; None: they may be, and a cell that holds
        rows is refused.
    part_bytes: the least size of a part of a split; None: a split is one file.
    version: of what a built-in corpus makes of its rows; raised when that changes.
    table: the file as JSON, in a form that comments do not change; empty if it is built in.
    """

    name: str
    hf_path: str
    subset: str | None
    splits: tuple[str, ...]
    question_column: str
    answer_column: str
    cot_column: str | None
    extra_columns: tuple[str, ...]
    notes: str
    public_path: str | None
    public_subset: str | None
    licence: Licence
    revision: str = "main"
    paths: tuple[str, ...] = ()
    version: str = "1"
    is_text: bool = False
    forms: tuple[Form, ...] = ()
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    leave: tuple[str, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    apart: Mapping[str, str] | None = None
    headerless: Mapping[str, Any] | None = None
    quotes: bool | None = None
    evidence: tuple[str, ...] = ()
    keep: tuple[Mapping[str, Any], ...] = ()
    dedup: tuple[str, ...] = ()
    sample: Mapping[str, Any] | None = None
    split: Mapping[str, Any] | None = None
    id: str | None = None
    part_bytes: int | None = None
    steps: Mapping[str, Any] | None = None
    table: str = ""

    @property
    def is_built_in(self) -> bool:
        """Whether its file is the package's."""
        return not self.table


FORM_KEYS: Final = ("name", "when", "unless", "parts", "parse", "group", "python")
"""Keys of a form that are no values."""
ROLES: Final = ("question", "answer", "cot")
TEXTS: Final = "texts"
"""Value of a form of plain text."""


def corpus_of_table(raw: Mapping[str, Any], *, is_built_in: bool = False) -> Corpus:
    """The corpus of a file that was checked. raw: its table."""
    source, terms = raw.get("source", {}), raw.get("licence", {})
    forms = tuple(_form(each) for each in raw.get("form") or [raw])
    extras = tuple(raw.get("extras", ()))
    last = forms[-1].values
    files = {name: _listed(globs) for name, globs in raw.get("files", {}).items()}
    return Corpus(
        name=raw["name"],
        hf_path=source.get("seed", source.get("repo", "")),
        subset=source.get("seed_subset", None if is_built_in else source.get("subset")),
        splits=tuple(raw["splits"]) if is_built_in else _splits(raw, files),
        question_column=_column(last.get("question")) or "",
        answer_column=_column(last.get("answer")) or "",
        cot_column=_column(last.get("cot")),
        extra_columns=extras,
        notes=raw.get("notes", ""),
        public_path=source.get("repo"),
        public_subset=source.get("subset"),
        revision=source.get("revision", "main"),
        paths=tuple(source.get("paths", ())),
        licence=Licence(
            terms.get("id", "unknown"),
            terms.get("url", ""),
            terms.get("share"),
            terms.get("train"),
            terms.get("read", False),
        ),
        version=raw.get("version", "1"),
        is_text=TEXTS in raw,
        forms=forms,
        files=files,
        leave=tuple(raw.get("leave", ())),
        words=raw.get("words", {}),
        apart=raw.get("apart"),
        headerless=raw.get("headerless"),
        quotes=raw.get("quotes"),
        evidence=tuple(raw.get("evidence", ())),
        keep=tuple(raw.get("keep", ())),
        dedup=tuple(raw.get("dedup", ())),
        sample=raw.get("sample"),
        split=raw.get("split"),
        id=raw.get("id"),
        part_bytes=raw.get("part_bytes"),
        steps=raw.get("steps"),
        table="" if is_built_in else json.dumps(raw, sort_keys=True, separators=(",", ":")),
    )


def _form(raw: Mapping[str, Any]) -> Form:
    names = (*ROLES, *raw.get("extras", ())) if "form" not in raw and "schema" in raw else None
    values = {
        name: value
        for name, value in raw.items()
        if (name in names if names else name not in FORM_KEYS)
    }
    if TEXTS in raw:
        texts = raw[TEXTS]
        values["question"] = {"template": texts} if isinstance(texts, str) else texts
    is_inline = names is not None
    return Form(
        "own" if is_inline else raw.get("name", "own"),
        tuple(raw.get("when", ())),
        tuple(raw.get("unless", ())),
        values,
        raw.get("parts", {}),
        raw.get("parse"),
        raw.get("group"),
        raw.get("python"),
    )


def _listed(globs: str | list[str]) -> tuple[str, ...]:
    return (globs,) if isinstance(globs, str) else tuple(globs)


def _splits(raw: Mapping[str, Any], files: Mapping[str, object]) -> tuple[str, ...]:
    """The splits of a drop's own corpus: of its globs, of its rule, else those of file names."""
    if files:
        return tuple(files)
    if "split" in raw:
        shares = [name for name in ("validation", "test") if name in raw["split"]]
        return ("train", *shares)
    return ("train", "validation", "test")


def _column(value: Value | None) -> str | None:
    """What the manifest says of a value: its column, else the table that makes it."""
    return value if value is None or isinstance(value, str) else json.dumps(value, sort_keys=True)


def _built_in() -> dict[str, Corpus]:
    folder = Path(__file__).parent.parent / "corpora"
    tables = [tomllib.loads((folder / f"{name}.toml").read_text("utf-8")) for name in _NAMES]
    return {raw["name"]: corpus_of_table(raw, is_built_in=True) for raw in tables}


_NAMES: Final = (
    *("gsm8k", "cot_collection", "openr1_math_220k", "reasoning_traces"),
    *("reveal", "trip", "wiqa"),
)
CORPORA: Final[Mapping[str, Corpus]] = _built_in()
"""The built-in corpora by name, in the order of the seed."""

PARTITIONS: Final = tuple(
    f"{each.name}__{split}" for each in CORPORA.values() for split in each.splits
)
"""Keys of their partitions: `<corpus>__<split>`."""

_NAME, _SPLIT = r"[a-z0-9](?:_?[a-z0-9]){0,39}", "[a-z0-9]{1,40}"
NAME: Final = re.compile(_NAME)
"""The name of a corpus: lower case, digits, and single `_` inside."""
RESERVED: Final = ("audits", "origins", "rejected", "provenance")
"""Folders beside those of the corpora."""
SPLIT: Final = re.compile(_SPLIT)
"""The name of a split: without `_`, so that the id of an example says which part is the split."""
REPOSITORY: Final = re.compile(r"[\w.-]+/[\w.-]+")
"""A repository of a hub: owner and name."""
LABEL: Final = re.compile("(?!Step$)[A-Z][A-Za-z]{0,39}")
"""The label of a step that a corpus file names."""
_KEY: Final = re.compile(f"{_NAME}__{_SPLIT}")


def is_key(partition: str) -> bool:
    """Whether a text is the key of a split of a corpus."""
    return _KEY.fullmatch(partition) is not None


def corpus_and_split(partition: str, table: str = "") -> tuple[Corpus, str]:
    """Return the corpus and the split of a partition.

    table: the file of the corpus as its record has it, `Corpus.table`; default: it is built in, or
        nothing but its name matters.

    Raises ValueError for a text that is no key.
    """
    if not is_key(partition):
        raise ValueError(
            f"{partition!r} is no <corpus>__<split>: the built-in ones are {', '.join(PARTITIONS)}"
        )
    name, split = partition.split("__")
    if table:
        return corpus_of_table(json.loads(table)), split
    known = CORPORA.get(name)
    return known or corpus_of_table({"name": name, "files": {split: "*"}}), split


def ordered(partitions: set[str]) -> list[str]:
    """Keys in the order of the seed; others behind them, sorted."""
    return [*(key for key in PARTITIONS if key in partitions), *sorted(partitions - {*PARTITIONS})]
