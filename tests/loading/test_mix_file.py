"""Mix files: every family by its folder, and what is refused with file, key and cure."""

import bz2
import gzip
import json
import lzma
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from gristmill.contract import BadInput, GristmillError
from gristmill.loading import mix_file as module
from gristmill.loading.mix_file import raw_text, read_mix, read_state
from gristmill.macroxue import StepDataset

D6 = 'path = "macroxue/packs/sample_d6"'
SOURCES = {
    "macroxue/pools/samples": 'held_out = 0.2\nside = "held_out"',
    "chess/dataset/elite_2024-01_game": 'split = "train"\nhorizon = 2',
    "megatron/synth_kd_v1": 'split = "valid"',
    "megatron/chat/talks__00": 'split = "valid"',
    "distill/synth/02": 'split = "train"',
    "distill/chat/talks__00": 'split = "valid"',
    "reasoning/tokenized/gpt2": 'corpora = ["gsm8k"]',
    "reasoning/tokens/mine": 'splits = ["train"]',
    "puzzles/arc-sample": "groups = true",
}


def written(folder: Path, text: str) -> Path:
    file = folder / "mix.toml"
    file.write_text(text)
    return file


@pytest.mark.parametrize("path", SOURCES)
def test_a_source_of_each_family_is_opened(sample_root, tmp_path, path):
    text = f'seed = 3\n[source.one]\npath = "{path}"\nepochs = 2\n{SOURCES[path]}\n'
    plan = read_mix(written(tmp_path, text), sample_root.data)
    (source,) = plan.sources
    assert source.identity.artifact.partition(" ")[0].endswith(path)
    assert any("raw" in name for step in source.origin(0) for name in step.facts())
    assert (plan.seed, plan.length) == (3, 2 * int(source.cuts[-1]))
    assert plan.at(plan.length - 1 + 0 * source.cuts)[0].tolist() == [0] * len(source.cuts)


def test_a_side_of_a_split_is_that_of_the_reader(sample_root, tmp_path):
    sides = []
    for side in ("train", "held_out"):
        text = f'[source.a]\n{D6}\nepochs = 1\nheld_out = 0.3\nside = "{side}"\n'
        sides.append(read_mix(written(tmp_path, text), sample_root.data))
    train, held_out = StepDataset(sample_root.data / "macroxue/packs/sample_d6").split(0.3)
    assert [plan.length for plan in sides] == [len(train), len(held_out)]


def test_several_months_are_one_source(sample_root, tmp_path):
    months = [f"chess/dataset/elite_2024-0{month}_game" for month in (1, 2)]
    plan = read_mix(
        written(tmp_path, f"[source.a]\npath = {months}\nepochs = 1\n"), sample_root.data
    )
    assert len(plan.sources[0].cuts) == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", r"has no table \[source.NAME\]"),
        ("source = 3", r"has no table \[source.NAME\]"),
        (f"other = 1\n[source.a]\n{D6}\nepochs = 1", "other is no key: use seed, window"),
        (f"[source.a]\n{D6}", "say one of epochs, tokens, weight"),
        (f"[source.a]\n{D6}\nepochs = 1\ntokens = 2", "say one of epochs, tokens, weight"),
        (f'[source.a]\n{D6}\nepochs = "1"', "source.a: epochs is '1': a number is needed"),
        (f"[source.a]\n{D6}\nepochs = true", "source.a: epochs is True"),
        (f"[source.a]\n{D6}\nepochs = 9", "9.00 epochs, more than 4"),
        (f"[source.a]\n{D6}\nweight = 9", "weights= with samples="),
        (f"[source.a]\n{D6}\ntokens = 9", "its samples have no tokens"),
        (f"[source.a]\n{D6}\nepochs = 1\nsplit = 'x'", "source.a: split: Unexpected keyword"),
        (f"[source.a]\n{D6}\nepochs = 1\nheld_out = '0.2'", "source.a: held_out: Input should be"),
        (f"[source.a]\n{D6}\nepochs = 1\nside = 'left'", "source.a: side: Input should be 'train'"),
        (f"seed = 'x'\n[source.a]\n{D6}\nepochs = 1", "seed is 'x': a whole number"),
        ("[source.a]\npath = 3\nepochs = 1", "source.a: path is 3: a folder or a list"),
        ("[source.a]\npath = []\nepochs = 1", r"source.a: path is \[\]"),
        ('[source.a]\npath = "gone"\nepochs = 1', "gone"),
        ('[source.a]\npath = "chess/raw/elite/2024-01"\nepochs = 1', "takes no artifacts of"),
        (f"[source.a]\n{D6}\nepochs = 1\n[source.b]\n{D6}\nepochs = 1", "is the same data as"),
    ],
)
def test_what_is_no_mix_is_refused(sample_root, tmp_path, text, words):
    with pytest.raises(GristmillError, match=words):
        read_mix(written(tmp_path, text), sample_root.data)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"batches": []}'])
