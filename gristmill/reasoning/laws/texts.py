"""Laws of normalised files and their manifest, and of conversations.

Source: `docs/formats/reasoning.md#normalised-files`, `docs/formats/reasoning.md#raw-manifest`,
`docs/formats/chat.md#conversations`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict
from functools import partial
from hashlib import blake2b
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Any, Final

import orjson

from gristmill.contract import BadInput, Violation, os_reason
from gristmill.corpora.corpus import CORPORA, Corpus, corpus_and_split
from gristmill.corpora.raw.chat.recipe import KEPT
from gristmill.corpora.raw.texts import BETWEEN, flattened, is_reason
from gristmill.corpora.records import STEPS, LineWriter, Record, keys, records
from gristmill.corpora.split_file import Range, files, is_there, located, ranges, workers_for
from gristmill.families import Subject
from gristmill.laws import MOST, Few
from gristmill.provenance import SHARED_RECORDS, read_record
from gristmill.provenance import Record as BuildRecord
from gristmill.reasoning.builders.manifest import MORE_KEYS, NINE_KEYS, file_entry, nine
from gristmill.reasoning.format import names
from gristmill.reasoning.format import reports as form
from gristmill.reasoning.format.index import Numbers, mapped, numbers_path
from gristmill.reasoning.format.published import splits_in
from gristmill.reasoning.laws.quality import nothing
from gristmill.run.workers import ordered_map

_RANGE_BYTES: Final = 16 << 20
_BYTES_ALONE: Final = 1 << 28
_REFUSED_KEYS: Final = {"reason", "file", "row", "rule"}


def normalized_laws(
    folder: Path,
    partition: str | None = None,
    has_origins: bool = True,
    table: str = "",
    workers: int = 1,
) -> Iterator[Violation]:
    """Yield what the normalised files of a folder break.

    Of each law and file the first 20 violations are yielded, and the number of the others.

    workers: processes that read a split of more than 256 MiB; default: this one.
    """
    found = splits_in(folder, "{split}.jsonl") if partition is None else [partition]
    for each in found:
        corpus, split = corpus_and_split(each, table)
        path = names.normalized(corpus.name, split)
        yield from _file_violations(folder, each, corpus, path, has_origins, workers)


def ids_again(record: BuildRecord, _: Path) -> Iterator[Violation]:
    """Yield the ids that come again, as the record of a normalised split counts them."""
    for name, count in record.counts.items():
        if (first := name.partition("/")[2]) and name.startswith("ids_again/"):
            found = f"{first} have one id and other contents; so has each of {count:,} records"
            yield Violation("ids", record.partition or "", found)


def questions_again(record: BuildRecord, folder: Path) -> Iterator[Violation]:
    """Yield the questions that an earlier split of the corpus has, too.

    record: of a normalised split. folder: of all of them. One is named, with both places and how
    many there are. Memory: 16 bytes a record of the two splits.
    """
    corpus, split = corpus_and_split(record.partition or "", record.config.get("corpus") or "")
    path, order = names.normalized(corpus.name, split), corpus.splits
    own: Any = None
    for other in order[: order.index(split)] if split in order else ():
        before = names.normalized(corpus.name, other)
        if not is_there(folder / before):
            continue
        own = _questions(folder / path) if own is None else own
        if (same := _same(own, _questions(folder / before))) is not None:
            count, here, there = same
            places = located(folder / path, here), located(folder / before, there)
            first, theirs = (f"{each.relative_to(folder).as_posix()}:{n}" for each, n in places)
            found = f"asks what {theirs} asks; {count:,} of {len(own):,} records do so"
            yield Violation("questions", first, found)


def _questions(path: Path) -> Any:
    """A hash of 8 bytes of each record's question, 0 of one without a text, as an array."""
    import numpy as np

    def hashes() -> Iterator[int]:
        for _, record in records(path):
            said = record["question"].strip().encode()
            yield int.from_bytes(blake2b(said, digest_size=8).digest(), "big") if said else 0

    return np.fromiter(hashes(), np.uint64)


def _same(own: Any, others: Any) -> tuple[int, int, int] | None:
    """How many questions are also others, and the numbers of the first one's records, from 1."""
    import numpy as np

    is_same = np.isin(own, others) & (own != 0)
    if not is_same.any():
        return None
    first = int(np.argmax(is_same))
    return int(is_same.sum()), first + 1, int(np.argmax(others == own[first])) + 1


