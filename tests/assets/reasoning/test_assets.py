"""Reasoning corpora through Dagster: drops to records, shards, alignment, manifests and reports."""

import json
import os
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.publishing import REBUILD
from assets.reasoning import FAMILY, reasoning_audit_sample
from gristmill import provenance
from gristmill.contract import BadInput, GristmillError
from gristmill.reasoning import builds
from gristmill.reasoning.builds import today
from gristmill.reasoning.format import names, reports
from gristmill.reasoning.read.alignment import Audit, append
from gristmill.reasoning.read.supervised import check_gate
from resources import Lake
from tests.assets.helpers import TOKENIZERS, built, failure, materialized, metadata, not_built
from tests.paths import REAL_DATA

normalized, raw_manifest, gpt2_shards, manifest, alignment, qc_report = (
    built(f"reasoning/{name}")
    for name in ["normalized", "raw_manifest", "gpt2_shards", "manifest", "alignment", "qc_report"]
)

REAL = REAL_DATA / "reasoning/gsm8k"
needs_real = pytest.mark.skipif(not REAL.exists(), reason="the real records are not there")
TEST = "gsm8k__test"


Builder = Callable[..., dg.ExecuteInProcessResult]


def builder(lake: Lake, instance: dg.DagsterInstance) -> Builder:
    assets = [*TOKENIZERS, *FAMILY.assets, *FAMILY.checks]

    def materialize(
        asset: dg.AssetsDefinition, key: str | None = None, rebuild: bool = False
    ) -> dg.ExecuteInProcessResult:
        if key is not None and "__" in key:
            instance.add_dynamic_partitions("reasoning_splits", [key])
        tags = {REBUILD: "true"} if rebuild else None
        return materialized(asset, assets, lake, instance, key, tags)

    return materialize


@pytest.fixture
def build(lake: Lake, instance: dg.DagsterInstance) -> Builder:
    return builder(lake, instance)


def place_vocabulary(build: Builder, lake: Lake, vocabulary_root: Path) -> None:
    shutil.copytree(vocabulary_root / "drops/tokenizers", lake.root / "drops/tokenizers")
    assert build(TOKENIZERS[1]).success


@pytest.fixture
def vocabulary(build: Builder, lake: Lake, vocabulary_root: Path) -> None:
    place_vocabulary(build, lake, vocabulary_root)


def drop(lake: Lake, corpus: str, split: str, records: list[dict[str, Any]]) -> Path:
    """Write records of one split into a drop; returns the file."""
    path = lake.inbox("reasoning") / corpus / f"{split}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def sums(records: int = 5, more: str = "") -> list[dict[str, Any]]:
    return [
        {
            "question": f"What is {n} and {n}?{more}",
            "answer": f"The sum is {n}+{n} = <<{n}+{n}={2 * n}>>{2 * n}.\n#### {2 * n}",
        }
        for n in range(records)
    ]


@pytest.fixture(scope="module")
def built_root(tmp_path_factory: pytest.TempPathFactory, vocabulary_root: Path) -> Path:
    """One split of five records, built by every asset but the report."""
    root = tmp_path_factory.mktemp("built") / "data"
    root.mkdir()
    lake = Lake(data_root=str(root))
    with dg.DagsterInstance.ephemeral() as instance:
        build = builder(lake, instance)
        place_vocabulary(build, lake, vocabulary_root)
        drop(lake, "gsm8k", "test", sums())
        build_all(build, TEST)
    return lake.root


@pytest.fixture
def built(lake: Lake, built_root: Path) -> Path:
    shutil.copytree(built_root, lake.root, dirs_exist_ok=True)
    return lake.root


def build_all(build: Builder, *keys: str) -> None:
    """Build all that is made of splits but the report, and no check may fail but `clean`.

    MetaMath asks the test questions of GSM8K backwards, and some rows of its train are in its test.
    """
    for asset in (normalized, gpt2_shards, alignment):
        for key in keys:
            assert set(failed_checks(build(asset, key))) <= {"clean"}
    for asset in (raw_manifest, manifest):
        assert failed_checks(build(asset)) == {}


