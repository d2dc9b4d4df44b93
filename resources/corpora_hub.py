"""The hub that raw SYNTH files are fetched from: which repository, which commit, how many files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg

from gristmill import keys
from gristmill.run.progress import SILENT, Progress
from gristmill.synth.raw import files as raw

if TYPE_CHECKING:
    from gristmill.synth.raw.hub import Fetched, Source


class CorporaHub(dg.ConfigurableResource[Any]):
    """A dataset repository at a pinned commit, fetched file by file and checked by sha256.

    `gristmill fetch` uses it. No asset does, so it stands in no definitions: a
    graph takes up what lies in `drops/`, and nothing in it waits for a network.

    files: how many, from the first on. endpoint: empty for the hub's own.
    token_variable: names the environment variable with a token, which is read
        when a file is asked for and shows up nowhere; it may be unset.
    """

    repo: str = raw.DATASET
    revision: str = raw.REVISION
    files: int = raw.FILES
    endpoint: str = ""
    token_variable: str = "HF_TOKEN"

    @property
    def drop(self) -> str:
        """Name of the drop that the files become, as `SYNTH-6ebe6a97`."""
        return keys.checked(f"{self.repo.rpartition('/')[2]}-{self.revision[:8]}")

    @property
    def source(self) -> Source:
        """What the library fetches from."""
        from gristmill.synth.raw.hub import Source

        return Source(
            repo_id=self.repo,
            revision=self.revision,
            endpoint=self.endpoint or None,
            token=os.environ.get(self.token_variable) or False,
        )

    def fetch(self, inbox: Path, progress: Progress = SILENT) -> Fetched:
        """Bring the files into their drop in `inbox`; those there already are kept.

        progress: gets the stage "fetch", in bytes.

        Raises gristmill.synth.raw.hub.HubError where the hub breaks off for good or
        sends other bytes than it listed; what came so far is taken up next time.
        """
        from gristmill.synth.raw.hub import fetch

        return fetch(inbox / self.drop, self.source, self.files, progress=progress)
