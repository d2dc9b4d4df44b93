"""SYNTH through Dagster: drops to Harmony shards, Megatron datasets and manifests."""

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow.parquet as pq
import pytest

from assets.synth import FAMILY
from gristmill import families, provenance
from gristmill.asset import Asset, Wanted
from gristmill.publish import remove
from gristmill.publish.publish import publish
from gristmill.synth.builds import harmony_build
from gristmill.synth.raw import NUMBERS
from gristmill.synth.samples import write_drop
from resources import Lake
from tests.assets.helpers import TOKENIZERS, built_by, failure, materialized, metadata, sha256
from tests.drawings import images
from tests.paths import REAL_DATA

harmony, harmony_manifest, kd_shards, kd_manifest, smoke_shards, smoke_manifest, *_ = built_by(
    "synth"
).values()

REAL = REAL_DATA / "synth"
needs_real = pytest.mark.skipif(not REAL.exists(), reason="the real conversations are not there")

KD, SMOKE = "megatron/synth_kd_v1", "megatron/synth_kd_v1_smoke"


def builder(lake: Lake, instance: dg.DagsterInstance) -> Any:
    """What builds a partition of an asset in a run."""

    assets = [*TOKENIZERS, *FAMILY.assets]
    return lambda asset, key=None, **config: materialized(
        asset, assets, lake, instance, key, **config
    )


def build_all(build: Any, asset: dg.AssetsDefinition, **config: Any) -> None:
    for number in NUMBERS:
        assert build(asset, number, **config).success


@pytest.fixture
def build(lake: Lake, instance: dg.DagsterInstance) -> Any:
    return builder(lake, instance)


