"""Datasets of Domino games."""

import json
from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.puzzles.builders.domino import DominoSummary, build_domino
from gristmill.puzzles.config import DominoConfig
from gristmill.puzzles.domains.domino_augment import augmented, canonical
from gristmill.puzzles.domains.domino_game import game_keys, games
from gristmill.puzzles.domains.randomness import source_key
from gristmill.puzzles.laws.contract import contract_laws
from gristmill.puzzles.laws.games import domino_laws
from tests.puzzles.builders.test_arc import digests


def build(out: Path, **fields: object) -> DominoSummary:
    return build_domino(out, DominoConfig(**{"num_games": 300, **fields}))  # type: ignore[arg-type]


def rows(out: Path, split: str, field: str) -> np.ndarray:
    return np.load(out / split / f"all__{field}.npy")


def forms(split: str, count: int, seed: int = 42) -> list[int]:
    return canonical(games(game_keys(seed, split, np.arange(count)))[0], "reversal").tolist()


def test_a_dataset_holds_the_games_of_the_seed_in_order(tmp_path: Path) -> None:
    summary = build(tmp_path / "out")
    for split in ("train", "test"):
        origins = np.load(tmp_path / "out/trace" / split / "all.npy")
        numbers = origins[:, 1].tolist()
        assert numbers == sorted(set(numbers))
        assert set(origins[:, 0].tolist()) == {-1}
        assert set(origins[:, 2].tolist()) == {0}
        inputs, labels = games(game_keys(42, split, np.arange(300)))
        assert np.array_equal(rows(tmp_path / "out", split, "inputs"), inputs[numbers])
        assert np.array_equal(rows(tmp_path / "out", split, "labels"), labels[numbers])
        assert rows(tmp_path / "out", split, "inputs").dtype == np.int32
        count = len(numbers)
        metadata = json.loads((tmp_path / "out" / split / "dataset.json").read_text())
        assert metadata == {
            "pad_id": 0,
            "ignore_label_id": 0,
            "blank_identifier_id": 0,
            "vocab_size": 8,
            "seq_len": 72,
            "num_puzzle_identifiers": 1,
            "total_groups": count,
            "mean_puzzle_examples": 1.0,
            "sets": ["all"],
            "total_puzzles": count,
        }
        assert summary.examples[split] == summary.groups[split] == count
        for field in ("puzzle_indices", "group_indices"):
            assert rows(tmp_path / "out", split, field).tolist() == list(range(count + 1))
    assert (tmp_path / "out/identifiers.json").read_text() == '["<blank>"]'


def test_duplicates_and_leaks_are_removed_and_counted(tmp_path: Path) -> None:
    count = 20_000
    summary = build(tmp_path / "out", num_games=count, dtype="uint8")
    train, test = forms("train", count), forms("test", count)
    leaks = set(test) & set(train)
    assert summary.duplicates_removed == 2 * count - len(set(train)) - len(set(test)) > 0
    assert summary.leaks_dropped == len(leaks) > 0
    assert summary.examples["train"] == len(set(train))
    origins = np.load(tmp_path / "out/trace/test/all.npy")
    first = {form: number for number, form in reversed(list(enumerate(test)))}
    expected = sorted(number for form, number in first.items() if form not in leaks)
    assert origins[:, 1].tolist() == expected
    assert list(domino_laws(tmp_path / "out")) == []
    with pytest.raises(BadInput, match=rf"{len(leaks)} games .* leaks = drop") as caught:
        build(tmp_path / "refused", num_games=count, leaks="refuse")
    named = [
        number for form, number in sorted(first.items(), key=lambda it: it[1]) if form in leaks
    ]
    assert ", ".join(map(str, named[:10])) in str(caught.value)
    assert not (tmp_path / "refused").exists()


