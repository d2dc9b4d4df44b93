"""The hub that `gristmill fetch puzzles` downloads rated Sudokus and mazes from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg

from gristmill.inbox.hub import Fetched
from gristmill.run.progress import SILENT, Progress

if TYPE_CHECKING:
    from gristmill.puzzles.raw.hub import Reached


class PuzzlesHub(dg.ConfigurableResource[Any]):
    """The repositories of drops that can be fetched.

    No asset uses it, as `CorporaHub`.

    endpoint: address of the hub; empty for the public one.
    token_variable: name of the environment variable with the token, read at each request and
        stored nowhere. The variable may be unset.
    """

    endpoint: str = ""
    token_variable: str = "HF_TOKEN"

    def reached(self, source: str, repo: str | None = None, revision: str = "main") -> Reached:
        """What the repository of a drop holds.

        source: name of the drop.
        repo: owner and name, in place of the known ones; default None.
        revision: branch, tag or commit; default "main".

        Raises KeyError for an unknown drop without `repo`, HubError where the repository cannot
        be reached.
        """
        from gristmill.puzzles.raw import hub

        token = os.environ.get(self.token_variable) or False
        return hub.reached(repo or hub.SOURCES[source], revision, self.endpoint or None, token)

    def fetch(
        self, inbox: Path, source: str, place: Reached, progress: Progress = SILENT
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
