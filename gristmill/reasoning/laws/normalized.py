"""What must hold of normalised files. Source: `docs/formats/reasoning.md#normalised-files`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from gristmill.contract import BadInput, Violation, os_reason
from gristmill.corpora.corpus import Corpus, corpus_and_split
from gristmill.corpora.raw.texts import BETWEEN, flattened, is_reason
from gristmill.corpora.records import STEPS, LineWriter, Record, keys
from gristmill.laws import Few
from gristmill.reasoning.format import names
from gristmill.reasoning.format.origins import mapped
from gristmill.reasoning.format.published import splits_in

_REFUSED_KEYS: Final = {"reason", "file", "row", "rule"}


def normalized_laws(
    folder: Path,
    partition: str | None = None,
    has_origins: bool = True,
    table: str = "",
) -> Iterator[Violation]:
    """Yield what the normalised files of a folder break.

    Of each law and file the first 20 violations are yielded, and the number of the others.
    """
    found = splits_in(folder, "{split}.jsonl") if partition is None else [partition]
    for each in found:
        corpus, split = corpus_and_split(each, table)
        path = names.normalized(corpus.name, split)
        yield from _file_violations(folder, each, corpus, path, has_origins)


def _file_violations(
    folder: Path, partition: str, corpus: Corpus, path: str, has_origins: bool
) -> Iterator[Violation]:
    laws, offenders = _RecordLaws(corpus), Few(path, "{more:,} more of {count:,} rows")
    count = 0
    try:
        with (folder / path).open("rb") as file:
            for row, line in enumerate(file, 1):
                count += 1
                if (broken := laws.broken(line)) is not None:
                    law, found = broken
                    offenders.add(law, f"{path}:{row}", found)
    except OSError as error:
        yield Violation("readable", path, f"cannot be read: {os_reason(error)}")
        return
    yield from offenders.added()
    if has_origins:
        yield from _origin_violations(folder, names.origins(partition), count)
    yield from _refused_violations(folder, names.rejected(partition))


class _RecordLaws:
    """The laws of one record."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._keys = keys(corpus)
        self._all_keys = (*self._keys, STEPS)
        self._line = LineWriter(corpus).line

    def broken(self, line: bytes) -> tuple[str, str] | None:
        """The first law that a line breaks, and what is found; None for a line that is right."""
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            return "json", f"not JSON: {error}"
        if not isinstance(record, dict):
            return "json", "is no JSON object"
        found = tuple(record)
        if found not in (self._keys, self._all_keys):
            return "keys", f"has the keys {', '.join(found)}"
        question, answer, cot = record["question"], record["answer"], record["cot"]
        if (
            type(question) is not str
            or type(answer) is not str
            or not (cot is None or type(cot) is str)
        ):
            return "types", "question and answer must be texts, cot a text or null"
        if record["source_dataset"] != self._corpus.name:
            return "source", f"source_dataset is {record['source_dataset']!r}"
        return (
            self._broken_values(record)
            or self._broken_texts(question, answer, cot or "", record)
            or self._broken_form(line, record)
        )

    def _broken_values(self, record: Mapping[str, Any]) -> tuple[str, str] | None:
        for name in self._corpus.extra_columns:
            if isinstance(record[name], dict | list):
                return "types", f"{name} is a list or an object"
        steps = record.get(STEPS)
        if STEPS not in record:
            return None
        if (
            not isinstance(steps, list)
            or not steps
            or not all(isinstance(step, str) and step and step == step.strip() for step in steps)
        ):
            return "steps", "cot_steps must be a list of stripped texts"
        if BETWEEN.join(steps) != record["cot"]:
            return "steps", "cot is not the joined cot_steps"
        return None

    def _broken_texts(
        self, question: str, answer: str, cot: str, record: Mapping[str, Any]
    ) -> tuple[str, str] | None:
        for text in (question, answer, cot):
            if "\r" in text or text[:1] == "\ufeff":
                return "canonical", "a text has CR, or begins with a byte order mark"
        has_answer = bool(answer.strip()) or bool(cot.strip())
        if not question.strip():
            return ("question", "the question is empty") if has_answer else None
        if not has_answer:
            return None if self._corpus.is_text else ("answer", "neither answer nor cot is there")
        needed = self._corpus.evidence
        if needed and not any((flattened(record[name]) or "").strip() for name in needed):
            return "evidence", f"neither {' nor '.join(needed)} is there"
        return None

    def _broken_form(self, line: bytes, record: Mapping[str, Any]) -> tuple[str, str] | None:
        extras = tuple(record[name] for name in self._corpus.extra_columns)
        made = Record(
            record["question"], record["answer"], record["cot"], extras, record.get(STEPS)
        )
        # Numbers of more than 64 bits are floats here.
        if self._line(made) != line and json.dumps(json.loads(line), ensure_ascii=False) != (
            line.decode("utf-8").removesuffix("\n")
        ):
            return "form", "is not the line that json.dumps writes"
        return None if line.endswith(b"\n") else ("form", "the last line has no newline")


def _origin_violations(folder: Path, path: str, records: int) -> Iterator[Violation]:
    try:
        places = mapped(folder / path)
    except BadInput as error:
        yield Violation("origins", path, error.rule)
        return
    if len(places) != records:
        yield Violation("origins", path, f"{len(places)} origins of {records} records")
    elif records and (places[:, 0].min() < 0 or places[:, 1].min() < 1):
        yield Violation("origins", path, "a file below 0, or a row below 1")


def _refused_violations(folder: Path, path: str) -> Iterator[Violation]:
    if not (folder / path).exists():
        return
    with (folder / path).open("rb") as file:
        for row, line in enumerate(file, 1):
            try:
                # The name of a file need not be UTF-8.
                entry = json.loads(line)
            except (ValueError, RecursionError) as error:
                yield Violation("refused", f"{path}:{row}", f"not JSON: {error}")
                return
            if not isinstance(entry, dict) or set(entry) != _REFUSED_KEYS:
                yield Violation("refused", f"{path}:{row}", "is no refused record")
                return
            if not is_reason(entry["reason"]):
                yield Violation("refused", f"{path}:{row}", f"the reason {entry['reason']!r}")
                return