@pytest.fixture(scope="module")
def roots(vocabulary_root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Data roots with the vocabulary, with Harmony shards, too, and with all; to be copied."""
    made = {name: tmp_path_factory.mktemp(name) for name in ("vocabulary", "converted", "built")}
    lake = Lake(data_root=str(made["built"]))
    with dg.DagsterInstance.ephemeral() as instance:
        build = builder(lake, instance)
        shutil.copytree(vocabulary_root / "drops/tokenizers", lake.root / "drops/tokenizers")
        assert build(TOKENIZERS[0]).success
        _copy(lake.root, made["vocabulary"])
        write_drop(lake.inbox("synth") / "first", files=9, rows=12)
        build_all(build, harmony)
        assert build(harmony_manifest).success
        _copy(lake.root, made["converted"])
        build_all(build, kd_shards, valid_fraction=0.2)
        assert build(kd_manifest).success
    return made


def _copy(root: Path, to: Path) -> None:
    shutil.copytree(root, to, symlinks=True, dirs_exist_ok=True)


@pytest.fixture
def vocabulary(roots: dict[str, Path], lake: Lake) -> None:
    _copy(roots["vocabulary"], lake.root)


@pytest.fixture
def drop(lake: Lake) -> Path:
    folder = lake.inbox("synth") / "first"
    write_drop(folder, files=9, rows=12)
    return folder


@pytest.fixture
def all_of(build: Any) -> Any:
    return partial(build_all, build)


@pytest.fixture
def converted(roots: dict[str, Path], lake: Lake) -> None:
    _copy(roots["converted"], lake.root)


@pytest.fixture
def built(roots: dict[str, Path], lake: Lake) -> None:
    _copy(roots["built"], lake.root)


def ready(lake: Lake, name: str = "ready") -> Path:
    """The real conversations as a ready Harmony folder."""
    folder = lake.inbox("synth_harmony") / name
    shutil.copytree(REAL / "synth_harmony", folder, copy_function=shutil.copyfile)
    return folder


@pytest.mark.usefixtures("built")
def test_the_record_of_a_shard_names_its_tokenizer_and_its_input(lake):
    record = provenance.read_record(lake.root / KD / "provenance/02.json")
    assert record.tokenizer is not None
    assert record.tokenizer.path == "tokenizer/o200k_base.tiktoken"
    assert record.tokenizer.sha256 == sha256(lake.root / record.tokenizer.path)
    assert record.config["vocabulary"] == record.tokenizer.path
    source = provenance.read_record(lake.root / "synth_harmony/provenance/02.json")
    versions = {(item.asset, item.partition): item.data_version for item in record.inputs}
    assert versions["synth/harmony", "02"] == source.data_version
    assert ("tokenizers/o200k_harmony", "o200k_harmony") in versions


@pytest.mark.slow
@pytest.mark.usefixtures("converted")
def test_a_shard_shows_its_counts_and_its_conversations(build):
    shown = metadata(build(kd_shards, "00", valid_fraction=0.2))
    (image,) = images(shown["picture"])
    assert "train document 0" in image
    assert "analysis: " in image
    total = shown["spans/prompt"] + shown["spans/reasoning"] + shown["spans/final"]
    assert total == shown["train_tokens"] + shown["valid_tokens"]


@pytest.mark.slow
@pytest.mark.usefixtures("converted")
def test_the_smoke_build_takes_the_first_rows_of_each_shard(build, all_of, lake):
    all_of(smoke_shards, max_rows=5)
    assert build(smoke_manifest).success
    manifest = json.loads((lake.root / SMOKE / "manifest.json").read_text())
    assert sum(inventory["rows"] for inventory in manifest["splits"].values()) == 20
    assert manifest["config"]["valid_fraction"] == 0.1
    assert manifest["caps"]["max_rows"] == 5
    first = pq.read_table(lake.root / "synth_harmony/synth_harmony_shard_03.parquet").slice(0, 5)
    traced = pq.read_table(lake.root / SMOKE / "trace/trace_03.parquet")
    assert traced["synth_id"].to_pylist() == first["synth_id"].to_pylist()
    assert not (lake.root / KD).exists()


@pytest.mark.slow
def test_the_smoke_build_is_capped_unless_the_run_sets_another_cap(build, lake, vocabulary):
    write_drop(lake.inbox("synth") / "long", files=4, rows=300)
    assert build(harmony, "00").success
    assert build(smoke_shards, "00").success
    counts = provenance.read_record(lake.root / SMOKE / "provenance/00.json").counts
    assert counts["train_rows"] + counts["valid_rows"] == 250
    assert counts["valid_rows"] > 0


@pytest.mark.slow
def test_samples_do_not_replace_what_another_drop_was_built_into(build, lake, drop, tmp_path):
    assert build(harmony, "00").success
    record = lake.root / "synth_harmony/provenance/00.json"
    before = record.read_bytes()
    write_drop(lake.inbox("synth") / "samples", files=4, rows=3)
    moved = drop.rename(tmp_path / "moved")
    for number in ("00", "01"):
        assert (
            f"{lake.root}/synth_harmony: its drop is gone: drops/synth/first; bring it back, or "
            "take the shards away to build them from the samples: `gristmill remove "
            "synth/harmony --partition 00`"
        ) in failure(build(harmony, number))
    drop.mkdir()
    assert "its drop is not complete: drops/synth/first" in failure(build(harmony, "00"))
    assert record.read_bytes() == before
    drop.rmdir()
    moved.rename(drop)
    assert build(harmony, "01").success
    shutil.rmtree(drop)
    (lake.root / "gristmill.toml").write_text('[synth.harmony]\ndrop = "synth/samples"\n')
    assert build(harmony, "00").success
    (lake.root / "gristmill.toml").unlink()
    assert "its drop is gone" in failure(build(harmony, "00"))  # shard 01 is of the other drop
    for number in ("00", "01"):
        _, entry = remove.named("synth/harmony", number, data_root=lake.root)
        remove.remove_published(lake.root, entry)
    assert build(harmony, "00").success


def test_a_shard_of_the_samples_whose_record_is_damaged_is_built_again(build, lake):
    write_drop(lake.inbox("synth") / "samples", files=4, rows=3)
    assert build(harmony, "00").success
    record = lake.root / "synth_harmony/provenance/00.json"
    record.write_bytes(b"{")
    assert "00.json: not a provenance record" in failure(build(harmony, "00"))
    assert build(harmony, "01").success
    asset = families.kind_of_asset("synth/harmony")
    assert isinstance(asset, Asset)
    assert publish(harmony_build(Wanted(asset, lake, "00")), rebuild=True).rebuilt
    assert provenance.read_record(record).partition == "00"


@pytest.mark.slow
def test_shards_of_changed_files_are_not_joined_by_a_manifest(build, all_of, drop):
    all_of(harmony)
    write_drop(drop, files=12, rows=12)
    for number in ("01", "02"):
        assert build(harmony, number).success
    assert "was built from another list of files than the other shards" in failure(
        build(harmony_manifest)
    )
    all_of(harmony)
    assert build(harmony_manifest).success


@pytest.mark.real
@needs_real
def test_a_ready_folder_is_taken_with_its_own_manifest(build, all_of, lake):
    drop = ready(lake)
    manifest = json.loads((drop / "manifest.json").read_text())
    on_disk = (drop / "synth_harmony_shard_00.parquet").stat().st_size
    # The delivered manifest speaks of the folder that these rows were cut from.
    assert manifest["storage"]["shards"][0]["bytes"] != on_disk
    all_of(harmony)
    assert build(harmony_manifest).success
    for name in ("manifest.json", "metadata.json", "synth_harmony_shard_02.parquet"):
        assert sha256(lake.root / "synth_harmony" / name) == sha256(drop / name)
    assert "are imported unchanged" in failure(build(harmony, "00", max_rows=3))
    assert provenance.verify(lake.root) == []


def test_a_missing_vocabulary_and_a_shard_that_max_rows_leaves_empty_are_named(build, lake, drop):
    assert build(harmony, "00").success
    text = failure(build(kd_shards, "00"))
    assert "materialize tokenizers/o200k_harmony first" in text
    assert not (lake.root / KD).exists()
    (lake.root / "gristmill.toml").write_text("[synth.harmony]\nmax_rows = 0\n")
    reason = failure(build(harmony, "00"))
    assert "of 0 rows read" in reason
    assert "take more rows than max_rows, which is 0, add files" in reason


@pytest.mark.usefixtures("vocabulary")
def test_without_its_harmony_shard_the_build_says_what_to_do(build):
    assert "materialize synth/harmony first" in failure(build(kd_shards, "00"))
    assert "materialize synth/harmony first" in failure(build(harmony_manifest))
    assert "materialize synth/kd_shards first" in failure(build(kd_manifest))


@pytest.mark.slow
@pytest.mark.usefixtures("built")
def test_shards_of_unequal_config_get_no_manifest(build, all_of, lake):
    old = (lake.root / KD / "manifest.json").read_bytes()
    assert build(kd_shards, "02", valid_fraction=0.3).success
    refused = build(kd_manifest)
    assert "unequal configs: valid_fraction 0.2 and 0.3" in failure(refused)
    (event,) = refused.get_step_failure_events()
    assert event.step_failure_data.user_failure_data.metadata["error"].value == "NotRebuilt"
    assert (lake.root / KD / "manifest.json").read_bytes() == old
    violations = provenance.verify(lake.root / KD)
    assert any("build again" in violation.found for violation in violations)
    all_of(kd_shards, valid_fraction=0.3)
    assert build(kd_manifest).success
    assert provenance.verify(lake.root) == []


@pytest.mark.slow
@pytest.mark.usefixtures("built")
def test_a_rebuilt_harmony_shard_makes_the_manifests_stale(build, drop, lake):
    for file in ("synth_001.parquet", "synth_002.parquet", "synth_003.parquet"):
        table = pq.read_table(drop / file)
        pq.write_table(table.slice(1), drop / file)
    assert build(harmony, "00").success
    text = failure(build(kd_manifest))
    assert "synth/kd_shards 00: synth/harmony 00 was rebuilt since" in text
    assert build(kd_shards, "00", valid_fraction=0.2).success
    reasons = [
        violation.found
        for violation in provenance.verify(lake.root / KD, check_inputs=False)
        if violation.law == "inventory" and "train" in violation.found
    ]
    (reason,) = reasons
    assert reason.startswith("train shard 00: its record has other tokens_bin, tokens_idx, ")
    assert "materialize the manifest again" in reason
    assert "materialize synth/harmony_manifest again" in failure(build(kd_manifest))
    assert build(harmony_manifest).success
    assert build(kd_manifest).success
    assert provenance.verify(lake.root) == []