def failed_checks(result: dg.ExecuteInProcessResult) -> dict[str, str]:
    return {
        check.check_name: str(check.description)
        for check in result.get_asset_check_evaluations()
        if not check.passed
    }


@pytest.mark.slow
@pytest.mark.real
@needs_real
def test_every_law_holds_for_the_real_corpora(build, lake, vocabulary):
    for corpus, folder in (
        ("gsm8k", "gsm8k"),
        ("cot_collection", "flan_cot"),
        ("reasoning_traces", "metamath"),
        ("wiqa", "wiqa"),
    ):
        place = lake.inbox("reasoning") / corpus
        place.mkdir(parents=True)
        for file in (REAL.parent / folder).iterdir():
            if file.suffix in (".jsonl", ".tsv"):
                shutil.copyfile(file, place / file.name)
    keys = ("gsm8k__train", "gsm8k__test", *CORPORA_OF_TRAIN)
    build_all(build, *keys)
    assert failed_checks(build(qc_report, today().isoformat())) == {}
    assert provenance.verify(lake.root) == []
    report = reports.read(reports.path(lake.root / names.REPORTS, today().isoformat()))
    assert set(report["splits"]) == set(keys)
    train = report["splits"]["gsm8k__train"]
    assert (train["examples"], train["total_tokens"], train["eos_tokens"], train["pad_tokens"]) == (
        *(7473, 1_162_128, 7473),
        1855,
    )
    assert all(split["rejected"] == 0 for split in report["splits"].values())


CORPORA_OF_TRAIN = ("cot_collection__train", "reasoning_traces__train", "wiqa__train")


@pytest.mark.parametrize(
    ("asset", "key", "reason"),
    [
        (normalized, "wiqa__test", "there is no drop drops/reasoning/wiqa"),
        (normalized, "gsm8k__train", "has no file of the split train"),
        (raw_manifest, None, "no split is normalised"),
        (manifest, None, "no split has token shards"),
        (qc_report, today().isoformat(), "no split is published"),
    ],
)
def test_without_a_drop_there_is_nothing_to_build(build, lake, asset, key, reason):
    drop(lake, "gsm8k", "test", sums())
    lost = [lake.root / place / "lost" for place in (names.NORMALIZED, names.TOKENIZED)]
    for folder in lost:
        folder.mkdir(parents=True)
        (folder / "file").touch()
    said = not_built(build(asset, key))
    assert reason in said
    of = {raw_manifest: lost[:1], manifest: lost[1:], qc_report: lost}.get(asset, [])
    assert [folder for folder in lost if f"{folder}: is left out" in said] == of


@pytest.mark.parametrize("damage", [b"{", b"[]", b'{"gsm8k": 1}', None])
def test_a_damaged_raw_manifest_is_written_again_from_the_records(build, lake, built, damage):
    """None: an entry of a corpus that nobody normalised."""
    file = lake.root / names.NORMALIZED / names.MANIFEST
    entries = json.loads(file.read_bytes())
    wrong = json.dumps(entries | {"wiqa": entries["gsm8k"]}).encode()
    file.write_bytes(damage or wrong)
    assert metadata(build(raw_manifest))["status"] == "built"
    again = json.loads(file.read_bytes())
    for entry in (*entries.values(), *again.values()):
        assert entry.pop("generated_at")
    assert again == entries


@pytest.mark.parametrize("data", [b"{", b"[]", b"\xff"])
def test_a_raw_manifest_without_a_record_is_read_or_refused_by_its_file(lake, data):
    folder = lake.root / names.NORMALIZED
    folder.mkdir(parents=True)
    (folder / names.MANIFEST).write_bytes(b'{"gsm8k": {}}')
    assert builds._previous_manifest(lake) == {"gsm8k": {}}
    (folder / names.MANIFEST).write_bytes(data)
    with pytest.raises(BadInput, match=r"manifest\.json: is .*: remove the file"):
        builds._previous_manifest(lake)


