"""The original code's files, byte for byte (docs/formats/chess.md#compatibility-mode)."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from gristmill.chess import (
    CacheConfig,
    GameConfig,
    SpliceConfig,
    ValidateConfig,
    build_game_dataset,
    build_splice_cache,
    build_splice_dataset,
    validate,
)
from gristmill.chess.builders.splits import shuffled_splits
from gristmill.chess.config import SPLITS
from gristmill.chess.format.folders import LAYOUT
from gristmill.chess.read.samples import capped, counts, legacy_seed, runtime_seed


@pytest.fixture(scope="module")
def golden(real: Path) -> Path:
    return real / "golden"


@pytest.fixture(scope="module")
def made(golden: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole chain over small.pgn, as the original code was run."""
    root = tmp_path_factory.mktemp("golden")
    config = ValidateConfig(compat="reference", source_names=("small.pgn",), share_bytes=20_000)
    validate([golden / "small.pgn"], root / "valid", config)
    game = GameConfig(split="shuffle", share_bytes=50_000)
    build_game_dataset(root / "valid", root / "golden_game", game)
    build_splice_cache(root / "golden_game", root / "golden_game" / "runtime_splice_cache")
    splice = SpliceConfig(split="shuffle", max_samples_per_game=4, share_bytes=50_000)
    build_splice_dataset(
        root / "valid", root / "splice_cap4", splice, published=Path("splice_cap4")
    )
    return root


@pytest.mark.real
def test_every_golden_hash(golden: Path, made: Path) -> None:
    for name in ("valid_games.jsonl", "invalid_games.csv", "summary.json"):
        shutil.copy(made / "valid" / name, made / name)
    shutil.copy(golden / "small.pgn", made / "small.pgn")
    lines = (golden / "SHA256SUMS").read_text().split("\n")
    checked = 0
    for line in filter(None, lines):
        digest, name = line.split()
        assert hashlib.sha256((made / name).read_bytes()).hexdigest() == digest, name
        checked += 1
    assert checked == 23


@pytest.mark.real
def test_stats_manifest_and_vocabulary(golden: Path, made: Path) -> None:
    for name in ("golden_game/stats.json", "golden_game/runtime_splice_cache/vocab_rows_meta.json"):
        ours, theirs = (json.loads((root / name).read_text()) for root in (made, golden))
        assert list(ours) == list(theirs)
        for key in ours.keys() - {"input_path", "output_dir", "generated_at_utc", "dataset_dir"}:
            assert ours[key] == theirs[key], (name, key)
        assert list(ours.get("vocab", [])) == list(theirs.get("vocab", []))
    ours, theirs = (
        json.loads((root / "golden_game/runtime_splice_cache/manifest.json").read_text())
        for root in (made, golden)
    )
    assert (ours["kind"], ours["config"]) == (theirs["kind"], theirs["config"])
    assert ours["schema_version"] == theirs["schema_version"]
    for split in SPLITS:
        one, two = ours["splits"][split], theirs["splits"][split]
        for key in ("game_rows_total", "sample_rows_total"):
            assert one[key] == two[key]
        for name in LAYOUT:
            assert one["files"][name]["size_bytes"] == two["files"][name]["size_bytes"]
            assert one["files"][name]["rel_path"] == two["files"][name]["rel_path"]


@pytest.mark.slow
@pytest.mark.real
def test_a_cache_of_the_earlier_rows_without_a_sidecar(golden: Path, tmp_path: Path) -> None:
    build_splice_cache(golden / "golden_game", tmp_path / "cache", CacheConfig(workers=2))
    for split in SPLITS:
        for name in LAYOUT:
            theirs = golden / "golden_game" / "runtime_splice_cache" / split / name
            assert (tmp_path / "cache" / split / name).read_bytes() == theirs.read_bytes()


@pytest.mark.real
def test_ids_of_the_edge_file(real: Path, tmp_path: Path) -> None:
    config = ValidateConfig(compat="reference", source_names=("edge.pgn",))
    summary = validate([real / "edge" / "edge.pgn"], tmp_path / "v", config)
    assert (summary.total_games, summary.valid_games) == (27, 20)
    first = json.loads((tmp_path / "v" / "valid_games.jsonl").read_text().split("\n")[0])
    assert first["game_id"] == "02aeb5cbc590d470d9e3104fbcecd86b90179368"


def test_the_shuffle_and_the_caps_are_those_that_are_documented() -> None:
    splits = shuffled_splits([f"g{i}" for i in range(20)], 7, 0.8, 0.1)
    assert [name for name, split in splits.items() if split == 1] == ["g1", "g12"]
    assert [name for name, split in splits.items() if split == 2] == ["g4", "g10"]
    import numpy as np

    n = counts(np.array([30]), 8, 1)
    for seed_of, game_id, expected in (
        (runtime_seed, "g1", [10, 11, 19, 28]),
        (runtime_seed, "", [9, 19, 13, 22]),
        (legacy_seed, "g1", [9, 22, 25, 13]),
    ):
        kept, indices = capped(n, 8, 4, [game_id], 7, seed_of)
        assert kept.tolist() == [4]
        assert indices.tolist() == expected or sorted(indices.tolist()) == expected
