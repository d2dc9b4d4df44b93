"""`trace` answers for every asset: down to raw files that are as it says."""

import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from gristmill import families, provenance
from gristmill.cli import main
from gristmill.hashing import sha256_file
from gristmill.provenance import trace_inputs
from tests.commands.drops import printed

ASSETS = [kind.asset for each in families.catalogs() for kind in each.kinds]
VOCABULARIES = ["tokenizers/gpt2", "tokenizers/o200k_harmony"]


def traced(*words: str | Path) -> list[tuple[str, str]]:
    """Names and values that the command prints."""
    said = printed(CliRunner().invoke(main, ["trace", *map(str, words)]))
    pairs = (line.partition(": ") for line in said.splitlines())
    return [(name, value) for name, _, value in pairs]


def options_of(asset: str, record: provenance.Record) -> list[str]:
    """The options that choose the partition of a shared folder."""
    options = families.options_of(asset, "trace")
    if "corpus" in options:
        corpus, _, split = str(record.partition).partition("__")
        if not split:  # of a dataset, which has several
            return []
        return ["--corpus", corpus, "--split", split]
    return ["--shard", str(record.partition)] if "shard" in options else []


@pytest.mark.parametrize("asset", [*ASSETS, *VOCABULARIES])
def test_every_asset_has_a_trace_down_to_raw_files(sample_root, asset):
    records = [pair for pair in sample_root.records() if pair[1].asset == asset]
    assert records
    for folder, record in records:
        shared = (folder / provenance.SHARED_RECORDS / f"{record.partition}.json").exists()
        kind = families.kind_of_asset(asset)
        traced_by_sample = kind is not None and kind.trace is not None and "manifest" not in asset
        has_samples = traced_by_sample and "shard" in families.options_of(asset, "trace")
        sample = str(record.partition) if shared and not has_samples else "0"
        words = options_of(asset, record) if has_samples else []
        facts = traced(folder, sample, *words)
        assert "not_traced" not in dict(facts)
        if not record.inputs:
            assert ("source", "generated") in facts
            continue
        _are_true(sample_root.data, facts)


def _are_true(root: Path, facts: list[tuple[str, str]]) -> None:
    """Whether raw files and artifacts are there, as large and with the sha256 that is named."""
    places = 0
    for number, (name, value) in enumerate(facts):
        if name in ("raw_file", "raw_meta", "raw_steps", "pgn_file", "folder"):
            assert (root / value).exists(), value
            places += 1
        if name == "raw_file":
            following, place = facts[number + 1]
            begin, end = map(int, place.split("-"))
            assert following == "raw_bytes" and 0 <= begin < end <= (root / value).stat().st_size
            assert facts[number + 2] == ("raw_sha256", sha256_file(root / value))
        if name == "raw_bytes":
            begin, end = map(int, value.split("-"))
            raw = next(where for key, where in reversed(facts[:number]) if key == "raw_file")
            octets = (root / raw).read_bytes()
            assert octets[:begin].endswith(b"\n") or begin in (0, 3)
            assert octets[end : end + 1] in (b"\n", b"\r", b"") or raw.endswith(".pgn")
        if name.startswith("raw_bytes_of"):
            begin, end = map(int, value.split("-"))
            assert 4 <= begin < end
    assert places


