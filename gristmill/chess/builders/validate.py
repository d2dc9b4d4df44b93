"""PGN files to validated games: rows, rejects with their reasons, flags, sidecar, reports.

What a worker writes depends on the bytes of its range and the config alone; the parts are put
together in file order. The games that the compiled reader took are decided a batch at a time, as
`verdicts.judge` decides on the others. Source: docs/formats/chess.md#validation
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.builders.datasets import append_part
from gristmill.chess.builders.splits import EqualGames, find_equal_games
from gristmill.chess.builders.verdicts import (
    RangeOutput,
    RangeTask,
    dropped,
    filtered,
    has_filters,
    judge,
)
from gristmill.chess.config import ValidateConfig
from gristmill.chess.format import folders, rows
from gristmill.chess.format.folders import (
    FLAGGED,
    GAME,
    INVALID,
    MOVE,
    PROFILE,
    SUMMARY,
    VALID,
    count_duplicates,
)
from gristmill.chess.raw import python_chess
from gristmill.chess.raw.pgn import Batch, PlacedGame, follow, plan, read_range
from gristmill.chess.raw.pgn_text import month_in
from gristmill.chess.read.row_batches import pack_move, phase_codes
from gristmill.contract import BadInput, FileNote, Summary
from gristmill.hashing import sha256_file
from gristmill.run.parts import Made, PartStore, StreamFiles, run_streams
from gristmill.run.progress import SILENT, Progress

_ECO = re.compile("[A-E][0-9][0-9]")


_INVALID_HEAD = "game_id,source_file,reason,offending_ply,result"
_FLAGGED_HEAD = "game_id,source_file,flag,result,detail,pgn_offset\r\n"


@dataclass(frozen=True)
class ValidateSummary(Summary):
    """Counts of a validation, which docs/numbers.md explains."""

    total_games: int
    valid_games: int
    invalid_games: int
    duplicate_games: int
    equal_games: int
    games_outside_month: int
    oracle_games: int
    plies: int
    white_wins: int
    black_wins: int
    draws: int
    reasons: Mapping[str, int]
    flags: Mapping[str, int]
    phases: Mapping[str, int]


def validate(
    pgn_paths: Sequence[Path],
    out: Path,
    config: ValidateConfig = ValidateConfig(),  # noqa: B008 (frozen)
    *,
    parts: PartStore | None = None,
    progress: Progress = SILENT,
) -> ValidateSummary:
    """Validate PGN files: write rows, rejects, flags, sidecar and reports.

    Memory does not grow with the number of games.

    pgn_paths: the PGN files, in the order of the rows.
    out: folder to make; its files are those of docs/formats/chess.md#folders.
    config: rules and filters. `compat="reference"` writes the files of the original code.
    parts: store of finished parts, from which a killed build continues; None for no store.
    progress: gets the stages `validate` and `hash`, in bytes of PGN.

    Raises BadInput for no input, for a file that cannot be PGN, for files without one game, and
    where there are not as many source names as files. Raises MissingPythonChess where a game
    needs python-chess.
    """
    paths = [Path(path) for path in pgn_paths]
    names = _source_names(paths, config)
    out.mkdir()
    tally, written = _write_streams(paths, names, out, config, parts, progress)
    if tally.counts["total"] == tally.counts["no_game"]:
        raise BadInput(paths[0], "holds no game: no tag and no move of it can be read; bring a PGN")
    equal = find_equal_games(out)
    duplicates = count_duplicates([folders.games_file(out, "games")])
    sizes = [path.stat().st_size for path in paths]
    with progress.stage("hash input", unit="bytes", total=sum(sizes)) as stage:
        sources = [
            {"name": name, "bytes": size, "sha256": sha256_file(path, stage.advance)}
            for name, size, path in zip(names, sizes, paths, strict=True)
        ]
    _write_json(folders.sources_file(out), {"sources": sources})
    _write_json(out / SUMMARY, report_of(tally, duplicates, equal, names, config))
    _write_json(out / PROFILE, profile_of(tally, duplicates))
    return _summary(out, written, tally, duplicates, equal)


def _source_names(paths: Sequence[Path], config: ValidateConfig) -> list[str]:
    """The texts of `source_file`. Raises BadInput for no file or a wrong number of names."""
    if not paths:
        raise BadInput("pgn_paths", "there is no PGN file; pass at least one")
    if not config.source_names:
        reference = config.compat == "reference"
        return [str(path) if reference else path.name for path in paths]
    names = list(config.source_names)
    if len(names) != len(paths):
        rule = f"{len(names)} names for {len(paths)} PGN files; pass one name a file"
        raise BadInput("source_names", rule)
    return names


def _write_streams(
    paths: Sequence[Path],
    names: Sequence[str],
    out: Path,
    config: ValidateConfig,
    store: PartStore | None,
    progress: Progress,
) -> tuple[Tally, StreamFiles]:
    """Validate all byte ranges and write rows, rejects, flags, game records and phase codes."""
    files = {
        "games": out / VALID,
        "invalid": out / INVALID,
        "flagged": out / FLAGGED,
        "games.games": folders.games_file(out, "games"),
        "games.phases": folders.phases_file(out, "games"),
    }
    if config.compat == "current":
        files["games.moves"] = folders.moves_file(out, "games")
    more_columns = "" if config.compat == "reference" else ",error,pgn_offset"
    with StreamFiles(files) as written:
        written.write("invalid", f"{_INVALID_HEAD}{more_columns}\r\n".encode())
        written.write("flagged", _FLAGGED_HEAD.encode())
        tasks = [
            (f"{i:04d}_{item.start:014d}_{item.stop:014d}", RangeTask(item, i, name, config, month))
            for i, (path, name) in enumerate(zip(paths, names, strict=True))
            for month in [(month_in(path.name) or "").replace("-", ".")]
            for item in plan(path, config.share_bytes)
        ]
        tally, file, expected = Tally(), -1, 0
        total = sum(task.size for _, task in tasks)
        finished = run_streams(validate_range, tasks, store, config.workers, scratch=out)
        with progress.stage("validate", unit="bytes", total=total) as stage:
            for (name, task), part in zip(tasks, finished, strict=True):
                if task.file != file:
                    file, expected = task.file, 0
                # A range that began inside a game is read again from its end.
                moved = follow(expected, task.range)
                parts: Iterable[Any] = [part]
                if moved is not None:
                    again = [(f"{name}_from_{expected:014d}", replace(task, range=moved))]
                    parts = run_streams(validate_range, again, store, 1, scratch=out)
                for found, counted in parts:
                    append_part(found, written)
                    tally.add(counted)
                    end = int(counted["end"])
                expected = end if task.range.stop < task.range.path.stat().st_size else 0
                stage.advance(task.size)
    return tally, written


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2))


def _summary(
    out: Path, written: StreamFiles, tally: Tally, duplicates: int, equal: EqualGames
) -> ValidateSummary:
    counts, flags = tally.counts, tally.by_name("flag")
    valid, total = counts["valid"], counts["total"]
    rows = {"games": valid, "invalid": total - valid, "flagged": sum(flags.values())}
    rows |= {"games.games": valid, "games.phases": counts["plies"]}
    return ValidateSummary(
        files={**written.notes(out, rows), SUMMARY: FileNote(payload=False)},
        total_games=total,
        valid_games=valid,
        invalid_games=total - valid,
        duplicate_games=duplicates,
        equal_games=equal.games,
        games_outside_month=counts["outside_month"],
        oracle_games=counts["oracle"],
        plies=counts["plies"],
        white_wins=counts["winner.W"],
        black_wins=counts["winner.B"],
        draws=counts["winner.D"],
        reasons=tally.by_name("reason"),
        flags=flags,
        phases=tally.by_name("phase"),
    )


class Tally:
    """Counts of all parts so far, by names such as `reason.too_short`; else as `RangeOutput`."""

    def __init__(self) -> None:
        self.outside: list[Any] = []
        self.counts: Counter[str] = Counter()
        self.openings: dict[str, list[Any]] = {}

    def add(self, summary: Mapping[str, Any]) -> None:
        """Add the summary of a part."""
        self.counts.update(summary["counts"])
        self.outside = self.outside or summary["outside"]
        for code, entry in summary["openings"].items():
            known = self.openings.setdefault(code, [0, 0, 0, 0, ""])
            for i in range(4):
                known[i] += entry[i]
            known[4] = known[4] or entry[4]

    def by_name(self, kind: str) -> dict[str, int]:
        """The counts of a kind, in the order in which they were first met."""
        start = f"{kind}."
        return {
            name.removeprefix(start): count
            for name, count in self.counts.items()
            if name.startswith(start)
        }


def profile_of(tally: Tally, duplicates: int) -> dict[str, Any]:
    """The object of profile.json."""
    bins = sorted(tally.by_name("plies").items(), key=lambda item: int(item[0]))
    return {
        "games": tally.counts["valid"],
        "plies": tally.counts["plies"],
        "winners": tally.by_name("winner"),
        "phases": tally.by_name("phase"),
        "plies_bins": dict(bins),
        "reasons": tally.by_name("reason"),
        "flags": tally.by_name("flag"),
        "duplicate_games": duplicates,
        "openings": dict(sorted(tally.openings.items())),
    }


def report_of(
    tally: Tally,
    duplicates: int,
    equal: EqualGames,
    names: Sequence[str],
    config: ValidateConfig,
) -> dict[str, Any]:
    """The object of summary.json."""
    valid, total = tally.counts["valid"], tally.counts["total"]
    report: dict[str, Any] = {
        "input_files": list(names),
        "input_source": ",".join(names),
        "auto_sharded_single_file": False,
        "auto_shard_game_count": None,
        "total_games": total,
        "valid_games": valid,
        "invalid_games": total - valid,
        "valid_ratio": valid / total if total else 0.0,
        "invalid_reason_counts": tally.by_name("reason"),
        "outputs": {"valid_games": VALID, "invalid_games": INVALID},
    }
    if config.compat != "reference":
        report["compat"] = config.compat
        report["flag_counts"] = tally.by_name("flag")
        report["duplicate_games"] = duplicates
        if equal.games:
            first = {"game_id": equal.game_id, "pgn_offset": equal.pgn_offset}
            report["equal_games"] = {"games": equal.games, "first": first}
        if tally.outside:
            tag, value, offset = tally.outside
            first = {"tag": tag, "value": value, "pgn_offset": offset}
            report["games_outside_month"] = {"games": tally.counts["outside_month"], "first": first}
    return report


def validate_range(task: RangeTask) -> Made:
    """Validate the games of one byte range: streams and summary as `RangeOutput.finish`."""
    output, end = RangeOutput(task), task.range.start
    for item in read_range(task.range, current=not output.reference):
        if isinstance(item, Batch):
            add_batch(output, item)
        elif isinstance(item, PlacedGame):
            add_game(output, item)
        else:
            end = item
    return output.finish(end)


def add_game(output: RangeOutput, placed: PlacedGame) -> None:
    """Decide on a game that python-chess read, and add its row, or its reject."""
    game, task = placed.game, output.task
    output.counts["total"] += 1
    output.counts["oracle"] += 1
    headers = rows.ordered_headers(game.headers)
    reason, ply, flags, error = judge(game, task.config)
    if output.reference:
        game_id = rows.reference_id(task.source, headers, game.moves)
    else:
        game_id = rows.content_id(headers, game.words or game.moves)
    if not game.moves and not headers.keys() - {"Result"}:
        output.counts["no_game"] += 1
    if reason:
        without_id = ("empty_game", *("result_mismatch",) * output.reference)
        is_broken = bool(game.errors or game.unclosed)
        game_id = "" if reason in without_id or is_broken else game_id
        output.reject(game_id, reason, ply, game.result, error, placed.offset)
        return
    winner = rows.winner_side(game.result)
    detail = f"movetext {'/'.join(game.terminators)}"
    output.flag(game_id, flags, game.result, detail, placed.offset, game.said.passed)
    row = rows.valid_row(game_id, task.source, headers, game.result, game.moves)
    record = (0, placed.offset, placed.size, task.file, len(game.moves), flags)
    records = np.array([(*record, rows.move_key(game.moves))], dtype=GAME)
    output.keep([row], records)
    output.phases.append(phase_codes([game.moves])[0])
    output.moves.append(np.array([pack_move(move) for move in game.moves], MOVE).tobytes())
    eco = headers.get("ECO", "")
    output.date(headers.get("UTCDate", ""), headers.get("Date", ""), placed.offset)
    known = bool(_ECO.fullmatch(eco))
    name = headers.get("Opening", "") if known else ""
    output.opening(eco if known else "?", name, [int(winner == side) for side in "WDB?"])


# Result codes of the reader: places in rows.RESULTS, and one for any other text.
_DRAW, _UNKNOWN, _OTHER = 3, 4, 5
_WINNERS = "?WBD??"
_ECO_TAG, _OPENING_TAG, _RESULT_TAG = 14, 15, 6
_PLAYER_TAGS, _DATE_TAG, _UTC_DATE_TAG = [4, 5], 2, 7
# After the codes A00 to E99, which are numbered 0 to 499.
_NO_CODE = 500


def _verdicts(batch: Batch) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Result codes of the board without and with claims of a draw, 0 for an open game."""
    from gristmill.chess.kernels import ending, scan

    endings = batch.games[:, scan.VERDICT]
    unclaimed = np.array([0, 1, 2, _DRAW, 0, 0])[endings]
    claimed = np.array([0, 1, 2, _DRAW, _DRAW, 0])[endings]
    for i in np.flatnonzero(endings == ending.UNSURE).tolist():
        game = batch.games[i]
        moves = batch.uci[game[scan.UCI0] : game[scan.UCI1]].decode().split(" ")
        without, with_claims = python_chess.claimed_result(moves)
        unclaimed[i] = rows.RESULTS.index(without) % _UNKNOWN
        claimed[i] = rows.RESULTS.index(with_claims) % _UNKNOWN
    return unclaimed, claimed


