"""Drops of every family but 2048 under a live `dagster dev`: what is copied in is built to its end.

The archive is a server of the test's own; no test asks the network. All share one instance, which
works on several drops at once.
"""

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gristmill import markdown, provenance
from gristmill.chess.samples import write_month
from gristmill.reasoning.format import names
from gristmill.synth.raw import NUMBERS
from gristmill.synth.samples import write_drop
from tests.archive_server import ArchiveServer
from tests.e2e.live_instance import RUNNING, LiveInstance, Run, until

pytestmark = pytest.mark.slow

MONTHLY = {
    "chess/elite_pgn": "chess/raw/elite/{}",
    "chess/valid_games": "chess/validated/elite_{}",
    "chess/game_dataset": "chess/dataset/elite_{}_game",
    "chess/splice_cache": "chess/dataset/elite_{}_game/runtime_splice_cache",
    "chess/splice_dataset": "chess/dataset/elite_{}_cap8",
}
RECIPES = {"puzzles/arc": "puzzles/{}", "puzzles/domino": "puzzles/{}"}
SHARDS = {
    "synth/harmony": "synth_harmony",
    "synth/kd_shards": "megatron/synth_kd_v1",
    "synth_smoke/kd_shards": "megatron/synth_kd_v1_smoke",
}
SPLITS = {
    "reasoning/normalized": names.NORMALIZED,
    "reasoning/gpt2_shards": names.TOKENIZED,
    "reasoning/alignment": names.ALIGNMENT,
}
MANIFESTS = {
    "synth/harmony_manifest": "synth_harmony",
    "synth/kd_manifest": "megatron/synth_kd_v1",
    "synth_smoke/kd_manifest": "megatron/synth_kd_v1_smoke",
    "reasoning/raw_manifest": names.NORMALIZED,
    "reasoning/manifest": names.TOKENIZED,
}
FOLDERS = MONTHLY | RECIPES | SHARDS | SPLITS | MANIFESTS
"""The folder of each asset; with `{}`, of each of its partitions. Partitions share the others."""
RAW, ELITE = ["synth", "raw"], ["chess", "elite_pgn"]
RANGE = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")
DROPPED, MISSING, PUBLISHED = "2023-01", "2023-05", ("2023-04", "2023-06")
_WHOLE = tuple(sorted([*PUBLISHED, MISSING]))


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


@pytest.fixture(scope="module")
def vocabularies(live_instance: LiveInstance, vocabulary_root: Path) -> None:
    """The vocabularies as `make run` brings them, built."""
    shutil.copytree(vocabulary_root / "drops/tokenizers", live_instance.data / "drops/tokenizers")
    done = live_instance.gristmill("materialize", "tokenizers/gpt2", "tokenizers/o200k_harmony")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def backfill(live_instance: LiveInstance) -> str:
    """The backfill of a later test, started first: the daemon takes a minute for two steps."""
    for month in _WHOLE:  # as a person adds them in the UI
        live_instance.add_partition("chess_collections", month)
    return live_instance.backfill([*_WHOLE], [asset.split("/") for asset in MONTHLY])


def shown(live: LiveInstance, asset: str, key: str | None) -> None:
    """The artifact stands, and the UI shows its record and that it is fresh."""
    place = live.data / FOLDERS[asset].format(key)
    is_shared = "{}" not in FOLDERS[asset]
    record = provenance.record_path(place, key or "manifest", shared=is_shared)
    live.shows(asset.split("/"), key, provenance.read_record(record))


def ended(live: LiveInstance, key: str, sensor: str) -> Run:
    """The one run of a partition, which a sensor asked for and which succeeded."""
    until(f"{key} has a run", lambda: live.runs(key))
    (run,) = live.ended(key)
    assert run.status == "SUCCESS", live.server.failure(run.run_id)
    assert run.tags["dagster/sensor_name"] == sensor
    return run


def is_quiet(live: LiveInstance) -> bool:
    return not any(run.status in RUNNING for run in live.runs(None))


