"""The spans of arithmetic of one split. Source: `docs/formats/reasoning.md#spans`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import orjson

from gristmill.contract import BadInput, FileNote, Summary
from gristmill.corpora import records
from gristmill.corpora.split_file import files as files_of
from gristmill.corpora.split_file import lines, part_of
from gristmill.hashing import HashedFile
from gristmill.reasoning.builders.exports import (
    CALIBRATION,
    EVALUATION,
    calibration,
    write_controls,
)
from gristmill.reasoning.config import SpansConfig
from gristmill.reasoning.format import index, names
from gristmill.reasoning.format.index import Numbers
from gristmill.reasoning.render.annotations import (
    Annotation,
    annotations_of,
    facts,
    text_with_answer,
)
from gristmill.reasoning.render.regions import Projection, byte_offsets
from gristmill.run.parts import SHA256, PartStore, run_parts
from gristmill.run.progress import SILENT, Progress
from gristmill.vocabularies.tokenizer import Tokenizer

_BATCH: Final = 256
_READ_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class SpansSummary(Summary):
    """What was found."""

    annotations: int
    traces: int
    records: int
    calibration: int
    skipped_by: Mapping[str, int]
    controls: int


class _Example(NamedTuple):
    """A record with annotations. head: the first values of its rows."""

    head: dict[str, Any]
    text: str
    found: list[Annotation]


@dataclass(frozen=True)
class _Task:
    """A file of a split whose rows are made.

    first: number of its first record in the split. several: whether the split is of several raw
    files. chosen: the traces that calibrate.
    """

    normalized: Path
    partition: str
    path: Path
    first: int
    several: bool
    config: SpansConfig
    tokenizer: Tokenizer
    chosen: frozenset[str] = frozenset()

    def examples(self) -> Iterator[_Example]:
        """Yield the records with annotations."""
        corpus, split = self.partition.split("__")
        places = index.mapped(self.normalized / names.origins(self.partition))
        numbers = Numbers(self.normalized / names.normalized(corpus, split))
        for number, record in records.records(self.path):
            place = self.first + number
            text = text_with_answer(record)
            if not (found := list(annotations_of(text))):
                continue
            if place >= len(places):
                raise BadInput(self.path, "has more records than origins: build it again")
            file, row = places[place].tolist()
            inside = f"{file}_" if self.several else ""
            head = {
                "trace_id": f"{corpus}_{split}_{inside}{row - 1:05d}",
                "example_id": names.example_id(corpus, split, numbers.of(place)),
                "example_idx": row - 1,
                "raw_file": file,
            }
            yield _Example(head, text, found)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows."""
        examples = self.examples()
        while batch := list(islice(examples, _BATCH)):
            texts = [each.text for each in batch]
            encoded = [np.frombuffer(ids, "<i4") for ids in self.tokenizer.encode(texts).ids]
            sizes = [len(ids) for ids in encoded]
            made = Projection(texts, np.concatenate(encoded), sizes, self.tokenizer.token_lengths)
            for at, each in enumerate(batch):
                part = CALIBRATION if each.head["trace_id"] in self.chosen else EVALUATION
                yield from _rows(each, made, at, encoded[at], self.config, part)


def _find_traces(task: _Task, path: Path) -> dict[str, Any]:
    path.touch()
    return {"traces": [each.head["trace_id"] for each in task.examples()]}


def _make_part(task: _Task, path: Path) -> dict[str, Any]:
    """Write the rows of a file; returns how many are skipped, by the reason."""
    counts = Counter[str]()
    with HashedFile(path) as file:
        for row in task.rows():
            file.write(orjson.dumps(row) + b"\n")
            counts[row["skipped"]] += 1
    return {"counts": counts, SHA256: file.sha256}


def _copied(part: Path, target: Path, rows: int) -> FileNote:
    target.parent.mkdir(exist_ok=True)
    with HashedFile(target) as file, part.open("rb") as source:
        while data := source.read(_READ_BYTES):
            file.write(data)
    return FileNote(rows=rows, sha256=file.sha256, bytes=file.bytes)


