"""Laws of tokens, mask and span."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
import pytest

from gristmill.synth import laws
from gristmill.synth.format import harmony_tokens, megatron
from gristmill.synth.format.megatron import Indexed
from gristmill.synth.laws import kd_laws
from tests.synth.damage import broken_laws, set_value, train_tokens


@pytest.mark.parametrize("batch_tokens", [1, 500, 1 << 20])
def test_batches_are_whole_documents_and_cover_the_dataset(
    kd_root: Path, monkeypatch: pytest.MonkeyPatch, batch_tokens: int
) -> None:
    monkeypatch.setattr(laws, "_BATCH_TOKENS", batch_tokens)
    tokens = train_tokens(kd_root)
    edges = [edge for _, batch in laws._batches(tokens) for edge in batch[:-1].tolist()]
    assert edges == tokens.bounds(0, len(tokens)).tolist()[:-1]
    sizes = [int(batch[-1] - batch[0]) for _, batch in laws._batches(tokens)]
    longest = int(tokens.lengths.max())
    assert max(sizes) <= max(batch_tokens, longest)
    assert broken_laws(kd_root) == set()


def test_only_the_documented_control_tokens_follow_each_other() -> None:
    """The table of `docs/formats/synth.md#value-laws`."""
    follows, closing = laws._tables()
    limit = harmony_tokens.BODY_LIMIT
    pairs = {
        (before + limit, after + limit) for before, after in zip(*follows.nonzero(), strict=True)
    }
    assert pairs == {
        (200006, 200005), (200006, 200003), (200006, 200008),
        (200005, 200003), (200005, 200008),
        (200003, 200008),
        (200008, 200007), (200008, 200012), (200008, 200002),
        (200007, 200006), (200007, 199999),
        (200012, 200006), (200012, 199999),
        (200002, 199999),
        (199999, 200006),
    }  # fmt: skip
    assert set((closing.nonzero()[0] + limit).tolist()) == {200007, 200012, 200002, 199999}


@pytest.mark.parametrize(
    ("place", "token", "law"),
    [
        (5, 201_088, "tokens in the vocabulary"),
        (5, -1, "tokens in the vocabulary"),
        (-1, 5, "EOD at the end"),
        (5, 200_007, "no control ids in bodies"),
        (5, 200_050, "no control ids in bodies"),
        (5, 199_999, "no control ids in bodies"),
        (5, 200_006, "no control ids in bodies"),
        (0, 5, "no control ids in bodies"),
    ],
)
@pytest.mark.parametrize("rows", [1, 1024])
@pytest.mark.parametrize("has_trace", [True, False])
def test_a_wrong_token_breaks_its_law_once(
    kd_copy: Path,
    place: int,
    token: int,
    law: str,
    rows: int,
    has_trace: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(laws, "_BATCH_ROWS", rows)
    monkeypatch.setattr(laws, "_BATCH_TOKENS", 400 if rows == 1 else 1 << 20)
    if not has_trace:
        (kd_copy / "trace/trace_00.parquet").unlink()
    begin, end = train_tokens(kd_copy).bounds(7, 8).tolist()
    where = (end if place < 0 else begin) + place
    set_value(kd_copy / "train/shard_00_tokens.bin", "<i4", where, token)
    violations = [v for v in kd_laws(kd_copy, "00") if v.law == law]
    assert len(violations) == 1
    assert violations[0].where.startswith("train/shard_00_tokens: document 7, token ")


def test_one_ordinary_token_after_a_terminator_is_a_violation(kd_copy: Path) -> None:
    """The body loses its last token to the terminator, whose place gets an ordinary token."""
    tokens = train_tokens(kd_copy)
    end = int(np.flatnonzero(tokens.load(0, int(tokens.lengths[0])) == harmony_tokens.END)[0])
    file = kd_copy / "train/shard_00_tokens.bin"
    set_value(file, "<i4", end - 1, harmony_tokens.END)
    set_value(file, "<i4", end, 5)
    assert broken_laws(kd_copy) == {"no control ids in bodies"}


@pytest.mark.parametrize(
    ("name", "place", "value", "law"),
    [
        ("lossmask", 3, 1, "mask is span not 0"),
        ("span", 3, 2, "mask is span not 0"),
        ("span", 3, 3, "mask is span not 0"),
        ("lossmask", -1, 1, "EOD masked"),
        ("lossmask", -2, 1, "EOD masked"),
    ],
)
def test_a_wrong_mask_or_span_breaks_its_law(
    kd_copy: Path, name: str, place: int, value: int, law: str
) -> None:
    where = place if place >= 0 else int(train_tokens(kd_copy).bounds(4, 4)[0]) + place
    set_value(kd_copy / f"train/shard_00_{name}.bin", "u1", where, value)
    assert law in broken_laws(kd_copy)


def test_every_value_is_read_once(kd_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: Counter[tuple[Path, int]] = Counter()
    load = Indexed.load

    def counted(self: Indexed, begin: int, stop: int) -> npt.NDArray[Any]:
        read.update((self.path, place) for place in range(begin, stop))
        return load(self, begin, stop)

    monkeypatch.setattr(Indexed, "load", counted)
    assert list(kd_laws(kd_root, "00")) == []
    assert set(read.values()) == {1}
    sizes = [path.stat().st_size for path in kd_root.glob("*/shard_00_lossmask.bin")]
    assert len(read) == 3 * sum(sizes)


def test_documents_behind_a_trace_that_ends_early_are_checked(kd_copy: Path) -> None:
    """The trace loses its last rows; the last document of train has a wrong value."""
    file = kd_copy / "trace/trace_00.parquet"
    rows = pq.read_table(file)
    pq.write_table(rows.slice(0, len(rows) - 40), file)
    tokens = train_tokens(kd_copy)
    set_value(kd_copy / "train/shard_00_tokens.bin", "<i4", tokens.size - 1, 5)
    assert {"EOD at the end", "trace"} <= broken_laws(kd_copy)


def test_values_of_unequal_boundaries_are_not_checked(kd_root: Path) -> None:
    prefix = kd_root / "train/shard_00_tokens"
    tokens = megatron.read(prefix)
    split = laws.Values("train", {"tokens": tokens}, checked=False)
    assert list(split.violations()) == []
    assert len(split.ids(0, tokens.bounds(0, 1))) == tokens.lengths[0]
