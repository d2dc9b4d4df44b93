"""`corpus.toml`: what columns mean, and whether the rows have them.

Source: `docs/formats/reasoning.md#corpus-files`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from gristmill.contract import BadInput
from gristmill.corpora.corpus import (
    FORM_KEYS,
    LABEL,
    NAME,
    REPOSITORY,
    RESERVED,
    ROLES,
    SPLIT,
    TEXTS,
    Corpus,
    Form,
    Value,
    corpus_of_table,
)
from gristmill.corpora.raw.reader import columns_of, ignored_by, named_columns
from gristmill.corpora.raw.values import Names, read_of
from gristmill.corpora.records import KEYS, STEPS
from gristmill.settings.fields import did_you_mean, nearest, shown
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from gristmill.untrusted.toml import TOML_LIMITS, read_toml

_LIMITS: Final = replace(TOML_LIMITS, bytes=256 << 10)
_MOST_FORMS: Final = 32
_MOST_NAMES: Final = 100
_MOST_GLOB: Final = 500
_MOST_IGNORED: Final = 1000
_TEXT, _TEXTS, _TABLE = "a text", "a list of texts", "a table"
_WHOLE, _COUNT, _TRUTH = "a whole number", "a whole number from 1", "true or false"
KEYS_OF_ALL: Final[dict[str, str]] = {
    "schema": "1",
    "name": _TEXT,
    "notes": _TEXT,
    "licence": _TABLE,
    "source": _TABLE,
    "files": _TABLE,
    "leave": _TEXTS,
    "ignore": _TEXTS,
    "id": _TEXT,
    "split": _TABLE,
    "sample": _TABLE,
    "keep": "a list of tables",
    "dedup": _TEXTS,
    "quotes": _TRUTH,
}
"""Keys of recipes of all kinds, and what their values must be."""
_KEYS: Final[dict[str, str]] = {
    "extras": _TEXTS,
    "evidence": _TEXTS,
    "part_bytes": _COUNT,
    "steps": _TABLE,
    "headerless": _TABLE,
    "form": "a list of tables",
}
_INLINE: Final = ("when", "unless", "parts", "parse", "group", "python")
_TABLES: Final[Mapping[str, Mapping[str, str]]] = {
    "licence": {"id": _TEXT, "url": _TEXT, "share": _TRUTH, "train": _TRUTH, "read": _TRUTH},
    "source": {"repo": _TEXT, "subset": _TEXT, "revision": _TEXT, "paths": _TEXTS},
    "split": {"by": _TEXT, "seed": _WHOLE, "validation": "share", "test": "share"},
    "sample": {"share": "share", "cap": _COUNT, "seed": _WHOLE},
    "headerless": {"files": _TEXT, "columns": _TEXTS, "newline": _TEXT, "form": _TEXT},
    "parse": {"column": _TEXT, "pattern": _TEXT, "end": _TEXT},
    "group": {"by": _TEXT, "order": _TEXT},
}
_NEEDED: Final = {
    "headerless": ("files", "columns"),
    "parse": ("column", "pattern"),
    "group": ("by", "order"),
}
_EXAMPLES: Final = {
    "licence": '{ id = "MIT", train = true }',
    "source": '{ repo = "owner/name" }',
    "files": '{ train = "train*" }',
    "split": "{ validation = 0.01 }",
    "sample": "{ share = 0.1 }",
    "keep": '[{ column = "language", in = ["en"] }]',
    "quotes": "false",
    "steps": '{ "H:" = "Hypothesis" }',
    "headerless": '{ files = "*.csv", columns = ["question", "answer"] }',
}
_EXTRA: Final = "; name a key of your records in extras = [{}], too"
_SAID: Final = {"share": "a number from 0 to 1"}


def read_corpus_file(path: Path, name: str, links: LinkRule = REFUSE_LINKS) -> Corpus:
    """Read and check the file of a corpus."""
    raw = read_recipe(path, links)
    try:
        return checked(raw, name)
    except ValueError as error:
        raise BadInput(path, str(error)) from error


def checked(raw: Mapping[str, Any], name: str) -> Corpus:
    """The corpus of a table of JSON values, which has the name of its drop where it says none.

    Raises ValueError, naming the key, for a wrong one.
    """
    raw = {"name": name, **raw}
    _check(raw, name)
    corpus = corpus_of_table(raw)
    check_ignored(raw, columns_of(corpus), columns_by_key(corpus))
    return corpus


def check_ignored(raw: Mapping[str, Any], read: Collection[str], keys: Mapping[str, str]) -> None:
    """Raise ValueError for a column that a recipe both reads and ignores, or ignores twice.

    raw: its table. read: the columns that it reads. keys: these, with the key that reads each.
    """
    names = raw.get("ignore", [])
    if len({*names}) < len(names) or len(names) > _MOST_IGNORED:
        raise ValueError(f"ignore: must be up to {_MOST_IGNORED:,} names of columns, each once")
    if both := [name for name in names if name in read]:
        key = keys.get(both[0], "the form")
        raise ValueError(f"ignore: {shown(both[0])} is read, by {key}: leave it out of one of both")


def columns_by_key(corpus: Corpus) -> dict[str, str]:
    """The columns that a corpus reads, or looks for, each with the key of its file."""
    keys: dict[str, str] = {}
    for key, value, parts in _named(corpus, {form.name for form in corpus.forms}):
        names = Names(parts)
        read_of(value, names)
        if key != "ignore":
            keys = dict.fromkeys(names.columns, key) | keys
    return {name: keys.get(name, "form") for name in sorted(columns_of(corpus))}


def read_recipe(path: Path, links: LinkRule = REFUSE_LINKS) -> dict[str, Any]:
    """The table of a `corpus.toml`, whatever it says. Errors as `read_corpus_file`."""
    raw = read_toml(path, root=path.parent, links=links, limits=_LIMITS)
    try:
        json.dumps(raw, allow_nan=False)
    except (TypeError, ValueError) as error:
        rule = "has a value that is no text, number, truth value, list or table: write it as a text"
        raise BadInput(path, rule) from error
    return raw


def check_common(raw: Mapping[str, Any], name: str, kinds: Mapping[str, str]) -> None:
    """Check what recipes of all kinds have: name, splits, licence, and the rules for rows.

    raw: the file. name: of the drop. kinds: what the value of a key must be, as "a text".
    """
    for key, what in kinds.items():
        if key in raw and not _is(raw[key], what):
            example = f", as {key} = {_EXAMPLES[key]}" if key in _EXAMPLES else ""
            raise ValueError(f"{key} = {shown(raw[key])}: must be {what}{example}")
    if raw.get("schema") != 1:
        raise ValueError("schema = 1 is missing: it is the first line of the file")
    if raw["name"] != name:
        rule = f'must be "{name}", as the folder is named, or left out'
        raise ValueError(f"name = {shown(raw['name'])}: {rule}")
    if name in RESERVED:
        raise ValueError(f"{name} is a folder beside those of the corpora: choose another name")
    if NAME.fullmatch(name) is None:
        raise ValueError(f"name = {shown(name)}: has lower-case letters, digits and single _ alone")
    for key, keys in _TABLES.items():
        check_table(raw, key, keys)
    _check_names(raw, raw.get("extras", []))
    _check_rules(raw)


def _check(raw: Mapping[str, Any], name: str) -> None:
    extras = raw.get("extras", [])
    values = (TEXTS, *ROLES, *(extras if _is_texts(extras) else ()))
    forms = raw.get("form")
    if raw.get("kind") == "chat":
        raise ValueError('kind = "chat" is read from drops/chat/: move the folder there')
    keys = (*KEYS_OF_ALL, *_KEYS, *(() if forms else (*_INLINE, *values)))
    check_known(raw, keys, "", _EXTRA)
    _check_extras(extras, bool(forms))
    check_common(raw, name, KEYS_OF_ALL | _KEYS)
    for place, form in enumerate(forms if forms else [raw], 1):
        _check_form(form, values, f"form {place}: " if forms else "", bool(forms))
    for extra in extras:
        if not any(extra in form or "parse" in form or "python" in form for form in forms or [raw]):
            column = shown(extra)
            raise ValueError(f"extras: {column} has no value: write {extra} = {column}, its column")


def _check_extras(extras: object, has_forms: bool) -> None:
    """Raise ValueError for an extra with the name of another key of its table."""
    for extra in extras if isinstance(extras, list) else ():
        if extra in (*KEYS, STEPS, TEXTS, *FORM_KEYS):
            raise ValueError(f"extras: {shown(extra)} has a meaning of its own: name it otherwise")
        if extra in KEYS_OF_ALL | _KEYS and not has_forms:
            rule = "is a key of the file, too: put question, answer and the extras below [[form]]"
            raise ValueError(f"extras: {shown(extra)} {rule}")


def _check_names(raw: Mapping[str, Any], extras: Collection[str]) -> None:
    if len(set(extras)) < len(extras) or len(extras) > _MOST_NAMES:
        raise ValueError(f"extras: must be up to {_MOST_NAMES} names, each once")
    if unknown := [each for each in raw.get("evidence", ()) if each not in extras]:
        raise ValueError(f"evidence: {shown(unknown[0])} is none of `extras`")
    for split, globs in raw.get("files", {}).items():
        if SPLIT.fullmatch(split) is None:
            rule = "must be lower-case letters and digits, as train: the name that the split gets"
            raise ValueError(f"files.{split}: {rule}")
        if not (_is(globs, _TEXT) or _is_texts(globs)):
            raise ValueError(f'files.{split}: must be a glob as "train*", or a list of them')
    for key, globs in (
        *((f"files.{split}", globs) for split, globs in raw.get("files", {}).items()),
        ("leave", raw.get("leave", [])),
        ("source.paths", raw.get("source", {}).get("paths", [])),
        ("headerless.files", raw.get("headerless", {}).get("files", [])),
    ):
        if any(len(glob) > _MOST_GLOB for glob in ([globs] if isinstance(globs, str) else globs)):
            raise ValueError(f"{key}: a glob has at most {_MOST_GLOB} characters")
    repo = raw.get("source", {}).get("repo")
    if repo is not None and REPOSITORY.fullmatch(repo) is None:
        raise ValueError(f'source.repo = {shown(repo)}: must be owner/name, as "openai/gsm8k"')
    if "files" in raw and "split" in raw:
        raise ValueError("files names the splits already: leave `split` or `files` out")


def _check_rules(raw: Mapping[str, Any]) -> None:
    shares = raw.get("split", {})
    if sum(shares.get(each, 0) for each in ("validation", "test")) > 1:
        raise ValueError("split: validation and test are more than 1 together")
    if "sample" in raw and not {"share", "cap"} & {*raw["sample"]}:
        raise ValueError("sample: has neither share nor cap")
    for mark, label in raw.get("steps", {}).items():
        if not mark or not isinstance(label, str) or LABEL.fullmatch(label) is None:
            rule = "must be one capitalised word but Step, as Hypothesis: the label of its steps"
            raise ValueError(f"steps.{shown(mark)} = {shown(label)}: {rule}")


def _check_form(form: object, values: Collection[str], where: str, is_listed: bool) -> None:
    if not isinstance(form, dict) or len(values) > _MOST_NAMES:
        raise ValueError(f"{where}must be a table")
    if is_listed:
        check_known(form, (*FORM_KEYS, *(each for each in values if each != TEXTS)), where, _EXTRA)
    elif TEXTS in form and any(role in form for role in ROLES):
        raise ValueError("texts is the whole text of a record: leave question, answer and cot out")
    if not isinstance(form.get("parts", {}), dict):
        raise ValueError(f"{where}parts: must be a table")
    for key in ("when", "unless"):
        if key in form and not _is_texts(form[key]):
            raise ValueError(f"{where}{key}: must be {_TEXTS}")
    for key in ("parse", "group"):
        check_table(form, key, _TABLES[key])
    if (python := form.get("python")) is not None:
        if not _is(python, _TEXT):
            raise ValueError(f"{where}python = {shown(python)}: must be the name of a transform")
    elif "question" not in form and TEXTS not in form:
        raise ValueError(f'{where}question is missing: write question = "name of its column"')
    if "group" in form and not isinstance(form.get("cot"), str):
        raise ValueError(f"{where}cot is missing: a group has it as the column of its steps")


def check_table(raw: Mapping[str, Any], key: str, keys: Mapping[str, str]) -> None:
    """Raise ValueError where a table of a recipe has an unknown key, or another value.

    raw: that may have the table. keys: what each value must be, as in `check_common`.
    """
    table = raw.get(key)
    if table is None:
        return
    if not isinstance(table, dict):
        raise ValueError(f"{key}: must be {_TABLE}")
    check_known(table, keys, f"{key}: ")
    for name, what in keys.items():
        if name in table and not _is(table[name], what):
            said = _SAID.get(what, what)
            raise ValueError(f"{key}.{name} = {shown(table[name])}: must be {said}")
    if missing := [name for name in _NEEDED.get(key, ()) if name not in table]:
        raise ValueError(f"{key}: lacks {missing[0]}")


def check_known(
    table: Mapping[str, Any], keys: Collection[str], where: str, more: str = ""
) -> None:
    """Raise ValueError for a key of a table that is not one of `keys`."""
    for key in table:
        if key not in keys:
            hint = did_you_mean(key, keys)
            known = f"known: {', '.join(keys)}{more.format(shown(key))}"
            raise ValueError(f"{where}unknown key {shown(key)}{hint}; {known}")


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) and each for each in value)


def _is(value: object, what: str) -> bool:
    if what == _TEXT:
        return isinstance(value, str) and bool(value)
    if what == _TEXTS:
        return _is_texts(value)
    if what == _TRUTH:
        return isinstance(value, bool)
    if what == "share":
        return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
    if what == "a list of tables":
        return isinstance(value, list) and 0 < len(value) <= _MOST_FORMS
    if what == _TABLE:
        return isinstance(value, dict)
    return type(value) is int and (what == _WHOLE or value >= 1)


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
    for name in ignored_by(corpus):
        yield "ignore", name, {}


def _of_form(form: Form) -> dict[str, Any]:
    found: dict[str, Any] = dict(form.values)
    if form.parse is not None:
        found["parse"] = form.parse["column"]
    return found
