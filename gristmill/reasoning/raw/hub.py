"""Where raw files of each corpus can be fetched from, and fetching them into a drop.

See also `gristmill.hub`: the client; `drops.py`: what the names of files mean.
Source: `docs/formats/reasoning.md#pinned-downloads`.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Final

from gristmill import hub
from gristmill.contract import BadInput
from gristmill.hub import Fetched, HubError, RemoteFile, Source
from gristmill.reasoning.format.corpora import Corpus
from gristmill.reasoning.raw import drops
from gristmill.run.progress import SILENT, Progress

MIRROR: Final = "mirror"
PUBLIC: Final = "public"
SEED: Final = "seed"
CHOICES: Final = (MIRROR, PUBLIC, SEED)
"""Kinds of places, in the order in which one is chosen."""
SOURCE: Final = ".source.json"
"""File of a fetched drop that names the repository, the commit and the files."""
_MIRROR: Final = re.compile(
    r"(?:(?P<endpoint>https?://[^\s@]+?)/)?(?P<repo>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?"
)
_DATA: Final = "data"
_DEFAULT: Final = "default"


@dataclass(frozen=True)
class Place:
    """A repository that may hold a corpus.

    kind: one of `CHOICES`.
    repo: owner and name.
    subset: folder of the repository that holds the files, None for no one folder.
    revision: branch, tag or commit; default "main".
    endpoint: address of its hub; None (default) for the usual one.
    """

    kind: str
    repo: str
    subset: str | None = None
    revision: str = "main"
    endpoint: str | None = None


@dataclass(frozen=True)
class Reached:
    """What a place holds.

    place: the place.
    source: its repository at the commit that was found.
    files: each with its name in the drop, sorted by that.
    """

    place: Place
    source: Source
    files: Sequence[tuple[RemoteFile, str]]

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.bytes for file, _ in self.files)


def places(corpus: Corpus, mirror: str | None = None) -> list[Place]:
    """The places of a corpus in the order in which one is chosen: mirror, public, seed.

    corpus: the corpus.
    mirror: `[address/]owner/name[@revision]`; None (default) for none.

    Raises ValueError for a mirror of another form.
    Source: `docs/formats/reasoning.md#pinned-downloads`.
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
        found.append(Place(PUBLIC, corpus.public_path, corpus.public_subset))
    return [*found, Place(SEED, corpus.hf_path, corpus.subset)]


def reached(
    corpus: Corpus, place: Place, endpoint: str | None = None, token: str | bool = False
) -> Reached:
    """Look at a place: its commit, and the files that a drop would get.

    corpus: that it should hold.
    place: the place.
    endpoint: address of the hub where the place names none; None (default) for the usual one.
    token: for repositories that need one; it is sent to no other hub that a place names.

    Raises HubError if the hub does not answer, has no such repository, or if the repository has
    no data file, or one that belongs to no split of the corpus.
    Source: `docs/formats/reasoning.md#pinned-downloads`.
    """
    sent = token if place.endpoint is None else False
    where = place.endpoint or endpoint
    commit = hub.commit_of(place.repo, place.revision, where, sent)
    source = Source(place.repo, commit, where, sent)
    listed = hub.listed(source, lambda path: drops.kind(PurePosixPath(path).name) is not None)
    folder = _folder([file.path for file in listed], place.subset)
    files = sorted(
        [
            (file, file.path.removeprefix(folder).replace("/", "-"))
            for file in listed
            if file.path.startswith(folder)
        ],
        key=lambda named: named[1],
    )
    if not files:
        raise HubError(f"{place.repo} at {commit}: holds no data file")
    if len({name for _, name in files}) < len(files):
        raise HubError(f"{place.repo} at {commit}: two files would have one name in the drop")
    if unsafe := [name for _, name in files if Path(name).name != name or "\0" in name]:
        raise HubError(f"{place.repo} at {commit}: {unsafe[0]!r} is no name of a file")
    try:
        drops.assigned([Path(name) for _, name in files], corpus)
    except BadInput as error:
        raise HubError(f"{place.repo} at {commit}: {error}") from error
    return Reached(place, source, files)


def _folder(paths: Sequence[str], subset: str | None) -> str:
    """The folder of a repository whose files are taken; empty for all."""
    for name in (subset, _DATA if subset in (None, _DEFAULT) else None):
        if name is not None and any(path.startswith(f"{name}/") for path in paths):
            return f"{name}/"
    return ""


def fetch(drop: Path, place: Reached, *, progress: Progress = SILENT) -> Fetched:
    """Download the files of a place into a drop; files with the right contents are kept.

    drop: the folder of the corpus in the inbox.
    place: what was reached.
    progress: gets the stage "fetch", in bytes.

    Files are downloaded into the hidden folder `.fetch-<corpus>` beside the drop, which the
    sensor does not see, and moved when all are there; a fetch that was interrupted goes on.
    Raises HubError as `gristmill.hub.download`, and where the drop holds other data files: their
    records would be counted twice. Source: `docs/formats/reasoning.md#pinned-downloads`.
    """
    names = {name for _, name in place.files}
    others = [
        path.name
        for path in (sorted(drop.iterdir()) if drop.is_dir() else ())
        if drops.kind(path.name) is not None and path.name not in names
    ]
    if others:
        raise HubError(
            f"{drop}: holds {others[0]}, which {place.source.repo_id} does not have: take it out "
            "first"
        )
    folder = drop.with_name(f".fetch-{drop.name}")
    folder.mkdir(parents=True, exist_ok=True)
    wanted = []
    for file, name in place.files:
        kept = drop / name
        with hub.HubErrors(str(kept)):
            is_kept = kept.is_file() and file.has_bytes_of(kept)
        wanted.append((file, kept if is_kept else folder / name))
    fetched = hub.download(place.source, wanted, progress=progress)
    described = {
        "repository": place.source.repo_id,
        "revision": place.source.revision,
        "files": {
            name: {"path": file.path, "bytes": file.bytes, "digest": file.digest}
            for file, name in place.files
        },
    }
    (folder / SOURCE).write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
    drop.mkdir(exist_ok=True)
    for name in (*sorted(names), SOURCE):
        if (folder / name).exists():
            (folder / name).replace(drop / name)
    shutil.rmtree(folder)
    return replace(fetched, files=[drop / name for _, name in place.files])