def _tags(batch: Batch, i: int) -> dict[str, str]:
    """All tags of game i, the roster first, with `Result` filled from the movetext."""
    from gristmill.chess.kernels import scan

    game, buf = batch.games[i], batch.buf
    tags: dict[str, str] = {}
    for n0, n1, v0, v1 in batch.tags[game[scan.TAG0] : game[scan.TAG1]].tolist():
        tags[buf[n0:n1].decode()] = buf[v0:v1].decode("utf-8", "replace")
    if game[scan.TERMINATOR] and tags.get("Result", "*") == "*":
        tags["Result"] = rows.RESULTS[game[scan.TERMINATOR]]
    return rows.ordered_headers(tags)


def _text(batch: Batch, i: int, tag: int) -> str:
    """The value of a tag with a fixed slot of game i; empty where it is missing."""
    start, end = batch.known[i, tag].tolist()
    return batch.buf[start:end].decode("utf-8", "replace") if start >= 0 else ""


def _result(batch: Batch, i: int, code: int) -> str:
    if code == _OTHER:
        return _text(batch, i, _RESULT_TAG)
    return rows.RESULTS[code] or "*"


def _ids(batch: Batch, source: str, reference: bool) -> list[str]:
    """The id of each game, were it taken."""
    from gristmill.chess.kernels import scan

    sha256, uci = hashlib.sha256, batch.uci

    def moves(i: int) -> list[str]:
        return uci[batch.games[i, scan.UCI0] : batch.games[i, scan.UCI1]].decode().split(" ")

    if reference:
        return [
            rows.reference_id(source, _tags(batch, i), moves(i)) for i in range(len(batch.games))
        ]
    spans = batch.games[:, [scan.ID0, scan.UCI1]].tolist()
    ids = [sha256(uci[start:end]).hexdigest()[:40] for start, end in spans]
    for i in np.flatnonzero(batch.games[:, scan.WIDE]).tolist():
        ids[i] = rows.content_id(_tags(batch, i), moves(i))
    return ids


