"""The manifests of Harmony and Megatron datasets."""

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from gristmill.contract import GristmillError, Summary, counts_of
from gristmill.provenance import config_fields
from gristmill.run.progress import Progress, Report
from gristmill.synth.builders import harmony_shard, manifests
from gristmill.synth.builders.harmony import system_message, to_harmony
from gristmill.synth.builders.kd_shard import build_kd_shard
from gristmill.synth.builders.manifests import (
    content_note,
    import_manifest,
    import_shard,
    write_harmony_manifest,
    write_kd_manifest,
)
from gristmill.synth.config import HarmonyConfig, KDConfig
from gristmill.untrusted.files import LinkRule
from gristmill.vocabularies.pinned import O200K
from tests.synth.conversations import hashes


def record(root: Path, number: str, config: object, summary: Summary) -> dict[str, Any]:
    """The parts of the provenance record of a shard that manifests are written from."""
    return {
        "partition": number,
        "code_version": "1",
        "config": config_fields(config),
        "counts": counts_of(summary),
        "data_version": f"version of {number}",
        "libraries": {"openai-harmony": "0.0.8", "tiktoken": "0.14.0"},
        "tokenizer": {"name": O200K.name, "path": "x", "sha256": O200K.sha256},
        "outputs": [
            {
                "path": path,
                "bytes": (root / path).stat().st_size,
                "sha256": digest,
                "rows": summary.files[path].rows,
            }
            for path, digest in hashes(root).items()
        ],
    }


def _manifest(root: str = "data/x", **changes: Any) -> dict[str, Any]:
    return {
        "schema_version": "v1",
        "created_unix_s": 7,
        "git_sha": "abc",
        "dataset_dir": root,
        "input": {"manifest_path": f"{root}/manifest.json", "manifest_sha256": "00", "glob": "*"},
        "tokenizer": {"model_path": "data/v", "vocab_size": 5},
        "shards": [{"path": f"{root}/a", "bytes": 3}],
        "about": "data/xylophone",
    } | changes


def test_digests_are_of_json_without_times_and_places():
    text = (
        '{"about":"data/xylophone","input":{"glob":"*"},"schema_version":"v1",'
        '"shards":[{"bytes":3,"path":"/a"}],"tokenizer":{"vocab_size":5}}'
    )
    note = content_note(_manifest(), ["data/x"])
    assert note.payload
    assert note.content_sha256 == hashlib.sha256(text.encode()).hexdigest()
    # The two examples of `docs/formats/synth.md#config-hash`.
    for fraction, expected in (
        (0.1, "faa2ee2ea0adc1b2dc2f171d31e4ab4d6b6a3a320d09a35776cceb34c006ecdc"),
        (0.001, "73f469ae8f3cdb1ddcd6219c2c90d095507048999c0d19da084423de048f91b0"),
    ):
        assert manifests.config_hash(manifests.contract_config(fraction)) == expected


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        ({"created_unix_s": 8}, True),
        ({"git_sha": None}, True),
        ({"input": {"manifest_path": "b", "manifest_sha256": "11", "glob": "*"}}, True),
        ({"tokenizer": {"model_path": "elsewhere/v", "vocab_size": 5}}, True),
        ({"tokenizer": {"model_path": "data/v", "vocab_size": 6}}, False),
        ({"schema_version": "v2"}, False),
        ({"shards": [{"path": "data/x/a", "bytes": 4}]}, False),
        ({"shards": [{"path": "data/x/b", "bytes": 3}]}, False),
        ({"shards": []}, False),
        ({"about": "data/x/ylophone"}, False),
    ],
)
def test_contents_decide_the_data_version_and_times_and_places_do_not(other, is_same):
    note = content_note(_manifest(), ["data/x"])
    assert (content_note(_manifest(**other), ["data/x"]) == note) == is_same
    assert content_note(_manifest("lake/x"), ["lake/x"]) == note