@pytest.mark.parametrize("kind", ["reversal", "modular"])
def test_augmentations_follow_their_source_in_training_alone(kind: str, tmp_path: Path) -> None:
    summary = build(tmp_path / "out", num_aug=3, augmentation=kind)
    origins = np.load(tmp_path / "out/trace/train/all.npy")
    sources = origins[origins[:, 2] == 0, 1]
    keys = game_keys(42, "train", np.arange(300))[sources]
    inputs, labels, draws, counts = augmented(*games(keys), keys, 3, kind)
    assert np.array_equal(rows(tmp_path / "out", "train", "inputs"), inputs)
    assert np.array_equal(rows(tmp_path / "out", "train", "labels"), labels)
    assert np.array_equal(origins[:, 2], draws)
    assert np.array_equal(np.diff(rows(tmp_path / "out", "train", "group_indices")), counts)
    assert set(np.diff(rows(tmp_path / "out", "train", "puzzle_indices")).tolist()) == {1}
    assert summary.augmented == np.count_nonzero(draws) > 300
    metadata = json.loads((tmp_path / "out/train/dataset.json").read_text())
    assert metadata["mean_puzzle_examples"] == 1.0
    assert metadata["total_groups"] == len(counts)
    assert set(np.load(tmp_path / "out/trace/test/all.npy")[:, 2].tolist()) == {0}
    assert (
        json.loads((tmp_path / "out/trace/sources.json").read_text())["config"]["augmentation"]
        == kind
    )
    assert [*contract_laws(tmp_path / "out"), *domino_laws(tmp_path / "out")] == []


def test_modular_datasets_have_no_two_games_that_an_offset_makes_equal(tmp_path: Path) -> None:
    count = 6000
    summary = build(tmp_path / "out", num_games=count, num_aug=6, augmentation="modular")
    train, test = (
        canonical(games(game_keys(42, split, np.arange(count)))[0], "modular")
        for split in ("train", "test")
    )
    assert summary.groups["train"] == len(set(train.tolist()))
    assert summary.groups["test"] == len(set(test.tolist()) - set(train.tolist()))
    everything = canonical(rows(tmp_path / "out", "train", "inputs"), "reversal")
    assert len(np.unique(everything)) == len(everything)
    assert not np.isin(
        canonical(rows(tmp_path / "out", "test", "inputs"), "reversal"), everything
    ).any()


def test_a_subsample_is_that_of_the_smallest_keys_in_their_order(tmp_path: Path) -> None:
    summary = build(tmp_path / "out", subsample_size=40, num_aug=1)
    origins = np.load(tmp_path / "out/trace/train/all.npy")
    drawn = origins[origins[:, 2] == 0, 1].tolist()
    expected = sorted(
        range(300), key=lambda number: source_key(42, "domino:subsample", f"train:{number}")
    )
    assert drawn == expected[:40]
    assert summary.groups["train"] == 40
    whole = digests(_built(tmp_path / "whole"))
    del whole["trace/sources.json"]  # it names the size
    total = len(set(forms("train", 300)))
    for size in (total, total + 1, 40_000):  # no smaller than the total: all, in their order
        found = digests(_built(tmp_path / f"all{size}", subsample_size=size))
        assert {name: found[name] for name in whole} == whole
    less = build(tmp_path / "less", subsample_size=total - 1)
    assert less.groups["train"] == total - 1


def _built(out: Path, **fields: object) -> Path:
    build(out, **fields)
    return out


def test_another_seed_gives_other_games_and_one_left_out_is_no_leak(tmp_path: Path) -> None:
    build(tmp_path / "one", seed=1)
    build(tmp_path / "two", seed=2)
    one, two = (rows(tmp_path / name, "train", "inputs") for name in ("one", "two"))
    assert not np.isin(canonical(one, "reversal"), canonical(two, "reversal")).all()
    count = 20_000
    assert set(forms("test", count)) & set(forms("train", count))
    summary = build(tmp_path / "out", num_games=count, subsample_size=3, leaks="refuse")
    assert summary.examples["test"] == len(set(forms("test", count)))