def _reasons(
    batch: Batch, config: ValidateConfig, board: NDArray[np.int64], flags: NDArray[np.int64]
) -> list[str]:
    """The reason of each game, empty for a valid one."""
    from gristmill.chess.kernels import scan

    result, plies = batch.games[:, scan.RESULT], batch.games[:, scan.PLIES]
    open_result = (result == 0) | (result == _UNKNOWN)
    mismatch = (board > 0) & ~open_result & (board != result)
    faults = (batch.known[:, scan.FEN, 0] >= 0, plies == 0, mismatch, plies < config.min_plies)
    fault = np.select(faults, (1, 2, 3, 4), 0)
    names = ("", "fen_start", "empty_game", "result_mismatch", "too_short")
    reasons = [names[n] for n in fault.tolist()]
    if has_filters(config):
        for i, reason in enumerate(reasons):
            reasons[i] = reason or filtered(_tags(batch, i), config)
    for i in np.flatnonzero(flags & sum(rows.LOSSES)).tolist():
        reasons[i] = reasons[i] or dropped(int(flags[i]), config)
    return reasons


def _flags(
    batch: Batch, unclaimed: NDArray[np.int64], claimed: NDArray[np.int64], reference: bool
) -> NDArray[np.int64]:
    """The flags of each game, as bits."""
    from gristmill.chess.kernels import scan

    result, terminator = batch.games[:, scan.RESULT], batch.games[:, scan.TERMINATOR]
    decisive = (result == 1) | (result == 2)
    claimable = (claimed == _DRAW) & (unclaimed == 0) & decisive
    conflict = (terminator > 0) & (terminator != result)
    conflict &= ~(reference & (terminator == _UNKNOWN))
    # Players without a name, as `rows.NO_NAMES`.
    spans = batch.known[:, _PLAYER_TAGS]
    starts, sizes = spans[..., 0], spans[..., 1] - spans[..., 0]
    first = np.frombuffer(batch.buf, np.uint8)[np.maximum(starts, 0)]
    nameless = (starts < 0) | (sizes == 0) | ((sizes == 1) & (first == ord("?")))
    flags: NDArray[np.int64] = (
        claimable * rows.CLAIMABLE_DRAW
        + conflict * rows.RESULT_CONFLICT
        + (result == _OTHER) * rows.ODD_RESULT
        + nameless.any(axis=1) * rows.NO_PLAYERS
    )
    if reference:
        return flags
    miscounted = batch.games[:, scan.SHOWN] == 0
    for i in np.flatnonzero(batch.known[:, scan.PLY_COUNT, 0] >= 0).tolist():
        plies = int(batch.games[i, scan.PLIES])
        miscounted[i] |= rows.is_miscounted(_text(batch, i, scan.PLY_COUNT), plies)
    flags |= batch.games[:, scan.NUMBERS] * rows.NUMBER_GAP
    flags |= (terminator == 0) * rows.NO_RESULT + miscounted * rows.PLY_COUNT
    return flags