def write_spans(
    normalized: Path,
    partition: str,
    out: Path,
    config: SpansConfig,
    tokenizer: Tokenizer,
    parts: PartStore | None = None,
    progress: Progress = SILENT,
) -> SpansSummary:
    """Write `<corpus>/<split>.spans.jsonl`, a row for each annotation, and control pairs if asked.

    Of a split in parts the rows of each are a part of their own.

    normalized: the folder of the normalised files. partition: key of the split.
    out: folder to write, which must not exist. tokenizer: whose tokens the spans name.
    parts: store of finished parts; default: none. progress: gets the stage `spans`, in rows.

    Memory grows with the ids of records that have an annotation, and with the rows of the traces
    that get control pairs. Raises BadInput for a tokenizer whose tokens are not the bytes of the
    text, and for damage.
    """
    if tokenizer.no_offsets:
        rule = f"has no places of tokens in a text ({tokenizer.no_offsets})"
        raise BadInput(tokenizer.path, f"{rule}: name another tokenizer in [reasoning.spans]")
    corpus, split = partition.split("__")
    path = out / names.spans(corpus, split)
    path.parent.mkdir(parents=True)
    tasks = list(_tasks(normalized, partition, config, tokenizer))
    run = partial(run_parts, store=parts, workers=config.workers, scratch=out)
    found = run(_find_traces, [(f"traces_{each.first:09d}", each) for each in tasks])
    traces = [summary["traces"] for _, _, summary in found]
    chosen = calibration([*chain.from_iterable(traces)], config)
    tasks = [
        replace(task, chosen=frozenset(chosen.intersection(own)))
        for task, own in zip(tasks, traces, strict=True)
    ]
    counts, files = Counter[str](), dict[str, FileNote]()
    made = run(_make_part, [(f"rows_{each.first:09d}", each) for each in tasks])
    with progress.stage("spans", "rows") as stage, closing(made):
        for number, (_, part, summary) in enumerate(made):
            target = part_of(path, number) if len(tasks) > 1 else path
            note = _copied(part, target, sum(summary["counts"].values()))
            files[target.relative_to(out).as_posix()] = note
            counts.update(summary["counts"])
            stage.advance(note.rows or 0)
    total = counts.total()
    if config.control_traces:
        name = names.controls(corpus, split)
        files[name] = write_controls(out / name, path, split, config)
    del counts[""]
    return SpansSummary(
        files=files,
        annotations=total,
        traces=len({*chain.from_iterable(traces)}),
        records=len(index.mapped(normalized / names.origins(partition))),
        calibration=len(chosen),
        skipped_by=dict(sorted(counts.items())),
        controls=sum(each.rows or 0 for each in files.values()) - total,
    )


def _tasks(
    normalized: Path, partition: str, config: SpansConfig, tokenizer: Tokenizer
) -> Iterator[_Task]:
    jsonl = normalized / names.normalized(*partition.split("__"))
    places, first = index.mapped(normalized / names.origins(partition)), 0
    several = bool(len(places)) and int(places[:, 0].max()) > 0
    for path in files_of(jsonl):
        yield _Task(normalized, partition, path, first, several, config, tokenizer)
        with path.open("rb") as file:
            first += sum(not line.isspace() for line in file)
    Numbers(jsonl).check(first)


def has_annotations(normalized: Path, partition: str) -> bool:
    """Whether a split has an annotation; arguments as of `write_spans`."""
    path = normalized / names.normalized(*partition.split("__"))
    return any(
        b"<<" in line and any(annotations_of(text_with_answer(records.parse(line, file, number))))
        for file, number, line in lines(path)
    )


def _rows(
    each: _Example, made: Projection, at: int, ids: Any, config: SpansConfig, part: str
) -> Iterator[dict[str, Any]]:
    offsets = byte_offsets(each.text)
    for number, found in enumerate(each.found):
        characters = _named(found)
        ranges = [pair for pairs in characters.values() for pair in pairs]
        places = np.array(ranges, np.int64).reshape(-1, 2)
        octets = places if offsets is None else offsets[places]
        some = places[:, 0] < places[:, 1]
        tokens = np.zeros_like(places)
        which = np.full(int(some.sum()), at, np.int64)
        tokens[some] = made.tokens(which, places[some, 0], places[some, 1])
        of_tokens = _shaped(characters, tokens.tolist())
        begin, end = of_tokens["result"]
        yield {
            **each.head,
            "ann_idx": number,
            **facts(each.text, found),
            "characters": _shaped(characters, places.tolist()),
            "bytes": _shaped(characters, octets.tolist()),
            "tokens": of_tokens,
            "result_token_count": end - begin,
            "result_token_id": int(ids[begin]),
            "skipped": _skipped(begin, end, config.most_tokens),
            "part": part,
        }


def _named(found: Annotation) -> dict[str, list[tuple[int, int]]]:
    """The ranges of an annotation by their names; several of operands and operators."""
    return {
        "whole": [found.whole],
        "expression": [found.expression],
        "result": [found.result],
        "inner_eq": [found.inner],
        "outer_eq": [found.outer] if found.outer else [],
        "operands": [*found.operands],
        "operators": [*found.operators],
    }


def _shaped(named: Mapping[str, Sequence[Any]], ranges: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Ranges by the names of `named`: one, None, or a list of several."""
    left = iter(ranges)
    taken = {name: list(islice(left, len(pairs))) for name, pairs in named.items()}
    return {
        name: pairs if name in ("operands", "operators") else next(iter(pairs), None)
        for name, pairs in taken.items()
    }


def _skipped(begin: int, end: int, most: int) -> str:
    """Why RL-Decoder skips an annotation, by the tokens of its result; empty where it does not."""
    seen = min(end, most) - begin
    return "token_alignment" if seen < 1 else "multi_token_result" if seen > 1 else ""
