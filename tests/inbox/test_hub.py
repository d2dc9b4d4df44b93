"""Fetching into a drop: files appear when all are there and whole, and are fetched once."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from gristmill.contract import GristmillError
from gristmill.inbox import hub
from gristmill.inbox.copying import only_copy
from gristmill.inbox.hub import HubError, Reached, Source
from gristmill.run.progress import Progress, Report
from tests.hub_server import COMMIT, Hub, server
from tests.paths import CHECKOUT

__all__ = ["server"]  # a fixture

REPO = "openai/gsm8k"
NAMES = {"train.jsonl": "main/train.jsonl", "of/test.jsonl": "main/test.jsonl"}
MARK = ".done"


def reached(server: Hub) -> Reached:
    source = Source(REPO, COMMIT, server.address)
    listed = {file.path: file for file in hub.listed(source, lambda _: True)}
    return Reached(source, {name: listed[path] for name, path in NAMES.items()})


def contents(drop: Path) -> dict[str, bytes]:
    files = sorted(path for path in drop.rglob("*") if path.is_file())
    return {path.relative_to(drop).as_posix(): path.read_bytes() for path in files}


def expected(server: Hub) -> dict[str, bytes]:
    return {name: server.repositories[REPO][path] for name, path in NAMES.items()}


def test_files_are_fetched_once_and_the_drop_says_from_where(server, tmp_path):
    drop, place = tmp_path / "drop", reached(server)
    assert hub.fetch_drop(drop, place, mark=MARK) == list(place.files.values())
    assert place.bytes == 3333
    found = contents(drop)
    origin = json.loads(found.pop(hub.ORIGIN))
    assert found == {**expected(server), MARK: b""}
    assert list(tmp_path.iterdir()) == [drop]
    assert (origin["repository"], origin["revision"]) == (REPO, COMMIT)
    for name, file in place.files.items():
        described = {"path": NAMES[name], "bytes": file.bytes, "digest": file.digest}
        assert origin["files"][name] == described
    server.requests.clear()
    assert hub.fetch_drop(drop, place, mark=MARK) == []
    (drop / "of/test.jsonl").write_bytes(b"changed")
    assert hub.fetch_drop(drop, place, mark=MARK) == [place.files["of/test.jsonl"]]
    assert server.requests == [("main/test.jsonl", None)]
    assert contents(drop).items() >= expected(server).items()


@pytest.mark.parametrize("path", NAMES.values())
@pytest.mark.parametrize("stands", [False, True])
def test_other_bytes_than_listed_are_refused_and_fetched_again(server, tmp_path, path, stands):
    drop, place = tmp_path / "drop", reached(server)
    if stands:
        hub.fetch_drop(drop, place, mark=MARK)
        for name in NAMES:
            (drop / name).write_bytes(b"changed")
    before = contents(drop)
    before.pop(MARK, None)
    server.broken.add(path)
    with pytest.raises(HubError, match=f"{path}: its (sha256|blob) is not .*: fetch again"):
        hub.fetch_drop(drop, place, mark=MARK)
    assert contents(drop) == before  # without the mark
    server.broken.clear()
    assert len(hub.fetch_drop(drop, place, mark=MARK)) == 2
    assert contents(drop).items() >= {**expected(server), MARK: b""}.items()
    assert list(tmp_path.iterdir()) == [drop]


def test_a_closed_connection_is_opened_again_but_not_for_ever(server, tmp_path):
    place, reports = reached(server), list[Report]()
    server.cut_after = [400, 100]
    hub.fetch_drop(tmp_path / "drop", place, Progress(reports.append, every=0.0))
    asked = [each for path, each in server.requests if path == "main/train.jsonl"]
    assert asked == [None, "bytes=400-", "bytes=500-"]
    assert contents(tmp_path / "drop").items() >= expected(server).items()
    assert {(each.stage, each.total, each.unit) for each in reports} == {("fetch", 3333, "bytes")}
    done = [report.done for report in reports]
    assert done == sorted(done) and (done[0], done[-1]) == (0, 3333) and len(done) > 20
    server.cut_after = [300] + [0] * 20
    with pytest.raises(HubError, match=r"openai/gsm8k: main/train\.jsonl: "):
        hub.fetch_drop(tmp_path / "other", place)
    assert not (tmp_path / "other").exists()


KILLED = """
import os, sys
from pathlib import Path
from gristmill.inbox import hub
from tests.inbox.test_hub import MARK, place_at
calls, inbox = iter(range(int(sys.argv[3]))), os.path.dirname(sys.argv[2])
def event(name, arguments):
    if name in ("os.rename", "os.mkdir", "shutil.rmtree") and inbox in str(arguments):
        if next(calls, None) is None:
            os._exit(9)
