"""The hub that `gristmill fetch reasoning` downloads raw files of the seven corpora from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg

from gristmill.inbox.hub import Fetched, HubError
from gristmill.reasoning.format.corpora import CORPORA
from gristmill.run.progress import SILENT, Progress

if TYPE_CHECKING:
    from gristmill.reasoning.raw.hub import Place, Reached


class ReasoningHub(dg.ConfigurableResource[Any]):
    """The places of the corpora: a mirror from the settings, the public path, the seed's path.

    No asset uses it, as `CorporaHub`.

    endpoint: address of the hub of places that name none; empty for the public one.
    token_variable: name of the environment variable with the token, read at each request and
        stored nowhere. The variable may be unset.
    """

    endpoint: str = ""
    token_variable: str = "HF_TOKEN"

    def check(
        self, corpora: Sequence[str], mirrors: Mapping[str, str | None]
    ) -> Iterator[tuple[str, Place, Reached | str]]:
        """Yield for each corpus and place what it holds, or why it cannot be reached.

        corpora: names.
        mirrors: by name of corpus, as the settings have them.

        Raises ValueError for a mirror that is none.
        """
        from gristmill.reasoning.raw import hub

        for name in corpora:
            for place in hub.places(CORPORA[name], mirrors.get(name)):
                try:
                    yield name, place, self._reached(name, place)
                except HubError as error:
                    yield name, place, str(error)

    def reached(self, corpus: str, mirror: str | None, choice: str | None = None) -> Reached:
        """What the chosen place of a corpus holds.

        corpus: its name.
        mirror: as the settings have it; None for none.
        choice: kind of the place; None (default) for the mirror if there is one, else the public
            path.

        Raises ValueError for a choice that the corpus does not have, HubError where the place
        cannot be reached.
        """
        from gristmill.reasoning.raw import hub

        found = {place.kind: place for place in hub.places(CORPORA[corpus], mirror)}
        if choice is None:
            choice = next(iter(found))
        if choice not in found:
            raise ValueError(f"{corpus} has no {choice}: choose one of {', '.join(found)}")
        return self._reached(corpus, found[choice])

    def fetch(
        self, inbox: Path, corpus: str, place: Reached, progress: Progress = SILENT
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

    def _reached(self, corpus: str, place: Place) -> Reached:
        from gristmill.reasoning.raw import hub

        token = os.environ.get(self.token_variable) or False
        return hub.reached(CORPORA[corpus], place, self.endpoint or None, token)
