"""Columns of a corpus file that no row has. Source: `docs/formats/reasoning.md#corpus-files`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from gristmill.reasoning.format.corpora import ROLES, TEXTS, Corpus, Form, Value
from gristmill.reasoning.raw.forms.reader import named_columns
from gristmill.reasoning.raw.forms.values import Names, read_of
from gristmill.settings.fields import nearest, shown

_SHOWN: Final = 20


def absent(corpus: Corpus, taken: Collection[str], columns: Collection[str]) -> str:
    """The first column that a corpus names and no row has, with key, rule and cure; empty for none.

    taken: names of forms that rows took; what other forms name may be absent.

    Of `first` one column is enough, and a column that `keep` wants absent may be.
    """
    for key, value, parts in _named(corpus, taken):
        names = Names(parts)
        read_of(value, names)
        needed = named_columns(names)
        lacked = [name for name in needed if not {name, name.partition(".")[0]} & {*columns}]
        if lacked and (len(lacked) == len(needed) or "first" not in value):
            name = lacked[0]
            return f"{key}: no row has a column {shown(name)}{_cure(name, columns)}"
    return ""


def _cure(name: str, columns: Collection[str]) -> str:
    if (close := nearest(name, columns)) is not None:
        return f": did you mean {shown(close)}?"
    known = ", ".join(map(shown, sorted(columns)[:_SHOWN]))
    return f": name another one ({known}), or leave it out of a [[form]] for these rows"


def _named(
    corpus: Corpus, taken: Collection[str]
) -> Iterator[tuple[str, Value, Mapping[str, Value]]]:
    """The values of a corpus, each with its key and the parts that its templates may name."""
    for form in corpus.forms:
        if form.name in taken and form.python is None:
            where = f"form {form.name}: " if len(corpus.forms) > 1 else ""
            for key, value in _of_form(form).items():
                is_texts = corpus.is_text and key == "question"
                yield where + (TEXTS if is_texts else key), value, form.parts
    fields = (*ROLES, *corpus.extra_columns)
    for rule in corpus.keep:
        if rule.get("present") is not False:
            yield "keep", rule["column"], {}
    by = (corpus.split or {}).get("by")
    for key, name in (*(("dedup", each) for each in corpus.dedup), ("split", by)):
        if name is not None and name not in fields:
            yield key, name, {}
    if corpus.id is not None:
        yield "id", corpus.id, {}


def _of_form(form: Form) -> dict[str, Any]:
    found: dict[str, Any] = dict(form.values)
    if form.parse is not None:
        found["parse"] = form.parse["column"]
    return found