def grow(file: Path, content: bytes, parts: int) -> Iterator[None]:
    """Write a file in parts, with a pause after each."""
    for step in range(parts):
        with file.open("ab") as growing:
            growing.write(
                content[step * len(content) // parts : (step + 1) * len(content) // parts]
            )
        time.sleep(1)
        yield


@pytest.mark.usefixtures("backfill")
def test_a_month_that_is_dropped_is_built_through_to_its_cache(live_instance, archive):
    source = live_instance.data / "source.zip"
    write_month(source, DROPPED, games=200, seed=3)
    drop = live_instance.data / "drops/chess" / f"lichess_elite_{DROPPED}.zip"
    drop.parent.mkdir(parents=True)
    for _ in grow(drop, source.read_bytes(), 8):
        assert live_instance.runs(DROPPED) == []
    ended(live_instance, DROPPED, "chess_drops")
    for asset in MONTHLY:
        shown(live_instance, asset, DROPPED)
    assert drop.name not in [name for name, _ in archive.asked]


@pytest.mark.usefixtures("vocabularies")
def test_a_raw_drop_of_conversations_is_built_to_the_last_manifest(live_instance):
    inbox, source = live_instance.data / "drops/synth", live_instance.data / "source"
    write_drop(inbox / "unfinished", files=4, rows=5, done=False)
    write_drop(source, files=4, rows=300)
    (source / "gristmill.toml").write_text("[synth.kd_shards]\nvalid_fraction = 0.1\nworkers = 2\n")
    drop = inbox / "first"
    drop.mkdir()
    for file in (source / "gristmill.toml", *sorted(source.glob("*.parquet"))):
        list(grow(drop / file.name, file.read_bytes(), 2))
    # Not before the last of the files, and `.done` is the last.
    assert not any(live_instance.runs(number) for number in NUMBERS)
    shutil.copy(source / ".done", drop)
    for number in NUMBERS:
        ended(live_instance, number, "synth_drops")
    assert live_instance.statuses(RAW)["materialized"] == list(NUMBERS)
    manifests = [asset for asset in MANIFESTS if asset.startswith("synth")]
    files = [live_instance.data / FOLDERS[asset] / "manifest.json" for asset in manifests]
    until(
        "the manifests have followed",
        lambda: all(file.exists() for file in files) and is_quiet(live_instance),
    )
    for asset in SHARDS:
        for number in NUMBERS:
            shown(live_instance, asset, number)
    for asset in manifests:
        shown(live_instance, asset, None)
    parts = [live_instance.partition(each, ["synth", "kd_shards"]) for each in NUMBERS]
    whole = live_instance.partition(None, ["synth", "harmony_manifest"])
    assert sum(part.metadata["rows"] for part in parts) == whole.metadata["rows"]
    reason = "4 Parquet files of 500: add the others, or, if these are all, a "
    assert len([text for text in live_instance.observed(RAW) if reason in text]) == 1


def _copy_tasks(live_instance: LiveInstance, source: str, start: int) -> None:
    for width, split in enumerate(("training", "evaluation"), 2 * start):
        # Tasks of different sizes have no pair in common.
        pairs = [{"input": [[n] * width], "output": [[n, 7]] * width} for n in range(3)]
        path = live_instance.data / "drops/puzzles" / source / split / f"{split[0]}{start}.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"train": pairs[:2], "test": pairs[2:]}))


def test_recipes_are_built_once_their_sources_have_arrived(live_instance):
    recipes = live_instance.data / "drops/puzzles/recipes"
    recipes.mkdir(parents=True)
    for name, text in (
        ("mine", 'kind = "arc"\nsources = ["first", "second/corpus"]\n[settings]\nnum_aug = 2\n'),
        ("games", 'kind = "domino"\n[settings]\nnum_games = 30\n'),
    ):
        (recipes / f"{name}.toml").write_text(text)
    _copy_tasks(live_instance, "first", 1)
    ended(live_instance, "games", "puzzles_recipes_drops")
    assert live_instance.runs("mine") == []
    shown(live_instance, "puzzles/domino", "games")
    _copy_tasks(live_instance, "second/corpus", 5)
    ended(live_instance, "mine", "puzzles_drops")
    shown(live_instance, "puzzles/arc", "mine")


def _listed(live_instance: LiveInstance) -> list[int]:
    """How many entries the manifests of corpora and of shards have."""
    files = [
        live_instance.data / FOLDERS[f"reasoning/{name}"] / names.MANIFEST
        for name in ("raw_manifest", "manifest")
    ]
    return [len(json.loads(file.read_bytes())) for file in files if file.exists()]


@pytest.mark.usefixtures("vocabularies")
def test_a_drop_of_two_splits_is_built_to_both_manifests(live_instance):
    drop = live_instance.data / "drops/reasoning/gsm8k"
    drop.mkdir(parents=True)
    keys = ("gsm8k__train", "gsm8k__test")
    for split in ("train", "test"):
        lines = [{"question": f"{n}?", "answer": f"It is {n}.\n#### {n}"} for n in range(20)]
        (drop / f"{split}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for key in keys:
        ended(live_instance, key, "reasoning_drops")
    until(
        "the manifests have followed",
        lambda: _listed(live_instance) == [1, 2] and is_quiet(live_instance),
    )
    for asset in SPLITS:
        for key in keys:
            shown(live_instance, asset, key)
    for asset in ("reasoning/raw_manifest", "reasoning/manifest"):
        shown(live_instance, asset, None)


OWN = """schema = 1
name = "my_math"
licence = { id = "CC-BY-4.0", url = "https://example.org/terms", share = true, train = true }
files = { train = "SFT/part-*", heldout = "check.csv" }
question = "problem"
answer = "solution"
"""


@pytest.mark.usefixtures("vocabularies")
def test_a_corpus_of_a_stranger_is_taken_and_its_page_counts_it(live_instance):
    drop = live_instance.data.parent / "my_math"
    (drop / "SFT").mkdir(parents=True)
    rows = [{"problem": f"What is {n} and {n}?", "solution": f"It is {2 * n}."} for n in range(9)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (drop / "SFT/part-0.jsonl").write_text(lines)
    (drop / "check.csv").write_text("problem;solution\nWhat is 1 and 1?;It is 2.\n")
    (drop / "corpus.toml").write_text(OWN)
    asset, keys = ["reasoning", "normalized"], ("my_math__train", "my_math__heldout")
    known = {key for each in live_instance.statuses(asset).values() for key in each}
    assert not known & {*keys}
    done = live_instance.gristmill("drop", str(drop), "--family", "reasoning")
    assert done.returncode == 0, done.stdout + done.stderr
    for key in keys:
        ended(live_instance, key, "reasoning_drops")
    for name in SPLITS:
        assert {*keys} <= {*live_instance.statuses(name.split("/"))["materialized"]}, name
        shown(live_instance, name, keys[0])
    page = live_instance.partition(keys[0], asset).metadata
    assert page["records"] == 9 and str(page["account"]).startswith("1 file taken")


def test_in_a_backfill_an_unpublished_month_holds_up_none(live_instance, archive, backfill):
    status, runs = live_instance.backfilled(backfill)
    # Dagster counts a partition that never appears as failed, whatever its run says.
    assert status == "COMPLETED_FAILED"
    assert {run.status for run in runs} == {"SUCCESS"}

    # All months are asked for in one run, once; later steps get those that are there.
    spans = [tuple(run.tags[end] for end in RANGE) for run in runs]
    first, last = PUBLISHED
    assert spans.count((first, last)) == 1
    assert set(spans) == {(first, last), (first, first), (last, last)}
    assert [name for name, _ in archive.asked] == [f"lichess_elite_{each}.zip" for each in _WHOLE]

    for asset, folder in MONTHLY.items():
        for month in PUBLISHED:
            shown(live_instance, asset, month)
        keys_of = live_instance.statuses(asset.split("/"))
        assert keys_of["materialized"] == [DROPPED, *PUBLISHED], asset
        assert keys_of["failed"] == keys_of["materializing"] == [], asset
        assert MISSING in keys_of["unmaterialized"], asset
        assert not (live_instance.data / folder.format(MISSING)).exists()
    (reason,) = live_instance.observed(ELITE)
    # The UI renders descriptions as Markdown.
    assert reason == markdown.escape(
        f"not built: {archive.address}/lichess_elite_{MISSING}.zip: not published (HTTP 404); "
        "try again later"
    )
    assert live_instance.observed(ELITE, MISSING) == [reason]


def test_in_the_end_all_is_as_recorded_and_no_run_and_no_tick_failed(live_instance):
    def found() -> str:
        done = live_instance.gristmill("verify", str(live_instance.data))
        return done.stdout + done.stderr if done.returncode else ""

    # Manifests follow what they list by a tick and a run of their own.
    until("all is as recorded", lambda: not found())
    until("no run is left", lambda: is_quiet(live_instance))
    assert {run.status for run in live_instance.runs(None)} == {"SUCCESS"}
    assert found() == ""
    sensors = ("chess", "synth", "puzzles", "puzzles_recipes", "reasoning")
    for name in (*(f"{each}_drops" for each in sensors), "followers"):
        assert "FAILURE" not in {tick["status"] for tick in live_instance.ticks(name)}, name
