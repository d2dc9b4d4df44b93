"""Which games are taken, and which split each goes to.

Rules: docs/formats/chess.md (#eligibility, #split-by-moves, #split-by-shuffle).

By default a game's split is a stable hash of its moves (`keys.split_of`), so
that the same game never straddles two splits, whatever its file, month or id.
`split="shuffle"` is the earlier seeded shuffle of ids.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.config import GameConfig, SpliceConfig
from gristmill.chess.format.move_keys import count_shared, split_of
from gristmill.chess.format.sidecar import Sidecar
from gristmill.chess.read.row_batches import RowBatch, RowRange, read_batch, row_ranges
from gristmill.contract import BadInput, GristmillError
from gristmill.run.progress import Progress

NOT_TAKEN = 255
_LIVE_PATHS = ("lichess_bot_archive", "/live_play/")
_LOOKED_AT = 20


Chosen = TypeVar("Chosen", GameConfig, SpliceConfig)


class SplitLeakage(GristmillError):
    """The same moves stand in two splits."""


def refuse_live_games(path: Path) -> None:
    """Raise BadInput for a bot's own live games (docs/formats/chess.md#bot-games)."""
    spelled = str(path.resolve()).replace("\\", "/").lower()
    advice = "pass allow_live_bot_games to build from them all the same"
    if any(word in f"{spelled}/" for word in _LIVE_PATHS):
        raise BadInput(path, f"is an archive of live bot games; {advice}")
    with path.open("rb") as file:
        lines = (line for line in file if line.strip())
        for number, line in enumerate(islice(lines, _LOOKED_AT), 1):
            try:
                row = json.loads(line)
            except ValueError as error:
                raise BadInput(path, f"is not JSON ({error})", number) from error
            headers = row.get("headers") if isinstance(row.get("headers"), dict) else {}
            if (
                row.get("source_file") == "lichess_live_bot"
                or headers.get("LichessGameId")
                or headers.get("Event") == "Lichess Bot Live"
            ):
                raise BadInput(path, f"is a live bot game; {advice}", number)


def taken(batch: RowBatch, config: GameConfig | SpliceConfig) -> tuple[NDArray[np.bool_], ...]:
    """(passes the filter of results, and is long enough to splice too) for each row."""
    from gristmill.chess.kernels import rowshape

    winner, n = batch.columns[:, rowshape.WINNER], batch.columns[:, rowshape.N]
    passes = np.full(len(winner), True)
    if not config.allow_draws:
        passes = (winner == ord("W")) | (winner == ord("B"))
    return passes, passes & (n - config.min_target - 1 >= config.min_context - 1)


def deal(ids: Sequence[str], seed: int, train_ratio: float, val_ratio: float) -> dict[str, int]:
    """Shuffle of ids: id -> 0 train, 1 val, 2 test (docs/formats/chess.md#split-by-shuffle)."""
    order = list(dict.fromkeys(ids))
    random.Random(seed).shuffle(order)
    train = int(len(order) * train_ratio)
    val = train + int(len(order) * val_ratio)
    return {name: 0 if i < train else 1 if i < val else 2 for i, name in enumerate(order)}


@dataclass(frozen=True)
class Dealt:
    """Splits of all rows of a file, one byte a row in `path`, for split="shuffle"."""

    path: Path
    first: int
    count: int

    def splits(self) -> NDArray[np.uint8]:
        """The split of each row, NOT_TAKEN for rows that go nowhere."""
        with self.path.open("rb") as file:
            file.seek(self.first)
            return np.frombuffer(file.read(self.count), np.uint8)


def deal_all(
    ranges: Sequence[RowRange],
    config: GameConfig | SpliceConfig,
    path: Path,
    drop_empty: bool,
    progress: Progress,
) -> list[Dealt]:
    """Deal the rows of all byte ranges by the shuffle into the file `path`; one entry a range.

    Holds the ids of all games that are taken, which the shuffle is made of.
    progress: gets the stage "deal", in bytes.
    """
    ids: list[str | None] = []
    dealt: list[Dealt] = []
    total = sum(item.stop - item.start for item in ranges)
    with progress.stage("deal", unit="bytes", total=total) as stage:
        for item in ranges:
            batch = read_batch(item)
            good = taken(batch, config)[1].tolist()
            mine = [
                name if ok and (name or not drop_empty) else None
                for name, ok in zip(batch.ids(), good, strict=True)
            ]
            dealt.append(Dealt(path, len(ids), len(mine)))
            ids += mine
            stage.advance(item.stop - item.start)
    places = deal(
        [i for i in ids if i is not None], config.seed, config.train_ratio, config.val_ratio
    )
    path.write_bytes(bytes(NOT_TAKEN if i is None else places[i] for i in ids))
    return dealt


def splits_of(
    batch: RowBatch, config: GameConfig | SpliceConfig, dealt: Dealt | None
) -> NDArray[np.uint8]:
    """The split of each row of a batch, NOT_TAKEN for rows that go nowhere."""
    if dealt is not None:
        return dealt.splits()
    places = split_of(batch.keys, config.seed, config.train_ratio, config.val_ratio)
    return np.where(taken(batch, config)[1], places, NOT_TAKEN).astype(np.uint8)


@dataclass(frozen=True)
class SplitTask(Generic[Chosen]):
    """Rows of a byte range, where they were dealt to (None: their moves decide), the config."""

    range: RowRange
    dealt: Dealt | None
    config: Chosen

    @property
    def size(self) -> int:
        """Bytes of the range."""
        return self.range.stop - self.range.start

    def places(self, batch: RowBatch) -> NDArray[np.uint8]:
        """The split of each row of the range: see `splits_of`."""
        return splits_of(batch, self.config, self.dealt)


@contextmanager
def split_tasks(
    valid: Path, out: Path, config: Chosen, drop_empty: bool, progress: Progress
) -> Iterator[list[tuple[str, SplitTask[Chosen]]]]:
    """Make the folder `out`, and give the named tasks that fill it from validated games.

    drop_empty: leave out rows without an id where ids are dealt. Raises
    BadInput for live bot games, before `out` is made.
    """
    if not config.allow_live_bot_games:
        refuse_live_games(valid)
    out.mkdir()
    ranges: list[RowRange] = list(
        row_ranges(valid, config.share_bytes, Sidecar.open(valid.parent, "games"))
    )
    dealt: list[Dealt | None] = [None] * len(ranges)
    plan: Path = out / ".splits"
    if config.split == "shuffle":
        dealt = [*deal_all(ranges, config, plan, drop_empty, progress)]
    yield [
        (f"{item.start:014d}", SplitTask(item, mine, config))
        for item, mine in zip(ranges, dealt, strict=True)
    ]
    plan.unlink(missing_ok=True)


def shared_sequences(out: Path, files: Sequence[Path], config: Chosen) -> int:
    """How many move sequences stand in more than one of these splits' records.

    Raises SplitLeakage for any, where the moves decide the split.
    """
    leaked = count_shared(files)
    if leaked and config.split == "moves":
        raise SplitLeakage(f"{out}: {leaked} move sequences stand in more than one split")
    return leaked
