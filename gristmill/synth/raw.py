"""What arrives: raw SYNTH files in drops, finished conversions, their download, and `[render]`.

Source: `docs/formats/synth.md#raw-files`, `docs/formats/synth.md#pinned-download`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal, get_args

from gristmill import keys
from gristmill.contract import BadInput, os_reason
from gristmill.inbox import hub, marks
from gristmill.inbox.division import contiguous_run
from gristmill.inbox.hub import HubError, Reached, RemoteFile, Source
from gristmill.inbox.listing import Account
from gristmill.inbox.marks import SUMS, is_newest, left_out_of, listed_sums, not_samples
from gristmill.run.progress import SILENT, Progress
from gristmill.settings.fields import did_you_mean, shown
from gristmill.settings.tables import FILE
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, read_file, refuse_equal
from gristmill.untrusted.toml import read_toml
from gristmill.untrusted.walk import is_hidden, list_files, visible_files

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
    names, sums = {path.name for path in paths}, folder / SUMS
    if len(names) == expected or not names:
        return len(names) == expected
    if not (folder / DONE).exists():
        listed = listed_sums(sums, folder) if sums.exists() else ()
        return names == {name for name in listed if name.endswith(ENDING)}
    # The `.done` of a sample says nothing of real files that came after it.
    return not left_out_of(folder, names) or is_newest(folder / DONE, paths)


def complete_files(
    folder: Path, expected: int = FILES, links: LinkRule = REFUSE_LINKS
) -> list[Path]:
    """A drop's raw files, sorted. Raises BadInput if it is incomplete, and as `is_complete`."""
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


RAW: Final = "synth"
"""Name of the inbox of raw files."""
READY: Final = "synth_harmony"
"""Name of the inbox of finished conversions."""
NUMBERS: Final = tuple(f"{number:02d}" for number in range(SHARDS))
"""The numbers of the shards, in file names and partitions."""
_SHARD: Final = "synth_harmony_shard_"
READY_SHARDS: Final = tuple(f"{_SHARD}{number}{ENDING}" for number in NUMBERS)
"""The shards of a finished conversion."""
READY_FILES: Final = (*READY_SHARDS, "manifest.json", "metadata.json")
"""All files of a finished conversion."""


def raw_account(drop: Path, links: LinkRule = REFUSE_LINKS, expected: int = FILES) -> Account:
    """What becomes of each file. Raises BadInput for a drop that is not complete or not clear."""
    sizes, left_out, inner = {}, {}, []
    for name, size in visible_files(drop, links, (SUMS, FILE, marks.FORGOTTEN)).items():
        if not name.lower().endswith(ENDING):
            left_out[name] = "no Parquet file"
        elif "/" in name:
            inner.append(name)
        elif not name.endswith(ENDING):
            raise BadInput(drop / name, f"rename it so that it ends in {ENDING} in lower case")
        else:
            sizes[name] = size
    if sizes and inner:
        rule = "is in a subfolder, which is not read beside the files of the drop itself"
        raise BadInput(drop / inner[0], f"{rule}: move it up, or take it out")
    paths = complete_files(drop, expected, links)
    names = [path.name for path in paths]
    if len(names) < SHARDS:
        raise BadInput(drop, f"{len(names)} files: {SHARDS} shards need a file each")
    refuse_equal(drop, {name: sizes[name] for name in names}, links)
    taken = {
        number: [path.name for path in contiguous_run(paths, int(number), SHARDS)]
        for number in NUMBERS
    }
    return Account(taken, left_out | left_out_of(drop, names))


def ready_account(drop: Path, links: LinkRule = REFUSE_LINKS) -> Account:
    """What becomes of each file of a finished conversion, by the names alone."""
    sizes = visible_files(drop, links, (SUMS, FILE, marks.FORGOTTEN))
    others = [name for name in sizes if name not in READY_FILES]
    if shards := [name for name in others if name.startswith(_SHARD) and name.endswith(ENDING)]:
        number = shards[0].removeprefix(_SHARD).removesuffix(ENDING)
        raise BadInput(drop, f"shard {number} is none of {', '.join(NUMBERS)}")
    if missing := [name for name in READY_FILES if name not in sizes]:
        raise BadInput(drop, f"there is no {missing[0]}")
    refuse_equal(drop, {name: sizes[name] for name in READY_SHARDS}, links)
    taken = {number: [name] for number, name in zip(NUMBERS, READY_SHARDS, strict=True)}
    taken["manifest"] = [name for name in READY_FILES if name not in READY_SHARDS]
    return Account(taken, dict.fromkeys(others, "no file of a conversion"))


RECIPE: Final = "corpus.toml"
HARMONY: Final = "harmony"
_HARMONY_TOKENS: Final = "o200k_harmony"
_DROP: Final = "drop:"
_MOST_BYTES: Final = 256 << 10
_KEYS: Final = ("template", "tokenizer", "kwargs", "date", "thinking", "expand")
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "thinking": ("tags", "field"),
    "expand": ("", "turns"),
}