def _date_games(output: RangeOutput, batch: Batch, valid: NDArray[np.bool_]) -> None:
    """Give `output` the dates of valid games that do not begin with the month."""
    month, utc_dates = output.task.month, batch.known[:, _UTC_DATE_TAG, 0]
    starts = np.where(utc_dates >= 0, utc_dates, batch.known[:, _DATE_TAG, 0])
    places = np.maximum(starts, 0)[:, None] + np.arange(len(month))
    text = np.frombuffer(batch.buf, np.uint8)
    begins = text[np.minimum(places, len(text) - 1)] == np.frombuffer(month.encode(), np.uint8)
    for i in np.flatnonzero(valid & ~((starts >= 0) & begins.all(axis=1))).tolist():
        output.date(_text(batch, i, _UTC_DATE_TAG), _text(batch, i, _DATE_TAG), _offset(batch, i))


def _count_openings(output: RangeOutput, batch: Batch, valid: NDArray[np.bool_]) -> None:
    """Count the valid games by ECO code and winner."""
    from gristmill.chess.kernels import scan

    sides = np.array([3, 0, 2, 1, 3, 3])[batch.games[:, scan.RESULT]]
    spans = batch.known[:, _ECO_TAG]
    text = np.frombuffer(batch.buf, np.uint8)
    start = np.where(spans[:, 1] - spans[:, 0] == 3, spans[:, 0], -1)
    places = np.maximum(start, 0)[:, None] + np.arange(3)
    letters = text[np.minimum(places, max(len(text) - 1, 0))].astype(np.int64)
    digits = letters[:, 1:] - 48
    known = (start >= 0) & ((digits >= 0) & (digits <= 9)).all(axis=1)
    known &= (letters[:, 0] >= ord("A")) & (letters[:, 0] <= ord("E"))
    numbers = (letters[:, 0] - ord("A")) * 100 + digits @ np.array([10, 1])
    at = np.flatnonzero(valid)
    codes, firsts, of = np.unique(
        np.where(known, numbers, _NO_CODE)[at], return_index=True, return_inverse=True
    )
    winners = np.bincount(of * 4 + sides[at], minlength=4 * len(codes)).reshape(-1, 4)
    for code, first, counts in zip(
        codes.tolist(), at[firsts].tolist(), winners.tolist(), strict=True
    ):
        name = "?" if code == _NO_CODE else f"{'ABCDE'[code // 100]}{code % 100:02d}"
        title = "" if code == _NO_CODE else _text(batch, first, _OPENING_TAG)
        output.opening(name, title, counts)