def _file_violations(
    folder: Path, partition: str, corpus: Corpus, path: str, has_origins: bool, workers: int
) -> Iterator[Violation]:
    count, found = 0, list[Violation]()
    try:
        several = files(folder / path)
        tasks = [each for file in several for each in ranges(file, _RANGE_BYTES)]
        processes = workers_for(tasks, workers, _BYTES_ALONE)
        with closing(ordered_map(partial(_broken_in, corpus), tasks, processes)) as results:
            for file, pairs in groupby(zip(tasks, results, strict=True), lambda each: each[0].path):
                where, before = file.relative_to(folder).as_posix(), 0
                offenders = Few(where, "{more:,} more of {count:,} rows")
                for _, (rows, broken) in pairs:
                    for law, (number, named) in broken.items():
                        places = ((f"{where}:{before + row}", text) for row, text in named)
                        offenders.add_all(law, number, places)
                    before += rows
                count += before
                found += offenders.added()
    except BadInput as error:
        yield Violation("readable", Path(error.file).relative_to(folder).as_posix(), error.rule)
        return
    except OSError as error:
        yield Violation("readable", path, f"cannot be read: {os_reason(error)}")
        return
    yield from found
    if has_origins:
        yield from _origin_violations(folder, names.origins(partition), count)
    if (numbers := numbers_path(folder / path)).exists():
        yield from _number_violations(folder / path, f"{corpus.name}/{numbers.name}", count)
    yield from _refused_violations(folder, names.rejected(partition))


def _broken_in(
    corpus: Corpus, task: Range
) -> tuple[int, dict[str, tuple[int, list[tuple[int, str]]]]]:
    """The number of lines in a range; by law how many break it, and the first of them."""
    laws, row = _RecordLaws(corpus), 0
    broken: dict[str, tuple[int, list[tuple[int, str]]]] = {}
    for row, line in enumerate(task.lines(), 1):
        if (one := laws.broken(line)) is not None:
            count, named = broken.get(one[0], (0, []))
            if count < MOST:
                named.append((row, one[1]))
            broken[one[0]] = count + 1, named
    return row, broken


class _RecordLaws:
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


def _number_violations(jsonl: Path, path: str, records: int) -> Iterator[Violation]:
    try:
        numbers = Numbers(jsonl)
        numbers.check(records)
    except BadInput as error:
        yield Violation("numbers", path, error.rule)
        return
    found = numbers.between(0, records).tolist()
    if sorted({*found, -1}) != [-1, *found]:
        yield Violation("numbers", path, "do not ascend from 0")
    elif not found or found[-1] == records - 1:
        yield Violation("numbers", path, "have no gap, so that the file must not be there")


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


_FILE_KEYS: Final = ("path", "sha256", "bytes", "records", "rejected")
_FOLDER: Final = PurePosixPath(names.NORMALIZED).name


def raw_manifest_laws(
    folder: Path, records: Mapping[str, str] | None = None
) -> Iterator[Violation]:
    """Yield what a raw manifest breaks.

    records: digests of the records that it was written from, by partition; default: not known.
    """
    path = folder / names.MANIFEST
    try:
        text = path.read_bytes().decode("utf-8")
        manifest = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        yield Violation("readable", names.MANIFEST, f"cannot be read: {error}")
        return
    if not isinstance(manifest, dict):
        yield Violation("readable", names.MANIFEST, "is no JSON object")
        return
    if text != json.dumps(manifest, indent=2, ensure_ascii=False):
        yield Violation("form", names.MANIFEST, "is not JSON with indent 2 and no final newline")
    for name, entry in manifest.items():
        own = _recorded(folder, name)
        has_recipe = any(record.config.get("corpus") for record in own)
        yield from _entry_violations(name, entry, name in CORPORA and not has_recipe)
        for record in own:
            # The record of a split that was built since is not what the manifest is made from.
            if (records or {}).get(str(record.partition)) == record.digest:
                yield from _as_recorded(entry, record)


def _recorded(folder: Path, name: str) -> list[BuildRecord]:
    places = [folder, *(each / _FOLDER for each in folder.absolute().parents)]
    place = next((each for each in places if (each / SHARED_RECORDS).is_dir()), folder)
    return [*map(read_record, (place / SHARED_RECORDS).glob(f"{name}__*.json"))]


def _as_recorded(entry: Any, record: BuildRecord) -> Iterator[Violation]:
    """Yield where the file of a split is another one than in the record of that split."""
    split = str(record.partition).rpartition("__")[2]
    listed = entry.get("files") if isinstance(entry, dict) else None
    file = listed.get(split) if isinstance(listed, dict) else None
    name = str(record.partition).rpartition("__")[0]
    if file is None or file != file_entry(record.model_dump(mode="json"), name, split):
        yield Violation("files", f"{names.MANIFEST}: {record.partition}", "is not as recorded")


def _entry_violations(name: str, entry: Any, is_built_in: bool) -> Iterator[Violation]:
    where = f"{names.MANIFEST}: {name}"
    if not isinstance(entry, dict) or tuple(entry) != (*NINE_KEYS, *MORE_KEYS):
        found = ", ".join(map(str, entry)) if isinstance(entry, dict) else "no object"
        yield Violation("keys", where, f"has the keys {found}")
        return
    if is_built_in:
        known = {**nine(CORPORA[name]), "licence": asdict(CORPORA[name].licence)}
        if wrong := [key for key, value in known.items() if entry[key] != value]:
            yield Violation("corpus", where, f"{wrong[0]} is {entry[wrong[0]]!r}")
    try:
        yield from _file_entries(where, name, entry)
    except (TypeError, AttributeError, LookupError) as error:
        yield Violation("files", where, f"files or source_shape has another form: {error!r}")