sys.addaudithook(event)
hub.fetch_drop(Path(sys.argv[2]), place_at(sys.argv[1]), mark=MARK)
"""


def place_at(address: str) -> Reached:
    """Of the server of another process."""
    return reached(SimpleNamespace(address=address))  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_killed_fetch_leaves_whole_files_and_the_next_one_goes_on(server, tmp_path):
    """Killed before each of its calls in turn, until one lives to the end."""
    drop, kills = tmp_path / "drop", 0
    while True:
        command = [sys.executable, "-c", KILLED, server.address, str(drop), str(kills)]
        done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            break
        assert done.returncode == 9, done.stderr
        found = contents(drop)
        assert found.items() <= {**expected(server), hub.ORIGIN: found.get(hub.ORIGIN)}.items()
        kills += 1
    assert kills > 6
    assert contents(drop).items() >= {**expected(server), MARK: b""}.items()
    assert list(tmp_path.iterdir()) == [drop]


def test_a_missing_repository_a_missing_server_and_a_folder_in_the_way_are_named(server, tmp_path):
    with pytest.raises(HubError, match="o/gone at main"):
        hub.commit_of("o/gone", endpoint=server.address)
    gone = Source(REPO, COMMIT, server.address.replace(str(server.server_port), "9"))
    with pytest.raises(HubError, match=f"{REPO} at {COMMIT}"):
        hub.listed(gone, lambda _: True)
    place = reached(server)
    with pytest.raises(HubError, match=r"openai/gsm8k: main/t"):
        hub.fetch_drop(tmp_path / "other", Reached(gone, place.files))
    (tmp_path / "drop/train.jsonl").mkdir(parents=True)
    with pytest.raises(HubError, match=r"train\.jsonl.*directory"):
        hub.fetch_drop(tmp_path / "drop", place)


def test_one_process_brings_a_drop(server, tmp_path):
    place = reached(server)
    with only_copy(tmp_path / "drop"), pytest.raises(GristmillError, match="another process"):
        hub.fetch_drop(tmp_path / "drop", place)
    assert not server.requests
    assert len(hub.fetch_drop(tmp_path / "drop", place)) == 2


def test_files_of_a_drop_that_is_a_link_are_kept_beside_what_it_leads_to(server, tmp_path):
    place, disk = reached(server), tmp_path / "disk"
    (disk / "real").mkdir(parents=True)
    (tmp_path / "drop").symlink_to(disk / "real")
    server.broken.add("main/test.jsonl")
    with pytest.raises(HubError):
        hub.fetch_drop(tmp_path / "drop", place)
    assert sorted(path.name for path in disk.iterdir()) == [".fetch-drop", "real"]
    server.broken.clear()
    hub.fetch_drop(tmp_path / "drop", place)
    assert contents(disk / "real").items() >= expected(server).items()
    assert list(disk.iterdir()) == [disk / "real"]


@pytest.mark.parametrize("path", ["../x.jsonl", "a/../../x.jsonl", "/x.jsonl"])
def test_a_path_that_leads_out_of_the_folder_is_refused(server, tmp_path, path):
    server.repositories[REPO][path] = b"{}"
    source = Source(REPO, COMMIT, server.address)
    (file,) = hub.listed(source, lambda each: each == path)
    with pytest.raises(HubError, match="Invalid filename"):
        hub.fetch_drop(tmp_path / "a/drop", Reached(source, {"x.jsonl": file}))
    assert not list(tmp_path.rglob("x.jsonl"))


def test_a_revision_that_is_no_commit_is_refused():
    for revision in ("main", COMMIT[1:], COMMIT + "0", COMMIT.upper()):
        with pytest.raises(ValueError, match="40 hex digits"):
            Source(REPO, revision)


@pytest.mark.parametrize("answer", [b"null", b"[1]", b'[{"type": "file"}]', b"<html>", b"\xff"])
def test_an_answer_that_is_no_listing_is_a_hub_error(server, answer):
    server.answer = answer
    with pytest.raises(HubError, match=f"{REPO} at {COMMIT}"):
        hub.listed(Source(REPO, COMMIT, server.address), lambda _: True)
    with pytest.raises(HubError, match=f"{REPO} at main"):
        hub.commit_of(REPO, endpoint=server.address)


def test_the_bars_of_the_client_library_count_each_byte_once():
    """Of its other way to download, which no local server has."""
    from huggingface_hub.utils._xet_progress_reporting import XetDownloadProgressReporter

    reports: list[Report] = []
    with Progress(reports.append, every=0.0).stage("fetch", "bytes", 90) as stage:
        made = XetDownloadProgressReporter(
            reconstruction_desc="x", total=90, log_level=0, tqdm_class=hub._bars(stage)
        )
        with made as shown:
            for count in (40, 90):
                shown.update_progress(
                    SimpleNamespace(
                        total_bytes_completed=count,
                        total_transfer_bytes_completed=count,
                        total_bytes_completion_rate=1.0,
                        total_transfer_bytes_completion_rate=1.0,
                        total_bytes=90,
                    )
                )
    assert [report.done for report in reports] == [0, 40, 90]
