"""Add a batch of games that the compiled reader took to the output of their byte range.

The decisions are those of `range_output.judge`, made for a whole batch at once.
"""

from __future__ import annotations

import hashlib
import json

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.builders.range_output import RangeOutput, dropped, filtered, has_filters
from gristmill.chess.config import ValidateConfig
from gristmill.chess.format import rows
from gristmill.chess.format.folders import GAME, MOVE
from gristmill.chess.raw import python_chess
from gristmill.chess.raw.batches import Batch

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
    flags: NDArray[np.int64] = (
        claimable * rows.CLAIMABLE_DRAW
        + conflict * rows.RESULT_CONFLICT
        + (result == _OTHER) * rows.ODD_RESULT
        + _nameless(batch) * rows.NO_PLAYERS
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


def _nameless(batch: Batch) -> NDArray[np.bool_]:
    """Whether a player of each game has no name (`rows.NO_NAMES`)."""
    spans = batch.known[:, _PLAYER_TAGS]
    starts, sizes = spans[..., 0], spans[..., 1] - spans[..., 0]
    first = np.frombuffer(batch.buf, np.uint8)[np.maximum(starts, 0)]
    missing = (starts < 0) | (sizes == 0) | ((sizes == 1) & (first == ord("?")))
    return np.asarray(missing.any(axis=1))


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
    records = _records(batch, output.task.file, flags, valid)
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
        if reason := reasons[i]:
            game_id = "" if reason in without_id else ids[i]
            _reject(output, batch, i, game_id, reason, rows.RESULTS[int(board[i])])
        else:
            _flag(output, batch, i, ids[i], int(flags[i]))
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


def _reject(
    output: RangeOutput, batch: Batch, i: int, game_id: str, reason: str, board: str
) -> None:
    from gristmill.chess.kernels import scan

    result = _result(batch, i, int(batch.games[i, scan.RESULT]))
    error, plies = "", int(batch.games[i, scan.PLIES])
    if reason == "result_mismatch":
        error = f"the board says {board}, the header {result}"
    elif reason == "fen_start":
        error, plies = f"FEN {_text(batch, i, scan.FEN)}", 0
    output.reject(game_id, reason, plies, result, error, _offset(batch, i))


def _flag(output: RangeOutput, batch: Batch, i: int, game_id: str, flags: int) -> None:
    from gristmill.chess.kernels import scan

    result = _result(batch, i, int(batch.games[i, scan.RESULT]))
    detail = f"movetext {rows.RESULTS[batch.games[i, scan.TERMINATOR]]}"
    output.flag(game_id, flags, result, detail, _offset(batch, i))


def _records(
    batch: Batch, file: int, flags: NDArray[np.int64], valid: NDArray[np.bool_]
) -> NDArray[np.void]:
    """The game records of the valid games, without rows and move keys."""
    from gristmill.chess.kernels import scan

    games = batch.games[valid]
    records = np.zeros(len(games), GAME)
    records["pgn"] = games[:, scan.START] + batch.base
    records["size"] = games[:, scan.END] - games[:, scan.START]
    records["file"] = file
    records["plies"] = games[:, scan.PLIES]
    records["flags"] = flags[valid]
    return records