def test_a_report_of_another_day_and_a_missing_baseline_are_refused(build, built, lake):
    yesterday = (today() - timedelta(days=1)).isoformat()
    assert f"only {today()} can be built" in not_built(build(qc_report, yesterday))
    (lake.root / "gristmill.toml").write_text('[reasoning.qc_report]\nbaseline = "2026-01-02"\n')
    reason = failure(build(qc_report, today().isoformat()))
    assert "baseline" in reason and "2026-01-02.json" in reason


def test_a_corpus_that_forbids_training_is_tokenised_by_a_setting(build, lake, vocabulary):
    record = {
        "question": "Is ice cold?",
        "answer": "yes",
        "rationale": "Ice is frozen water. Frozen water is cold.",
        "context": "Ice is water below 0 degrees.",
        "citation": None,
    }
    drop(lake, "reveal", "test", [record])
    key = "reveal__test"
    assert build(normalized, key).success
    for asset in (gpt2_shards, alignment):
        reason = not_built(build(asset, key))
        assert "forbid training" in reason and 'allow = ["reveal"]' in reason
    settings = lake.root / "gristmill.toml"
    settings.write_text('[reasoning.gpt2_shards]\nallow = ["reveal"]\n')
    assert metadata(build(gpt2_shards, key))["config/allow"] == '["reveal"]'
    assert build(alignment, key).success


def test_a_setting_for_one_corpus_rebuilds_no_other(build, lake, built):
    (lake.root / "gristmill.toml").write_text('[reasoning.gpt2_shards]\nallow = ["reveal"]\n')
    assert metadata(build(gpt2_shards, TEST))["status"] == "unchanged"


@pytest.mark.slow
def test_audits_are_an_input_of_the_alignment_alone_and_survive_its_rebuilds(build, lake, built):
    index = lake.root / names.TOKENIZED / names.split_index("gsm8k", "test")
    row = json.loads(index.read_bytes().splitlines()[2])
    audits = lake.inbox("reasoning") / names.audits(TEST)
    audits.parent.mkdir(parents=True)
    verdict = {key: row[key] for key in ("example_id", "text_sha256")} | {"verdict": "right"}
    audits.write_text(json.dumps(verdict) + "\n")
    assert metadata(build(gpt2_shards, TEST))["status"] == "unchanged"
    shown = metadata(build(alignment, TEST))
    assert (shown["status"], shown["verified"]) == ("built", 1)
    assert metadata(build(alignment, TEST))["status"] == "unchanged"
    drop(lake, "gsm8k", "test", [*sums(), *sums(1, more=" Again.")])
    for asset in (normalized, gpt2_shards):
        assert metadata(build(asset, TEST))["status"] == "built"
    assert metadata(build(alignment, TEST))["verified"] == 1
    audits.rename(audits.with_name("elsewhere"))
    audits.symlink_to(audits.with_name("nowhere"))
    assert audits.name in failure(build(alignment, TEST))


def test_the_audit_sample_is_on_the_page_of_the_alignment_until_audited(lake, built, instance):
    result = reasoning_audit_sample.execute_in_process(instance=instance, resources={"lake": lake})
    (event,) = result.get_asset_observation_events()
    observation = event.asset_observation_data.asset_observation
    assert observation.asset_key == alignment.key
    assert "gristmill audit --corpus gsm8k" in str(observation.description)
    assert observation.metadata["examples"].value == 5
    assert "0.89" in str(observation.metadata["sample"].value)
    index = lake.root / names.TOKENIZED / names.split_index("gsm8k", "test")
    audits = lake.inbox("reasoning") / names.audits(TEST)
    audits.parent.mkdir(parents=True)
    for line in index.read_bytes().splitlines():
        row = json.loads(line)
        append(audits, Audit(row["example_id"], row["text_sha256"], "right", "", "", ""))
    result = reasoning_audit_sample.execute_in_process(instance=instance, resources={"lake": lake})
    assert result.get_asset_observation_events() == []