def _file_entries(where: str, name: str, entry: Mapping[str, Any]) -> Iterator[Violation]:
    """Yield what the files of an entry break; raises what another form of them raises."""
    files, shapes = entry["files"], entry["source_shape"]
    if not list(files) == list(shapes) == [each for each in entry["splits"] if each in files]:
        yield Violation("files", where, f"files has {[*files]}, source_shape {[*shapes]}")
    for split, file in files.items():
        kinds = [type(file[key]) for key in _FILE_KEYS]
        is_named = entry["name"] == name and file["path"] == names.normalized(name, split)
        if not is_named or kinds != [str, str, int, int, int] or min([*file.values()][2:5]) < 0:
            yield Violation("files", f"{where}: {split}", f"is {file}")
        if sum(shapes[split].values()) != file["records"]:
            yield Violation("shapes", f"{where}: {split}", f"{shapes[split]} for {file}")


def normalized(subject: Subject) -> Iterator[Violation]:
    """Yields what normalised records break."""
    missing = subject.missing({"origins": "origins"})
    subject.leaves(names.MANIFEST, "reasoning/raw_manifest")
    yield from nothing(subject, "{split}.jsonl")
    yield from normalized_laws(
        subject.folder,
        subject.partition,
        has_origins=not missing,
        table=str(subject.config.get("corpus", "")),
        workers=subject.config.get("workers", 1),
    )


def raw_manifest(subject: Subject) -> Iterable[Violation]:
    """Yields what the manifest of the normalised files breaks."""
    return raw_manifest_laws(subject.folder, subject.config.get("records", {}))


_BATCH: Final = 1000
_CHANNELS: Final = {"analysis": "01", "final": "02"}
_ROLES: Final = ("system", "developer", "user", "assistant")


def conversation_laws(subject: Subject) -> Iterator[Violation]:
    """Yields what a shard of conversations breaks: columns, messages, spans, splits, ids."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    paths = form.shards(subject.folder)
    if not paths:
        yield Violation("shards", ".", "there is no shard_NN.parquet")
    for path in paths:
        where = path.relative_to(subject.folder).as_posix()
        few = Few(where, "{more:,} more rows")
        try:
            with pq.ParquetFile(path) as file:
                if file.schema_arrow not in (form.schema(), form.schema(KEPT)):
                    yield Violation("columns", where, f"are not {', '.join(form.TEXTS)}, row")
                    continue
                number = 0
                for batch in file.iter_batches(_BATCH):
                    for row in batch.to_pylist():
                        number += 1
                        if (broken := _broken(row)) is not None:
                            law, what = broken
                            few.add_all(law, 1, [(f"{where}: row {number}", what)])
        except (pa.ArrowException, OSError) as error:
            yield Violation("readable", where, str(error))
        yield from few.added()


def _broken(row: dict[str, Any]) -> tuple[str, str] | None:
    """The law that a row breaks, and what is there; None for a good row."""
    needed = (*form.TEXTS, form.ROW)
    if any(row[name] is None for name in needed) or not row["synth_id"].strip():
        return "no nulls", "has a column that is null, or an empty id"
    if row["split"] not in ("train", "validation"):
        return "split", row["split"]
    try:
        messages = orjson.loads(row["messages_json"])["messages"]
        codes = [_codes(each) for each in messages]
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        return "messages", f"{type(error).__name__}: {error}"
    if len(codes) != len(row["spans"]):
        return "spans", f"{len(row['spans'])} for {len(codes)} messages"
    if any(code not in allowed for code, allowed in zip(row["spans"], codes, strict=True)):
        return "spans", f"{row['spans']} are not those of its roles"
    speakers = [each["role"] for each in messages if each.get("channel") != "analysis"]
    turns = [role for role in speakers if role in ("user", "assistant")]
    is_turn = turns == ["user", "assistant"] * (len(turns) // 2)
    if not turns or not is_turn or speakers[-len(turns) :] != turns:
        return "turns", " ".join(speakers)
    return None


def _codes(message: dict[str, str]) -> str:
    """The span codes that a message may have."""
    role, channel, content = message["role"], message.get("channel"), message["content"]
    if not isinstance(content, str) or len(message) != 2 + (channel is not None):
        raise ValueError("a message has other keys than role, content and channel")
    if role not in _ROLES or (channel in _CHANNELS) != (role == "assistant"):
        raise ValueError(f"{role} has the channel {channel}")
    return _CHANNELS[channel] if channel is not None else "02"