def test_what_does_not_lead_further_is_said_and_leads_to_no_wrong_row(sample_root, tmp_path):
    data = sample_root.copy(tmp_path).data
    pack = data / "macroxue/packs/sample_d6"
    harmony = data / "synth_harmony/provenance/00.json"
    for path in (data / "chess/raw/elite/2024-01/provenance.json", harmony):
        text = path.read_text()
        version = provenance.read_record(path).data_version
        path.write_text(text.replace(version, "0" * 64))
    (data / "drops/synth/samples/synth_008.parquet").write_bytes(b"other")
    same_size = data / "drops/synth/samples/synth_005.parquet"
    same_size.write_bytes(same_size.read_bytes()[::-1])
    (data / "drops/synth/samples/synth_003.parquet").touch()
    next((data / "drops/macroxue/sample_d6").glob("*worker00*game000000.jsonl.gz")).unlink()
    shutil.rmtree(data / "macroxue/packs/sample_d7")
    notes = {
        "chess/validated/elite_2024-01 3": "2024-01 was built again after chess/valid_games",
        "megatron/synth_kd_v1 3": "synth/harmony 00 was built again after synth/kd_shards 00",
        "synth_harmony 80 --shard 03": r"synth_008.parquet has 5 bytes, [\d,]+ when",
        "synth_harmony 3 --shard 02": r"synth_005.parquet has other bytes than when",
        "macroxue/packs/sample_d6 0": "jsonl.gz is gone",
    }
    for words, note in notes.items():
        path, *rest = words.split()
        facts = dict(traced(data / path, *rest))
        assert re.search(note, facts["not_traced"]), facts
        assert not [name for name in facts if name.startswith("raw_")], facts
    assert "raw_row" in dict(traced(data / "synth_harmony", "3", "--shard", "01"))
    shutil.move(pack, tmp_path / "moved")
    assert "was moved out of its data root" in dict(traced(tmp_path / "moved", "1"))["not_traced"]
    call = ["trace", str(data / "macroxue/values/sample_d7"), "1"]
    gone = "macroxue/pack sample_d7, which macroxue/values sample_d7 was made from, is gone"
    assert gone in printed(CliRunner().invoke(main, call), 1)


def test_raw_files_are_hashed_only_where_their_time_changed(sample_root, tmp_path, monkeypatch):
    data = sample_root.copy(tmp_path).data
    hashed: list[Path] = []

    def noted(path: Path) -> str:
        hashed.append(path)
        return sha256_file(path)

    monkeypatch.setattr(trace_inputs, "sha256_file", noted)
    raw = data / "drops/tokenizers/r50k_base.tiktoken"
    assert "raw_note" not in dict(traced(data / "tokenizer", "gpt2"))
    assert hashed == []
    raw.touch()
    assert "raw_note" not in dict(traced(data / "tokenizer", "gpt2"))
    assert hashed == [raw]
    raw.unlink()
    assert dict(traced(data / "tokenizer", "gpt2"))["raw_note"] == "the file is gone"


def test_a_manifest_says_which_of_its_inputs_changed(sample_root, tmp_path):
    data = sample_root.copy(tmp_path).data
    (data / "synth_harmony/provenance/02.json").unlink()
    facts = traced(data / "synth_harmony", "manifest")
    assert [value for name, value in facts if name == "note"] == [
        "synth/harmony 02, which synth/harmony_manifest manifest was made from, is gone"
    ]


@pytest.mark.parametrize(
    "words",
    [
        "reasoning/raw 99999 --corpus gsm8k",
        "reasoning/raw nosuch",
        "reasoning/alignment 99999 --corpus gsm8k",
        "reasoning/alignment nosuch",
        "reasoning/tokenized/gpt2 nosuch --corpus gsm8k",
        "reasoning/reports 99999",
        "reasoning/reports nosuch",
        "reasoning/reports --corpus gsm8k",
        "tokenizer 99999",
        "tokenizer nosuch",
        "tokenizer gpt2 --corpus gsm8k",
    ],
)
def test_a_sample_that_is_not_there_is_refused(sample_root, words):
    folder, *rest = words.split()
    done = CliRunner().invoke(main, ["trace", str(sample_root.data / folder), *rest])
    assert done.exit_code in (1, 2), done.output
    assert rest[0].startswith("--") or rest[0] in done.output or "no token" in done.output
    assert "raw_file" not in done.output


def test_steps_lead_to_the_raw_row_and_vocabularies_list_all_inputs(sample_root):
    reasoning = sample_root.data / "reasoning"
    steps = traced(reasoning / "alignment", "gsm8k_train_000002")
    by_record = traced(reasoning / "raw", "gsm8k_train_000002")
    assert steps[0] == ("example_id", "gsm8k_train_000002")
    assert [each for each in steps if each[0] == "alignment_line"] == [("alignment_line", "3")]
    assert steps[-len(by_record) :] == by_record
    folder = sample_root.data / "reasoning/reports"
    day = next(folder.glob("*.json")).name
    assert traced(folder, day) == traced(folder, day.removesuffix(".json")) == traced(folder)
    facts = traced(sample_root.data / "tokenizer")
    assert [value for name, value in facts if name == "artifact"] == [
        "tokenizers/gpt2 gpt2",
        "tokenizers/o200k_harmony o200k_harmony",
        *["tokenizers/placed tiny"] * 2,
    ]