@pytest.mark.slow
def test_drift_fails_the_check_until_it_is_accepted(build, lake, built, monkeypatch):
    before, now = today() - timedelta(days=1), today()
    folder = lake.root / names.REPORTS
    with monkeypatch.context() as patch:
        patch.setattr(builds, "today", lambda: before)
        assert failed_checks(build(qc_report, before.isoformat())) == {}
    settings = lake.root / "gristmill.toml"
    settings.write_text(f'[reasoning.qc_report]\nbaseline = "{before}"\n')
    assert failed_checks(build(qc_report, now.isoformat())) == {}
    check_gate(folder)
    drop(lake, "gsm8k", "test", sums(40))
    for asset in (normalized, gpt2_shards, alignment):
        assert build(asset, TEST).success
    result = build(qc_report, now.isoformat())
    assert len(result.get_asset_materialization_events()) == 1
    assert "150 became 1,200: more than 2.00%" in failed_checks(result)["drift"]
    with pytest.raises(GristmillError, match=f'baseline = "{now}"'):
        check_gate(folder)
    settings.write_text(f'[reasoning.qc_report]\nbaseline = "{now}"\n')
    assert failed_checks(build(qc_report, now.isoformat())) == {}
    check_gate(folder)
    # What drifts later that day is not accepted with it.
    drop(lake, "gsm8k", "test", sums(80))
    for asset in (normalized, gpt2_shards, alignment):
        assert build(asset, TEST).success
    for _ in range(2):
        assert "1,200 became" in failed_checks(build(qc_report, now.isoformat()))["drift"]
    with pytest.raises(GristmillError, match=r"accept a drift: remove baseline from \[reasoning"):
        check_gate(folder)
    # What the check and the gate say: remove it, build, set it again, build.
    for text in ("", f'[reasoning.qc_report]\nbaseline = "{now}"\n'):
        settings.write_text(text)
        assert failed_checks(build(qc_report, now.isoformat())) == {}
    check_gate(folder)


def test_a_damaged_shard_fails_the_checksums(build, lake, built):
    shard = lake.root / names.TOKENIZED / names.shard("gsm8k", "test", 0)
    octets = bytearray(shard.read_bytes())
    octets[1000] ^= 1
    stat = shard.stat()
    shard.write_bytes(octets)
    os.utime(shard, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # so that no build sees it

    def checked() -> dg.ExecuteInProcessResult:
        return dg.materialize(
            [*TOKENIZERS, *FAMILY.assets, *FAMILY.checks],
            selection=dg.AssetSelection.checks(dg.AssetCheckKey(manifest.key, "checksums")),
            resources={"lake": lake},
            raise_on_error=False,
        )

    result = checked()
    assert "00000.pt: sha256: its tensor has" in failed_checks(result)["checksums"]
    (found,) = result.get_asset_check_evaluations()
    (row,) = found.metadata["findings"].records
    assert str(row.data["cure"]).replace("\N{ZERO WIDTH SPACE}", "") == (
        "run `gristmill materialize reasoning/gpt2_shards --partition gsm8k__test --rebuild`, then "
        "`gristmill materialize reasoning/manifest --rebuild`"
    )
    assert failed_checks(build(gpt2_shards, TEST, rebuild=True)) == {}
    assert failed_checks(build(manifest, rebuild=True)) == {}
    assert failed_checks(checked()) == {}


def test_hostile_text_of_a_drop_is_escaped_in_events_of_bounded_size(build, lake, vocabulary):
    hostile = "<script>alert(1)</script> | ![x](http://x) `\u202e\x1b[31m" + "y" * 50_000
    drop(lake, "gsm8k", "test", [{"question": hostile, "answer": "1\n#### 1"}] * 4)
    for asset in (normalized, gpt2_shards, alignment):
        result = build(asset, TEST)
        assert result.success
        (event,) = result.get_asset_materialization_events()
        stored = dg.serialize_value(event.step_materialization_data.materialization)
        assert len(stored) <= 100_000
        assert "<script>" not in stored and "\u202e" not in stored and "\x1b" not in stored