def test_both_files_have_the_values_of_the_records(raw_files, tmp_path):
    config = HarmonyConfig(developer=None, max_rows=100)
    records = []
    for shard in (1, 0):
        summary = to_harmony(raw_files, tmp_path / str(shard), shard, config)
        records.append(record(tmp_path / str(shard), f"0{shard}", config, summary))
    reports: list[Report] = []
    written = write_harmony_manifest(
        records,
        tmp_path / "out",
        config,
        dataset_dir="data/x",
        created_unix_s=7,
        git_sha="abc",
        progress=Progress(reports.append, 0.0),
    )
    assert reports[-1] == Report("write", 2, 2, "files")
    metadata, manifest = (
        json.loads((tmp_path / "out" / f"{name}.json").read_text(encoding="ascii"))
        for name in ("metadata", "manifest")
    )
    assert metadata == {
        "dataset": "PleIAs/SYNTH",
        "split": "train",
        "streaming": False,
        "num_shards": 4,
        "shard_index": None,
        "max_rows": 100,
        "metadata_fields": list(config.metadata_fields),
        "system_message": system_message(config),
        "developer_message": None,
    }
    outputs: list[dict[str, Any]] = [records[1]["outputs"][0], records[0]["outputs"][0]]
    assert manifest["storage"].pop("shards") == [
        {
            "path": f"data/x/{output['path']}",
            "bytes": output["bytes"],
            "rows": output["rows"],
            "row_groups": 1,
            "sha256": output["sha256"],
        }
        for output in outputs
    ]
    columns = ("messages_json", "metadata_json", *config.metadata_fields)
    rows = sum(output["rows"] for output in outputs)
    assert manifest["storage"] == {
        "format": "parquet",
        "glob": "synth_harmony_shard_*.parquet",
        "schema_arrow": "\n".join(f"{name}: string" for name in columns),
        "total_rows": rows,
        "total_bytes": sum(output["bytes"] for output in outputs),
        "skipped_rows": 200 - rows,
        "max_rows": 100,
    }
    del metadata["shard_index"], metadata["max_rows"]
    assert manifest["conversion"] == metadata
    assert {k: v for k, v in manifest.items() if k not in ("conversion", "storage")} == {
        "schema_version": "synth_harmony_v1",
        "created_unix_s": 7,
        "git_sha": "abc",
        "dataset_dir": "data/x",
    }
    assert (written.shards, written.rows, written.skipped) == (2, rows, 200 - rows)
    assert all(note.payload and note.content_sha256 for note in written.files.values())


@pytest.mark.real
def test_harmony_manifests_have_the_references_keys(raw_files, real, tmp_path):
    config = HarmonyConfig()
    records = []
    for shard in (1, 0):
        out = tmp_path / str(shard)
        summary = to_harmony(raw_files, out, shard, config)
        records.append(record(out, f"0{shard}", config, summary))
    rest: dict[str, Any] = {"dataset_dir": "data/x", "created_unix_s": 7, "git_sha": "abc"}
    write_harmony_manifest(records, tmp_path / "out", config, **rest)
    for name in ("manifest.json", "metadata.json"):
        ours = json.loads((tmp_path / "out" / name).read_text())
        theirs = json.loads((real / "synth_harmony" / name).read_text())
        assert list(ours) == list(theirs)
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    reference = json.loads((real / "synth_harmony/manifest.json").read_text())
    assert list(manifest["conversion"]) == list(reference["conversion"])
    assert list(manifest["storage"])[:6] == list(reference["storage"])
    assert manifest["storage"]["schema_arrow"] == reference["storage"]["schema_arrow"]
    shards = manifest["storage"]["shards"]
    assert list(shards[0])[:4] == list(reference["storage"]["shards"][0])
    # The name of the dataset changes no row.
    records[1]["config"]["dataset"] = "elsewhere"
    write_harmony_manifest(records, tmp_path / "other", config, **rest)
    other = HarmonyConfig(reasoning_effort="low")
    with pytest.raises(GristmillError, match="built with another reasoning_effort"):
        write_harmony_manifest(records, tmp_path / "no", other, **rest)


def kd_arguments(manifest: Path, **changed: Any) -> dict[str, Any]:
    return {
        "root": "data/megatron/synth_kd_v1_smoke",
        "harmony_manifest": manifest,
        "harmony_dir": "data/synth_harmony",
        "vocabulary": "data/tokenizer/o200k_base.tiktoken",
        "created_unix_s": 1767671515,
        "git_sha": None,
    } | changed


def without_additions(ours: Any, theirs: Any) -> Any:
    """`ours` without the keys that follow those of `theirs`; in dicts at every depth."""
    if isinstance(theirs, dict):
        assert list(ours)[: len(theirs)] == list(theirs)
        return {key: without_additions(ours[key], theirs[key]) for key in theirs}
    if isinstance(theirs, list):
        return [without_additions(o, t) for o, t in zip(ours, theirs, strict=True)]
    return ours


