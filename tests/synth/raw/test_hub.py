"""Which files of SYNTH are fetched, and that a drop is complete only while all are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.inbox.hub import HubError, Source
from gristmill.synth import raw
from tests.hub_server import COMMIT, Hub, server

__all__ = ["REPO", "parquets", "server", "source"]  # fixtures, also of the tests of the command

REPO = "example/SYNTH"


@pytest.fixture
def parquets(server: Hub) -> dict[str, bytes]:
    """The files of the repository, in no order."""
    made = {f"synth_{n:03d}.parquet": bytes([n]) * (1000 * n) for n in (2, 1, 3)}
    server.repositories[REPO] = {**made, "README.md": b"read me"}
    return server.repositories[REPO]


@pytest.fixture
def source(server: Hub) -> Source:
    return Source(REPO, COMMIT, server.address)


def test_the_first_parquet_files_by_name_are_fetched(
    parquets: dict[str, bytes], source: Source, tmp_path: Path
) -> None:
    names = [f"synth_00{n}.parquet" for n in (1, 2, 3)]
    assert list(raw.reached(source).files) == names
    assert raw.drop_name(source) == "SYNTH-01234567"
    raw.fetch(tmp_path, raw.reached(source, 2))
    assert raw.complete_files(tmp_path) == [tmp_path / name for name in names[:2]]
    assert [(tmp_path / name).read_bytes() == parquets[name] for name in names[:2]] == [True] * 2


def test_a_drop_is_incomplete_until_the_files_of_a_fetch_are_there_and_right(
    server: Hub, parquets: dict[str, bytes], source: Source, tmp_path: Path
) -> None:
    raw.fetch(tmp_path, raw.reached(source, 1))
    for count, broken in ((3, "synth_002.parquet"), (1, "synth_001.parquet")):
        assert raw.is_complete(tmp_path)
        (tmp_path / "synth_001.parquet").write_bytes(b"changed")
        server.broken = {broken}
        with pytest.raises(HubError, match=broken):
            raw.fetch(tmp_path, raw.reached(source, count))
        assert not raw.is_complete(tmp_path)
        server.broken = set()
        assert len(raw.fetch(tmp_path, raw.reached(source, count))) == count
    assert raw.is_complete(tmp_path)


@pytest.mark.usefixtures("parquets")
def test_an_unfinished_file_of_0_9_is_not_waited_for(source: Source, tmp_path: Path) -> None:
    (tmp_path / ".synth_001.parquet.0123456789abcdef.partial").write_bytes(b"x")
    raw.fetch(tmp_path, raw.reached(source, 1))
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {".done", ".source.json", "synth_001.parquet"}


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"small.parquet": b"x"}, r"small\.parquet: the hub lists no sha256"),
        # In the drop each of them would replace the other.
        (
            {"other/synth_001.parquet": b"x" * 1000},
            r"other/synth_001\.parquet and synth_001\.parquet: one folder cannot hold both",
        ),
    ],
)
def test_files_that_cannot_be_checked_or_be_in_one_folder_are_refused(
    parquets: dict[str, bytes], source: Source, more: dict[str, bytes], reason: str
) -> None:
    parquets.update(more)
    with pytest.raises(HubError, match=reason):
        raw.reached(source)
    parquets.clear()
    with pytest.raises(HubError, match=f"{REPO} at {COMMIT}: no Parquet files to fetch"):
        raw.reached(source)
