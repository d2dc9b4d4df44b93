"""Laws of the manifest of a Megatron dataset, over the whole published family."""

import json
import shutil
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill import families
from gristmill.contract import Summary, Violation
from gristmill.families import Subject
from gristmill.hashing import sha256_file
from gristmill.provenance import Input, Record, Tokenizer, read_record
from gristmill.provenance.verification import verify
from gristmill.publish.build import Attempt, Build
from gristmill.publish.publish import publish
from gristmill.synth import raw
from gristmill.synth.builders.harmony import to_harmony
from gristmill.synth.builders.harmony_shard import shard_name
from gristmill.synth.builders.kd_shard import build_kd_shard
from gristmill.synth.builders.manifests import write_harmony_manifest, write_kd_manifest
from gristmill.synth.config import HarmonyConfig, KDConfig
from gristmill.synth.format import megatron, trace
from gristmill.synth.laws import kd_laws, kd_manifest_law, shard_numbers, shard_records
from gristmill.synth.samples import write_drop
from gristmill.vocabularies.pinned import O200K

HARMONY, KD = "synth_harmony", "megatron/synth_kd_v1"
NUMBERS = ("00", "01", "02", "03")


def published(
    root: Path,
    artifact: str,
    asset: str,
    partition: str,
    config: object,
    inputs: list[Input],
    make: Callable[[Attempt], Summary],
    check: Callable[[Path], Iterable[Violation]] = lambda _: (),
) -> Record:
    build = Build(
        root=root,
        artifact=artifact,
        asset=asset,
        partition=partition,
        code_version=(KDConfig if artifact == KD else HarmonyConfig).CODE_VERSION,
        config=config,
        inputs=inputs,
        make=make,
        laws=check,
        shared=True,
        tokenizer=Tokenizer(name=O200K.name, path=O200K.relative, sha256=O200K.sha256)
        if artifact == KD
        else None,
    )
    return publish(build).record


def everything(root: Path, vocabulary: Path, fraction: float) -> dict[str, Record]:
    files = raw.complete_files(root / "drops/synth", 8)
    drop = [
        Input(
            path=path.relative_to(root).as_posix(),
            bytes=path.stat().st_size,
            sha256=sha256_file(path),
            mtime_ns=path.stat().st_mtime_ns,
        )
        for path in files
    ]
    conversion, config = HarmonyConfig(), KDConfig(vocabulary, fraction)
    records: dict[str, Record] = {}
    for index, number in enumerate(NUMBERS):
        records[f"h{number}"] = published(
            root, HARMONY, "synth/harmony", number, conversion, drop,
            lambda attempt, i=index: to_harmony(files, attempt.out, i, conversion),  # type: ignore[misc]
            lambda folder, n=number: families.check("synth/harmony", Subject(folder, n)),  # type: ignore[misc]
        )  # fmt: skip

    def dumped(letter: str) -> list[dict[str, Any]]:
        return [records[letter + number].model_dump() for number in NUMBERS]

    def inputs(letter: str, numbers: tuple[str, ...]) -> list[Input]:
        return [
            Input(
                asset=records[letter + number].asset,
                partition=number,
                data_version=records[letter + number].data_version,
                path=records[letter + number].artifact,
            )
            for number in numbers
        ]

    published(
        root, HARMONY, "synth/harmony_manifest", "manifest", conversion, inputs("h", NUMBERS),
        lambda attempt: write_harmony_manifest(
            dumped("h"), attempt.out, conversion,
            dataset_dir=HARMONY, created_unix_s=1, git_sha=None,
        ),
    )  # fmt: skip
    for number in NUMBERS:
        shard = root / HARMONY / shard_name(number)
        records[f"k{number}"] = published(
            root, KD, "synth/kd_shards", number, config, inputs("h", (number,)),
            lambda attempt, s=shard: build_kd_shard(s, attempt.out, config, attempt.parts),  # type: ignore[misc]
            partial(kd_laws, partition=number, valid_fraction=fraction),
        )  # fmt: skip
    published(
        root, KD, "synth/kd_manifest", "manifest", config, inputs("k", NUMBERS),
        lambda attempt: write_kd_manifest(
            dumped("k"), attempt.out, root=KD,
            harmony_manifest=root / HARMONY / "manifest.json", harmony_dir=HARMONY,
            vocabulary="tokenizer/o200k_base.tiktoken", created_unix_s=1, git_sha=None,
        ),
    )  # fmt: skip
    return records