@pytest.mark.real
def test_the_kd_manifest_is_the_references(real, vocabulary, tmp_path):
    """Equal in every key, value and order, but for what follows at the end."""
    config, records = KDConfig(vocabulary, 0.1), []
    for number in ("02", "00", "03", "01"):
        shard = real / f"synth_harmony/synth_harmony_shard_{number}.parquet"
        summary = build_kd_shard(shard, tmp_path / number, config)
        records.append(record(tmp_path / number, number, config, summary))
    manifest = real / "synth_harmony/manifest.json"
    reports: list[Report] = []
    progress = Progress(reports.append, 0.0)
    arguments = kd_arguments(manifest, progress=progress)
    summary = write_kd_manifest(records, tmp_path / "out", **arguments)
    assert reports[-1] == Report("write", 1, 1, "files")
    ours = json.loads((tmp_path / "out/manifest.json").read_text())
    theirs = json.loads((real / "reference_manifest_vf0.1.json").read_text())
    assert without_additions(ours, theirs) == theirs
    assert json.dumps(without_additions(ours, theirs)) == json.dumps(theirs)
    assert (summary.train_rows, summary.valid_tokens) == (888, 93_464)
    assert ours["caps"] == {"max_rows": -1, "max_tokens": -1}
    shard_0 = ours["splits"]["train"]["shards"][0]
    assert shard_0["sha256"]["span_idx"] == hashes(tmp_path / "00")["train/shard_00_span.idx"]


@pytest.fixture
def records(harmony: Path, vocabulary: Path, tmp_path: Path) -> list[dict[str, Any]]:
    config = KDConfig(vocabulary, 0.0)
    summary = build_kd_shard(harmony, tmp_path / "00", config)
    made = [record(tmp_path / "00", number, config, summary) for number in ("00", "01")]
    for output in made[1]["outputs"]:
        output["path"] = output["path"].replace("_00", "_01")
    return made


Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda r: r["config"].update(valid_fraction=0.1), "valid_fraction 0.0 and 0.1"),
        (lambda r: r["config"].update(max_rows=10), "max_rows -1 and 10"),
        (lambda r: r["config"].update(max_tokens=10), "max_tokens -1 and 10"),
        (lambda r: r.update(code_version="2"), "code_version '1' and '2'"),
        (lambda r: r["libraries"].update(tiktoken="0.15.0"), "several versions of tiktoken"),
        (
            lambda r: r["libraries"].update({"openai-harmony": "0.0.9"}),
            "several versions of openai-harmony: 0.0.8, 0.0.9",
        ),
        (lambda r: r["libraries"].pop("tiktoken"), "several versions of tiktoken: 0.14.0, None"),
        (lambda r: r["tokenizer"].update(sha256="0" * 64), "several vocabularies: 0000"),
        (lambda r: r.update(tokenizer=None), "several vocabularies"),
        (lambda r: r["outputs"].pop(), r"shard 01: .*not among the outputs"),
    ],
)
def test_shards_of_unequal_config_are_refused(records, harmony, tmp_path, change, rule):
    change(records[1])
    with pytest.raises(GristmillError, match=rule):
        write_kd_manifest(records, tmp_path / "out", **kd_arguments(harmony))
    with pytest.raises(GristmillError, match="no shard has a record"):
        write_kd_manifest([], tmp_path / "out", **kd_arguments(harmony))
    assert not (tmp_path / "out").exists()


def test_settings_that_change_no_byte_do_not_make_configs_unequal(records, harmony, tmp_path):
    other = {"workers": 7, "bad_rows": 3, "vocabulary": "elsewhere", "engine": "tiktoken"}
    records[1]["config"] |= other
    write_kd_manifest(records, tmp_path / "out", **kd_arguments(harmony))
    text = (tmp_path / "out/manifest.json").read_text(encoding="ascii")
    assert text.endswith("}\n")
    manifest = json.loads(text)
    # Nothing is valid at 0, so no shard is listed.
    assert manifest["splits"]["valid"] == {"rows": 0, "tokens": 0, "shards": []}
    assert [s["name"] for s in manifest["splits"]["train"]["shards"]] == ["shard_00", "shard_01"]
    assert manifest["input"]["manifest_sha256"] == hashlib.sha256(harmony.read_bytes()).hexdigest()


