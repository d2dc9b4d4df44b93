"""Artifacts for other programs: as Parquet, in row groups that viewers read, and as documents.

Documents are token files of llm.c, which modded-nanogpt reads too; chunks of litdata, which litgpt
trains on; streams of datatrove; and texts as nanochat reads them. Arrow files stay where they lie.
Source: `docs/consumers.md#datasets`, `#llmc`, `#litgpt`, `#datatrove`, `#nanochat`, `#distillkit`.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO, Final
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gristmill.contract import BadInput, GristmillError
from gristmill.exports.card import body, completed, head, parts_at, splits_of
from gristmill.exports.messages import INFO, write_messages
from gristmill.exports.parquet import writer
from gristmill.exports.table import Array, Split, columns_of, cut, fitted, grouped, required

_STATE, _INFO = "state.json", "dataset_info.json"
_TEXT: Final = required({"text": pa.string()})
_GROUP: Final = 128
"""Texts of a row group: each rank of a run reads groups of its own, so that many are needed."""


def text_files(splits: Sequence[Split], out: Path) -> dict[str, int]:
    """Write the texts of train, then those of validation, else of test, as the last file."""
    of = {name: [each for each in splits if each.name == name] for name in ("train", "validation")}
    held = of["validation"] or [each for each in splits if each.name == "test"]
    counts: dict[str, int] = {}
    for what, parts, most in (("train", of["train"], _FILE_BYTES), ("validation", held, None)):
        written = _files(parts, out, len(counts), most)
        if not written:
            rule = "nanochat trains on all files but the last, and validates with that"
            raise GristmillError(f"there is no text of {what}: {rule}: name a corpus that has some")
        counts |= written
    return counts


def _files(splits: Sequence[Split], out: Path, first: int, most: int | None) -> dict[str, int]:
    """Write the next files, and return the texts of each. most: bytes after which one ends."""
    counts: dict[str, int] = {}
    path, file = out, None
    for batch in _groups(splits):
        if file is None or (most is not None and path.stat().st_size > most):
            if file is not None:
                file.close()
            path = out / f"shard_{first + len(counts):05d}.parquet"
            file, counts[path.name] = writer(path, _TEXT), 0
        file.write(batch)
        counts[path.name] += len(batch)
    if file is not None:
        file.close()
    return counts


def _groups(splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
    for texts in (texts for each in splits if each.texts is not None for texts in each.texts()):
        for first in range(0, len(texts), _GROUP):
            yield pa.RecordBatch.from_arrays([texts.slice(first, _GROUP)], schema=_TEXT)


CHUNK_TOKENS: Final = 1 << 24
_INT32: Final = 16
_CONFIG: Final = {
    "compression": None,
    "chunk_size": None,
    "chunk_bytes": None,
    "data_format": [f"no_header_tensor:{_INT32}"],
    "data_spec": '[1, {"type": null, "context": null, "children_spec": []}]',
    "encryption": None,
    "item_loader": "TokensLoader",
}


def chunks(name: str, splits: Sequence[Split], out: Path, most: int) -> dict[str, int]:
    """Write the documents of a split as chunks of 32-bit tokens with their `index.json`."""
    folder, found, state = out / name, list[dict[str, Any]](), 0
    folder.mkdir()
    held: list[tuple[Array, Array]] = []

    def write() -> None:
        nonlocal state
        path = folder / f"chunk-0-{len(found)}.bin"
        sizes = np.concatenate([np.diff(bounds) for _, bounds in held])
        begin = 4 * (len(sizes) + 2)
        offsets = begin + 4 * np.concatenate([[0], np.cumsum(sizes)])
        with path.open("xb") as file:
            for part in (np.array([len(sizes)]), offsets):
                file.write(part.astype("<u4").data)
            for tokens, _ in held:
                state = crc32(np.ascontiguousarray(tokens).data, state)
                file.write(tokens.astype("<i4", copy=False).data)
        size, tokens_of = int(offsets[-1]), int(sizes.sum())
        said = {"chunk_bytes": size, "chunk_size": len(sizes), "dim": tokens_of}
        found.append({**said, "filename": path.name})
        held.clear()

    for tokens, bounds, is_last in cut(splits, most, out):
        held.append((tokens, bounds))
        if is_last:
            write()
    if held:
        write()
    # Readers keep what they fetched by this value: it changes with the tokens alone.
    index = {
        "chunks": found,
        "config": _CONFIG | {"chunk_bytes": 4 * most},
        "updated_at": f"{state}",
    }
    (folder / "index.json").write_text(json.dumps(index, sort_keys=True))
    return {f"{name}/{each['filename']}": each["dim"] for each in found}


_HEADER: Final = 256
_SHORT: Final = (20240520, 1, "<u2")
_LONG: Final = (20240801, 7, "<u4")
"""Magic number, version and dtype of files; the long ones are for more than 65,536 ids."""
FILE_TOKENS: Final = 100_000_000


def token_files(name: str, splits: Sequence[Split], out: Path, most: int) -> dict[str, int]:
    """Write the documents of a split as token files."""
    ids = max(each.tokens.ids for each in splits if each.tokens)
    magic, version, dtype = _SHORT if ids <= 1 << 16 else _LONG
    counts: dict[str, int] = {}
    file: BinaryIO | None = None
    for tokens, _, is_last in cut(splits, most, out):
        if file is None:
            path = out / f"tokens_{name}_{len(counts):06d}.bin"
            file = path.open("xb")
            file.write(bytes(4 * _HEADER))
            counts[path.name] = 0
        # Of whole documents the last token is the separator, which goes to the front.
        file.write(np.roll(tokens, 1).astype(dtype, copy=False).data)
        counts[path.name] += len(tokens)
        if is_last:
            _close(file, (magic, version, counts[path.name]))
            file = None
    if file is not None:
        _close(file, (magic, version, counts[path.name]))
    return counts


def _close(file: BinaryIO, said: tuple[int, int, int]) -> None:
    header = np.zeros(_HEADER, "<i4")
    header[:3] = said
    file.seek(0)
    file.write(header.tobytes())
    file.close()


def token_streams(name: str, splits: Sequence[Split], out: Path, most: int) -> dict[str, int]:
    """Write the tokens of a split back to back, and where its documents end.

    `<split>/00000_tokens.ds` has tokens of 16 bits, of 32 where there are more than 65,536 ids;
    `.ds.index` a number of 64 bits a document; `.ds.metadata` the bytes of a token and the tokens.
    most: after so many tokens a file ends, with a whole document.
    """
    size = 2 if max(each.tokens.ids for each in splits if each.tokens) <= 1 << 16 else 4
    counts: dict[str, int] = {}
    files: list[BinaryIO] = []
    for tokens, bounds, is_last in cut(splits, most, out):
        if not files:
            key = f"{name}/{len(counts):05d}_tokens.ds"
            counts[key] = 0
            (out / name).mkdir(exist_ok=True)
            files = [(out / f"{key}{end}").open("xb") for end in ("", ".index")]
        files[0].write(tokens.astype(f"<u{size}", copy=False).data)
        files[1].write((bounds[1:] + counts[key]).astype("<u8").data)
        counts[key] += len(tokens)
        if is_last:
            files = [each for each in files if each.close()]
    for each in files:
        each.close()
    for key, count in counts.items():
        (out / f"{key}.metadata").write_text(f"gristmill|{size}\n{count}\n{count:,} tokens")
    return counts


def arrow_folder(name: str, splits: Sequence[Split], out: Path, _: int) -> dict[str, int]:
    """Write a split of a folder that `load_from_disk` opens; its state names the Arrow files.

    Returns how many files it has.
    """
    files = [path.absolute() for each in splits if each.arrow for path in each.arrow()]
    folders = [*dict.fromkeys(path.parent for path in files)]
    states = [json.loads((folder / _STATE).read_bytes()) for folder in folders]
    own = {
        "_data_files": [{"filename": str(path)} for path in files],
        "_fingerprint": hashlib.sha256(json.dumps(states).encode()).hexdigest()[:16],
    }
    (out / name).mkdir()
    (out / name / _INFO).write_text((folders[0] / _INFO).read_text())
    (out / name / _STATE).write_text(json.dumps(states[0] | own, indent=2))
    listed = sorted(path.name for path in out.iterdir() if path.is_dir())
    (out / "dataset_dict.json").write_text(json.dumps({"splits": listed}))
    return {f"{name}/{_STATE}": len(files)}


PARQUET: Final = "parquet"
MESSAGES: Final = "messages"
TOKEN_FORMATS: Final = {"llm.c": (token_files, FILE_TOKENS), "litdata": (chunks, CHUNK_TOKENS)}
"""Of each format of tokens what writes a split, and after how many tokens a file ends."""
STREAMS: Final = {"datatrove": token_streams, "disk": arrow_folder}
FORMS: Final[dict[str, tuple[str, Callable[[Any], object]]]] = {
    PARQUET: ("rows", bool),
    MESSAGES: ("rows", bool),
    **dict.fromkeys((*TOKEN_FORMATS, "datatrove"), ("tokens", attrgetter("tokens"))),
    "nanochat": ("texts", attrgetter("texts")),
    "disk": ("files", attrgetter("arrow")),
}
"""Of each form what is counted, and what a split has that can become it."""
_NAMES: Final = {"validation": "val"}
_FILE_BYTES: Final = 256 << 20


def project(
    place: Path,
    out: Path,
    to: str = PARQUET,
    most: int | None = None,
    *,
    is_tagged: bool = False,
    notes: list[str] | None = None,
) -> dict[str, int]:
    """Write the rows of an artifact, or of all at a place, for other programs into a new folder.

    to: one of `FORMS`; Parquet and messages have a README.md. most: as of `write`.
    is_tagged: of messages, whether thoughts stand in the content (default: beside it).
    notes: gets what a person should know of the files.

    Returns the rows, tokens or texts of each file, by its path in the folder; of Parquet
    `data/train-00000-of-00001.parquet`, with a folder more for each of several tables. Memory does
    not grow with the artifact.
    Raises GristmillError for a folder without such rows or an `out` that exists, BadInput for
    damage.
    """
    if out.exists():
        raise BadInput(out, "exists: give a folder that does not")
    parts = parts_at(place)
    splits, talks = splits_of(parts), [each for part in parts for each in part.talks]
    given: dict[str, Sequence[Any]] = {MESSAGES: talks}
    possible = [
        n for n, (_, has) in FORMS.items() if (of := given.get(n, splits)) and all(map(has, of))
    ]
    if to not in possible:
        raise GristmillError(f"{place}: cannot become {to}: give --to {' or '.join(possible)}")
    staged = out.with_name(f".{out.name}.part")
    shutil.rmtree(staged, ignore_errors=True)
    counts: dict[str, int] = {}
    left = 0
    try:
        staged.mkdir(parents=True)
        if to == MESSAGES:
            counts, splits, left = write_messages(talks, staged, is_tagged)
        if to in (PARQUET, MESSAGES):
            files = written(splits, staged)
            records = [record for part in parts for record in part.records.values()]
            found = head([*files], records, sum(files.values()))
            (staged / "README.md").write_text(completed(body(parts, False), found, out))
            counts |= {each.file: rows for each, rows in files.items()}
        elif to in STREAMS:
            for name in dict.fromkeys(each.name for each in splits):
                own = [each for each in splits if each.name == name]
                counts |= STREAMS[to](name, own, staged, most or FILE_TOKENS)
        else:
            counts = write(to, splits, staged, most, place)
        if notes is not None:
            notes += _notes(to, staged, left)
        staged.rename(out)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return counts


def _notes(to: str, out: Path, left: int) -> Iterator[str]:
    """What a person should know of files. left: records that are no conversation."""
    if left:
        yield f"{left:,} records without a question or an answer are left out"
    if to == MESSAGES and not (out / INFO).exists():
        rule = "reads contents alone, and would lose the thoughts: give --thoughts tags"
        yield f"{INFO} is not written: LLaMA-Factory {rule}"
    if to == "nanochat":
        groups = [pq.read_metadata(path).num_row_groups for path in sorted(out.iterdir())]
        few = min(sum(groups[:-1]), groups[-1])
        yield (
            f"enough for {few:,} ranks: each needs a row group of {_GROUP} texts for training "
            "and one for validation"
        )


def write(
    to: str, splits: Sequence[Split], out: Path, most: int | None = None, place: Path | None = None
) -> dict[str, int]:
    """Write documents in a format into a folder.

    most: after so many tokens a file ends, with a whole document; default that of the format.
    """
    if to == "nanochat":
        if any(each.texts is None for each in splits):
            raise GristmillError(f"{place}: has no texts: give the folder of reasoning/normalized")
        return text_files(splits, out)
    ends = {each.tokens.end if each.tokens else None for each in splits}
    if len(ends) > 1 or None in ends:
        rule = "give the folder of reasoning/gpt2_shards, reasoning/tokens or synth/kd_shards"
        raise GristmillError(f"{place}: has no documents of tokens: {rule}")
    of_split, usual = TOKEN_FORMATS[to]
    counts: dict[str, int] = {}
    for name in dict.fromkeys(each.name for each in splits):
        own = [each for each in splits if each.name == name]
        counts |= of_split(_NAMES.get(name, name), own, out, most or usual)
    return counts


def written(
    splits: Sequence[Split], out: Path, above: str = "data", partition: str = ""
) -> dict[Split, int]:
    """Write rows as Parquet below a folder."""
    files: dict[Split, int] = {}
    asked = (each for each in splits if not partition or each.partition in ("", partition))
    for (table, name), group in grouped(asked).items():
        schema = columns_of(each for each in splits if each.table == table)
        folder = out / above / table
        folder.mkdir(parents=True, exist_ok=True)
        stem = f"{name}-{group[0].partition}" if partition and group[0].partition else name
        for path, rows in _written(group, folder, stem, schema):
            files[replace(group[0], file=path.relative_to(out).as_posix())] = rows
    return files


def _written(
    group: Sequence[Split], folder: Path, stem: str, schema: pa.Schema
) -> Iterator[tuple[Path, int]]:
    counts: list[int] = []
    file, path = None, folder
    for batch in (batch for each in group for batch in each.batches() if len(batch)):
        if file is not None and path.stat().st_size > _FILE_BYTES:
            file.close()
            file = None
        if file is None:
            path = folder / f"{len(counts)}.{stem}"
            file = writer(path, schema)
            counts.append(0)
        file.write(fitted(batch, schema))
        counts[-1] += len(batch)
    if file is not None:
        file.close()
    for number, rows in enumerate(counts):
        last = folder / f"{stem}-{number:05d}-of-{len(counts):05d}.parquet"
        yield (folder / f"{number}.{stem}").rename(last), rows
