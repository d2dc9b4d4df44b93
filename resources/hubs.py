"""The hubs that `gristmill fetch` downloads raw files from.

No asset uses them, so they are no part of the definitions: the assets are built from files in
`drops/`, and none of them waits for a network.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg

from gristmill import keys
from gristmill.inbox.hub import Fetched, HubError
from gristmill.reasoning.format.corpora import Corpus
from gristmill.run.progress import SILENT, Progress
from gristmill.synth.raw import files as raw

if TYPE_CHECKING:
    from gristmill.puzzles.raw import hub as puzzles_hub
    from gristmill.reasoning.raw import hub as reasoning_hub
    from gristmill.synth.raw import hub as synth_hub


class _Hub(dg.ConfigurableResource[Any]):
    """A hub, and the token for it."""

    endpoint: str = ""
    token_variable: str = "HF_TOKEN"

    @property
    def _token(self) -> str | bool:
        return os.environ.get(self.token_variable) or False


class CorporaHub(_Hub):
    """A dataset repository at a pinned commit, fetched file by file and checked by sha256.

    repo: name of the dataset repository.
    revision: the commit, 40 hexadecimal digits.
    files: how many files to fetch, from the first one on.
    """

    repo: str = raw.DATASET
    revision: str = raw.REVISION
    files: int = raw.FILES

    @property
    def drop(self) -> str:
        """Name of the drop for the files, as `SYNTH-6ebe6a97`."""
        return keys.checked(f"{self.repo.rpartition('/')[2]}-{self.revision[:8]}")

    @property
    def source(self) -> synth_hub.Source:
        """The repository, the commit and the token, as the library takes them."""
        from gristmill.synth.raw.hub import Source

        return Source(
            repo_id=self.repo,
            revision=self.revision,
            endpoint=self.endpoint or None,
            token=self._token,
        )

    def fetch(self, inbox: Path, progress: Progress = SILENT) -> Fetched:
        """Download the files into their drop; files that are there already are kept.

        inbox: the folder `drops/synth/`.
        progress: gets the stage "fetch", in bytes; default silent.

        Raises gristmill.synth.raw.hub.HubError if the hub stops answering, or sends other bytes
        than it listed. The next fetch continues from the files that are complete.
        """
        from gristmill.synth.raw.hub import fetch

        return fetch(inbox / self.drop, self.source, self.files, progress=progress)


class PuzzlesHub(_Hub):
    """The repositories of drops that can be fetched."""

    def reached(
        self, source: str, repo: str | None = None, revision: str = "main"
    ) -> puzzles_hub.Reached:
        """What the repository of a drop holds.

        source: name of the drop.
        repo: owner and name, in place of the known ones; default None.
        revision: branch, tag or commit; default "main".

        Raises KeyError for an unknown drop without `repo`, HubError where the repository cannot
        be reached.
        """
        from gristmill.puzzles.raw import hub

        return hub.reached(
            repo or hub.SOURCES[source], revision, self.endpoint or None, self._token
        )

    def fetch(
        self, inbox: Path, source: str, place: puzzles_hub.Reached, progress: Progress = SILENT
    ) -> Fetched:
        """Download the files of a repository into the drop of a source.

        inbox: the folder `drops/puzzles/`.
        source: name of the drop.
        place: what `reached` gave.
        progress: gets the stage "fetch", in bytes; default silent.

        Raises HubError as `gristmill.puzzles.raw.hub.fetch`.
        """
        from gristmill.puzzles.raw import hub

        return hub.fetch(inbox / source, place, progress=progress)


class ReasoningHub(_Hub):
    """The places of the corpora: a mirror from the settings, the public path, the seed's path.

    Of a corpus of a drop: the repository that its file names.
    """

    def check(
        self, corpora: Sequence[Corpus], mirrors: Mapping[str, str | None]
    ) -> Iterator[tuple[str, reasoning_hub.Place, reasoning_hub.Reached | str]]:
        """Yield for each corpus and place its name, and what it holds or why it is not reached.

        corpora: built-in ones, and those of drops.
        mirrors: by name of corpus, as the settings have them.

        Raises ValueError for a mirror that is none, and a corpus that names no repository.
        """
        from gristmill.reasoning.raw import hub

        for corpus in corpora:
            for place in hub.places(corpus, mirrors.get(corpus.name)):
                try:
                    yield corpus.name, place, self._reached(corpus, place)
                except HubError as error:
                    yield corpus.name, place, str(error)

    def reached(
        self, corpus: Corpus, mirror: str | None, choice: str | None = None
    ) -> reasoning_hub.Reached:
        """What the chosen place of a corpus holds.

        corpus: a built-in one, or that of a drop.
        mirror: as the settings have it; None for none.
        choice: kind of the place; None (default) for the mirror if there is one, else the public
            path.

        Raises ValueError for a choice that the corpus does not have, HubError where the place
        cannot be reached.
        """
        from gristmill.reasoning.raw import hub

        found = {place.kind: place for place in hub.places(corpus, mirror)}
        if choice is None:
            choice = next(iter(found))
        if choice not in found:
            raise ValueError(f"{corpus.name} has no {choice}: choose one of {', '.join(found)}")
        return self._reached(corpus, found[choice])

    def fetch(
        self, inbox: Path, corpus: str, place: reasoning_hub.Reached, progress: Progress = SILENT
    ) -> Fetched:
        """Download the files of a place into the drop of a corpus.

        inbox: the folder `drops/reasoning/`.
        corpus: its name.
        place: what `reached` gave.
        progress: gets the stage "fetch", in bytes; default silent.

        Raises HubError as `gristmill.reasoning.raw.hub.fetch`.
        """
        from gristmill.reasoning.raw import hub

        return hub.fetch(inbox / corpus, place, progress=progress)

    def _reached(self, corpus: Corpus, place: reasoning_hub.Place) -> reasoning_hub.Reached:
        from gristmill.reasoning.raw import hub

        return hub.reached(corpus, place, self.endpoint or None, self._token)
