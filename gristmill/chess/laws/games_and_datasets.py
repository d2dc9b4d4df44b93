"""What must hold of validated games and datasets: read from disk, all of it.

The laws of docs/formats/chess.md#laws: rows are parsed, every game replayed,
offsets, indices and phases derived anew and compared, counts and configs
checked against each other, and no move sequence may stand in two splits. A law
yields what breaks it and raises nothing for a bad artifact.

With `sampled`, of each part of a file some games are replayed, drawn by a fixed
seed; all else is asked of every row as ever. So the asset checks look again at
what was replayed whole before its commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gristmill.chess.config import SPLITS
from gristmill.chess.format import move_keys, rows, sidecar
from gristmill.chess.format.names import INVALID, PROFILE, SOURCE, STATS, SUMMARY, VALID
from gristmill.chess.laws.files import csv_rows, lacks, read_json, relative
from gristmill.chess.read.phases import replay_phases
from gristmill.chess.read.row_batches import RowBatch, read_batch, row_ranges
from gristmill.contract import BadInput, Violation
from gristmill.hashing import sha256_file

_SHARE_BYTES = 4 << 20
# Games replayed of a share where a sample will do, and what they are drawn by.
_REPLAYED, _SEED = 64, 20200601
_COUNTS = ("total_games", "valid_games", "invalid_games", "invalid_reason_counts")
_STATS = (
    *("runtime_splice_defaults", "decisive_only", "split_games"),
    *("split_seed", "train_ratio", "val_ratio"),
)


def _invalid_counted(path: Path, summary: dict[str, Any]) -> Iterator[Violation]:
    """The rejected games and their reasons are as many as the summary says."""
    try:
        invalid = csv_rows(path / INVALID) - 1
    except (OSError, ValueError) as error:
        yield Violation("readable_csv", str(path / INVALID), repr(error))
        return
    yield from _equal("invalid_counted", path / INVALID, invalid, summary["invalid_games"])
    reasons = sum(summary["invalid_reason_counts"].values())
    yield from _equal("reasons_counted", path / SUMMARY, reasons, invalid)


def _equal(law: str, where: Path | str, found: Any, told: Any) -> Iterator[Violation]:
    if found != told:
        yield Violation(law, str(where), f"found {found!r}, told {told!r}")


@relative
def archive_laws(path: Path) -> Iterator[Violation]:
    """A fetched month: one PGN, of the bytes and sha256 that source.json names."""
    record, wrong = read_json(path / SOURCE)
    yield from wrong
    pgns = sorted(path.glob("*.pgn"))
    if len(pgns) != 1:
        yield Violation("one_pgn", str(path), f"{len(pgns)} PGN files")
    elif record:
        told = record["pgn"]
        found = {"name": pgns[0].name, "bytes": pgns[0].stat().st_size}
        found["sha256"] = sha256_file(pgns[0])
        yield from _equal("pgn_as_recorded", pgns[0], found, told)


def _phases_hold(block: RowBatch, where: Path, sampled: bool) -> Iterator[Violation]:
    """The phase codes of the block's games, or of a sample of them, are those of a replay."""
    from gristmill.chess.kernels import rowshape

    plies = block.columns[:, rowshape.N]
    picked = np.full(len(plies), True)
    if sampled and len(plies) > _REPLAYED:
        picked[:] = False
        dice = np.random.default_rng([_SEED, block.byte_range.start])
        picked[dice.choice(len(plies), _REPLAYED, replace=False)] = True
    mine = np.repeat(picked, plies)
    codes = replay_phases(block.moves[mine], plies[picked])
    wrong = np.flatnonzero(codes != block.codes[mine])
    if len(wrong):
        at = int(np.flatnonzero(mine)[wrong[0]])
        place = f"{where}: ply {at} of the rows from byte {block.byte_range.start} on"
        yield Violation("phases_rederived", place, f"{len(wrong)} codes differ from the replay")


def rows_hold(jsonl: Path, root: Path, name: str, sampled: bool) -> Iterator[Violation | RowBatch]:
    """Every block of a JSONL file whose rows and sidecar agree, and what does not."""
    try:
        beside = sidecar.Sidecar.open(root, name)
        if beside is None:
            yield Violation("has_sidecar", str(jsonl), "no sidecar")
        total = 0
        for share in row_ranges(jsonl, _SHARE_BYTES, beside):
            block = read_batch(share)
            total += len(block.columns)
            yield from _phases_hold(block, jsonl, sampled)
            yield block
        if beside:
            yield from _equal("rows_counted", jsonl, total, beside.games)
    except (BadInput, OSError) as error:
        yield Violation("rows_as_sidecar", str(jsonl), str(error))