def add_batch(output: RangeOutput, batch: Batch) -> None:
    """Decide on the games of a batch, and add their rows and rejects."""
    from gristmill.chess.kernels import scan

    unclaimed, claimed = _verdicts(batch)
    board = claimed if output.reference else unclaimed
    flags = _flags(batch, unclaimed, claimed, output.reference)
    reasons = _reasons(batch, output.task.config, board, flags)
    valid = np.array([not reason for reason in reasons], dtype=np.bool_)
    output.counts["total"] += len(batch.games)
    lines, digests = _add_games(output, batch, reasons, valid, flags, board)
    games = batch.games[valid]
    records = np.zeros(len(games), GAME)
    records["pgn"] = games[:, scan.START] + batch.base
    records["size"] = games[:, scan.END] - games[:, scan.START]
    records["file"], records["flags"] = output.task.file, flags[valid]
    records["plies"] = games[:, scan.PLIES]
    records["move_key"] = np.frombuffer(digests, ">u8")
    output.keep(lines, records)
    of_valid = np.repeat(valid, batch.games[:, scan.PLIES])
    output.phases.append(batch.phases[of_valid].tobytes())
    output.moves.append(batch.moves[of_valid].astype(MOVE).tobytes())
    _count_openings(output, batch, valid)
    if output.task.month:
        _date_games(output, batch, valid)


