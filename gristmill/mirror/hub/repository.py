"""A branch of a dataset repository: what a commit holds, sending files, and adding a commit."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gristmill.contract import GristmillError
from gristmill.inbox.hub import HubError, HubErrors
from gristmill.mirror.store import MirrorError
from gristmill.mirror.versions import parsed_record
from gristmill.provenance import Record

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd, HfApi, RepoFile

_URL: Final = re.compile(r"hf://datasets/([\w.-]+/[\w.-]+)(?:@([\w.-]+))?/?", re.ASCII)


class HubRepository:
    """A branch of a dataset repository."""

    def __init__(self, url: str, parallel: int) -> None:
        if (parts := _URL.fullmatch(url)) is None:
            raise MirrorError(f"{url}: a dataset repository is hf://datasets/OWNER/NAME[@BRANCH]")
        try:
            from huggingface_hub import HfApi, get_token
        except ModuleNotFoundError as error:
            raise MirrorError(
                f"{url}: publishing on the hub needs its library: "
                f"pip install 'gristmill[pipeline]' ({error})"
            ) from error
        self.url, self._repo, self._branch = url, parts[1], parts[2] or "main"
        self.name = parts[1].partition("/")[2]
        self._parallel, token = parallel, get_token()
        if token is None:
            raise MirrorError(
                f"{url}: the hub takes commits with a token alone: set HF_TOKEN, or call "
                "`hf auth login`"
            )
        self._api: HfApi = HfApi(token=token)

    def make(self) -> None:
        """Make the repository where there is none, private, and the branch."""
        with HubErrors(self.url):
            if not self._api.repo_exists(self._repo, repo_type="dataset"):
                self._api.create_repo(self._repo, repo_type="dataset", private=True, exist_ok=True)
            if self._branch != "main":
                self._api.create_branch(
                    self._repo, branch=self._branch, repo_type="dataset", exist_ok=True
                )

    def head(self) -> str:
        """The newest commit of the branch."""
        with HubErrors(self.url):
            return str(self._api.dataset_info(self._repo, revision=self._branch).sha)

    def below(self, commit: str, folder: str) -> dict[str, RepoFile]:
        """All files of a commit below a folder, by path."""
        from huggingface_hub import RepoFile
        from huggingface_hub.errors import EntryNotFoundError

        with HubErrors(self.url):
            try:
                listed = self._api.list_repo_tree(
                    self._repo, folder, recursive=True, revision=commit, repo_type="dataset"
                )
                return {each.path: each for each in listed if isinstance(each, RepoFile)}
            except EntryNotFoundError:
                return {}

    def text(self, commit: str, path: str) -> str:
        """The text of a file of a commit; empty where it has none."""
        from huggingface_hub.errors import EntryNotFoundError

        with HubErrors(self.url), tempfile.TemporaryDirectory(prefix="gristmill-") as folder:
            try:
                found = self._api.hf_hub_download(
                    self._repo, path, repo_type="dataset", revision=commit, local_dir=folder
                )
            except EntryNotFoundError:
                return ""
            return Path(found).read_text()

    def record(self, commit: str, path: str) -> Record:
        """A record in a commit. Raises HubError where the file is none."""
        try:
            return parsed_record(self.text(commit, path).encode(), path)
        except GristmillError as error:
            raise HubError(
                f"{self.url}: {path} is no record of an artifact ({error}): remove it there, then "
                "push again"
            ) from error

    def send(self, operations: Iterable[CommitOperationAdd]) -> None:
        """Send what a commit does not bring itself, and what the hub does not have."""
        from huggingface_hub.utils import (  # type: ignore[attr-defined]
            are_progress_bars_disabled,
            disable_progress_bars,
        )

        if not are_progress_bars_disabled():
            disable_progress_bars()  # the push shows its own
        with HubErrors(self.url):
            try:
                self._api.preupload_lfs_files(
                    self._repo,
                    operations,
                    repo_type="dataset",
                    revision=self._branch,
                    num_threads=self._parallel,
                )
            except RuntimeError as error:  # what the library makes of a failed upload
                raise HubError(f"{self.url}: {error} {error.__cause__}") from error

    def commit(
        self, head: str, title: str, added: Iterable[CommitOperationAdd], removed: Iterable[str]
    ) -> str | None:
        """Commit on top of `head`; the new commit, None where the branch has another head now."""
        from huggingface_hub import CommitOperationDelete
        from huggingface_hub.errors import HfHubHTTPError

        gone = [CommitOperationDelete(path, is_folder=False) for path in sorted(removed)]
        with HubErrors(self.url):
            try:
                done = self._api.create_commit(
                    self._repo,
                    [*added, *gone],
                    commit_message=title,
                    repo_type="dataset",
                    revision=self._branch,
                    parent_commit=head,
                    num_threads=self._parallel,
                )
            except HfHubHTTPError as error:
                if error.response is not None and error.response.status_code == 412:
                    return None
                raise
        return str(done.oid)
