"""Chess under a live `dagster dev`: a month that is dropped, and a backfill with a gap in it.

The archive is a server of the test's own; no test asks the network.
"""

import time
from collections.abc import Iterator

import pytest

from gristmill import markdown, provenance
from gristmill.chess.samples import write_month
from tests.archive_server import ArchiveServer
from tests.e2e.live_instance import LiveInstance, until

pytestmark = pytest.mark.slow

ELITE = ["chess", "elite_pgn"]
FOLDERS = {
    "chess/elite_pgn": "chess/raw/elite/{}",
    "chess/valid_games": "chess/validated/elite_{}",
    "chess/game_dataset": "chess/dataset/elite_{}_game",
    "chess/splice_cache": "chess/dataset/elite_{}_game/runtime_splice_cache",
    "chess/splice_dataset": "chess/dataset/elite_{}_cap8",
}
_NOT_BUILT = "unmaterialized"
RANGE = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")
DROPPED, MISSING, PUBLISHED = "2023-01", "2023-05", ("2023-04", "2023-06")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArchiveServer]:
    folder, server = tmp_path_factory.mktemp("archive"), ArchiveServer()
    for month in PUBLISHED:
        path = folder / f"lichess_elite_{month}.zip"
        write_month(path, month, games=120, seed=7)
        server.files[path.name] = path.read_bytes()
    yield server
    server.close()


@pytest.fixture(scope="module")
def surroundings(archive: ArchiveServer) -> dict[str, str]:
    return {"GRISTMILL_ELITE_ARCHIVE": archive.address}


def assert_month_is_as_shown(live_instance: LiveInstance, month: str) -> None:
    """Each artifact of the month stands, and the UI shows its record and that it is fresh."""
    for asset, folder in FOLDERS.items():
        record = provenance.read_record(
            live_instance.data / folder.format(month) / provenance.RECORD
        )
        live_instance.shows(asset.split("/"), month, record)


@pytest.fixture(scope="module")
def backfill(live_instance: LiveInstance) -> str:
    """The backfill of the last test, started first: the daemon takes a minute for two steps."""
    months = sorted([*PUBLISHED, MISSING])
    for month in months:  # as a person adds them in the UI
        live_instance.add_partition("chess_collections", month)
    return live_instance.backfill(months, [asset.split("/") for asset in FOLDERS])


@pytest.mark.usefixtures("backfill")
def test_a_month_that_is_dropped_is_built_through_to_its_cache(live_instance, archive):
    source = live_instance.data / "source.zip"
    write_month(source, DROPPED, games=200, seed=3)
    content = source.read_bytes()
    drop = live_instance.data / "drops/chess" / f"lichess_elite_{DROPPED}.zip"
    drop.parent.mkdir(parents=True)
    for step in range(8):
        with drop.open("ab") as file:
            file.write(content[step * len(content) // 8 : (step + 1) * len(content) // 8])
        time.sleep(1)
        assert live_instance.runs(DROPPED) == []
    until("the month has a run", lambda: live_instance.runs(DROPPED))
    (run,) = live_instance.ended(DROPPED)
    assert run.status == "SUCCESS", live_instance.server.failure(run.run_id)
    assert run.tags["dagster/sensor_name"] == "chess_drops"
    assert_month_is_as_shown(live_instance, DROPPED)
    assert f"lichess_elite_{DROPPED}.zip" not in [name for name, _ in archive.asked]


def test_in_a_backfill_a_month_that_is_not_published_holds_up_no_other(
    live_instance, archive, backfill
):
    status, runs = live_instance.backfilled(backfill)
    # Dagster counts a partition that never appears as failed, whatever its run says.
    assert status == "COMPLETED_FAILED"
    assert {run.status for run in runs} == {"SUCCESS"}

    # All months are asked for in one run, once; later steps get those that are there.
    spans = [tuple(run.tags[end] for end in RANGE) for run in runs]
    first, last = PUBLISHED
    assert spans.count((first, last)) == 1
    assert set(spans) == {(first, last), (first, first), (last, last)}
    asked = [f"lichess_elite_{month}.zip" for month in sorted([*PUBLISHED, MISSING])]
    assert [name for name, _ in archive.asked] == asked

    for month in PUBLISHED:
        assert_month_is_as_shown(live_instance, month)
    for asset, folder in FOLDERS.items():
        keys_of = live_instance.statuses(asset.split("/"))
        assert keys_of["materialized"] == [DROPPED, *PUBLISHED], asset
        assert keys_of["failed"] == keys_of["materializing"] == [], asset
        assert MISSING in keys_of[_NOT_BUILT], asset
        assert not (live_instance.data / folder.format(MISSING)).exists()
    (reason,) = live_instance.observed(ELITE)
    # The UI renders descriptions as Markdown.
    assert reason == markdown.escape(
        f"not built: {archive.address}/lichess_elite_{MISSING}.zip: not published (HTTP 404); "
        "try again later"
    )
    assert live_instance.observed(ELITE, MISSING) == [reason]
    found = live_instance.gristmill("verify", str(live_instance.data))
    assert found.returncode == 0, found.stdout + found.stderr
