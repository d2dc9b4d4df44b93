"""Which games a dataset takes: the split of each, equal games, and subsets that keep their strata.

By default a hash of a game's moves decides its split, so equal games are in one split in all files
and months; with `split="opening"` that of its first moves. `split="shuffle"` is the seeded shuffle
of ids of the original code. Which rows a subset has depends on their bytes and the seed, so that a
larger one holds the smaller one. Source: docs/formats/chess.md#split-by-moves,
docs/formats/chess.md#equal-games, docs/formats/chess.md#subset and docs/formats/chess.md#strata
"""

from __future__ import annotations

import csv
import hashlib
import json
import random
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.config import SPLITS, WINNERS_OF, GameConfig, SpliceConfig, SubsetConfig
from gristmill.chess.format.folders import (
    DROPPED,
    STATS,
    SUBSET,
    SUBSET_VOCABULARY,
    VALID,
    Sidecar,
    count_shared,
    games_file,
    repeated_keys,
    split_file,
    split_of,
    subset_rows,
)
from gristmill.chess.format.rows import PHASES, moves_of
from gristmill.chess.read.row_batches import RowBatch, RowRange, read_batch, row_ranges
from gristmill.contract import BadInput, FileNote, GristmillError, Summary
from gristmill.run.progress import SILENT, Progress

NO_SPLIT = 255
_LIVE_PATHS = ("lichess_bot_archive", "/live_play/")
_ROWS_CHECKED = 20


Config = TypeVar("Config", GameConfig, SpliceConfig)


class SplitLeakage(GristmillError):
    """The same moves are in two splits."""


def _refuse_live_games(path: Path) -> None:
    """Refuse a bot's own live games."""
    lower_path = str(path.resolve()).replace("\\", "/").lower()
    advice = "pass allow_live_bot_games to build from them all the same"
    if any(word in f"{lower_path}/" for word in _LIVE_PATHS):
        raise BadInput(path, f"is an archive of live bot games; {advice}")
    with path.open("rb") as file:
        lines = (line for line in file if line.strip())
        for number, line in enumerate(islice(lines, _ROWS_CHECKED), 1):
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


def eligible(batch: RowBatch, config: GameConfig | SpliceConfig) -> tuple[NDArray[np.bool_], ...]:
    """Which rows a dataset takes, bool [rows]: the end is accepted; and it is also long enough."""
    from gristmill.chess.kernels import rowshape

    winner, n = batch.columns[:, rowshape.WINNER], batch.columns[:, rowshape.N]
    passes = np.full(len(winner), True)
    if sides := WINNERS_OF[config.games]:
        passes = np.isin(winner, np.frombuffer(sides.encode(), np.uint8))
    return passes, passes & (n - config.min_target - 1 >= config.min_context - 1)


def shuffled_splits(
    ids: Sequence[str], seed: int, train_ratio: float, val_ratio: float
) -> dict[str, int]:
    """Split ids by a seeded shuffle. Returns the split by id: 0 train, 1 val, 2 test."""
    order = list(dict.fromkeys(ids))
    random.Random(seed).shuffle(order)
    train = int(len(order) * train_ratio)
    val = train + int(len(order) * val_ratio)
    return {name: 0 if i < train else 1 if i < val else 2 for i, name in enumerate(order)}


Stored = tuple[Path, int, int]
"""Where the splits of a byte range's rows are, one byte a row: file, first byte, bytes."""


def _store_shuffled_splits(
    ranges: Sequence[RowRange],
    config: GameConfig | SpliceConfig,
    path: Path,
    drop_empty: bool,
    progress: Progress,
) -> list[Stored]:
    """Split the rows of all byte ranges by the shuffle; ids of all taken games are in memory."""
    ids: list[str | None] = []
    stored: list[Stored] = []
    total = sum(item.stop - item.start for item in ranges)
    with progress.stage("split", unit="bytes", total=total) as stage:
        for item in ranges:
            batch = read_batch(item)
            spliceable = eligible(batch, config)[1].tolist()
            of_range = [
                game_id if taken and (game_id or not drop_empty) else None
                for game_id, taken in zip(batch.ids(), spliceable, strict=True)
            ]
            stored.append((path, len(ids), len(of_range)))
            ids += of_range
            stage.advance(item.stop - item.start)
    taken_ids = [game_id for game_id in ids if game_id is not None]
    splits = shuffled_splits(taken_ids, config.seed, config.train_ratio, config.val_ratio)
    path.write_bytes(bytes(NO_SPLIT if i is None else splits[i] for i in ids))
    return stored


