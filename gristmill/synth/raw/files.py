"""Raw SYNTH files: their columns, and the files of a complete drop.

Source: `docs/formats/synth.md#raw-files`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, get_args

from gristmill.contract import BadInput, os_reason
from gristmill.inbox.marks import SUMS, is_newest, left_out_of, listed_sums, not_samples
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from gristmill.untrusted.walk import is_hidden, list_files

DATASET: Final = "PleIAs/SYNTH"
"""The repository on the hub."""
REVISION: Final = "6ebe6a97043747aa5f2232ea1182841c4a6afcb0"
"""The commit of that repository that is fetched by default."""
FILES: Final = 500
"""Number of Parquet files in that repository."""
SHARDS: Final = 4
"""Number of Harmony shards, and of Megatron shards."""
ENDING: Final = ".parquet"
"""Ending of their names."""
DONE: Final = ".done"
"""Name of the file that marks a drop as complete."""

TEXTS: Final = ("query", "synthetic_reasoning", "synthetic_answer")
"""The columns that become messages. A row is skipped if one of them is null or empty."""

Column = Literal[
    "synth_id",
    "language",
    "exercise",
    "model",
    "query",
    "query_seed_url",
    "query_seed_text",
    "additional_seed_url",
    "seed_license",
    "constraints",
    "script",
    "synthetic_reasoning",
    "synthetic_answer",
    "words",
]
COLUMNS: Final = get_args(Column)
"""All columns of a raw file: nullable strings, except `words`, which is int64."""


def files(folder: Path, links: LinkRule = REFUSE_LINKS) -> list[Path]:
    """Return the raw Parquet files of a drop, sorted by name.

    folder: the drop. Its subfolders and its hidden files are not read.
    links: what happens to files that are links; default: they are refused.

    Raises BadInput for a link, pipe, socket or device with the name of a Parquet file, and
    for a folder that cannot be read.
    """
    paths = []
    try:
        for entry in list_files(folder, root=folder, links=links, enter=lambda _: False):
            if is_hidden(entry.name) or not entry.name.endswith(ENDING):
                continue
            if entry.refusal is not None:
                raise BadInput(folder / entry.name, entry.refusal)
            if entry.stat.st_mode:
                paths.append(folder / entry.name)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise BadInput(folder, f"cannot be read: {os_reason(error)}") from error
    left = not_samples(folder, (path.name for path in paths))
    return sorted(path for path in paths if path.name not in left)


def is_complete(folder: Path, expected: int = FILES, links: LinkRule = REFUSE_LINKS) -> bool:
    """Return whether a drop has all its files.

    expected: number of Parquet files, default 500. With a file `.done`, or a list `SHA256SUMS` of
        just these Parquet files, any number above 0 is complete.

    Which files a shard takes depends on the whole list, so nothing is built from
    an incomplete drop. Raises BadInput as `files`, and for a list that is none.
    """
    paths = files(folder, links)
    names = {path.name for path in paths}
    if len(names) == expected or not names:
        return len(names) == expected
    if not (folder / DONE).exists():
        return names == _listed(folder)
    # The `.done` of a sample says nothing of real files that came after it.
    return not left_out_of(folder, names) or is_newest(folder / DONE, paths)


def _listed(folder: Path) -> set[str]:
    """The Parquet files that the list of a drop names; none without a list."""
    if not (folder / SUMS).exists():
        return set()
    return {name for name in listed_sums(folder / SUMS, folder) if name.endswith(ENDING)}


def complete_files(
    folder: Path, expected: int = FILES, links: LinkRule = REFUSE_LINKS
) -> list[Path]:
    """Return the raw files of a complete drop, sorted by name.

    expected: number of Parquet files, default 500.
    links: what happens to files that are links; default: they are refused.

    Raises BadInput if the drop is not complete, and as `is_complete`.
    """
    paths = files(folder, links)
    if not paths:
        raise BadInput(
            folder,
            f"0 Parquet files of {expected}: put files whose names end in {ENDING} into this "
            "folder itself, since its subfolders are not read",
        )
    if not is_complete(folder, expected, links):
        raise BadInput(
            folder,
            f"{len(paths)} Parquet files of {expected}: add the others, or, if these are all, a "
            f"file {DONE}, or a {SUMS} that lists them",
        )
    return paths


def check_columns(path: Path, names: Sequence[str], needed: Sequence[str]) -> None:
    """Check that a raw file has the columns that are needed."""
    if missing := [name for name in needed if name not in names]:
        raise BadInput(path, f"has no column {', '.join(missing)}: is it a raw SYNTH file?")