def test_a_record_from_before_a_setting_has_its_default(records, harmony, tmp_path):
    assert records[1]["config"].pop("unknown_keys") == "count"
    write_kd_manifest(records, tmp_path / "out", **kd_arguments(harmony))
    records[0]["config"]["unknown_keys"] = "refuse"
    rule = "unequal configs: unknown_keys 'refuse' and 'count': build all of them with one config"
    with pytest.raises(GristmillError, match=rule):
        write_kd_manifest(records, tmp_path / "other", **kd_arguments(harmony))


def test_the_renderer_and_the_vocabulary_are_those_of_the_records(records, harmony, tmp_path):
    """Not what is installed when the manifest is written."""
    for one in records:
        one["libraries"]["openai-harmony"] = "0.0.7"
        one["tokenizer"]["sha256"] = "ab" * 32
    write_kd_manifest(records, tmp_path / "out", **kd_arguments(harmony))
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert manifest["renderer"]["version"] == "0.0.7"
    assert manifest["tokenizer"]["model_sha256"] == "ab" * 32
    for one in records:
        one["tokenizer"] = None
    with pytest.raises(GristmillError, match="names its vocabularies: build the shards again"):
        write_kd_manifest(records, tmp_path / "no", **kd_arguments(harmony))


@pytest.mark.real
def test_a_finished_conversion_is_copied_byte_for_byte(real, tmp_path):
    """The reference's manifest claims millions of rows, because it describes the full run."""
    source = real / "synth_harmony"
    assert list(manifests.folder_violations(source)) == []
    assert list(harmony_shard.shards(source)) == ["00", "01", "02", "03"]
    summary = import_shard(source, tmp_path / "shard", "02")
    (path,) = (tmp_path / "shard").iterdir()
    assert path.read_bytes() == (source / path.name).read_bytes()
    assert summary.rows == 250
    manifest = import_manifest(source, tmp_path / "manifest")
    assert manifest.manifest_sha256 == (
        "ace21923e385fa898eda8e81d081bb4b45644339c437c075201b45ff6c567383"
    )
    assert manifest.claimed_rows == 75_958_895
    for name in ("manifest.json", "metadata.json"):
        assert (tmp_path / "manifest" / name).read_bytes() == (source / name).read_bytes()


def test_an_incomplete_folder_is_refused(harmony, tmp_path):
    folder = tmp_path / "drop"
    folder.mkdir()
    assert {v.law for v in manifests.folder_violations(folder)} == {
        "manifest",
        "metadata",
        "shards",
    }
    shutil.copy(harmony, folder)
    (folder / "metadata.json").write_text("{}")
    (folder / "manifest.json").write_text('{"schema_version": "other"}')
    assert [v.found for v in manifests.folder_violations(folder)] == ["schema_version 'other'"]
    with pytest.raises(GristmillError, match="schema_version 'other'"):
        import_manifest(folder, tmp_path / "a")
    (folder / harmony.name).write_bytes(b"nothing")
    with pytest.raises(GristmillError, match="not a readable Parquet"):
        import_shard(folder, tmp_path / "b", "00")


@pytest.fixture
def conversion(harmony: Path, tmp_path: Path) -> Path:
    """A finished conversion of one shard."""
    folder = tmp_path / "conversion"
    folder.mkdir()
    shutil.copy(harmony, folder)
    (folder / "manifest.json").write_text('{"schema_version": "synth_harmony_v1"}')
    (folder / "metadata.json").write_text("{}")
    return folder


def test_a_shard_without_rows_is_refused(conversion, harmony, tmp_path):
    pq.write_table(pq.read_table(harmony).slice(0, 0), conversion / harmony.name)
    (violation,) = manifests.folder_violations(conversion)
    rule = f"{harmony.name}: rows: has no rows, and a dataset needs all shards: give it a row"
    assert str(violation) == rule
    with pytest.raises(GristmillError) as caught:
        import_shard(conversion, tmp_path / "out", "00")
    assert str(caught.value) == f"{conversion}: {rule}"


