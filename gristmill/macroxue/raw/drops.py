"""Raw drops: finding runs in a folder, their order, and reading their gzip files.

See also `strict_parser.py`: which texts are accepted.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from isal.igzip_lib import DECOMP_GZIP, IgzipDecompressor, IsalError

from gristmill.contract import BadInput
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, open_file
from gristmill.untrusted.limits import LIMITS
from gristmill.untrusted.walk import Entry, list_files

_PLAIN, _ZIPPED, _STEPS = b".meta.json", b".meta.json.gz", b".jsonl.gz"
_READ_BYTES = 1 << 18
_MAX_META_BYTES = 1 << 20
_HEADER_BYTES = 1 << 17


@dataclass(frozen=True)
class RunFiles:
    """The two raw files of one run (docs/formats/macroxue.md#run-files).

    drop: name of the drop folder.
    meta, steps: paths of the meta file and the steps file.
    meta_name, steps_name: their POSIX paths relative to the drop.
    steps_size: bytes of the zipped steps file.
    folder: the drop folder; the files are opened from it.
    links: what happens to links in it; default: they are refused.
    """

    drop: str
    meta: Path
    steps: Path
    meta_name: str
    steps_name: str
    steps_size: int
    folder: Path
    links: LinkRule = REFUSE_LINKS


@dataclass(frozen=True)
class Drop:
    """The runs of one drop or several.

    names: of the drop folders, in the given order.
    runs: in run order (docs/formats/macroxue.md#run-order).
    notes: what was left out and why, by path; lines of warnings.jsonl.
    """

    names: tuple[str, ...]
    runs: tuple[RunFiles, ...]
    notes: tuple[dict[str, str], ...]


def _utf8(name: bytes) -> bool:
    try:
        name.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _shown(parts: tuple[bytes, ...]) -> str:
    return b"/".join(parts).decode("utf-8", "backslashreplace")


def _files(
    root: Path, links: LinkRule, notes: list[dict[str, str]]
) -> dict[tuple[bytes, ...], Entry]:
    """The regular files with UTF-8 names by the components of their paths.

    Raises BadInput for any other entry, OSError where a folder cannot be read.
    """

    def enter(folder: str) -> bool:
        name = os.fsencode(folder)
        if _utf8(name):
            return True
        notes.append({"kind": "name_not_utf8", "path": _shown((name,))})
        return False

    files = {}
    for entry in list_files(root, root=root, links=links, enter=enter):
        if entry.refusal is not None:
            raise BadInput(root / entry.name, entry.refusal)
        name = os.fsencode(entry.name)
        if _utf8(name):
            files[tuple(name.split(b"/"))] = entry
        elif name.endswith((_PLAIN, _ZIPPED)):
            notes.append({"kind": "name_not_utf8", "path": _shown((name,))})
    return files


def _stem(name: bytes) -> bytes:
    return name.removesuffix(_ZIPPED) if name.endswith(_ZIPPED) else name.removesuffix(_PLAIN)


def _find(root: Path, links: LinkRule) -> Drop:
    name = _shown((os.fsencode(root.resolve().name),))
    notes: list[dict[str, str]] = []
    runs = []
    games: set[tuple[bytes, ...]] = set()
    files = _files(root, links, notes)
    # Tuples of bytes compare component by component, each as raw bytes
    # (docs/formats/macroxue.md#run-order).
    for parts in sorted(parts for parts in files if parts[-1].endswith((_PLAIN, _ZIPPED))):
        meta = root.joinpath(*map(os.fsdecode, parts))
        game = (*parts[:-1], _stem(parts[-1]))
        if game in games:
            raise BadInput(
                meta, "this game also has a .meta.json: one of the two is stale; remove that one"
            )
        games.add(game)
        steps = files.get((*parts[:-1], game[-1] + _STEPS))
        if steps is None:
            notes.append({"kind": "unpaired_meta", "path": _shown(parts)})
            continue
        path, size = root / steps.name, steps.stat.st_size
        runs.append(RunFiles(name, meta, path, _shown(parts), steps.name, size, root, links))
    notes.sort(key=lambda note: note["path"])
    return Drop((name,), tuple(runs), tuple({"drop": name, **note} for note in notes))


def find_runs(drops: Path | Sequence[Path], links: LinkRule = REFUSE_LINKS) -> Drop:
    """Find the runs of one drop folder, or of several in the given order.

    drops: folder or folders, walked recursively. They may themselves be links.
    links: what happens to links in them; default: they are refused.

    A run is a regular file `*.meta.json` or `*.meta.json.gz` with a `.jsonl.gz` of the same stem
    next to it. Meta files without partner, and names that are not UTF-8, are left out and noted.

    Raises BadInput where a folder is missing, equals or contains another one, has a game with
    both spellings of a meta file, or holds a link, pipe, socket or device. Raises OSError where a
    folder cannot be read.
    Source: docs/formats/macroxue.md#discovery and docs/formats/macroxue.md#both-meta-spellings.
    """
    roots = [Path(drops)] if isinstance(drops, str | Path) else list(map(Path, drops))
    resolved = [root.resolve() for root in roots]
    for i, folder in enumerate(resolved):
        if not folder.is_dir():
            raise BadInput(roots[i], "no such folder of raw drops")
        for other in (*resolved[:i], *resolved[i + 1 :]):
            if folder == other or other in folder.parents:
                raise BadInput(
                    roots[i],
                    f"equals {other.name} or lies in it: its games would be packed twice; name"
                    " each folder once",
                )
    each = [_find(root, links) for root in roots]
    return Drop(
        tuple(drop.names[0] for drop in each),
        tuple(run for drop in each for run in drop.runs),
        tuple(note for drop in each for note in drop.notes),
    )


def raw_files(drop: Path, links: LinkRule = REFUSE_LINKS) -> list[Path]:
    """The files of a drop that can change its pack.

    drop: one drop folder.
    links: what happens to links in it; default: they are refused.

    Returns both files of each run, then the meta files without partner. Raises as `find_runs`.
    """
    content = find_runs(drop, links)
    paired = [file for run in content.runs for file in (run.meta, run.steps)]
    unpaired = [drop / note["path"] for note in content.notes if note["kind"] == "unpaired_meta"]
    return [*paired, *unpaired]


def refusal(folder: Path, links: LinkRule = REFUSE_LINKS) -> str | None:
    """Why a drop that has settled cannot be packed, by its file names alone; None if it can.

    folder: one drop folder.
    links: what happens to links in it; default: they are refused.

    Raises OSError where it cannot be read.
    """
    try:
        if find_runs(folder, links).runs:
            return None
    except BadInput as error:
        return str(error)
    return "no game in it: it needs a `.meta.json` or `.meta.json.gz` with a `.jsonl.gz` next to it"


@dataclass
class RawDigest:
    """Size and sha256 of a raw file, of the bytes that were read.

    size: bytes.
    sha256: the running hash.
    """

    size: int = 0
    sha256: hashlib._Hash = field(default_factory=hashlib.sha256)

    def update(self, octets: bytes) -> None:
        """Count the next bytes of the file."""
        self.size += len(octets)
        self.sha256.update(octets)


def _read(path: Path, digest: RawDigest, folder: Path | None, links: LinkRule) -> Iterator[bytes]:
    with open_file(path, root=folder or path.parent, links=links, buffering=0) as file:
        while octets := file.read(_READ_BYTES):
            digest.update(octets)
            yield octets


def gunzip(
    path: Path,
    digest: RawDigest,
    most: int,
    folder: Path | None = None,
    links: LinkRule = REFUSE_LINKS,
) -> Iterator[bytes]:
    """The text of all members of a gzip file, in order.

    path: the file.
    digest: counts the bytes that are read.
    most: largest number of bytes of text in each item.
    folder: the drop, from which the file is opened; default its own folder.
    links: what happens to links in it; default: they are refused.

    Raises BadInput for a file of 0 bytes, a file that is cut short, a wrong checksum or length,
    bytes behind the last member that are no further member, and much more text than its size
    explains. Source: docs/formats/macroxue.md#gzip.
    """
    size = 0
    for text in _members(path, _read(path, digest, folder, links), most):
        size += len(text)
        if size > LIMITS.unpacked(digest.size):
            raise BadInput(
                path,
                f"unpacks to more than {LIMITS.ratio} times its size: it looks like a "
                "decompression bomb",
            )
        yield text


def _members(path: Path, reads: Iterable[bytes], most: int) -> Iterator[bytes]:
    decoder = None
    members = 0
    held = b""
    for read in chain(reads, [b""]):
        octets, held = held + read, b""
        while octets or (decoder is not None and not decoder.eof and not decoder.needs_input):
            if decoder is None:
                if read and len(octets) < _HEADER_BYTES:
                    # ISA-L misreads a header with several fields if two calls share it. The
                    # fields take 64 KiB and two texts.
                    held = octets
                    break
                decoder = IgzipDecompressor(flag=DECOMP_GZIP)
            try:
                text = decoder.decompress(octets, most)
            except IsalError as error:  # type: ignore[misc]  # the stub calls it an instance
                where = f"behind gzip member {members}" if members else "gzip"
                raise BadInput(path, f"{where}: {error}: fetch the file anew") from error
            octets = b""
            if text:
                yield text
            if decoder.eof:
                octets = decoder.unused_data
                members += 1
                decoder = None
    if decoder is not None:
        where = f"what stands behind gzip member {members}" if members else "the gzip stream"
        raise BadInput(path, f"{where} is cut short: fetch the file anew")
    if members == 0:
        raise BadInput(path, "0 bytes: not even an empty gzip file")


def _capped(path: Path, texts: Iterable[bytes]) -> bytes:
    text = bytearray()
    for octets in texts:
        text += octets
        if len(text) > _MAX_META_BYTES:
            raise BadInput(path, f"a meta sidecar of more than {_MAX_META_BYTES} bytes")
    return bytes(text)


def read_meta(
    path: Path, digest: RawDigest, folder: Path | None = None, links: LinkRule = REFUSE_LINKS
) -> bytes:
    """The text of a meta file, unzipped if its name ends in .gz.

    path: the file.
    digest: counts the bytes that are read.
    folder, links: as for `gunzip`.

    Raises BadInput for a text of more than 1 MiB, and as `gunzip`.
    Source: docs/formats/macroxue.md#gzip.
    """
    zipped = path.name.endswith(".gz")
    if zipped:
        return _capped(path, gunzip(path, digest, _READ_BYTES, folder, links))
    return _capped(path, _read(path, digest, folder, links))
