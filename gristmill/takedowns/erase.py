"""Rewrites raw files without some of their rows, and compares the rest byte for byte.

Source: `docs/takedowns.md#erase`.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import lzma
import os
import sys
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any, Final

from gristmill.contract import BadInput, GristmillError
from gristmill.corpora.corpus import Corpus
from gristmill.corpora.raw.drops import kind
from gristmill.corpora.raw.rows import one_or_lines, row_places
from gristmill.families import Forgets
from gristmill.hashing import sha256_file
from gristmill.inbox.copying import write_whole
from gristmill.inbox.marks import SAMPLE, SUMS, listed_sums, written_sums
from gristmill.untrusted.files import open_file
from gristmill.untrusted.limits import LIMITS
from gristmill.untrusted.lines import line_places, reads, with_line_feeds
from gristmill.untrusted.walk import unpack

_Cut = tuple[int, int]


def erase(path: Path, gone: Collection[int], corpus: Corpus, how: Forgets) -> int:
    """Take rows out of a raw file, in one rename; returns the bytes that it has less.

    gone: their numbers, from 1; 0 for the whole file. corpus: that reads it. how: of its inbox.

    Raises GristmillError where the new file does not hold the bytes of all other rows, and for a
    link, whose target is not of this data root: the old file stays then.
    """
    if path.is_symlink():
        raise GristmillError(f"{path}: is a link: take the rows out of {path.resolve()}")
    before = path.stat().st_size
    if 0 in gone:
        path.unlink()
        return before
    hidden = path.with_name(f".erasing.{path.name}")
    try:
        if path.name.lower().endswith(".parquet"):
            _of_parquet(path, hidden, gone)
        else:
            _of_text(path, hidden, gone, corpus, how)
        with hidden.open("rb") as file:
            os.fsync(file.fileno())
        hidden.chmod(path.stat().st_mode & 0o7777)
        hidden.replace(path)
    finally:
        hidden.unlink(missing_ok=True)
    return before - path.stat().st_size


def _of_text(path: Path, hidden: Path, gone: Collection[int], corpus: Corpus, how: Forgets) -> None:
    places = how.places(path) if how.places is not None else _places(path, corpus)
    if places is None:
        cuts = [*_of_array(path, gone)]
    else:
        # What stands behind a row, as its newline, goes with it.
        begins = [*(begin for begin, _ in places), sys.maxsize]
        cuts = [(begins[number - 1], begins[number]) for number in sorted(gone)]
    packs = _WRITERS.get(path.name.lower().rpartition(".")[2], nullcontext)
    with hidden.open("wb") as file, packs(file) as out:
        for part in _without(_texts(path), cuts):
            out.write(part)
    if _digest(_without(_texts(path), cuts)) != _digest(_texts(hidden)):
        raise GristmillError(f"{path}: erasing changed other rows, so nothing is erased")


def _texts(path: Path) -> Iterator[bytes]:
    """The unpacked text of a file in parts."""
    ending = path.name.lower().rpartition(".")[2]
    with open_file(path, root=path.parent) as file:
        yield from unpack(file, path, ending) if ending in _WRITERS else reads(file)


def _places(path: Path, corpus: Corpus) -> Sequence[_Cut] | None:
    """Begin and end of each row of a text; None for one array of JSON."""
    texts, name = _texts(path), path.name.lower()
    if name.endswith(".txt"):
        first = next(texts, b"")
        mark = len(first) - len(first.removeprefix(BOM_UTF8))
        lined = with_line_feeds(chain([first[mark:]], texts), lambda _: True)
        return [(mark + begin, mark + end) for begin, end in line_places(lined, path)]
    if "json" in name and one_or_lines(texts, path, LIMITS)[0]:
        return None
    flat, error = row_places(path, corpus, (kind(path.name) or ("", ""))[0])
    if error is not None:
        raise error
    return [*zip(flat[::2], flat[1::2], strict=True)]


def _of_array(path: Path, gone: Collection[int]) -> Iterator[_Cut]:
    """The cuts of members of an array or an object of JSON, each with one comma."""
    whole = b"".join(_texts(path))
    text = whole.decode("utf-8-sig")
    mark, decoder = len(whole) - len(text.encode()), json.JSONDecoder()
    at, spans, is_object = _blank(text, 0) + 1, list[_Cut](), text.lstrip()[:1] == "{"
    while text[at := _blank(text, at)] not in "]}":
        begin = at
        if is_object:
            at = _blank(text, decoder.raw_decode(text, at)[1]) + 1
        at = _blank(text, end := decoder.raw_decode(text, _blank(text, at))[1])
        spans.append((begin, end))
        at += text[at] == ","
    left = [number for number in range(1, len(spans) + 1) if number not in gone]
    if not left:
        raise BadInput(path, "no row would be left: remove the file")
    for number in sorted(gone):
        if number < left[0]:  # the comma behind it goes, for those before any that stays
            low, high = spans[number - 1][0], spans[number][0]
        else:
            low, high = spans[number - 2][1], spans[number - 1][1]
        yield mark + len(text[:low].encode()), mark + len(text[:high].encode())


def _blank(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at


def _without(texts: Iterable[bytes], cuts: Sequence[_Cut]) -> Iterator[bytes]:
    """A text without its cuts, which ascend."""
    begin, ahead = 0, [*reversed(cuts)]
    for part in texts:
        at, end = begin, begin + len(part)
        while ahead and ahead[-1][0] < end:
            low, high = ahead[-1]
            yield part[at - begin : max(low - begin, 0)]
            at = min(high, end)
            if high > end:
                break
            ahead.pop()
        yield part[at - begin :]
        begin = end


def _digest(texts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in texts:
        digest.update(part)
    return digest.hexdigest()


def _zst(file: IO[bytes]) -> Any:
    import zstandard

    return zstandard.ZstdCompressor().stream_writer(file, closefd=False)


_WRITERS: Final[Mapping[str, Callable[[IO[bytes]], Any]]] = {
    "gz": lambda file: gzip.GzipFile("", "wb", fileobj=file, mtime=0),
    "zst": _zst,
    "bz2": partial(bz2.open, mode="wb"),
    "xz": partial(lzma.open, mode="wb"),
}


def _of_parquet(path: Path, hidden: Path, gone: Collection[int]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as old:
        first = old.metadata.row_group(0)
        packing = {
            # The name that Parquet has for none is not that of its writer.
            each.path_in_schema: each.compression.replace("UNCOMPRESSED", "NONE")
            for each in map(first.column, range(first.num_columns))
        }

        def groups() -> Iterator[Any]:
            before = 0
            for number in range(old.num_row_groups):
                table = old.read_row_group(number)
                own = sorted(row - before for row in gone if 0 < row - before <= len(table))
                runs = zip([0, *own], [*(row - 1 for row in own), len(table)], strict=True)
                before += len(table)
                yield pa.concat_tables(table.slice(low, high - low) for low, high in runs)

        with pq.ParquetWriter(hidden, old.schema_arrow, compression=packing) as writer:
            for table in filter(len, groups()):
                writer.write_table(table, len(table))
        with pq.ParquetFile(hidden) as new:
            made = map(new.read_row_group, range(new.num_row_groups))
            both = zip(filter(len, groups()), made, strict=True)
            # No NaN equals another one.
            if not all(
                one.equals(other) or repr(one.to_pylist()) == repr(other.to_pylist())
                for one, other in both
            ):
                raise GristmillError(f"{path}: erasing changed other rows, so nothing is erased")


def list_again(path: Path) -> None:
    """Give a file its new sum in the lists of the drop, which else would be refused; or none."""
    beside = [path.with_name(f"{path.name}{ending}") for ending in (".sha256", SAMPLE)]
    lists = {each: path for each in beside if each.exists()}
    for mark in (SUMS, SAMPLE):
        holders = [each for each in path.parents if (each / mark).exists()]
        lists |= {folder / mark: folder for folder in holders[:1]}
    for each, drop in lists.items():
        sums = listed_sums(each, drop)
        name = path.name if drop == path else path.relative_to(drop).as_posix()
        if sums.pop(name, None) is not None:
            sums |= {name: sha256_file(path)} if path.exists() else {}
            if sums:
                write_whole(each, written_sums(sums))
