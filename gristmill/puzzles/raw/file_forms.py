"""What the readers of puzzle files do alike: folders, names of tables, packed files, encodings."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from gristmill.contract import BadInput
from gristmill.puzzles.format import SPLITS, Split
from gristmill.untrusted.files import LinkRule, open_file
from gristmill.untrusted.limits import Limits
from gristmill.untrusted.lines import lines, reads

PACKED: Final = frozenset({"7z", "br", "bz2", "gz", "lz4", "rar", "tgz", "xz", "zip", "zst"})
"""Endings of packed files, in lower case."""
BYTE_ORDER_MARK: Final = codecs.BOM_UTF8
CARRIAGE_RETURN: Final = (
    "has line ends of one carriage return (CR), as an old Mac writes them: convert them, such as"
    " with `tr '\\r' '\\n'`"
)
_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_TABLES: Final[Mapping[str, Split]] = {f"{split}.csv": split for split in SPLITS}


def check_encoding(head: bytes, path: Path) -> None:
    """Refuse a file in UTF-16."""
    if head.startswith(_UTF_16):
        raise BadInput(path, "is UTF-16: save it as UTF-8")


def text_lines(
    path: Path, limits: Limits, links: LinkRule, see: Callable[[bytes], None] | None
) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, numbered from 1. Raises BadInput for limits, UTF-16."""
    gone = links.forgotten.get(path, ())

    def seen(parts: Iterator[bytes]) -> Iterator[bytes]:
        for part in parts:
            if see is not None:
                see(part)
            yield part

    with open_file(path, root=path.parent, links=links, buffering=0) as file:
        if file.seek(0, 2) > limits.bytes:
            raise BadInput(path, f"has more than {limits.bytes:,} bytes")
        file.seek(0)
        for number, line in enumerate(lines(seen(reads(file)), path, limits), 1):
            if number == 1:
                check_encoding(line, path)
                line = line.removeprefix(BYTE_ORDER_MARK)  # noqa: PLW2901
            if line.strip() and number not in gone:
                yield number, line


def check_names(folder: Path, names: Iterable[str], counts: Callable[[str], bool]) -> None:
    """Raise BadInput for packed files that would count if unpacked, and are not unpacked."""
    listed = sorted(names)
    present = {name.lower() for name in listed}
    for name in listed:
        stem, _, ending = name.rpartition(".")
        if any(part.startswith(".") for part in name.split("/")) or ending.lower() not in PACKED:
            continue
        if counts(stem) and stem.lower() not in present:
            raise BadInput(
                folder / name, "is packed, and packed files are not read: unpack it, and remove it"
            )


def unpack_hint(names: Iterable[str]) -> str:
    """What to add to a message about a source without puzzles: nothing, or which file to unpack."""
    packed = sorted(name for name in names if name.rpartition(".")[2].lower() in PACKED)
    return f"; unpack {packed[0]}" if packed else ""


def is_table(name: str) -> bool:
    """Whether a file is a CSV file by its name, in capitals or not."""
    return name.lower().endswith(".csv") and not name.startswith(".")


def split_tables(folder: Path, names: Iterable[str]) -> dict[Split, str]:
    """The CSV files of a folder by their splits: `train.csv` and `test.csv`, in capitals or not."""
    listed = list(names)
    found: dict[Split, str] = {}
    check_names(folder, listed, lambda name: name.lower() in _TABLES)
    for name in sorted(listed):
        if (split := _TABLES.get(name.lower())) is None:
            continue
        if split in found:
            rule = f"is there beside {found[split]}: keep one of them"
            raise BadInput(folder / name, rule)
        found[split] = name
    return found


def both_tables(folder: Path, names: Iterable[str]) -> dict[Split, Path]:
    """The paths of `train.csv` and `test.csv`, in capitals or not. Raises BadInput without both."""
    found = split_tables(folder, names)
    for split in SPLITS:
        if split not in found:
            raise BadInput(folder / f"{split}.csv", "is missing: a maze source needs it")
    return {split: folder / name for split, name in found.items()}


def source_folders(sources: Sequence[Path] | Path) -> list[Path]:
    """The folders of one or more sources. Raises BadInput for one that is missing, or no folder."""
    folders = [sources] if isinstance(sources, Path) else list(sources)
    for folder in folders:
        if not folder.exists():
            raise BadInput(folder, "is missing: a source is a folder of puzzles")
        if not folder.is_dir():
            raise BadInput(folder, "is not a folder: name the folder that the file is in")
    return folders


def source_labels(folders: Sequence[Path]) -> dict[Path, str]:
    """The name of each source: as much of the end of its path as tells it from the others."""
    parts = {folder: folder.absolute().parts[1:] for folder in folders}
    for length in range(1, max(map(len, parts.values()), default=1) + 1):
        labels = {folder: "/".join(of[-length:]) for folder, of in parts.items()}
        if len(set(labels.values())) == len(parts):
            break
    return labels


def labelled_folders(folders: Sequence[Path]) -> list[tuple[str, Path]]:
    """The folders by name, so that their order changes nothing. Raises BadInput for one twice."""
    labels = source_labels(folders)
    named = sorted((labels[folder], folder) for folder in folders)
    for (label, _), (other, folder) in pairwise(named):
        if label == other:
            raise BadInput(folder, "is named twice: name each source once")
    return named
