"""Batches of samples from packed moves: arrays without a row of JSON.

Source: docs/formats/chess.md#packed-moves
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.format.folders import FOLDER, MOVE, SPAN
from gristmill.chess.read.phases import NO_MOVE, pack_move
from gristmill.chess.read.samples import SampleArrays
from gristmill.contract import BadInput
from gristmill.reading.folder import OpenFolder

Numbers = NDArray[np.int64]


class PackedGames(NamedTuple):
    """The moves of a split's games, and the game of each sample.

    folder: of the dataset, for messages. moves: uint16 [plies]. spans: SPAN [games].
    numbers: of games, uint32 [samples].
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
    """The columns of `collate.columns_of`.

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
