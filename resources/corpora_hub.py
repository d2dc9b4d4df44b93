"""The hub that `gristmill fetch` downloads raw SYNTH files from."""

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

    No asset uses it, so it is not part of the definitions: the assets are built from files in
    `drops/`, and none of them waits for a network.

    repo: name of the dataset repository.
    revision: the commit, 40 hexadecimal digits.
    files: how many files to fetch, from the first one on.
    endpoint: address of the hub; empty for the public one.
    token_variable: name of the environment variable with the token, read at each request and
        stored nowhere. The variable may be unset.
    """

    repo: str = raw.DATASET
    revision: str = raw.REVISION
    files: int = raw.FILES
    endpoint: str = ""
    token_variable: str = "HF_TOKEN"

    @property
    def drop(self) -> str:
        """Name of the drop for the files, as `SYNTH-6ebe6a97`."""
        return keys.checked(f"{self.repo.rpartition('/')[2]}-{self.revision[:8]}")

    @property
    def source(self) -> Source:
        """The repository, the commit and the token, as the library takes them."""
        from gristmill.synth.raw.hub import Source

        return Source(
            repo_id=self.repo,
            revision=self.revision,
            endpoint=self.endpoint or None,
            token=os.environ.get(self.token_variable) or False,
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