def test_the_whole_family_is_published_and_verified(vocabulary: Path, tmp_path: Path) -> None:
    write_drop(tmp_path / "drops/synth", rows=12)
    records = everything(tmp_path, vocabulary, 0.25)
    assert [str(violation) for violation in verify(tmp_path)] == []
    manifest = json.loads((tmp_path / KD / "manifest.json").read_text())
    for split in ("train", "valid"):
        inventory = manifest["splits"][split]
        assert [shard["name"] for shard in inventory["shards"]] == [f"shard_{n}" for n in NUMBERS]
        for shard in inventory["shards"]:
            for key, path in shard["paths"].items():
                assert (tmp_path / path).stat().st_size == shard["bytes"][key]
                assert sha256_file(tmp_path / path) == shard["sha256"][key]
    assert manifest["data_versions"] == {n: records[f"k{n}"].data_version for n in NUMBERS}
    source = tmp_path / HARMONY / "manifest.json"
    assert manifest["input"]["manifest_sha256"] == sha256_file(source)
    rows = sum(int(records[f"h{n}"].counts["rows"]) for n in NUMBERS)
    assert json.loads(source.read_text())["storage"]["total_rows"] == rows
    assert sum(manifest["splits"][s]["rows"] for s in manifest["splits"]) == rows
    # The library's own readers find the records where the publisher put them.
    prefix = tmp_path / KD / "train/shard_02_tokens"
    assert megatron.digest(prefix) == records["k02"].data_version
    record = tmp_path / KD / "provenance/02.json"
    record.write_text(record.read_text()[:-9])
    with pytest.raises(RuntimeError, match=r"provenance/02\.json: not a provenance record"):
        megatron.digest(prefix)


def test_building_again_changes_nothing(vocabulary: Path, tmp_path: Path) -> None:
    versions = []
    for name in "ab":
        write_drop(tmp_path / name / "drops/synth", rows=12)
        records = everything(tmp_path / name, vocabulary, 0.25)
        versions.append({key: record.data_version for key, record in records.items()})
    assert versions[0] == versions[1]
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "a").rglob("*")}
    everything(tmp_path / "a", vocabulary, 0.25)
    after = {path: path.stat().st_mtime_ns for path in (tmp_path / "a").rglob("*")}
    assert {p for p in before if p.is_file()} == {p for p in after if p.is_file()}
    assert all(after[p] == before[p] for p in before if p.is_file() and ".gristmill" not in str(p))
    record = read_record(tmp_path / "a" / KD / "provenance/00.json")
    assert record.libraries["openai-harmony"] == "0.0.8"