def rule_stats(config: GameConfig | SpliceConfig) -> dict[str, Any]:
    """What stats.json says of the rule of the split; empty with the shuffle."""
    if config.split == "opening":
        return {"split_rule": "opening_key", "opening_plies": config.opening_plies}
    return {"split_rule": "move_key"} if config.split == "moves" else {}


@dataclass(frozen=True)
class SplitTask(Generic[Config]):
    """The rows of a byte range for a builder.

    stored: None where the moves decide. repeated: rows that are dropped: an earlier has their id.
    """

    range: RowRange
    stored: Stored | None
    config: Config
    repeated: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of the range."""
        return self.range.stop - self.range.start

    def places(self, batch: RowBatch) -> NDArray[np.uint8]:
        """The split of each row: uint8 [rows], 0 train, 1 val, 2 test, NO_SPLIT for none."""
        config = self.config
        if self.stored is not None:
            path, first, count = self.stored
            places = np.fromfile(path, np.uint8, count, offset=first)
        else:
            is_opening = config.split == "opening"
            plies = config.opening_plies
            keys = batch.opening_keys(plies) if is_opening else batch.records["move_key"]
            places = split_of(keys, config.seed, config.train_ratio, config.val_ratio)
            places[~eligible(batch, config)[1]] = NO_SPLIT
        places[list(self.repeated)] = NO_SPLIT
        return places


def _write_repeated(
    ranges: Sequence[RowRange], config: GameConfig | SpliceConfig, path: Path
) -> list[tuple[int, ...]]:
    """Find the rows whose id an earlier row that is taken has, and list them in a file."""
    first: dict[str, int] = {}
    repeated: list[tuple[int, ...]] = []
    rows = 0
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["game_id", "row", "first_row"])
        for item in ranges:
            batch = read_batch(item)
            spliceable = eligible(batch, config)[1].tolist()
            again = []
            for number, (game_id, taken) in enumerate(zip(batch.ids(), spliceable, strict=True)):
                if taken and game_id and first.setdefault(game_id, rows + number) < rows + number:
                    table.writerow([game_id, rows + number, first[game_id]])
                    again.append(number)
            repeated.append(tuple(again))
            rows += len(spliceable)
    return repeated


@contextmanager
def split_tasks(
    valid: Path, out: Path, config: Config, drop_empty: bool, progress: Progress
) -> Iterator[list[tuple[str, SplitTask[Config]]]]:
    """Make the folder of a dataset; yield the named tasks that fill it. BadInput for live games."""
    if not config.allow_live_bot_games:
        _refuse_live_games(valid)
    out.mkdir()
    ranges: list[RowRange] = list(
        row_ranges(valid, config.share_bytes, Sidecar.open(valid.parent, "games"))
    )
    stored: list[Stored | None] = [None] * len(ranges)
    file: Path = out / ".splits"
    if config.split == "shuffle":
        stored = [*_store_shuffled_splits(ranges, config, file, drop_empty, progress)]
    repeated: list[tuple[int, ...]] = [()] * len(ranges)
    if config.drop_duplicates:
        repeated = _write_repeated(ranges, config, out / DROPPED)
    yield [
        (f"{item.start:014d}", SplitTask(item, splits, config, again))
        for item, splits, again in zip(ranges, stored, repeated, strict=True)
    ]
    file.unlink(missing_ok=True)


def shared_sequences(out: Path, files: Sequence[Path], config: Config) -> int:
    """Count the move sequences that are in more than one split, by the files of game records.

    Raises SplitLeakage for any such sequence, unless the split is by shuffle.
    """
    shared = count_shared(files)
    if shared and config.split != "shuffle":
        raise SplitLeakage(f"{out}: {shared} move sequences are in more than one split")
    return shared


_GAMES_AT_ONCE = 1 << 18
_DEPTHS = (12, 20)
"""The last plies of the depths by which shared contexts are counted; behind them is one more."""


def _games_of(dataset: Path, split: str) -> Iterator[tuple[NDArray[np.uint16], NDArray[np.int64]]]:
    """Yield packed moves and plies of the games of a split, a bounded number of games at once."""
    found, ply = Sidecar.open(dataset, split), 0
    for start in range(0, found.games if found else 0, _GAMES_AT_ONCE):
        assert found is not None
        plies = found.spans(start, _GAMES_AT_ONCE)["plies"].astype(np.int64)
        size = int(plies.sum())
        yield found.moves(ply, size), plies
        ply += size


def contexts_in_train(dataset: Path, config: GameConfig) -> dict[str, float]:
    """The share of the contexts of held-out games with which a game of train begins, too.

    dataset: has packed moves. A context has at least `min_context` plies, and `min_target` after.
    Returns shares from 0 to 1 by split, and by split and depth in plies; a depth of no context has
    none.
    """
    from gristmill.chess.kernels.begins import shared_plies

    shares: dict[str, float] = {}
    edges = [config.min_context - 1, *(at for at in _DEPTHS if at >= config.min_context), 1 << 30]
    bands = [(one + 1, other) for one, other in pairwise(edges)]
    for split in SPLITS[1:]:
        shared, every = (np.zeros(len(bands), np.int64) for _ in range(2))
        for moves, plies in _games_of(dataset, split):
            depth, longest = np.zeros_like(plies), plies - config.min_target
            for train in _games_of(dataset, SPLITS[0]):
                shared_plies(moves, plies, *train, depth)
            for number, (least, most) in enumerate(bands):
                for counts, until in ((every, longest), (shared, np.minimum(depth, longest))):
                    counts[number] += np.clip(np.minimum(until, most) - least + 1, 0, None).sum()
        names = [f"{split}, {least} to {most} plies" for least, most in bands[:-1]]
        names += [f"{split}, {bands[-1][0]} plies and more"]
        found = [(split, shared.sum(), every.sum()), *zip(names, shared, every, strict=True)]
        shares |= {name: round(float(n / of), 6) for name, n, of in found if of}
    return shares


_ID = len(b'{"game_id": "')
_ID_BYTES = 40
_RECORDS_PER_READ = 1 << 15


@dataclass(frozen=True)
class EqualGames:
    """How many valid games an earlier one equals, and the first of them."""

    games: int = 0
    game_id: str = ""
    pgn_offset: int = 0


def find_equal_games(folder: Path) -> EqualGames:
    """Find the valid games with the id of an earlier one."""
    keys = repeated_keys(games_file(folder, "games"))
    found = Sidecar.open(folder, "games") if len(keys) else None
    if found is None:
        return EqualGames()
    seen: set[bytes] = set()
    games, first = 0, ("", 0)
    with (folder / VALID).open("rb", buffering=0) as rows:
        for _, _, records in found.batches(_RECORDS_PER_READ):
            picked = records[np.isin(records["move_key"], keys)]
            for row, offset in zip(picked["row"].tolist(), picked["pgn"].tolist(), strict=True):
                rows.seek(row + _ID)
                game_id = rows.read(_ID_BYTES)
                if game_id in seen:
                    first = first if games else (game_id.decode(), offset)
                    games += 1
                seen.add(game_id)
    return EqualGames(games, *first)


_READ_GAMES = 512


def strata_of(file: Path, config: SubsetConfig) -> Iterator[tuple[bytes, str]]:
    """Yield each row of a split and its stratum, in file order; BadInput for what is no row."""
    with file.open("rb") as opened:
        while lines := [*islice(opened, _READ_GAMES)]:
            yield from zip(lines, _strata(lines, file, config), strict=True)


def _strata(lines: Sequence[bytes], file: Path, config: SubsetConfig) -> Iterator[str]:
    try:
        rows = [json.loads(line) for line in lines]
        phases = _phases(rows) if "phase" in config.by else [""] * len(rows)
        for row, phase in zip(rows, phases, strict=True):
            yield "|".join(_part(row, by, phase, file, config) for by in config.by)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadInput(file, f"has a line that is no row ({error!r}): build it again") from error


def _phases(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The phase of each sample, or of the last position of each game."""
    if rows and "context" in rows[0]:
        return [str(row["phase"]) for row in rows]
    from gristmill.chess.read.row_batches import phase_codes

    codes = phase_codes([moves_of(row) for row in rows])
    return [PHASES[code[-1] & 3] if code else PHASES[0] for code in codes]


