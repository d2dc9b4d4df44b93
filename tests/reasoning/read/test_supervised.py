"""Supervision: the example and the step of every token, values summed by step, the gate."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gristmill.contract import BadInput
from gristmill.reasoning.format import align, names, reports
from gristmill.reasoning.read.shard_reader import ShardReader
from gristmill.reasoning.read.supervised import (
    GateClosed,
    Ranges,
    by_step,
    check_gate,
    fill,
    refuse_drift,
)
from gristmill.reasoning.render.text import text_of
from gristmill.vocabularies.encode import encoder
from gristmill.vocabularies.pinned import GPT2, find
from tests.reasoning.format.test_reports import REPORT
from tests.reasoning.published_root import CORPUS, SPLIT, aligned_root, worked
from tests.reasoning.supervised_folder import SEQ_LEN, Supervised, write_supervised


def assert_true(made: Supervised, reader: ShardReader, batch: dict[str, Any]) -> None:
    """Compare the columns of a batch with what was written."""
    for k, (shard, row) in enumerate(zip(batch["shard"], batch["row"], strict=True)):
        key = reader.shards[shard].path, int(row)
        assert batch["example"][k].tolist() == made.example[key].tolist()
        if "step_id" in batch:
            assert batch["step_id"][k].tolist() == made.step_id[key].tolist()


@pytest.mark.parametrize("world_size", [1, 3])
@pytest.mark.parametrize("prefix", ["reasoning", "datasets"])
@pytest.mark.parametrize("seed", [None, 1])
def test_every_token_has_its_step_and_its_example(tmp_path, world_size, prefix, seed):
    made = write_supervised(tmp_path, world_size=world_size, prefix=prefix)
    seen = 0
    for rank in range(2):
        reader = ShardReader(made.root, steps=made.steps, rank=rank, world_size=2, seed=seed)
        for batch in reader.batches(4):
            assert batch["step_id"].dtype == np.int32
            assert batch["example"].dtype == np.int64
            assert_true(made, reader, batch)
            seen += len(batch["row"])
    assert seen == len(made.step_id)
    steps = np.concatenate(list(made.step_id.values()))
    assert {0, 1, 2, 3} <= set(steps.tolist())
    assert -1 in np.concatenate(list(made.example.values()))


def test_steps_of_unsure_alignments_can_be_left_out(tmp_path):
    made = write_supervised(tmp_path)
    reader = ShardReader(made.root, steps=made.steps, least_confidence=0.6)
    for batch in reader.batches(3):
        for k, (shard, row) in enumerate(zip(batch["shard"], batch["row"], strict=True)):
            key = reader.shards[shard].path, int(row)
            expected = np.where(made.example[key] % 2 == 0, made.step_id[key], 0)
            assert batch["step_id"][k].tolist() == expected.tolist()
            assert batch["example"][k].tolist() == made.example[key].tolist()


def test_shards_without_ids_are_supervised_and_splits_need_an_alignment(tmp_path):
    made = write_supervised(tmp_path)
    manifest = made.root / names.MANIFEST
    manifest.write_text(manifest.read_text().replace('"first_example"', '"first"'))
    reader = ShardReader(made.root, steps=made.steps)
    for batch in reader.batches(5):
        assert_true(made, reader, batch)
    (made.steps / names.alignment(made.corpus, made.split)).unlink()
    with pytest.raises(BadInput, match=r"train\.align\.jsonl: is missing"):
        ShardReader(made.root, steps=made.steps)


def change_line(path: Path, number: int, old: str, new: str) -> None:
    lines = path.read_text().splitlines(keepends=True)
    assert old in lines[number]
    lines[number] = lines[number].replace(old, new, 1)
    path.write_text("".join(lines))


def test_an_alignment_of_other_examples_is_refused(tmp_path):
    made = write_supervised(tmp_path)
    aligned = made.steps / names.alignment(made.corpus, made.split)
    index = made.root / names.split_index(made.corpus, made.split)
    whole, places = aligned.read_text(), index.read_text()
    for change, text in (
        (lambda: change_line(aligned, 3, "train_0000", "train_0001"), r"jsonl:4: .*train_0001"),
        (lambda: aligned.write_text(whole.split("\n", 1)[1]), "lines: does not belong"),
        (lambda: aligned.write_text(whole[:-1]), "its last line has no newline"),
        (lambda: change_line(aligned, 0, '"confidence"', '"sure"'), "jsonl:1: the keys must be"),
        (lambda: change_line(index, 1, '"start": ', '"start": 9'), "is outside of"),
        (
            lambda: change_line(index, 1, '"num_tokens_with_eos": ', '"num_tokens_with_eos": 9'),
            "its spans have",
        ),
        (lambda: change_line(index, 1, '"rank"', '"rang"'), "no line of an index"),
    ):
        aligned.write_text(whole)
        index.write_text(places)
        change()
        with pytest.raises(BadInput, match=text) as caught:
            list(ShardReader(made.root, steps=made.steps, verify="none").batches(4))
        assert "/proc/" not in str(caught.value)


@pytest.mark.parametrize("example_id", ["x", "", "a_1x", "a_-1", "a_²", "a_" + "9" * 5000])
def test_an_example_id_without_a_number_is_refused_with_its_line(tmp_path, example_id):
    made = write_supervised(tmp_path)
    index = made.root / names.split_index(made.corpus, made.split)
    rows = [
        json.loads(line) | {"example_id": example_id} for line in index.read_text().splitlines()
    ]
    index.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(
        BadInput, match=r"index\.jsonl:\d+: example_id .* number of a record"
    ) as caught:
        list(ShardReader(made.root, steps=made.steps, verify="none").batches(4))
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("number", [10**6, -1, 2**63, "x", None])
def test_a_selected_example_outside_of_its_shard_is_refused_with_its_line(tmp_path, number):
    made = write_supervised(tmp_path)
    index = made.root / names.split_index(made.corpus, made.split)
    hard = next(n for n, extras in enumerate(made.extras) if extras.get("difficulty") == "hard")
    rows = index.read_text().splitlines()
    row = json.loads(rows[hard])
    row["spans"][0]["sequence_index"] = number
    rows[hard] = json.dumps(row)
    index.write_text("".join(f"{line}\n" for line in rows))
    with pytest.raises(BadInput, match=rf"index\.jsonl:{hard + 1}: "):
        list(ShardReader(made.root, select={"difficulty": "hard"}, verify="none").batches(4))


def test_a_manifest_with_ids_without_a_number_has_the_whole_index_read(tmp_path):
    made = write_supervised(tmp_path)
    manifest = made.root / "manifest.json"
    entries = json.loads(manifest.read_text())
    manifest.write_text(json.dumps([entry | {"last_example": "x"} for entry in entries]))
    reader = ShardReader(made.root, steps=made.steps, verify="none")
    for batch in reader.batches(5):
        assert_true(made, reader, batch)


@pytest.mark.parametrize("ranges", ["[[0, 999]]", "[[-1, 1]]", "[[2, 1]]", "[[0, 2], [1, 2]]"])
def test_steps_outside_of_their_example_or_out_of_order_are_refused(tmp_path, ranges):
    made = write_supervised(tmp_path, examples=3, seed=4)
    aligned = made.steps / names.alignment(made.corpus, made.split)
    lines = aligned.read_text().splitlines(keepends=True)
    head, _, tail = lines[0].partition('"token_offset_ranges": ')
    lines[0] = head + f'"token_offset_ranges": {ranges}, ' + tail[tail.index('"step_labels"') :]
    aligned.write_text("".join(lines))
    with pytest.raises(BadInput, match="token ranges"):
        list(ShardReader(made.root, steps=made.steps).batches(4))


def test_selected_examples_are_masked_and_sequences_without_one_are_left_out(tmp_path):
    made = write_supervised(tmp_path, examples=80)
    hard = [n for n, extras in enumerate(made.extras) if extras.get("difficulty") == "hard"]
    masks = {key: np.isin(example, hard) for key, example in made.example.items()}
    expected = {key for key, mask in masks.items() if mask.any()}
    assert 0 < len(expected) < len(masks)
    found = []
    for rank in range(2):
        reader = ShardReader(
            *(made.root,), select={"difficulty": "hard"}, rank=rank, world_size=2, seed=1
        )
        state = reader.state()
        for batch in reader.batches(4):
            assert batch["selected"].dtype == np.bool_
            assert "step_id" not in batch
            assert_true(made, reader, batch)
            for k, (shard, row) in enumerate(zip(batch["shard"], batch["row"], strict=True)):
                key = reader.shards[shard].path, int(row)
                assert batch["selected"][k].tolist() == masks[key].tolist()
                found.append(key)
        reader.load_state(state)
    assert sorted(found) == sorted(expected)


def reference(
    values: npt.NDArray[Any], step_id: npt.NDArray[Any], example: npt.NDArray[Any]
) -> dict[tuple[int, int, int], list[float]]:
    found: dict[tuple[int, int, int], list[float]] = {}
    for place in np.ndindex(step_id.shape):
        if step_id[place]:
            key = place[0], int(example[place]), int(step_id[place])
            found.setdefault(key, []).append(float(values[place]))
    return found


@pytest.mark.parametrize("how", ["mean", "sum"])
def test_values_are_summed_by_step(tmp_path, how):
    made = write_supervised(tmp_path)
    batch = next(ShardReader(made.root, steps=made.steps).batches(50))
    values = np.random.default_rng(1).normal(size=batch["step_id"].shape).astype(np.float32)
    expected = reference(values, batch["step_id"], batch["example"])
    found = by_step(values, batch, how)
    assert list(zip(found.sequence, found.example, found.step, strict=True)) == list(expected)
    assert found.tokens.tolist() == [len(each) for each in expected.values()]
    reduce = np.sum if how == "sum" else np.mean
    assert np.allclose(found.value, [reduce(each) for each in expected.values()])
    wide = by_step(np.stack([values, 2 * values], -1), batch, how)
    assert wide.value.shape == (len(expected), 2)
    assert np.allclose(wide.value[:, 1], 2 * found.value)


def test_equal_steps_of_adjacent_sequences_are_apart_in_any_choice():
    batch = {
        "step_id": np.array([[1, 1, 1, 0], [1, 2, 2, 1]]),
        "example": np.array([[5, 5, 6, -1], [6, 6, 6, 7]]),
    }
    found = by_step(np.arange(8).reshape(2, 4), batch, "sum")
    assert found.sequence.tolist() == [0, 0, 1, 1, 1]
    assert found.example.tolist() == [5, 6, 6, 6, 7]
    assert found.step.tolist() == [1, 1, 1, 2, 1]
    assert found.tokens.tolist() == [2, 1, 1, 2, 1]
    assert found.value.tolist() == [1, 2, 4, 11, 7]
    columns = np.array([[0, 0, 2, 5], [0, 2, 4, 6], [2, 0, SEQ_LEN, 7], [5, 3, 4, 8]], np.int64)
    ranges = Ranges(*columns.T)
    out = np.full((4, SEQ_LEN), 99, np.int32)
    fill(out, np.array([2, 0, 1, 2]), ranges, -1)
    rest = SEQ_LEN - 4
    assert out[0].tolist() == out[3].tolist() == [7] * SEQ_LEN
    assert out[1].tolist() == [5, 5, 6, 6, *[-1] * rest]
    assert out[2].tolist() == [-1] * SEQ_LEN
    fill(out, np.array([5, 5, 4, 4]), Ranges(*columns.T), 0)
    assert out[0].tolist() == out[1].tolist() == [0, 0, 0, 8, *[0] * rest]
    assert not out[2:].any()


def test_a_batch_without_steps_has_no_values_and_other_shapes_are_refused():
    batch = {"step_id": np.zeros((2, 4)), "example": np.zeros((2, 4))}
    assert [len(column) for column in by_step(np.ones((2, 4)), batch)] == [0] * 5
    batch = {"step_id": np.ones((2, 4)), "example": np.ones((2, 4))}
    with pytest.raises(ValueError, match="values are"):
        by_step(np.ones((2, 3)), batch)
    with pytest.raises(ValueError, match='how must be "mean" or "sum"'):
        by_step(np.ones((2, 4)), batch, "max")  # type: ignore[arg-type]
    torch = pytest.importorskip("torch")
    batch = {"step_id": torch.tensor([[1, 1, 0]]), "example": torch.tensor([[0, 0, 0]])}
    values = torch.tensor([[1.0, 2.0, 4.0]], dtype=torch.bfloat16, requires_grad=True)
    assert by_step(values, batch).value.tolist() == [1.5]
    assert by_step(torch.full((1, 3), 1e30), batch, "sum").value[0] == pytest.approx(2e30)


@pytest.mark.parametrize("world_size", [1, 2])
def test_steps_of_shards_are_the_texts_of_the_alignment(tmp_path, vocabulary_root, world_size):
    vocabulary = find(GPT2, vocabulary_root)
    changes = {"seq_len": 32, "tokens_per_shard": 256, "world_size": world_size}
    root = aligned_root(tmp_path / "data", vocabulary, worked(12), **changes)
    steps = root / names.ALIGNMENT
    found: dict[tuple[int, int], bytes] = {}
    decode = encoder(GPT2, vocabulary).reference.token_bytes().__getitem__
    for batch in ShardReader(root / names.TOKENIZED, steps=steps).batches(5):
        for place in zip(*np.nonzero(batch["step_id"]), strict=True):
            key = int(batch["example"][place]), int(batch["step_id"][place])
            token = decode(int(batch["input_ids"][place]))
            found[key] = found.get(key, b"") + token
    rows = list(align.rows(steps / names.alignment(CORPUS, SPLIT)))
    assert len(found) == sum(len(row.step_labels) for row in rows) == 36
    for (example, step), text in found.items():
        start, end = rows[example].text_offset_ranges[step - 1]
        expected = text_of(worked(12)[example])[start:end]
        assert expected in text.decode()
        assert len(text.decode()) <= len(expected) + 1


def test_a_selection_counts_the_sequences_of_all_ranks(tmp_path):
    for corpus in ("cot_collection", "openr1_math_220k"):
        made = write_supervised(tmp_path, corpus, examples=12, rows=32)
    select = {"difficulty": "hard"}
    readers = [
        ShardReader(made.root, select=select, rank=rank, world_size=2, uneven="pad")
        for rank in range(2)
    ]
    assert {reader.shards[rank].corpus for rank, reader in enumerate(readers)} == {
        *("cot_collection", "openr1_math_220k")
    }
    lengths = {len(reader) for reader in readers}
    assert [reader.epoch_length for reader in readers] == [max(lengths)] * 2
    assert readers[0].state()["select"] == readers[1].state()["select"]
    for reader, other in zip(readers, readers[::-1], strict=True):
        assert reader._order.sizes.tolist() == other._order.sizes.tolist()
        assert reader._order.sizes.min() > 0


def _write(folder: Path, date: str, *breaches: str) -> None:
    gate = {"passed": not breaches, "baseline": None, "breaches": list(breaches)}
    path = reports.path(folder, date)
    path.write_bytes(reports.to_bytes(REPORT | {"date": date, "gate": gate}))


def test_the_gate_is_that_of_the_newest_report_also_behind_a_link(tmp_path):
    check_gate(tmp_path)
    check_gate(tmp_path / "none")
    _write(tmp_path, "2026-11-21", "a")
    with pytest.raises(GateClosed):
        check_gate(tmp_path)
    _write(tmp_path, "2026-11-22")
    check_gate(tmp_path)
    (tmp_path / "2026-11-23.json").write_text("{}")
    with pytest.raises(BadInput):
        check_gate(tmp_path)
    shards = tmp_path / "data" / names.TOKENIZED
    shards.mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(shards)
    refuse_drift(link)
    folder = tmp_path / "data" / names.REPORTS
    folder.mkdir()
    _write(folder, "2026-11-22", "too much")
    for root in (shards, link):
        with pytest.raises(GateClosed):
            refuse_drift(root)


def test_a_closed_gate_names_report_breaches_and_what_to_do(tmp_path):
    _write(tmp_path, "2026-11-22", *(f"breach {number}" for number in range(7)))
    with pytest.raises(GateClosed) as caught:
        check_gate(tmp_path)
    text = str(caught.value)
    assert "2026-11-22.json" in text and "breach 0; " in text and "breach 4; and 2 more" in text
    assert 'baseline = "2026-11-22" in [reasoning.qc_report]' in text