@pytest.fixture(scope="module")
def kd_dataset(vocabulary: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A published Megatron dataset, only for reading."""
    root = tmp_path_factory.mktemp("published")
    write_drop(root / "drops/synth", rows=12)
    everything(root, vocabulary, 0.25)
    return root / KD


@pytest.fixture
def dataset(kd_dataset: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(kd_dataset, tmp_path / "kd"))


def violations(root: Path) -> list[tuple[str, str]]:
    return [(v.law, v.found) for v in kd_manifest_law(Subject(root, "manifest"))]


def test_a_published_manifest_breaks_no_law(kd_dataset: Path, tmp_path: Path) -> None:
    assert violations(kd_dataset) == []
    shutil.copy(kd_dataset / "manifest.json", tmp_path)
    staged = Subject(tmp_path, "manifest", [kd_dataset, kd_dataset.parent])
    assert list(kd_manifest_law(staged)) == []
    assert shard_numbers(kd_dataset) == list(NUMBERS)
    assert [r.partition for r in shard_records(kd_dataset, skip="manifest")] == list(NUMBERS)


@pytest.mark.parametrize(
    ("text", "law", "rule"),
    [
        ("{}", "schema", "is not a manifest of Megatron datasets: KeyError('config_hash')"),
        (
            '{"config_hash": 1, "config": [], "splits": {"train": 3}}',
            "schema",
            "is not a manifest of Megatron datasets: ",
        ),
        ("[1]", "readable", "is not a JSON object"),
    ],
)
def test_another_file_is_a_violation_and_no_error(
    dataset: Path, text: str, law: str, rule: str
) -> None:
    (dataset / "manifest.json").write_text(text)
    last_law, last_rule = violations(dataset)[-1]
    assert last_law == law
    assert last_rule.startswith(rule)


Change = Callable[[dict[str, Any]], object]


def shard_2(manifest: dict[str, Any]) -> dict[str, Any]:
    return manifest["splits"]["train"]["shards"][2]


@pytest.mark.parametrize(
    ("change", "law", "rule"),
    [
        (lambda m: m["config"].update(valid_fraction=0.5), "config hash", "not the hash"),
        (lambda m: shard_2(m).update(rows=1), "inventory",
         "train shard 02: its record has other rows"),
        (lambda m: shard_2(m).update(tokens=1), "inventory", "record has other tokens:"),
        (lambda m: shard_2(m)["bytes"].update(span_bin=1), "inventory", "other span_bin:"),
        (lambda m: shard_2(m)["sha256"].update(span_idx="0"), "inventory", "other span_idx:"),
        (lambda m: shard_2(m)["paths"].update(span_idx="x/y"), "inventory", "other span_idx:"),
        (lambda m: m["splits"]["train"]["shards"].pop(1), "inventory", "train lacks shard 01"),
        (
            lambda m: shard_2(m).update(name="shard_07"),
            "inventory",
            "train lists shard 07, which has no record",
        ),
        (lambda m: m["splits"].pop("valid"), "schema", "KeyError('valid')"),
    ],
)  # fmt: skip
def test_a_manifest_that_differs_from_the_records_is_a_violation(
    dataset: Path, change: Change, law: str, rule: str
) -> None:
    path = dataset / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))
    assert any(found == law and rule in text for found, text in violations(dataset))


def test_shards_of_unequal_configs_are_a_violation(dataset: Path) -> None:
    record = dataset / "provenance/01.json"
    record.write_text(record.read_text().replace('"valid_fraction": 0.25', '"valid_fraction": 0.3'))
    ((law, rule),) = violations(dataset)
    assert law == "equal configs"
    assert "shards 00 and 01 were built from unequal configs: valid_fraction" in rule


def test_an_id_in_train_of_one_shard_and_valid_of_another_is_a_violation(dataset: Path) -> None:
    tables = {
        number: pq.read_table(dataset / trace.path(number)).to_pylist() for number in ("00", "03")
    }
    valid = next(row for row in tables["03"] if row["split"] == "valid")
    valid["synth_id"] = next(row for row in tables["00"] if row["split"] == "train")["synth_id"]
    path = dataset / trace.path("03")
    pq.write_table(pa.Table.from_pylist(tables["03"], schema=trace.schema()), path)
    assert violations(dataset) == [
        (
            "disjoint splits",
            "no value of the synth_id hash divides train from valid over all shards",
        )
    ]


def test_a_missing_trace_is_a_violation(dataset: Path) -> None:
    (dataset / trace.path("02")).unlink()
    assert [law for law, _ in violations(dataset)] == ["trace"]