@relative
def validated_laws(path: Path, *, sampled: bool = False) -> Iterator[Violation]:
    """A validated folder: rows, sidecar, phases, winners and counts agree."""
    from gristmill.chess.kernels import rowshape

    summary, wrong = read_json(path / SUMMARY)
    profile, wrong_too = read_json(path / PROFILE)
    yield from wrong + wrong_too
    valid = plies = 0
    current = summary.get("compat") == "current"
    for item in rows_hold(path / VALID, path, "games", sampled):
        if isinstance(item, Violation):
            yield item
            continue
        found = item.columns
        valid += len(found)
        plies += int(found[:, rowshape.N].sum())
        off = np.flatnonzero(found[:, rowshape.N] != found[:, rowshape.PLIES])
        if len(off):
            yield Violation("plies_counted", f"{path / VALID}: row {int(off[0])} of a block", "")
        text = item.buf.tobytes()
        for n, (a, b, side) in enumerate(
            found[:, [rowshape.RES0, rowshape.RES1, rowshape.WINNER]].tolist()
        ):
            if rows.winner_side(text[a:b].decode()) != chr(side):
                where = f"{path / VALID}: row {n} from byte {item.byte_range.start} on"
                yield Violation("winner_of_result", where, f"{text[a:b]!r} and {chr(side)}")
        if current and (item.codes == 0).any():
            yield Violation("moves_legal", str(path / VALID), "a move is not legal from the start")
    lacking = lacks(summary, path / SUMMARY, *_COUNTS) if summary else []
    yield from lacking
    if summary and not lacking:
        yield from _equal("valid_counted", path / SUMMARY, valid, summary["valid_games"])
        yield from _invalid_counted(path, summary)
        total = summary["valid_games"] + summary["invalid_games"]
        yield from _equal("total_counted", path / SUMMARY, total, summary["total_games"])
    if profile:
        yield from _equal("plies_profiled", path / PROFILE, plies, profile.get("plies"))


@relative
def dataset_laws(path: Path, *, sampled: bool = False) -> Iterator[Violation]:
    """A game dataset: rows, sidecar, phases, eligibility, splits and stats agree; no leakage."""
    from gristmill.chess.kernels import rowshape

    stats, wrong = read_json(path / STATS)
    yield from wrong
    lacking = lacks(stats, path / STATS, *_STATS) if stats else []
    yield from lacking
    if wrong or lacking:
        return
    noted = sidecar.read_rows(path)
    by_moves = stats.get("split_rule") == "move_key"
    shortest = sum(stats["runtime_splice_defaults"].values())
    split_ids: dict[str, int] = {}
    for number, split in enumerate(SPLITS):
        jsonl, games = path / f"{split}.jsonl", 0
        if not jsonl.is_file():
            yield Violation("missing_file", str(jsonl), "missing")
            continue
        for item in rows_hold(jsonl, path, split, sampled):
            if isinstance(item, Violation):
                yield item
                continue
            games += len(item.columns)
            if (item.columns[:, rowshape.N] < shortest).any():
                yield Violation("games_spliceable", str(jsonl), "a game is too short to splice")
            sides = set(item.columns[:, rowshape.WINNER].tolist())
            if stats["decisive_only"] and not sides <= {ord("W"), ord("B")}:
                yield Violation("games_decisive", str(jsonl), f"winners {sorted(map(chr, sides))}")
            if by_moves:
                ratios = (stats["train_ratio"], stats["val_ratio"])
                places = move_keys.split_of(item.keys, stats["split_seed"], *ratios)
                if (places != number).any():
                    yield Violation("split_of_moves", str(jsonl), "a game is of another split")
            else:
                for game_id in item.ids():
                    if split_ids.setdefault(game_id, number) != number:
                        yield Violation("ids_in_one_split", str(jsonl), game_id)
        yield from _equal("games_counted", jsonl, games, stats["split_games"][split])
        if noted:
            yield from _equal(
                "rows_noted", jsonl, sha256_file(jsonl), noted.get(split, {}).get("sha256")
            )
    files = [sidecar.games_file(path, split) for split in SPLITS]
    if by_moves and all(file.exists() for file in files) and (n := move_keys.count_shared(files)):
        yield Violation("no_leakage", str(path), f"{n} move sequences in more than one split")
