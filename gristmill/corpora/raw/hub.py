"""Fetching the raw files of a corpus. Source: `docs/formats/reasoning.md#pinned-downloads`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Final

from gristmill.contract import BadInput
from gristmill.corpora.corpus import Corpus
from gristmill.corpora.raw import drops
from gristmill.inbox import hub
from gristmill.inbox.hub import HubError, Reached, RemoteFile, Source
from gristmill.run.progress import SILENT, Progress
from gristmill.untrusted.walk import visible_files

MIRROR: Final = "mirror"
PUBLIC: Final = "public"
SEED: Final = "seed"
"""Kinds of places, in the order in which one is chosen."""
_MIRROR: Final = re.compile(
    r"(?:(?P<endpoint>https?://[^\s@]+?)/)?(?P<repo>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?"
)
_MAIN: Final = "main"
_CONVERTED: Final = "refs/convert/parquet"
"""The branch in which a hub keeps Parquet files of a repository that has a loading script."""
_PARTIAL: Final = "partial-"
"""Begins the folder of a split that was too large to be converted whole."""
_FORMATS: Final = ("parquet", "csv", "tsv", "jsonl", "ndjson", "json")
"""Of files that differ in their endings alone, the first of these is fetched."""


@dataclass(frozen=True)
class Place:
    """A repository that may hold a corpus.

    subset: folder of the repository that holds the files, None for no one folder.
    revision: branch, tag or commit; default "main".
    endpoint: address of its hub; None (default) for the usual one.
    """

    kind: str
    repo: str
    subset: str | None = None
    revision: str = _MAIN
    endpoint: str | None = None


def places(corpus: Corpus, mirror: str | None = None) -> list[Place]:
    """The places of a corpus in the order in which one is chosen: mirror, public, seed.

    mirror: `[address/]owner/name[@revision]`; None (default) for none.

    Raises ValueError for a mirror of another form, and for a corpus that names no repository.
    """
    found = []
    if mirror is not None:
        match = _MIRROR.fullmatch(mirror)
        if match is None:
            raise ValueError(
                f"{corpus.name} = {mirror!r}: a mirror is owner/name, with the address of its hub "
                "before it and @revision behind it if needed"
            )
        place = Place(MIRROR, match["repo"], corpus.public_subset, endpoint=match["endpoint"])
        found.append(replace(place, revision=match["revision"] or place.revision))
    if corpus.public_path is not None:
        found.append(Place(PUBLIC, corpus.public_path, corpus.public_subset, corpus.revision))
    if corpus.is_built_in:
        found.append(Place(SEED, corpus.hf_path, corpus.subset))
    if not found:
        raise ValueError(
            f'{corpus.name}: write source = {{ repo = "owner/name" }} into its {drops.CORPUS}'
        )
    return found


def reached(
    corpus: Corpus, place: Place, endpoint: str | None = None, token: str | bool = False
) -> Reached:
    """Look at a place: its commit, and the files that a drop would get.

    endpoint: address of the hub where the place names none; None (default) for the usual one.
    token: for repositories that need one; it is sent to no other hub that a place names.

    Raises HubError if the hub does not answer, has no such repository, or if the repository has
    no data file, or one that belongs to no split of the corpus.
    """
    sent = token if place.endpoint is None else False
    where = place.endpoint or endpoint
    source = Source(place.repo, hub.commit_of(place.repo, place.revision, where, sent), where, sent)
    listed = _data_files(source)
    if not listed and place.revision == _MAIN:
        source = _converted(source)
        listed = _data_files(source)
    at = f"{place.repo} at {source.revision}"
    wanted, left_out = _wanted(listed, corpus, place)
    taken, others = _of_one_format(wanted)
    left_out |= others
    folder = drops.subset_folder([file.path for file in listed], place.subset)
    # The globs of a file of its own may name folders, so these stay.
    names = [
        file.path.removeprefix(folder).replace("/", "-") if corpus.is_built_in else file.path
        for file in taken
    ]
    if not names:
        raise HubError(f"{at}: holds no data file{' that is wanted' if listed else ''}")
    if partial := [file.path for file in taken if f"/{_PARTIAL}" in f"/{file.path}"]:
        raise HubError(f"{at}: {partial[0]}: the hub converted only a part: name a whole mirror")
    if len(set(names)) < len(names):
        raise HubError(f"{at}: two files would have one name in the drop")
    if unsafe := [name for name in names if not _is_name(name)]:
        raise HubError(f"{at}: {unsafe[0]!r} is no name of a file")
    try:
        drops.assigned(sorted(names), corpus)
    except BadInput as error:
        raise HubError(f"{at}: {error}") from error
    return Reached(source, dict(sorted(zip(names, taken, strict=True))), left_out)


def _wanted(
    listed: Sequence[RemoteFile], corpus: Corpus, place: Place
) -> tuple[list[RemoteFile], dict[str, str]]:
    """The files that a corpus wants of a repository, and why the others are left out."""
    folder = drops.subset_folder([file.path for file in listed], place.subset)
    left_out = {}
    for file in listed:
        if corpus.paths and not drops.matches(file.path, corpus.paths):
            left_out[file.path] = "`source.paths` does not name it"
        elif drops.matches(file.path, corpus.leave):
            left_out[file.path] = "`leave` names it"
        elif not file.path.startswith(folder) and (
            place.subset or not (corpus.paths or corpus.files)
        ):
            left_out[file.path] = f"another configuration than {folder}"
    return [file for file in listed if file.path not in left_out], left_out


def _is_name(name: str) -> bool:
    """Whether a path of a hub is that of a file in a drop, and of none beside it or hidden."""
    parts = name.split("/")
    return "\0" not in name and all(part and not part.startswith(".") for part in parts)


def _data_files(source: Source) -> list[RemoteFile]:
    return hub.listed(source, lambda path: drops.kind(PurePosixPath(path).name) is not None)


def _converted(source: Source) -> Source:
    """The source at the branch of Parquet files that the hub makes of a repository."""
    try:
        commit = hub.commit_of(source.repo_id, _CONVERTED, source.endpoint, source.token)
    except HubError as error:
        why = " ".join(str(error).split())
        raise HubError(
            f"{source.repo_id} at {source.revision}: holds no data file, and {_CONVERTED}, where "
            f"the hub puts Parquet files, cannot be reached ({why}): copy the files into the "
            "drop by hand, or name a mirror in [reasoning.sources] of gristmill.toml"
        ) from error
    return replace(source, revision=commit)


def _of_one_format(files: Sequence[RemoteFile]) -> tuple[list[RemoteFile], dict[str, str]]:
    """The files that are taken, and why the others are not: they hold the same records."""
    best: dict[str, RemoteFile] = {}
    for file in sorted(files, key=lambda file: (_rank(file.name), file.path)):
        best.setdefault(drops.stem(file.path), file)
    taken = list(best.values())
    left_out = {
        file.path: f"{best[drops.stem(file.path)].name} holds the same in another format"
        for file in files
        if file not in taken
    }
    return taken, left_out


def _rank(name: str) -> tuple[bool, int]:
    ending, packed = drops.kind(name) or ("", "")
    return packed != "", _FORMATS.index(ending)


def fetch(drop: Path, place: Reached, *, progress: Progress = SILENT) -> list[RemoteFile]:
    """Download the files of a place into a drop.

    Raises HubError as `gristmill.inbox.hub.fetch_drop`, and where the drop holds other data files:
    their records would be counted twice.
    """
    try:
        present = visible_files(drop)
    except BadInput as error:
        raise HubError(str(error)) from error
    others = [name for name in present if drops.kind(Path(name).name) and name not in place.files]
    if others:
        raise HubError(
            f"{drop}: holds {others[0]}, which {place.source.repo_id} does not have: take it out "
            "first"
        )
    return hub.fetch_drop(drop, place, progress)
