"""What must hold of a token dataset in the formats of other programs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from gristmill.contract import BadInput, Violation
from gristmill.exports.table import Array, Split
from gristmill.families import Subject
from gristmill.reasoning.builders.exports.files import TEXTS, splits_for

_HEADERS: Final = {20240520: (1, "<u2"), 20240801: (7, "<u4")}
_BYTES: Final = 1 << 24
_AGAIN: Final = "build it again"

Streams = dict[str, Callable[[], Iterator[bytes]]]
"""What the files of a split hold, in order, by the name of the split."""


def file_laws(subject: Subject) -> Iterator[Violation]:
    """Yields what the files of each format break that their program demands: `format`."""
    asked = subject.config.get("formats", [name for name in READERS if _in(subject, name)])
    if not asked:
        yield Violation("files", ".", f"there is no folder of {', '.join(READERS)}")
    for name in asked:
        try:
            for stream in READERS[name](subject.folder / name).values():
                for _ in stream():
                    pass
        except (OSError, ValueError, KeyError, TypeError, BadInput) as error:
            yield Violation("format", name, str(error))


def content_laws(subject: Subject) -> Iterator[Violation]:
    """Yields where files hold something else than the dataset and its records: `documents`."""
    dataset, normalized = subject.inputs[0], subject.inputs[-1]
    for name in filter(lambda each: _in(subject, each), READERS):
        splits = splits_for(name, dataset, normalized, normalized.parents[1])
        try:
            found = {
                key: _hash(each()) for key, each in READERS[name](subject.folder / name).items()
            }
        except (OSError, ValueError, KeyError, TypeError, BadInput):
            continue  # the other law says it
        expected = {key: _hash(each) for key, each in _expected(name, splits)}
        for key in sorted(found.keys() | expected.keys()):
            if found.get(key) != expected.get(key):
                rule = f"does not hold the documents of the dataset: {_AGAIN}"
                yield Violation("documents", f"{name}/{key}", rule)


def _in(subject: Subject, name: str) -> bool:
    return (subject.folder / name).is_dir()


def _hash(pieces: Iterable[bytes]) -> str:
    found = hashlib.sha256()
    for piece in pieces:
        found.update(piece)
    return found.hexdigest()


def _expected(name: str, splits: Sequence[Split]) -> Iterator[tuple[str, Iterator[bytes]]]:
    names = [*dict.fromkeys(each.name for each in splits)]
    held = "validation" if "validation" in names else "test"
    for split in ("train", held) if name == TEXTS else names:
        own = [each for each in splits if each.name == split]
        if name == TEXTS:
            texts = (each.texts() for each in own if each.texts)
            yield (
                "train" if split == "train" else "val",
                _texts(text for some in texts for text in some),
            )
        else:
            parts = (part for each in own if each.tokens for part, _ in each.tokens.batches())
            shift = 1 if name == "llm.c" else 0  # the separator of the last document is first
            yield (
                "val" if split == "validation" else split,
                (_octets(np.roll(part, shift)) for part in parts),
            )


def _octets(tokens: Array) -> bytes:
    return tokens.astype("<i4").tobytes()


def _texts(arrays: Iterable[object]) -> Iterator[bytes]:
    for array in arrays:
        for text in array.to_pylist():  # type: ignore[attr-defined]
            yield text.encode() + b"\xff"  # no text has this byte


def _token_files(folder: Path) -> Streams:
    def read(name: str) -> Iterator[bytes]:
        for path in sorted(folder.glob(f"tokens_{name}_*.bin")):
            with path.open("rb") as file:
                header = np.frombuffer(file.read(1024), "<i4")
                version, dtype = _HEADERS.get(int(header[0]), (0, "<u2"))
                size = 1024 + int(header[2]) * np.dtype(dtype).itemsize
                if header[1] != version or header[3:].any() or path.stat().st_size != size:
                    raise BadInput(path, f"has not the header of its tokens: {_AGAIN}")
                while data := file.read(_BYTES):
                    yield _octets(np.frombuffer(data, dtype))

    return _by_name({path.name.split("_")[1] for path in folder.glob("tokens_*_*.bin")}, read)


def _chunks(folder: Path) -> Streams:
    def read(name: str) -> Iterator[bytes]:
        for said in json.loads((folder / name / "index.json").read_bytes())["chunks"]:
            path, count = folder / name / said["filename"], said["chunk_size"]
            with path.open("rb") as file:
                head = np.frombuffer(file.read(4 * (count + 2)), "<u4").astype(np.int64)
                sizes = np.diff(head[1:])
                size = 4 * (count + 2 + said["dim"])
                facts = [head[0], head[1], head[-1], path.stat().st_size, said["chunk_bytes"]]
                if facts != [count, 4 * (count + 2), size, size, size] or (sizes < 4).any():
                    raise BadInput(path, f"has not the places of its documents: {_AGAIN}")
                while data := file.read(_BYTES):
                    yield data

    return _by_name({path.parent.name for path in folder.glob("*/index.json")}, read)


def _text_files(folder: Path) -> Streams:
    import pyarrow.parquet as pq

    files = sorted(folder.glob("shard_*.parquet"))
    if len(files) < 2:
        raise BadInput(folder, f"has not two files, of which the last is validation: {_AGAIN}")

    def read(name: str) -> Iterator[bytes]:
        for path in files[:-1] if name == "train" else files[-1:]:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(columns=["text"]):
                    yield from _texts([batch["text"]])

    return _by_name({"train", "val"}, read)


def _by_name(names: Iterable[str], read: Callable[[str], Iterator[bytes]]) -> Streams:
    return {name: lambda name=name: read(name) for name in sorted(names)}  # type: ignore[misc]


READERS: Final[dict[str, Callable[[Path], Streams]]] = {
    "llm.c": _token_files,
    "litdata": _chunks,
    TEXTS: _text_files,
}
"""Of each format what reads its folder."""
