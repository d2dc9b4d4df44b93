"""The samples of game datasets: which there are, as parallel arrays, and as padded batches.

The index i of a sample is that of the context's last move; the label is move i + 1. With the
sidecar the arrays come from phase codes and row offsets alone, and batches from packed moves;
without it the games are replayed. Only calling `collate` imports torch.
Source: docs/formats/chess.md#splice-points, docs/formats/chess.md#packed-moves and
docs/formats/chess.md#reading-contract
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.config import CacheConfig
from gristmill.chess.format import folders
from gristmill.chess.format.folders import (
    FOLDER,
    LAYOUT,
    MOVE,
    OFFSETS,
    PATH_IDS,
    SAMPLE_GAMES,
    SAMPLE_PHASES,
    SPAN,
    SPLICE_INDICES,
    split_file,
)
from gristmill.chess.format.rows import PHASES
from gristmill.chess.read.row_batches import NO_MOVE, RowRange, pack_move, read_batch, row_ranges
from gristmill.contract import BadInput
from gristmill.reading.folder import OpenFolder
from gristmill.run.parts import Made

Seed = Callable[[int, str], int]
"""The seed of a game's shuffle, from the seed of the config and the id of the game."""


def runtime_seed(seed: int, game_id: str) -> int:
    """The seed of a game's shuffle in the cache (docs/formats/chess.md#runtime-cap)."""
    # What `random.Random` makes of a text.
    text = f"{seed}:{game_id or 'unknown'}".encode()
    return int.from_bytes(text + hashlib.sha512(text).digest(), "big")


def legacy_seed(seed: int, game_id: str) -> int:
    """The seed of a game's shuffle in the legacy rows (docs/formats/chess.md#legacy-cap)."""
    text = f"{seed}:{game_id}".encode()
    return int.from_bytes(hashlib.sha1(text, usedforsecurity=False).digest()[:4], "big")


def counts(plies: NDArray[np.int64], min_context: int, min_target: int) -> NDArray[np.int64]:
    """The number of samples of each game without a cap (docs/formats/chess.md#splice-points)."""
    samples: NDArray[np.int64] = np.maximum(
        plies.astype(np.int64) - min_target - min_context + 1, 0
    )
    return samples


def ranges(samples: NDArray[np.int64], min_context: int) -> NDArray[np.int64]:
    """All splice indices, ascending in each game (docs/formats/chess.md#splice-points)."""
    ends = np.cumsum(samples)
    first = np.repeat(ends - samples, samples)
    return np.arange(int(ends[-1]) if len(ends) else 0) - first + (min_context - 1)