def _part(row: dict[str, Any], by: str, phase: str, file: Path, config: SubsetConfig) -> str:
    if by == "phase":
        return phase
    if by == "result":
        return str(row["winner_side"])
    if by == "ply":
        ply = int(row["ply"] if "context" in row else row["plies"])
        return f"ply {ply // config.ply_step * config.ply_step}"
    if "headers" not in row:
        rule = "has no ratings: take games, with keep_headers = true for chess/game_dataset"
        raise BadInput(file, rule)
    ratings = [str(row["headers"].get(tag, "")) for tag in ("WhiteElo", "BlackElo")]
    if not all(text.isascii() and text.isdigit() and len(text) < 6 for text in ratings):
        return "elo unknown"
    mean = sum(map(int, ratings)) // 2
    return f"elo {mean // config.elo_step * config.elo_step}"


# Of the stats of a dataset, what its reader and the training code look at.
_KEPT_STATS = (
    "dataset_format",
    "schema_move_field",
    "keep_headers",
    "runtime_splice_defaults",
    "split_seed",
    "decisive_only",
    "games",
)


@dataclass(frozen=True)
class SubsetSummary(Summary):
    """Counts of a subset."""

    samples: Mapping[str, int]
    rows_of: Mapping[str, int]
    strata: int
    moves: int