def test_a_file_that_is_no_state_is_refused(tmp_path, text):
    (tmp_path / "state.json").write_text(text)
    with pytest.raises(GristmillError, match=r"state\.json"):
        read_state(tmp_path / "state.json")


TEXT = "".join(f"line {number}\n" for number in range(1000)).encode() + b"\xff!"
PACKED = {
    "a.jsonl": TEXT,
    "a.jsonl.gz": gzip.compress(TEXT[:700]) + gzip.compress(TEXT[700:]),
    "a.jsonl.bz2": bz2.compress(TEXT),
    "a.jsonl.XZ": lzma.compress(TEXT),
    "a.jsonl.zst": zstandard.compress(TEXT),
}


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("read", [7, 1 << 20])
def test_bytes_of_a_file_are_those_of_its_text(tmp_path, monkeypatch, name, read):
    monkeypatch.setattr(module, "_READ", read)
    (tmp_path / name).write_bytes(PACKED[name])
    for begin, end in ((0, 6), (3, 3), (695, 720), (len(TEXT) - 3, len(TEXT))):
        wanted = TEXT[begin:end].decode("utf-8", "backslashreplace")
        place = f"{begin}-{end} of the unpacked text"
        assert raw_text(tmp_path, {"raw_file": name, "raw_line_bytes": place}) == wanted
    assert raw_text(tmp_path, {"raw_steps": name, "raw_row_bytes_unpacked": "0-4"}) == "line"
    assert raw_text(tmp_path, {"raw_file": name, "raw_bytes": 4, "raw_meta_bytes": "0-4"}) is None


def test_bytes_of_a_member_are_those_of_its_text(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("b.pgn", b"another")
        archive.writestr("a.pgn", TEXT)
    facts = {"raw_file": "a.zip", "raw_member": "a.pgn", "raw_member_bytes": "7-13"}
    assert raw_text(tmp_path, facts) == TEXT[7:13].decode()


def test_a_row_of_parquet_is_an_object(tmp_path):
    table = pa.table({"query": [f"é{number}" for number in range(10)]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=4)
    facts = {"raw_file": "a.parquet", "raw_row": 6, "raw_row_group": 1, "raw_row_in_group": 2}
    assert json.loads(raw_text(tmp_path, facts) or "") == {"query": "é5"}
    assert "é" in (raw_text(tmp_path, facts) or "")


def test_where_no_file_is_named_there_is_no_text(tmp_path):
    assert raw_text(tmp_path, {"row": 3, "raw_line_bytes": "0-3"}) is None


def test_a_file_that_is_gone_or_changed_since_gives_no_text(tmp_path):
    facts = {"raw_file": "a.jsonl", "raw_row_bytes": "0-3", "raw_note": "the file is gone"}
    assert raw_text(tmp_path, facts) is None
    (tmp_path / "a.jsonl").write_bytes(TEXT)
    assert raw_text(tmp_path, facts) is None


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(TEXT)[:50])
    with pytest.raises(BadInput, match=r"a\.gz"):
        raw_text(tmp_path, {"raw_file": "a.gz", "raw_row_bytes": "0-9000"})