def capped(
    samples: NDArray[np.int64],
    min_context: int,
    cap: int,
    ids: Sequence[str],
    seed: int,
    seed_of: Seed,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The samples that stay of each game under a cap, and their splice indices.

    samples: of each game without a cap, int64 [games]. The indices of a game are shuffled where
    the cap removes any, as `random.Random(seed).shuffle` does it.
    """
    if not cap or not (samples > cap).any():
        return samples, ranges(samples, min_context)
    from gristmill.chess.kernels.shuffle import shuffled_heads

    seeds = [seed_of(seed, ids[game]) for game in np.flatnonzero(samples > cap).tolist()]
    sizes = [max(1, (each.bit_length() + 31) // 32) for each in seeds]
    words = b"".join(each.to_bytes(4 * n, "little") for each, n in zip(seeds, sizes, strict=True))
    kept = np.minimum(samples, cap)
    indices = np.empty(int(kept.sum()), np.int64)
    keys = np.frombuffer(words, "<u4").astype(np.uint64)
    shuffled_heads(keys, np.cumsum(sizes), samples, min_context - 1, cap, indices)
    return kept, indices


_RANGE_BYTES = 4 << 20


@dataclass(frozen=True)
class SampleTask:
    """One part of a split's samples; games: records to take from the sidecar, -1 to read lines."""

    split: str
    byte_range: RowRange
    games: int
    config: CacheConfig


def _arrays(
    first: int,
    row: NDArray[np.integer[Any]],
    plies: NDArray[np.int64],
    codes: NDArray[np.uint8],
    kept: NDArray[np.int64],
    indices: NDArray[np.int64],
) -> Made:
    starts = np.cumsum(plies) - plies
    phases = codes[np.repeat(starts, kept) + indices] & 3
    arrays = {
        PATH_IDS: bytes(4 * len(indices)),
        OFFSETS: np.repeat(row, kept).astype("<u8").tobytes(),
        SPLICE_INDICES: indices.astype("<u4").tobytes(),
        SAMPLE_PHASES: phases.tobytes(),
    }
    if first >= 0:
        games = np.arange(first, first + len(row))
        arrays[SAMPLE_GAMES] = np.repeat(games, kept).astype("<u4").tobytes()
    summary = {
        "games": len(row),
        "samples": len(indices),
        "phases": dict(zip(PHASES, np.bincount(phases, minlength=4).tolist(), strict=True)),
    }
    return arrays, summary


def make_samples(task: SampleTask) -> Made:
    """Make one part: the bytes of each array of LAYOUT, and its counts.

    With a sidecar also SAMPLE_GAMES: without one the games before the part are not known.
    Raises BadInput where a row cannot be read or the sidecar does not agree with it.
    """
    config, byte_range = task.config, task.byte_range
    if task.games >= 0 and byte_range.sidecar:
        records = byte_range.sidecar.records(byte_range.first, task.games)
        plies = records["plies"].astype(np.int64)
        codes = byte_range.sidecar.phases(byte_range.ply, int(plies.sum()))
        kept = counts(plies, config.min_context, config.min_target)
        indices = ranges(kept, config.min_context)
        return _arrays(byte_range.first, records["row"], plies, codes, kept, indices)
    from gristmill.chess.kernels import rowshape

    batch = read_batch(byte_range)
    plies = batch.columns[:, rowshape.N].copy()
    kept, indices = capped(
        counts(plies, config.min_context, config.min_target),
        config.min_context,
        config.max_samples_per_game,
        batch.ids() if config.max_samples_per_game else [""] * len(plies),
        config.seed,
        runtime_seed,
    )
    rows = batch.columns[:, rowshape.LINE0] + byte_range.start
    return _arrays(byte_range.first, rows, plies, batch.codes, kept, indices)


def sample_tasks(
    dataset: Path, split: str, config: CacheConfig
) -> Iterator[tuple[str, SampleTask]]:
    """The parts of a split's samples in order, each with its name."""
    path = split_file(dataset, split)
    recorded = folders.Sidecar.open(dataset, split)
    if recorded and not config.max_samples_per_game:
        for first, ply, records in recorded.batches(config.share_games):
            byte_range = RowRange(path, 0, 0, recorded, first, ply)
            yield f"{split}_{first:012d}", SampleTask(split, byte_range, len(records), config)
        return
    for byte_range in row_ranges(path, _RANGE_BYTES, recorded):
        yield f"{split}_{byte_range.start:014d}", SampleTask(split, byte_range, -1, config)


def sample_parts(dataset: Path, split: str, config: CacheConfig) -> Iterator[Made]:
    """Make a split's samples in order, part by part: the arrays of LAYOUT as bytes, and counts."""
    for _, task in sample_tasks(dataset, split, config):
        yield make_samples(task)


class SampleArrays(NamedTuple):
    """Samples of a split: offset of the row, splice index, phase id, number of the row or None."""

    offsets: NDArray[np.uint64]
    indices: NDArray[np.uint32]
    phases: NDArray[np.uint8]
    games: NDArray[np.uint32] | None


def sample_arrays(dataset: Path, split: str, config: CacheConfig) -> SampleArrays:
    """All samples of a split in memory."""
    parts: dict[str, list[bytes]] = {}
    for arrays, _ in sample_parts(dataset, split, config):
        for name, data in arrays.items():
            parts.setdefault(name, []).append(bytes(data))
    offsets, indices, phases, games = (
        np.frombuffer(b"".join(parts.get(name, [])), dtype)
        for name, dtype in (*list(LAYOUT.items())[1:], (SAMPLE_GAMES, "<u4"))
    )
    return SampleArrays(offsets, indices, phases, games if len(games) == len(offsets) else None)


@dataclass(frozen=True)
class Sample:
    """One splice of a game.

    context, target: moves in UCI up to the splice, and from the label on, at most `horizon` plies.
    phase: id of that after the context. winner: 0 white, 1 black, 2 draw, 3 other.
    """

    game_id: str
    context: list[str]
    next_move: str
    target: list[str]
    phase: int
    winner: int
    side_to_move: int


def collate(
    samples: Sequence[Sample], vocabulary: Mapping[str, int], horizon: int | None = None
) -> dict[str, Any]:
    """Samples as torch tensors, padded with 0 and masked.

    samples: N samples.
    vocabulary: number of each word, as `GameSpliceDataset.vocabulary()` returns it.
    horizon: length of the targets; None (the default) for the longest one.

    Returns context int64 [N, longest], context_mask bool of the same shape, target int64
    [N, horizon], target_mask bool of the same shape, and phase, winner, side_to_move int64 [N].
    Padding is behind the moves.
    """
    return tensors(columns_of(samples, vocabulary, horizon))


def tensors(columns: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Columns as torch tensors."""
    import torch

    return {name: torch.from_numpy(column) for name, column in columns.items()}


def columns_of(
    samples: Sequence[Sample], vocabulary: Mapping[str, int], horizon: int | None = None
) -> dict[str, NDArray[Any]]:
    """The columns of `collate` as arrays."""
    context, context_mask = _padded_words([s.context for s in samples], vocabulary, 0)
    target, target_mask = _padded_words([s.target for s in samples], vocabulary, horizon or 0)
    return {
        "context": context,
        "context_mask": context_mask,
        "target": target,
        "target_mask": target_mask,
        "phase": np.array([s.phase for s in samples], np.int64),
        "winner": np.array([s.winner for s in samples], np.int64),
        "side_to_move": np.array([s.side_to_move for s in samples], np.int64),
    }


def _padded_words(
    texts: Sequence[Sequence[str]], vocabulary: Mapping[str, int], width: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Words as numbers [N, at least width], and where there is a word."""
    unknown = vocabulary["<UNK>"]
    lengths = np.array([len(words) for words in texts], np.int64)
    mask = np.arange(int(lengths.max(initial=width))) < lengths[:, None]
    numbers = np.zeros(mask.shape, np.int64)
    numbers[mask] = [vocabulary.get(word, unknown) for words in texts for word in words]
    return numbers, mask


Numbers = NDArray[np.int64]


class PackedGames(NamedTuple):
    """The moves of a split's games, and the game of each sample; folder: of the dataset.

    moves: uint16 [plies]. spans: SPAN [games]. numbers: of games, uint32 [samples].
    """

    folder: Path
    moves: NDArray[np.uint16]
    spans: NDArray[np.void]
    numbers: NDArray[np.uint32]


def open_packed(dataset: OpenFolder, split: str, numbers: NDArray[np.uint32]) -> PackedGames | None:
    """Map the packed moves of a split; None where there are none. numbers: as PackedGames."""
    names = [f"{FOLDER}/{split}.{kind}.bin" for kind in ("moves.u16", "spans")]
    if not all(dataset.has(name) for name in names):
        return None
    moves, spans = (
        mapped(dataset.file(name), dtype) for name, dtype in zip(names, (MOVE, SPAN), strict=True)
    )
    return PackedGames(dataset.path, moves, spans, numbers)


def mapped(path: Path, dtype: np.dtype[Any] | str) -> NDArray[Any]:
    """A binary file as an array, which is mapped."""
    if path.stat().st_size == 0:
        return np.zeros(0, dtype)
    return np.asarray(np.memmap(path, dtype, mode="r"))


def ids_of(vocabulary: Mapping[str, int]) -> Numbers:
    """The number of each packed move, int64 [65536]; that of `<UNK>` for the others."""
    ids = np.full(1 << 16, vocabulary["<UNK>"], np.int64)
    for word, number in vocabulary.items():
        if (move := pack_move(word)) != NO_MOVE:
            ids[move] = number
    return ids


def packed_columns(
    months: Sequence[tuple[SampleArrays, PackedGames]],
    ends: Numbers,
    numbers: Numbers,
    ids: Numbers,
    horizon: int,
) -> dict[str, NDArray[Any]]:
    """The columns of `columns_of`.

    months: of the reader. ends: samples up to the end of each. numbers: of samples, [N].
    """
    if not len(numbers):
        return _columns(np.zeros((0, 5), np.int64), [], ids, horizon)
    if len(months) == 1:
        arrays, games = months[0]
        return _columns(_facts(arrays, games, numbers), [(games, len(numbers))], ids, horizon)
    # The samples of a month are read together, and go back to their places at the end.
    of = np.searchsorted(ends, numbers, side="right")
    order = np.argsort(of, kind="stable")
    present, begins = np.unique(of[order], return_index=True)
    stops = [*begins[1:].tolist(), len(numbers)]
    facts = np.empty((len(numbers), 5), np.int64)
    parts = []
    for month, begin, stop in zip(present.tolist(), begins.tolist(), stops, strict=True):
        arrays, games = months[month]
        inside = numbers[order[begin:stop]] - (ends[month - 1] if month else 0)
        facts[begin:stop] = _facts(arrays, games, inside)
        parts.append((games, stop))
    back = np.argsort(order)
    return {n: column[back] for n, column in _columns(facts, parts, ids, horizon).items()}


def _facts(arrays: SampleArrays, games: PackedGames, numbers: Numbers) -> Numbers:
    """First move, plies of the context, plies after it, phase and winner of samples, [N, 5]."""
    game = games.numbers[numbers]
    if int(game.max()) >= len(games.spans):
        raise BadInput(games.folder, f"has no game {int(game.max())}: build it and its cache again")
    spans = games.spans[game]
    facts = np.empty((len(numbers), 5), np.int64)
    facts[:, 0] = first = spans["first"].astype(np.int64)
    facts[:, 1] = arrays.indices[numbers]
    facts[:, 1] += 1
    facts[:, 2] = spans["plies"] - facts[:, 1]
    facts[:, 3] = arrays.phases[numbers]
    facts[:, 4] = spans["winner"]
    if (facts[:, 2] < 1).any() or (first < 0).any():
        raise BadInput(games.folder, "a sample has no move behind it: build it and its cache again")
    if int((first + spans["plies"]).max()) > len(games.moves):
        raise BadInput(games.folder, "packed moves are fewer than its games have: build it again")
    return facts


def _columns(
    facts: Numbers, parts: Sequence[tuple[PackedGames, int]], ids: Numbers, horizon: int
) -> dict[str, NDArray[Any]]:
    first, length = facts[:, 0], facts[:, 1]
    context = _padded(first, length, int(length.max(initial=0)), parts, ids)
    target = _padded(first + length, np.minimum(facts[:, 2], horizon), horizon, parts, ids)
    return {
        "context": context[0],
        "context_mask": context[1],
        "target": target[0],
        "target_mask": target[1],
        "phase": facts[:, 3].copy(),
        "winner": facts[:, 4].copy(),
        "side_to_move": length % 2,
    }


def _padded(
    first: Numbers,
    lengths: Numbers,
    width: int,
    parts: Sequence[tuple[PackedGames, int]],
    ids: Numbers,
) -> tuple[Numbers, NDArray[np.bool_]]:
    """Numbers of moves [N, width], 0 behind them, and where there is a move."""
    mask = np.arange(width) < lengths[:, None]
    ends = np.cumsum(lengths)
    places = np.repeat(first - ends + lengths, lengths) + np.arange(ends[-1] if len(ends) else 0)
    begin, found = 0, np.empty(len(places), np.int64)
    for games, stop in parts:
        end = int(ends[stop - 1])
        found[begin:end] = ids[games.moves[places[begin:end]]]
        begin = end
    numbers = np.zeros(mask.shape, np.int64)
    numbers[mask] = found
    return numbers, mask