def _add_games(
    output: RangeOutput,
    batch: Batch,
    reasons: list[str],
    valid: NDArray[np.bool_],
    flags: NDArray[np.int64],
    board: NDArray[np.int64],
) -> tuple[list[bytes], bytes]:
    """Add rejects and flags; returns the lines and the move keys of the valid games."""
    from gristmill.chess.kernels import scan

    text, uci, sha256 = batch.text, batch.uci, hashlib.sha256
    ids = _ids(batch, output.task.source, output.reference)
    without_id = ("empty_game", *("result_mismatch",) * output.reference)
    for i in np.flatnonzero(~valid | (flags != 0)).tolist():
        result = _result(batch, i, int(batch.games[i, scan.RESULT]))
        if not (reason := reasons[i]):
            detail = f"movetext {rows.RESULTS[batch.games[i, scan.TERMINATOR]]}"
            output.flag(ids[i], int(flags[i]), result, detail, _offset(batch, i))
            continue
        error, plies = "", int(batch.games[i, scan.PLIES])
        if reason == "result_mismatch":
            error = f"the board says {rows.RESULTS[int(board[i])]}, the header {result}"
        elif reason == "fen_start":
            error, plies = f"FEN {_text(batch, i, scan.FEN)}", 0
        game_id = "" if reason in without_id else ids[i]
        output.reject(game_id, reason, plies, result, error, _offset(batch, i))
    begin, moves_key, uci_key = b'{"game_id": "', b', "moves": ', b', "moves_uci": '
    source = b'", "source_file": ' + json.dumps(output.task.source).encode() + b', "headers": '
    middles = [_middle(rows.RESULTS[code] or "*", code) for code in range(_OTHER)]
    numbers = np.flatnonzero(valid).tolist()
    of_valid = batch.games[valid]
    columns = (
        of_valid[:, column].tolist()
        for column in (scan.WIDE, scan.RESULT, scan.PLIES, scan.HEAD0, scan.HEAD1, scan.LIST1)
    )
    lines: list[bytes] = []
    for i, wide, code, plies, head0, head1, list1 in zip(numbers, *columns, strict=True):
        middle = middles[code] if code != _OTHER else _middle(_result(batch, i, code), code)
        headers = json.dumps(_tags(batch, i)).encode() if wide else text[head0:head1]
        moves = text[head1:list1]
        lines.append(
            b"".join(
                (
                    begin, ids[i].encode(), source, headers, middle,
                    b"%d" % plies, moves_key, moves, uci_key, moves, b"}\n",
                )
            )
        )  # fmt: skip
    spans = of_valid[:, [scan.UCI0, scan.UCI1]].tolist()
    return lines, b"".join([sha256(uci[start:end]).digest()[:8] for start, end in spans])


def _middle(result: str, code: int) -> bytes:
    """The part of a row between its headers and its plies."""
    fields = f'"result": {json.dumps(result)}, "winner_side": "{_WINNERS[code]}"'
    return f', {fields}, "plies": '.encode()


def _offset(batch: Batch, i: int) -> int:
    """The byte offset of game i in its PGN."""
    from gristmill.chess.kernels import scan

    return batch.base + int(batch.games[i, scan.START])