@dataclass(frozen=True)
class Render:
    """How conversations are rendered.

    template: harmony, one of `TEMPLATES`, or `drop:` and the name of a file beside the recipe.
    path, source: that file and its text; None and empty for the others.
    kwargs: variables that the file sees, as JSON. date: the day that it sees.
    thinking: whether it gets thoughts as tags in the content, or in a field.
    expand: "turns" for a document for each answer; empty for one a conversation.
    """

    template: str = HARMONY
    path: Path | None = None
    source: str = ""
    kwargs: str = "{}"
    date: str = "2026-01-01"
    thinking: str = "tags"
    expand: str = ""
    tokenizer: str = _HARMONY_TOKENS

    @property
    def recorded(self) -> str:
        """All that decides tokens, as JSON; of the file its sha256."""
        values = {**vars(self), "source": hashlib.sha256(self.source.encode()).hexdigest()}
        values.pop("path")
        return json.dumps(values, sort_keys=True)


def read_render(drop: Path, links: LinkRule = REFUSE_LINKS) -> Render:
    """Read `[render]` of a drop's recipe; without it, conversations are rendered in Harmony."""
    path = drop / RECIPE
    raw = read_toml(path, root=drop, links=links).get("render", {})
    try:
        values = _checked(raw)
    except ValueError as error:
        raise BadInput(path, f"render: {error}") from error
    template = values.get("template", HARMONY)
    if not template.startswith(_DROP):
        return Render(**values)
    file = drop / template.removeprefix(_DROP)
    try:
        source = read_file(file, root=drop, most=_MOST_BYTES, links=links).decode()
    except FileNotFoundError as error:
        rule = f"render: template = {shown(template)}: there is no such file beside the recipe"
        raise BadInput(path, rule) from error
    except UnicodeDecodeError as error:
        raise BadInput(file, "is not UTF-8: save it as UTF-8") from error
    return Render(**values, path=file, source=source)


def _checked(raw: object) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise ValueError("must be a table")
    for key, value in raw.items():
        if key not in _KEYS:
            known = ", ".join(_KEYS)
            raise ValueError(f"unknown key {shown(key)}{did_you_mean(key, _KEYS)}; known: {known}")
        if not isinstance(value, dict if key == "kwargs" else str | date):
            raise ValueError(f"{key} = {shown(value)}: must be a text")
        choices = _CHOICES.get(key)
        if choices is not None and value not in choices:
            known = " or ".join(each for each in choices if each)
            raise ValueError(f"{key} = {shown(value)}: must be {known}")
    values = dict(raw)
    _check_template(values)
    if "date" in values:
        values["date"] = date.fromisoformat(str(values["date"])).isoformat()
    if "kwargs" in values:
        try:
            values["kwargs"] = json.dumps(values["kwargs"], sort_keys=True, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError("kwargs: holds a value that JSON has not: write it as text") from error
    return values


def _check_template(values: Mapping[str, Any]) -> None:
    template = values.get("template", HARMONY)
    if template.startswith(_DROP):
        name = template.removeprefix(_DROP)
        if not name or "/" in name or name.startswith("."):
            raise ValueError(f"template = {shown(template)}: must name a file beside the recipe")
        if not name.endswith((".jinja", ".jinja2", ".j2")):
            raise ValueError(f"template = {shown(template)}: name the file with the ending .jinja")
        return
    from gristmill.synth.render.assemble import (
        TEMPLATES,  # loads NumPy, which a look at tables need not
    )

    known = (HARMONY, *TEMPLATES)
    if template not in known:
        raise ValueError(
            f"template = {shown(template)}{did_you_mean(template, known)}: must be "
            f"{', '.join(known)}, or drop: and the name of a file, as drop:chat_template.jinja"
        )
    for key in ("kwargs", "date", "thinking"):
        if key in values:
            raise ValueError(f"{key}: only a template of your own sees it: leave it out")
    if template in (HARMONY, "chatgpt_plain") and values.get("tokenizer", _HARMONY_TOKENS) != (
        _HARMONY_TOKENS
    ):
        raise ValueError(
            f"tokenizer = {shown(values['tokenizer'])}: {template} has the control tokens of "
            f"{_HARMONY_TOKENS}: take another template"
        )
    if template == HARMONY and values.get("expand"):
        raise ValueError("expand: Harmony keeps all thoughts: leave it out")


def drop_name(source: Source) -> str:
    """Name of the drop for the files, as `SYNTH-6ebe6a97`."""
    return keys.checked(f"{source.repo_id.rpartition('/')[2]}-{source.revision[:8]}")


def reached(source: Source, count: int | None = None) -> Reached:
    """The first Parquet files of a repository. Raises HubError where it has none to be used."""
    listed = hub.listed(source, lambda path: path.endswith(".parquet"))
    for file in listed:
        if file.sha256 is None:
            raise HubError(f"{file.path}: the hub lists no sha256, so the file cannot be checked")
    for one, other in pairwise(listed):
        if one.name == other.name:
            raise HubError(
                f"{one.path} and {other.path}: one folder cannot hold both, rename one in the "
                "repository"
            )
    files = {file.name: file for file in listed[:count]}
    if not files:
        raise HubError(f"{source.repo_id} at {source.revision}: no Parquet files to fetch")
    return Reached(source, files)


def fetch(drop: Path, place: Reached, *, progress: Progress = SILENT) -> list[RemoteFile]:
    """Download files into a drop, with `.done` once all are there."""
    return hub.fetch_drop(drop, place, progress, DONE)