_STORAGE = '{"schema_version": "synth_harmony_v1", "storage": %s}'
_NO_NUMBER = "storage.total_rows is not a number of rows"


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("manifest.json", "{}", "schema_version None"),
        ("manifest.json", "[]", "is not a JSON object"),
        ("manifest.json", "[" * 100_000, "nested deeper than 64 levels"),
        (
            "manifest.json",
            json.dumps({"schema_version": "v" * 999}),
            "schema_version '" + "v" * 284,
        ),
        ("manifest.json", _STORAGE % "{}", None),
        ("manifest.json", _STORAGE % "[]", _NO_NUMBER),
        ("manifest.json", _STORAGE % '{"total_rows": "many"}', _NO_NUMBER),
        ("manifest.json", _STORAGE % '{"total_rows": -1}', _NO_NUMBER),
        ("manifest.json", _STORAGE % f'{{"total_rows": {2**53 - 1}}}', None),
        ("manifest.json", _STORAGE % f'{{"total_rows": {2**53}}}', _NO_NUMBER),
        ("manifest.json", _STORAGE % f'{{"x": {"1" * 101}}}', "a number of more than 100 digits"),
        ("manifest.json", _STORAGE % ("[" * 63 + "]" * 63), _NO_NUMBER),
        ("manifest.json", _STORAGE % ("[" * 64 + "]" * 64), "nested deeper than 64 levels"),
        ("metadata.json", "{", "cannot be read: "),
        ("metadata.json", "null", "is not a JSON object"),
    ],
)
def test_both_json_files_are_objects_within_limits(conversion, tmp_path, name, text, rule):
    (conversion / name).write_text(text)
    found = [(each.where, each.found) for each in manifests.folder_violations(conversion)]
    if rule is None:
        assert found == []
        claimed = import_manifest(conversion, tmp_path / "fine").claimed_rows
        assert claimed == json.loads(text)["storage"].get("total_rows", 0)
        return
    ((where, words),) = found
    assert where == name and words.startswith(rule) and len(words) <= 300
    with pytest.raises(GristmillError) as raised:
        import_manifest(conversion, tmp_path / "out")
    assert str(raised.value).startswith(f"{conversion}: {name}: {name.partition('.')[0]}: {rule}")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["manifest.json", "metadata.json"])
def test_a_json_file_may_be_so_large(conversion, name, monkeypatch):
    path = conversion / name
    text = json.dumps(json.loads(path.read_text()) | {"x": "y" * 100})
    path.write_text(text)
    limits = replace(manifests.LIMITS, bytes=len(text))
    monkeypatch.setattr(manifests, "LIMITS", limits)
    assert list(manifests.folder_violations(conversion)) == []
    path.write_text(text + " ")
    (violation,) = manifests.folder_violations(conversion)
    assert violation.where == name
    assert violation.found == f"cannot be read: has more than {len(text):,} bytes"


@pytest.mark.parametrize(
    "name", ["manifest.json", "metadata.json", "synth_harmony_shard_00.parquet"]
)
def test_files_that_are_links_are_refused_unless_links_are_allowed(conversion, tmp_path, name):
    target = (conversion / name).rename(tmp_path / "elsewhere")
    (conversion / name).symlink_to(target)
    (violation,) = manifests.folder_violations(conversion)
    assert "is a link: a drop may hold regular files" in violation.found
    with pytest.raises(GristmillError, match="is a link"):
        import_manifest(conversion, tmp_path / "out")
    rule = LinkRule(True, (str(tmp_path),))
    assert list(manifests.folder_violations(conversion, rule)) == []
    assert import_manifest(conversion, tmp_path / "out", links=rule).claimed_rows == 0
    if name.endswith(".parquet"):
        with pytest.raises(GristmillError, match="is a link"):
            import_shard(conversion, tmp_path / "shard", "00")
        assert not (tmp_path / "shard").exists()
        summary = import_shard(conversion, tmp_path / "shard", "00", links=rule)
        assert (tmp_path / "shard" / name).read_bytes() == target.read_bytes()
        assert not (tmp_path / "shard" / name).is_symlink()
        assert summary.rows > 0


def test_an_imported_shard_reports_its_rows(harmony, tmp_path):
    reports: list[Report] = []
    import_shard(harmony.parent, tmp_path / "out", "00", progress=Progress(reports.append, 0.0))
    rows = pq.read_metadata(harmony).num_rows
    assert reports[-1] == Report("digest", rows, rows, "rows")
