"""The base of the builders: the files of the contract, the same ones however they are built."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.hashing import sha256_file
from gristmill.puzzles.builders.dataset import Plan, build_dataset
from gristmill.puzzles.format.dataset import Batch, Encoding, Sets
from gristmill.puzzles.laws.contract import contract_laws
from gristmill.run.parts import PartStore
from tests.publish.tiny import snapshot
from tests.puzzles.toy import ToyConfig, ToyTask, make, plan


def test_a_dataset_is_the_batches_in_order(tmp_path):
    out = tmp_path / "out"
    summary = build_dataset(plan(), out)
    assert list(contract_laws(out)) == []
    one, other = make(ToyTask(("train", "all"), 0, 4)), make(ToyTask(("train", "all"), 12, 2))
    for field in ("inputs", "labels", "origins"):
        expected = np.concatenate([getattr(b["train", "all"], field) for b in (one, other)])
        name = "trace/train/all.npy" if field == "origins" else f"train/all__{field}.npy"
        found = np.load(out / name)
        assert found.dtype == np.int32
        assert np.array_equal(found, expected)
    assert np.load(out / "train/all__puzzle_indices.npy").tolist() == [
        0, 1, 3, 4, 6, 7, 9, 10, 12, 13, 15, 16, 18,
    ]  # fmt: skip
    assert np.load(out / "train/all__group_indices.npy").tolist() == [0, 2, 4, 6, 8, 10, 12]
    assert np.load(out / "train/all__puzzle_identifiers.npy").tolist() == list(range(1, 13))
    assert np.load(out / "test/all__puzzle_identifiers.npy").tolist() == [1, 2]
    listed = json.loads((out / "identifiers.json").read_text())
    assert listed[:4] == ["<blank>", "p0_0", "p0_1", "p1_0"]
    assert len(listed) == summary.identifiers == 13
    metadata = json.loads((out / "train/dataset.json").read_text())
    assert (metadata["total_groups"], metadata["mean_puzzle_examples"]) == (6, 1.5)
    assert (summary.examples, summary.puzzles) == (
        {"train": 18, "test": 3},
        {"train": 12, "test": 2},
    )
    assert (summary.groups, summary.augmented) == ({"train": 6, "test": 1}, 12)
    assert not (out / ".parts").exists()
    for name, note in summary.files.items():
        assert note.sha256 == sha256_file(out / name)
        assert note.bytes == (out / name).stat().st_size
    assert json.loads((out / "trace/sources.json").read_text()) == {
        "kind": "toy",
        "config": {"dtype": "int32", "workers": 1, "seed": 7},
        "files": [{"path": "toy/a.json", "sha256": "00" * 32, "hash": "ab"}],
    }


@pytest.mark.slow
def test_the_bytes_are_equal_at_any_worker_count_and_after_an_interruption(tmp_path):
    build_dataset(plan(), tmp_path / "one")
    config = ToyConfig(workers=2)
    (tmp_path / "parts").mkdir()
    store = PartStore(tmp_path / "parts")
    build_dataset(plan(config), tmp_path / "two", store)
    store.forget("train-all-12")
    build_dataset(plan(config), tmp_path / "again", store)
    one, two, again = (snapshot(tmp_path / name) for name in ("one", "two", "again"))
    assert two == again
    for files in (one, two):
        del files["trace/sources.json"]  # it names the workers of this config
    assert one == two


def test_tokens_of_uint8_are_the_same_numbers(tmp_path):
    build_dataset(plan(), tmp_path / "wide")
    build_dataset(plan(ToyConfig(dtype="uint8")), tmp_path / "narrow")
    assert list(contract_laws(tmp_path / "narrow")) == []
    for field in ("inputs", "labels"):
        wide = np.load(tmp_path / f"wide/train/all__{field}.npy")
        narrow = np.load(tmp_path / f"narrow/train/all__{field}.npy")
        assert (wide.dtype, narrow.dtype) == (np.int32, np.uint8)
        assert np.array_equal(wide, narrow)


def test_several_sets_no_ignored_label_and_puzzles_without_names(tmp_path):
    sets = {"train": ("easy", "hard"), "test": ("all",)}
    out = tmp_path / "out"
    summary = build_dataset(plan(sets=sets, ignored=None, named=False), out)
    assert list(contract_laws(out)) == []
    assert summary.examples == {"train": 36, "test": 3}
    metadata = json.loads((out / "train/dataset.json").read_text())
    assert metadata["ignore_label_id"] is None
    assert (metadata["sets"], metadata["total_groups"]) == (["easy", "hard"], 12)
    assert json.loads((out / "identifiers.json").read_text()) == ["<blank>"]
    assert not np.load(out / "train/hard__puzzle_identifiers.npy").any()


def test_a_split_without_an_example_a_repeated_name_and_a_token_below_0_are_refused(tmp_path):
    whole = plan()
    with pytest.raises(BadInput, match="the split test would have no example"):
        build_dataset(replace(whole, tasks=whole.tasks[:2]), tmp_path / "out")
    (tmp_path := tmp_path / "next").mkdir()
    whole: Plan[ToyTask] = plan()
    with pytest.raises(ValueError, match="same name"):
        build_dataset(replace(whole, tasks=[whole.tasks[0]] * 2), tmp_path / "out")
    (tmp_path := tmp_path / "next").mkdir()
    other = replace(plan(ignored=None), make=partial(_relabelled, -1))
    with pytest.raises(ValueError, match="labels have tokens outside of 0 to 9"):
        build_dataset(other, tmp_path / "out")


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"encoding": Encoding(5, 9)}, "outside of 0 to 8"),
        ({"encoding": Encoding(6, 10)}, "5 tokens, not 6"),
        ({"encoding": Encoding(5, 10, blank_identifier_id=1)}, "must be 0"),
        ({"encoding": Encoding(5, 300), "config": ToyConfig(dtype="uint8")}, "cannot hold"),
        ({"sets": {"train": ("easy",), "test": ("all",)}}, "train has no set all"),
        ({"make": lambda task: {("val", "all"): make(task)[task.key]}}, "val has no set all"),
        (
            {"encoding": Encoding(5, 10, ignore_label_id=-1), "config": ToyConfig(dtype="uint8")},
            "uint8 cannot hold the label -1, which is ignored",
        ),
        (
            {"encoding": Encoding(5, 10, ignore_label_id=256), "config": ToyConfig(dtype="uint8")},
            "uint8 cannot hold the label 256",
        ),
        ({"encoding": Encoding(5, 9, ignore_label_id=8)}, "inputs have tokens outside of 0 to 8"),
    ],
)
def test_a_plan_that_breaks_its_encoding_is_refused(change, rule, tmp_path):
    with pytest.raises(ValueError, match=rule):
        build_dataset(replace(plan(), **change), tmp_path / "out")  # type: ignore[arg-type]


def _relabelled(token: int, task: ToyTask) -> Mapping[Sets, Batch]:
    """The batches of a task as int32, the first label of each row another token."""
    batches = make(task)
    changed = {}
    for key, batch in batches.items():
        labels = batch.labels.astype(np.int32)
        labels[:, 0] = token
        changed[key] = replace(batch, inputs=batch.inputs.astype(np.int32), labels=labels)
    return changed


@pytest.mark.parametrize("ignored", [-100, 300])
def test_an_ignored_label_may_be_outside_of_the_vocabulary(ignored, tmp_path):
    whole = replace(
        plan(),
        encoding=Encoding(5, 10, ignore_label_id=ignored),
        make=partial(_relabelled, ignored),
    )
    build_dataset(whole, tmp_path / "out")
    assert list(contract_laws(tmp_path / "out")) == []
    labels = np.load(tmp_path / "out/train/all__labels.npy")
    assert set(labels[:, 0].tolist()) == {ignored}
    for token in (ignored - 1, ignored + 1, -1, 10):
        other = replace(whole, make=partial(_relabelled, token))
        with pytest.raises(ValueError, match="labels have tokens outside of 0 to 9"):
            build_dataset(other, tmp_path / f"out{token}")
    for token in (0, 9):
        build_dataset(replace(whole, make=partial(_relabelled, token)), tmp_path / f"out{token}")


def test_a_batch_without_a_row_adds_nothing(tmp_path):
    whole = plan()
    empty = ToyTask(("train", "all"), 99, 0)
    build_dataset(replace(whole, tasks=[*whole.tasks, ("empty", empty)]), tmp_path / "out")
    build_dataset(whole, tmp_path / "plain")
    assert snapshot(tmp_path / "out") == snapshot(tmp_path / "plain")
