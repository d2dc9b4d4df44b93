"""A branch of a dataset repository: what a commit holds, sending files, and adding a commit."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gristmill import provenance
from gristmill.contract import GristmillError
from gristmill.inbox.hub import HubError, HubErrors, RemoteFile, Source, download
from gristmill.mirror.store import MirrorError
from gristmill.provenance import Record

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd, HfApi, RepoFile

_URL: Final = re.compile(r"hf://datasets/([\w.-]+/[\w.-]+)(?:@([\w.-]+))?/?", re.ASCII)
_ASKED: Final = 500


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
        self._parallel, self._token = parallel, get_token()
        if self._token is None:
            raise MirrorError(
                f"{url}: the hub takes commits with a token alone: set HF_TOKEN, or call "
                "`hf auth login`"
            )
        self._api: HfApi = HfApi(token=self._token)

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

    def files(self, commit: str, paths: Sequence[str]) -> dict[str, RemoteFile]:
        """Those of the paths that are files of a commit."""
        from huggingface_hub import RepoFile

        listed: dict[str, RemoteFile] = {}
        with HubErrors(self.url):
            for start in range(0, len(paths), _ASKED):
                asked = list(paths[start : start + _ASKED])
                for each in self._api.get_paths_info(
                    self._repo, asked, revision=commit, repo_type="dataset"
                ):
                    if isinstance(each, RepoFile):
                        listed[each.path] = _remote(each)
        return listed

    def below(self, commit: str, folder: str) -> dict[str, RemoteFile]:
        """All files of a commit below a folder that it has."""
        from huggingface_hub import RepoFile

        with HubErrors(self.url):
            listed = self._api.list_repo_tree(
                self._repo, folder, recursive=True, revision=commit, repo_type="dataset"
            )
            return {each.path: _remote(each) for each in listed if isinstance(each, RepoFile)}

    @property
    def name(self) -> str:
        """Of the repository, without its owner."""
        return self._repo.partition("/")[2]

    def text(self, commit: str, path: str) -> str:
        """The text of a file of a commit; empty where it has none."""
        there = self.files(commit, [path]).get(path)
        if there is None:
            return ""
        with self._downloaded(commit, there) as target:
            return target.read_text()

    @contextmanager
    def _downloaded(self, commit: str, file: RemoteFile) -> Iterator[Path]:
        source = Source(self._repo, commit, self._api.endpoint, self._token or False)
        with tempfile.TemporaryDirectory(prefix="gristmill-") as folder:
            yield download(source, file, Path(folder))

    def record(self, commit: str, file: RemoteFile) -> Record:
        """A record in a commit. Raises HubError where the file is none."""
        with self._downloaded(commit, file) as target:
            try:
                return provenance.read_record(target)
            except GristmillError as error:
                raise HubError(
                    f"{self.url}: {file.path} is no record of an artifact ({error}): remove it "
                    "there, then push again"
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
        self,
        head: str,
        title: str,
        added: Sequence[CommitOperationAdd],
        removed: Iterable[str],
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


def _remote(file: RepoFile) -> RemoteFile:
    sha256 = None if file.lfs is None else file.lfs.sha256
    return RemoteFile(file.path, file.size, sha256, file.blob_id if file.lfs is None else None)
