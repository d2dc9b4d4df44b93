"""Which family answers for a folder: its records decide, else its files."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gristmill import families
from gristmill.contract import GristmillError
from gristmill.dispatch import judged, kinds_at
from gristmill.families import Misuse
from gristmill.provenance import RECORD, SHARED_RECORDS, read_record
from gristmill.publish.publish import publish
from tests.publish.tiny import tiny_build
from tests.sample_root import SampleRoot


def _record_of(root: Path, asset: str, path: Path) -> None:
    """Write a record of `asset` to `path`."""
    source = publish(tiny_build(root)).folder
    record = json.loads((source / RECORD).read_bytes())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**record, "asset": asset}))
    assert read_record(path).asset == asset


def test_the_record_decides_whatever_the_files_look_like(tmp_path):
    folder = tmp_path / "folder"
    _record_of(tmp_path, "chess/valid_games", folder / RECORD)
    for name in ("metadata.db", "valuation_types.json"):
        (folder / name).touch()
    assert [kind.asset for kind in kinds_at(folder)] == ["chess/valid_games"]


def test_a_shared_folder_has_the_kinds_of_all_its_records(tmp_path):
    folder = tmp_path / "folder"
    for name, asset in (("00", "harmony"), ("01", "harmony"), ("manifest", "harmony_manifest")):
        _record_of(tmp_path, f"synth/{asset}", folder / SHARED_RECORDS / f"{name}.json")
    kinds = [kind.asset for kind in kinds_at(folder)]
    assert kinds == ["synth/harmony", "synth/harmony_manifest"]


@pytest.mark.parametrize(
    ("files", "asset"),
    [
        (("metadata.db", "valuation_types.json"), "macroxue/pack"),
        (("synth_harmony_shard_02.parquet",), "synth/harmony"),
        (("trace/trace_00.parquet",), "synth/kd_shards"),
        (("trace/trace_00.parquet", "dataset_dict.json"), "synth/distill"),
        (("valid_games.jsonl",), "chess/valid_games"),
        (("train/splice_indices.u32.bin",), "chess/splice_cache"),
        (("steps-00000.npy",), "macroxue/pack"),
        (("valid/shard_00_tokens.idx",), "synth/kd_shards"),
        (("source.json", "games.pgn"), "chess/elite_pgn"),
        (("mine/train/shard_00000.meta.json",), "reasoning/gpt2_shards"),
        (("tiny/facts.json",), "tokenizers/placed"),
        (("2026-11-22.json",), "reasoning/qc_report"),
    ],
)
def test_a_folder_without_a_record_is_known_by_its_files(tmp_path, files, asset):
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [kind.asset for kind in kinds_at(tmp_path)] == [asset]


def test_a_folder_of_no_family_an_unknown_asset_and_a_damaged_record_are_named(tmp_path):
    (tmp_path / "metadata.db").touch()
    with pytest.raises(Misuse, match=r"macroxue/pack, .*synth/harmony"):
        kinds_at(tmp_path)
    _record_of(tmp_path, "letters/counts", tmp_path / "folder" / RECORD)
    with pytest.raises(Misuse, match="not an artifact of a known asset"):
        kinds_at(tmp_path / "folder")
    (tmp_path / RECORD).write_text("{")
    with pytest.raises(GristmillError, match=RECORD):
        kinds_at(tmp_path)


ASSETS = [kind.asset for each in families.catalogs() for kind in each.kinds]
GUESSED = {
    "tokenizers/gpt2": "tokenizers/placed",
    "tokenizers/o200k_harmony": "tokenizers/placed",
    "synth/harmony_manifest": "synth/harmony",
    "synth/kd_manifest": "synth/kd_shards",
    "synth_smoke/kd_shards": "synth/kd_shards",
    "synth_smoke/kd_manifest": "synth/kd_shards",
    "chat/kd_shards": "synth/kd_shards",
    "chat/distill": "synth/distill",
    "reasoning/raw_manifest": "reasoning/normalized",
    "reasoning/manifest": "reasoning/gpt2_shards",
}
"""The kinds that share a folder with another one, which the files say."""
UNKNOWN = "what it was made from is not known"
MANIFEST = "manifest.json: it is of the kind {}, which --kind names"
SOURCE = "source_unchanged: where the manifest does not name the source"
LEFT_OUT = {
    "macroxue/values": [f"values: {UNKNOWN}"],
    "synth/kd_manifest": ["kd_manifest: the folder has no record"],
    "synth_smoke/kd_manifest": ["kd_manifest: the folder has no record"],
    "chess/valid_games": [f"event_lines: {UNKNOWN}"],
    "chess/splice_cache": [SOURCE],
    "chess/subset": [SOURCE],
    "synth/harmony": [MANIFEST.format("synth/harmony_manifest")],
    "synth/kd_shards": [MANIFEST.format("synth/kd_manifest")],
    "synth_smoke/kd_shards": [MANIFEST.format("synth/kd_manifest")],
    "reasoning/normalized": [MANIFEST.format("reasoning/raw_manifest")],
    "reasoning/gpt2_shards": [MANIFEST.format("reasoning/manifest")],
    "reasoning/alignment": [f"index: {UNKNOWN}"],
    "reasoning/tokens": [f"steps: {UNKNOWN}"],
}
UNCHECKED = {"macroxue/values", "synth/kd_manifest", "synth_smoke/kd_manifest"}
FACTS = {
    "macroxue/pack": "move_dir: uint8, 0 to 3",
    "macroxue/pool": "metadata.db: 20 runs",
    "macroxue/values": "values.npy: 5,168 rows of 24 bytes",
    "macroxue/training_view": "validation/metadata.db: ",
    "synth/harmony": "synth_harmony_shard_00.parquet: 106 rows; messages_json string",
    "synth/kd_shards": "train/shard_00_span: 99 documents; lengths: int32, 157 to 579; values: "
    "uint8, 0 to 2",
    "synth/distill": "validation: ",
    "chat/distill": "train: 27 rows; lengths: int32, 26 to 26",
    "chat/conversations": "shard_00.parquet: 40 conversations",
    "chess/elite_pgn": "lichess_elite_2024-01.pgn: 14,197 lines, 487,801 bytes",
    "chess/valid_games": "valid_games.jsonl: 585 lines",
    "chess/game_dataset": "stats.json split_games: train 436, val 57, test 47",
    "chess/splice_cache": "train/path_ids.u32.bin: uint32 [32,033], 0 to 0",
    "chess/splice_dataset": "stats.json split_samples: train ",
    "chess/subset": "subset.json splits train: rows 50, rows_of 436",
    "reasoning/normalized": "gsm8k/test.jsonl: 12 lines, 2,621 bytes",
    "reasoning/gpt2_shards": "gsm8k/train: 1 shard of [1, 2048]; ids: int32, 9 to 50,256",
    "reasoning/tokens": "gsm8k/test: 2 shards of [10, 64]; 1 shard of [8, 64]; ids: uint16",
    "tokenizers/gpt2": "gpt2/r50k_base.tiktoken: 835,554 bytes",
    "tokenizers/o200k_harmony": "o200k_base.tiktoken: 3,613,922 bytes",
    "tokenizers/placed": "tiny: tiktoken, 265 ids as uint16, 1 control tokens",
    "reasoning/alignment": "gsm8k/test.align.jsonl: 12 lines, 4,236 bytes",
    "reasoning/exports": "nanochat/shard_00000.parquet: ",
    "reasoning/spans": "gsm8k/test.spans.jsonl: ",
    "reasoning/qc_report": "reports of 20",
    "puzzles/domino": "train/all: 200 groups, 594 puzzles, 594 examples",
}


def _bare(root: SampleRoot, asset: str, to: Path) -> Path:
    """A copy of the first folder of an asset, without records."""
    folder = next(found for found, record in root.records() if record.asset == asset)
    if asset == "chess/splice_cache":  # with the rows that it was made from
        _bare(root, "chess/game_dataset", to)
        return to / folder.name
    shutil.copytree(folder, to)
    for record in (*to.rglob(RECORD), *to.rglob(SHARED_RECORDS)):
        shutil.rmtree(record) if record.is_dir() else record.unlink()
    return to


@pytest.mark.parametrize("asset", ASSETS)
def test_a_folder_of_every_asset_is_judged_without_its_record(sample_root, tmp_path, asset):
    folder = _bare(sample_root, asset, tmp_path / "bare")
    found = judged(folder, asset)
    assert (found.asset, found.is_guessed, found.violations) == (asset, False, [])
    assert found.left_out == LEFT_OUT.get(asset, [])
    assert found.is_checked == (asset not in UNCHECKED)
    facts = FACTS.get(asset, "")
    assert any(line.startswith(facts) for line in found.facts), found.facts
    guessed = judged(folder)
    assert (guessed.asset, guessed.is_guessed) == (GUESSED.get(asset, asset), True)
    # Only a record says that the datasets are of another template than Harmony.
    wrong = ["trace"] if asset == "chat/kd_shards" else []
    assert [each.law for each in guessed.violations] == wrong


def _set(name: str, place: object, value: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        array = np.load(folder / name)
        array[place] = value
        np.save(folder / name, array)

    return change


def _tokens(folder: Path) -> None:
    tokens = np.fromfile(folder / "train/shard_01_tokens.bin", "<i4")
    tokens[:7_000:500] = 201_088
    (folder / "train/shard_01_tokens.bin").write_bytes(tokens.tobytes())


def _replace(name: str, old: str, new: str, count: int = -1) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new, count))

    return change


NO_TRACE = ["trace, draws of augmentations: there is no trace/sources.json"]
OTHERS: dict[
    str, tuple[tuple[str, ...], list[str], Callable[[Path], None], list[tuple[str, str]]]
] = {
    "macroxue/pack": (
        ("trace.jsonl", "valuation_types.json", "metadata.db"),
        [
            "runs: there is no metadata.db",
            "row_valuation_type: there is no valuation_types.json",
            "trace: there is no trace.jsonl",
            "games: there is no metadata.db",
        ],
        _set("steps.npy", slice(3, 10), (0, 0, 0, 0, 0, 9, 0, 0, 0, 0, [0, 0, 0, 0])),
        [*(("row_move_dir", f"run 0 step 0 (row {row})") for row in range(3, 10))],
    ),
    "synth/kd_shards": (
        ("trace",),
        ["trace, split by synth_id: there is no trace", MANIFEST.format("synth/kd_manifest")],
        _tokens,
        [*(("tokens in the vocabulary", "train/shard_01_tokens") for _ in range(14))],
    ),
    "chess/elite_pgn": (
        ("source.json",),
        ["pgn_as_recorded: there is no source.json"],
        lambda folder: (folder / "second.pgn").touch(),
        [("one_pgn", "{}")],
    ),
    "chess/valid_games": (
        ("sidecar", "profile.json"),
        [
            f"event_lines: {UNKNOWN}",
            "plies_profiled: there is no profile.json",
            "phases_rederived, rows_as_sidecar: there is no sidecar",
        ],
        _replace("summary.json", '"valid_games": 585', '"valid_games": 586'),
        [("valid_counted", "summary.json"), ("total_counted", "summary.json")],
    ),
    "chess/game_dataset": (
        ("sidecar",),
        ["phases_rederived, rows_as_sidecar, rows_noted: there is no sidecar"],
        _replace("stats.json", '"split_seed": 7', '"split_seed": 8'),
        [("split_of_moves", f"{split}.jsonl") for split in ("train", "val", "test")],
    ),
    "chess/splice_cache": (
        ("../sidecar",),
        ["source_unchanged: where the manifest does not name the source"],
        _replace("manifest.json", '"source"', '"other"'),
        [],
    ),
    "reasoning/normalized": (
        ("origins",),
        ["origins: there is no origins", MANIFEST.format("reasoning/raw_manifest")],
        _replace("gsm8k/train.jsonl", '"question"', '"query"', 2),
        [("keys", "gsm8k/train.jsonl:1"), ("keys", "gsm8k/train.jsonl:2")],
    ),
    "puzzles/arc": (
        ("trace",),
        NO_TRACE,
        _set("test/all__labels.npy", (-1, 0), 0),
        [("border", "test all labels row 35")],
    ),
    "puzzles/grid": (
        ("trace",),
        [*NO_TRACE, "rules of grids: there is no trace/sources.json"],
        _set("train/all__labels.npy", (3, 0), 9),
        [("tokens", "train/all__labels.npy row 3")],
    ),
    "puzzles/sudoku": (
        ("trace",),
        NO_TRACE,
        _set("train/all__labels.npy", ([3, 4], 0), 11),
        [
            *(("tokens", f"train/all__labels.npy row {row}") for row in (3, 4)),
            *(
                (law, f"train/all row {row}")
                for row in (3, 4)
                for law in ("label_out_of_vocab", "label_digit_out_of_range")
            ),
        ],
    ),
    "puzzles/maze": (
        ("trace",),
        NO_TRACE,
        _set("train/all__labels.npy", (9, 0), 5),
        [("group", "train/all row 9")],
    ),
    "puzzles/domino": (
        ("trace",),
        NO_TRACE,
        _set("train/all__labels.npy", ([2, 5], 40), 1),
        [("label_tail_not_zero", f"train/all row {row}") for row in (2, 5)],
    ),
}
"""What other programs do not write, what is not checked then, a damage, and what is found."""


@pytest.mark.parametrize("asset", OTHERS)
def test_what_another_program_does_not_write_is_left_out(sample_root, tmp_path, asset):
    files, left_out, damage, broken = OTHERS[asset]
    folder = _bare(sample_root, asset, tmp_path / "bare")
    for name in files:
        shutil.rmtree(folder / name) if (folder / name).is_dir() else (folder / name).unlink()
    found = judged(folder, asset)
    assert (found.violations, found.left_out) == ([], left_out)
    damage(folder)
    places = [
        (each.law, each.where.removeprefix(f"{folder}: ").partition(": document")[0])
        for each in judged(folder, asset).violations
    ]
    broken = [(law, where.format(folder)) for law, where in broken]
    assert places == broken


def test_what_cannot_be_read_is_said_and_the_laws_are_asked_all_the_same(tmp_path):
    (tmp_path / "steps.npy").write_bytes(b"x")
    found = judged(tmp_path)
    assert found.asset == "macroxue/pack"
    assert [fact.partition(": ")[0] for fact in found.facts] == ["what follows cannot be read"]
    assert [each.law for each in found.violations] == ["files_open"]


def test_a_dataset_of_an_unknown_puzzle_is_judged_by_the_contract_alone(sample_root, tmp_path):
    folder = _bare(sample_root, "puzzles/maze", tmp_path / "bare")
    shutil.rmtree(folder / "trace")
    found = judged(folder)
    assert (found.asset, found.violations) == ("puzzles/other", [])
    assert found.left_out == ["rules of its puzzle: its files do not say which puzzle it is"]
    _set("train/all__inputs.npy", (4, 0), 77)(folder)
    assert [each.law for each in judged(folder).violations] == ["tokens"]


def test_a_folder_of_no_kind_or_of_several_and_one_with_a_record_name_the_kinds(tmp_path):
    with pytest.raises(GristmillError, match=r"of no known kind\. .* --kind: macroxue/pack, "):
        judged(tmp_path)
    (tmp_path / "valid_games.jsonl").touch()
    (tmp_path / "steps.npy").touch()
    several = r"several kinds, name one: --kind macroxue/pack or --kind chess/valid_games"
    with pytest.raises(GristmillError, match=several):
        judged(tmp_path)
    assert judged(tmp_path, "chess/valid_games").violations != []
    with pytest.raises(Misuse, match=r"--kind chess/games: there is none .* macroxue/pack, "):
        judged(tmp_path, "chess/games")
    _record_of(tmp_path, "chess/valid_games", tmp_path / "folder" / RECORD)
    with pytest.raises(Misuse, match="has a record, which says its kind: leave --kind out"):
        judged(tmp_path / "folder", "chess/valid_games")


@pytest.mark.parametrize("asset", [kind for kind in ASSETS if kind not in UNCHECKED])
def test_a_folder_with_nothing_of_the_kind_that_was_named_breaks_its_laws(tmp_path, asset):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/train.jsonl").write_text("{}\n")
    assert judged(tmp_path, asset).violations != []
