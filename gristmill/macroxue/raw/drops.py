"""Raw drops: finding the runs in a folder, their order, and reading their gzip files whole.

What the text inside must be stands in `strict.py`.
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

_PLAIN, _ZIPPED, _STEPS = b".meta.json", b".meta.json.gz", b".jsonl.gz"
_READ_BYTES = 1 << 18
_MAX_META_BYTES = 1 << 20
_HEADER_BYTES = 1 << 17


@dataclass(frozen=True)
class RunFiles:
    """One game: its meta sidecar and its steps file.

    drop: name of the root folder it was found under.
    meta_name, steps_name: POSIX paths relative to that root.
    steps_size: compressed bytes, as the folder says (for cutting work).
    """

    drop: str
    meta: Path
    steps: Path
    meta_name: str
    steps_name: str
    steps_size: int


@dataclass(frozen=True)
class Drop:
    """What was found: runs in run order, and notes on what was left out, in path order."""

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


def _walk(
    folder: bytes, parts: tuple[bytes, ...], notes: list[dict[str, str]]
) -> Iterator[tuple[bytes, ...]]:
    """Components of every candidate meta file; links are not followed; errors of the OS pass."""
    with os.scandir(folder) as entries:
        found = list(entries)
    for entry in found:
        here = (*parts, entry.name)
        if entry.is_dir(follow_symlinks=False):
            if _utf8(entry.name):
                yield from _walk(entry.path, here, notes)
            else:
                notes.append({"kind": "name_not_utf8", "path": _shown(here)})
        elif entry.name.endswith((_PLAIN, _ZIPPED)) and entry.is_file(follow_symlinks=False):
            if _utf8(entry.name):
                yield here
            else:
                notes.append({"kind": "name_not_utf8", "path": _shown(here)})


def _stem(name: bytes) -> bytes:
    return name.removesuffix(_ZIPPED) if name.endswith(_ZIPPED) else name.removesuffix(_PLAIN)


def _find(root: Path) -> Drop:
    name = _shown((os.fsencode(root.resolve().name),))
    notes: list[dict[str, str]] = []
    runs = []
    games: set[tuple[bytes, ...]] = set()
    # Tuples of bytes compare as the order of runs is defined: component by
    # component, each as raw bytes (docs/formats/macroxue.md#run-order).
    for parts in sorted(_walk(os.fsencode(root), (), notes)):
        meta = root.joinpath(*map(os.fsdecode, parts))
        game = (*parts[:-1], _stem(parts[-1]))
        if game in games:
            raise BadInput(
                meta, "this game also has a .meta.json: one of the two is stale, remove it"
            )
        games.add(game)
        steps = meta.with_name(os.fsdecode(game[-1] + _STEPS))
        if not steps.is_file():
            notes.append({"kind": "unpaired_meta", "path": _shown(parts)})
            continue
        steps_name = _shown((*parts[:-1], game[-1] + _STEPS))
        runs.append(RunFiles(name, meta, steps, _shown(parts), steps_name, steps.stat().st_size))
    notes.sort(key=lambda note: note["path"])
    return Drop((name,), tuple(runs), tuple({"drop": name, **note} for note in notes))


def find_runs(drops: Path | Sequence[Path]) -> Drop:
    """The runs of one drop folder, or of several in the order given.

    Rules of docs/formats/macroxue.md#discovery: every regular `*.meta.json` or `*.meta.json.gz` below a
    root, sorted by path component as raw bytes, whose `.jsonl.gz` stands beside
    it (that one may be a link). Metas without partner and names that are not
    UTF-8 are left out and noted. Raises BadInput where a game has both
    spellings or one root holds another; OSError where a folder cannot be read.
    """
    roots = [Path(drops)] if isinstance(drops, str | Path) else list(map(Path, drops))
    places = [root.resolve() for root in roots]
    for i, place in enumerate(places):
        if not place.is_dir():
            raise BadInput(roots[i], "no such folder of raw drops")
        for other in (*places[:i], *places[i + 1 :]):
            if place == other or other in place.parents:
                raise BadInput(
                    roots[i], f"lies in {other.name}, which is given too: its games would be twice"
                )
    found = [_find(root) for root in roots]
    return Drop(
        tuple(drop.names[0] for drop in found),
        tuple(run for drop in found for run in drop.runs),
        tuple(note for drop in found for note in drop.notes),
    )


def raw_files(drop: Path) -> list[Path]:
    """Every file of a drop that can change its pack: both of each run, and metas left alone."""
    found = find_runs(drop)
    paired = [file for run in found.runs for file in (run.meta, run.steps)]
    alone = [drop / note["path"] for note in found.notes if note["kind"] == "unpaired_meta"]
    return [*paired, *alone]


def refusal(folder: Path) -> str | None:
    """Why a folder that has settled cannot be packed, told from its names alone."""
    try:
        if find_runs(folder).runs:
            return None
    except BadInput as error:
        return str(error)
    return "no game in it: a `.meta.json` or `.meta.json.gz` with its `.jsonl.gz` beside it"


@dataclass
class RawDigest:
    """Bytes and sha256 of a raw file, taken from what was really read."""

    size: int = 0
    sha256: hashlib._Hash = field(default_factory=hashlib.sha256)

    def update(self, piece: bytes) -> None:
        """Count one more piece of the file."""
        self.size += len(piece)
        self.sha256.update(piece)


def _pieces(path: Path, digest: RawDigest) -> Iterator[bytes]:
    with path.open("rb", buffering=0) as file:
        while piece := file.read(_READ_BYTES):
            digest.update(piece)
            yield piece


def gunzip(path: Path, digest: RawDigest, most: int) -> Iterator[bytes]:
    """The text of a gzip file in pieces of at most `most` bytes, every member of it.

    Raises BadInput for 0 bytes, a file cut short, a wrong checksum or length,
    and anything behind the last member that is not a further member.
    """
    decoder = None
    members = 0
    held = b""
    for read in chain(_pieces(path, digest), [b""]):
        piece, held = held + read, b""
        while piece or (decoder is not None and not decoder.eof and not decoder.needs_input):
            if decoder is None:
                if read and len(piece) < _HEADER_BYTES:
                    # ISA-L misreads a header with several fields that comes in two
                    # pieces. Fields take 64 KiB and two texts.
                    held = piece
                    break
                decoder = IgzipDecompressor(flag=DECOMP_GZIP)
            try:
                text = decoder.decompress(piece, most)
            except IsalError as error:  # type: ignore[misc]  # the stub calls it an instance
                where = f"behind gzip member {members}" if members else "gzip"
                raise BadInput(path, f"{where}: {error}: fetch the file anew") from error
            piece = b""
            if text:
                yield text
            if decoder.eof:
                piece = decoder.unused_data
                members += 1
                decoder = None
    if decoder is not None:
        behind = f"what stands behind gzip member {members}" if members else "the gzip stream"
        raise BadInput(path, f"{behind} is cut short: fetch the file anew")
    if members == 0:
        raise BadInput(path, "0 bytes: not even an empty gzip file")


def _capped(path: Path, pieces: Iterable[bytes]) -> bytes:
    text = bytearray()
    for piece in pieces:
        text += piece
        if len(text) > _MAX_META_BYTES:
            raise BadInput(path, f"a meta sidecar of more than {_MAX_META_BYTES} bytes")
    return bytes(text)


def read_meta(path: Path, digest: RawDigest) -> bytes:
    """The text of a meta sidecar, unzipped where its name ends in .gz; at most 1 MiB."""
    zipped = path.name.endswith(".gz")
    return _capped(path, gunzip(path, digest, _READ_BYTES) if zipped else _pieces(path, digest))