def build_subset(
    source: Path, out: Path, config: SubsetConfig, *, progress: Progress = SILENT
) -> SubsetSummary:
    """Take a subset of a game dataset, or of legacy rows.

    Memory grows by 16 bytes a row. Raises BadInput where a row cannot be read, or has no ratings
    that are asked for.
    """
    out.mkdir()
    words: Counter[str] = Counter()
    splits: dict[str, dict[str, Any]] = {}
    with progress.stage("take", unit="files", total=len(SPLITS)) as stage:
        for split in SPLITS:
            splits[split] = _take(source, out, split, config, words if split == "train" else None)
            stage.advance(1)
    vocabulary = ["<PAD>", "<UNK>", *sorted(words)]
    with (out / SUBSET_VOCABULARY).open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(("id", "move", "count"))
        rows.writerows((number, move, words[move]) for number, move in enumerate(vocabulary))
    (out / SUBSET).write_text(json.dumps({"config": asdict(config), "splits": splits}, indent=2))
    taken = {split: int(found["rows"]) for split, found in splits.items()}
    if config.of == "games":
        stats = json.loads((source / STATS).read_bytes())
        kept = {name: stats[name] for name in _KEPT_STATS if name in stats}
        (out / STATS).write_text(json.dumps({**kept, "split_games": taken}, indent=2))
    return SubsetSummary(
        files={
            **{split_file(Path(), split).name: FileNote(rows=taken[split]) for split in SPLITS},
            SUBSET_VOCABULARY: FileNote(rows=len(vocabulary)),
        },
        samples=taken,
        rows_of={split: int(found["rows_of"]) for split, found in splits.items()},
        strata=len({name for found in splits.values() for name in found["strata"]}),
        moves=len(vocabulary),
    )


def _take(
    source: Path, out: Path, split: str, config: SubsetConfig, words: Counter[str] | None
) -> dict[str, Any]:
    """Write the rows of a split, and count the moves of train games."""
    file, most = split_file(source, split), int(getattr(config, split))
    drawn: dict[str, array[int]] = {}
    numbers: dict[str, array[int]] = {}
    begin, total = str(config.seed).encode() + b"\n", 0
    for line, stratum in strata_of(file, config):
        digest = hashlib.sha256(begin + line).digest()
        drawn.setdefault(stratum, array("Q")).append(int.from_bytes(digest[:8], "big"))
        numbers.setdefault(stratum, array("q")).append(total)
        total += 1
    sizes = {name: len(numbers[name]) for name in sorted(numbers)}
    counts = shares(sizes, most, config.shares == "equal")
    chosen = [np.zeros(0, np.int64)]
    for name, count in counts.items():
        # The rows with the smallest draws; of equal ones the first.
        order = np.argsort(np.frombuffer(drawn[name], np.uint64), kind="stable")
        chosen.append(np.frombuffer(numbers[name], np.int64)[order[:count]])
    rows = np.sort(np.concatenate(chosen))
    wanted = set(rows.tolist())
    with file.open("rb") as lines, split_file(out, split).open("wb") as written:
        for number, line in enumerate(lines):
            if number in wanted:
                written.write(line)
                if words is not None:
                    words.update(_moves(line, file, number))
    np.save(out / subset_rows(split), rows)
    strata = {name: [counts[name], size] for name, size in sizes.items()}
    return {"rows": len(rows), "rows_of": total, "strata": strata}


def _moves(line: bytes, file: Path, number: int) -> list[str]:
    try:
        row = json.loads(line)
        return [*row["context"], *row["target"]] if "context" in row else moves_of(row)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadInput(file, f"is no row ({error!r}): build it again", number + 1) from error


def shares(sizes: Mapping[str, int], most: int, is_equal: bool) -> dict[str, int]:
    """How many rows of each stratum are taken, of `most` at most; is_equal: as many of each.

    A fraction that is left over goes to the largest one; equal ones in the order of their names.
    """
    total = sum(sizes.values())
    if most >= total:
        return dict(sizes)
    if not is_equal:
        counts = {name: size * most // total for name, size in sizes.items()}
        order = sorted(sizes, key=lambda name: (-(sizes[name] * most % total), name))
        for name in order[: most - sum(counts.values())]:
            counts[name] += 1
        return counts
    counts, left = {}, most
    by_size = sorted(sizes, key=lambda name: (sizes[name], name))
    for number, name in enumerate(by_size):
        counts[name] = min(sizes[name], left // (len(by_size) - number))
        left -= counts[name]
    return {name: counts[name] for name in sizes}
