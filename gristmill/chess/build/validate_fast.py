"""A batch of games that the compiled scanner read, added to the output of their byte range.

The same decisions as `judge`, made for a whole batch at once; what is left per
game in Python is two hashes and the joining of a row.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.build.range_output import RangeOutput
from gristmill.chess.build.verdict import filtered, has_filters
from gristmill.chess.config import ValidateConfig
from gristmill.chess.format import rows
from gristmill.chess.format.sidecar import GAME
from gristmill.chess.raw import python_chess
from gristmill.chess.raw.pgn import Batch

# Result codes of the scanner: places in rows.RESULTS, and one for any other text.
_DRAW, _UNKNOWN, _OTHER = 3, 4, 5
_WINNERS = "?WBD??"
_ECO_TAG, _OPENING_TAG, _RESULT_TAG = 14, 15, 6


def _verdicts(batch: Batch) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Result codes that the board gives without and with claims; 0 while a game is open."""
    from gristmill.chess.kernels import ending, scan

    said = batch.games[:, scan.VERDICT]
    plain = np.array([0, 1, 2, _DRAW, 0, 0])[said]
    claimed = np.array([0, 1, 2, _DRAW, _DRAW, 0])[said]
    for i in np.flatnonzero(said == ending.UNSURE).tolist():
        game = batch.games[i]
        moves = batch.uci[game[scan.UCI0] : game[scan.UCI1]].decode().split(" ")
        one, two = python_chess.claimed_result(moves)
        plain[i] = rows.RESULTS.index(one) % _UNKNOWN
        claimed[i] = rows.RESULTS.index(two) % _UNKNOWN
    return plain, claimed


def _tags(batch: Batch, i: int) -> dict[str, str]:
    """All tags of game i, decoded, roster first, with Result filled in as the scanner does."""
    from gristmill.chess.kernels import scan

    game, buf = batch.games[i], batch.buf
    tags: dict[str, str] = {}
    for n0, n1, v0, v1 in batch.tags[game[scan.TAG0] : game[scan.TAG1]].tolist():
        tags[buf[n0:n1].decode()] = buf[v0:v1].decode("utf-8", "replace")
    if game[scan.TERMINATOR] and tags.get("Result", "*") == "*":
        tags["Result"] = rows.RESULTS[game[scan.TERMINATOR]]
    return rows.ordered_headers(tags)


def _text(batch: Batch, i: int, tag: int) -> str:
    """The value of a known tag of game i, decoded; empty where it is missing."""
    start, end = batch.known[i, tag].tolist()
    return batch.buf[start:end].decode("utf-8", "replace") if start >= 0 else ""


def _result(batch: Batch, i: int, code: int) -> str:
    if code == _OTHER:
        return _text(batch, i, _RESULT_TAG)
    return rows.RESULTS[code] or "*"


def _identify(batch: Batch, source: str, reference: bool) -> Callable[[int, bool, int, int], str]:
    """A function from (game, wide, start of its identity text, end of its moves) to its id."""
    from gristmill.chess.kernels import scan

    sha256, uci = hashlib.sha256, batch.uci

    def moves(i: int) -> list[str]:
        return uci[batch.games[i, scan.UCI0] : batch.games[i, scan.UCI1]].decode().split(" ")

    def content(i: int, wide: bool, start: int, end: int) -> str:
        if wide:
            return rows.content_id(_tags(batch, i), moves(i))
        return sha256(uci[start:end]).hexdigest()[:40]

    def by_path(i: int, wide: bool, start: int, end: int) -> str:
        return rows.reference_id(source, _tags(batch, i), moves(i))

    return by_path if reference else content


def _reasons(batch: Batch, config: ValidateConfig, board: NDArray[np.int64]) -> list[str]:
    """Why each game is invalid; empty for the valid ones."""
    from gristmill.chess.kernels import scan

    result, plies = batch.games[:, scan.RESULT], batch.games[:, scan.PLIES]
    open_result = (result == 0) | (result == _UNKNOWN)
    mismatch = (board > 0) & ~open_result & (board != result)
    fault = np.where(plies == 0, 1, np.where(mismatch, 2, np.where(plies < config.min_plies, 3, 0)))
    names = ("", "empty_game", "result_mismatch", "too_short")
    reasons = [names[n] for n in fault.tolist()]
    if has_filters(config):
        for i, reason in enumerate(reasons):
            reasons[i] = reason or filtered(_tags(batch, i), config)
    return reasons


def _flags(
    batch: Batch, plain: NDArray[np.int64], claimed: NDArray[np.int64], reference: bool
) -> NDArray[np.int64]:
    from gristmill.chess.kernels import scan

    result, told = batch.games[:, scan.RESULT], batch.games[:, scan.TERMINATOR]
    decisive = (result == 1) | (result == 2)
    claimable = (claimed == _DRAW) & (plain == 0) & decisive
    conflict = (told > 0) & (told != result) & ~(reference & (told == _UNKNOWN))
    flags: NDArray[np.int64] = (
        claimable * rows.CLAIMABLE_DRAW
        + conflict * rows.RESULT_CONFLICT
        + (result == _OTHER) * rows.ODD_RESULT
    )
    return flags


def _openings(output: RangeOutput, batch: Batch, kept: NDArray[np.bool_]) -> None:
    """Count the kept games by ECO code and winner."""
    from gristmill.chess.kernels import scan

    sides = np.array([3, 0, 2, 1, 3, 3])[batch.games[:, scan.RESULT]]
    spans = batch.known[:, _ECO_TAG]
    text = np.frombuffer(batch.buf, np.uint8)
    start = np.where(spans[:, 1] - spans[:, 0] == 3, spans[:, 0], -1)
    at = np.maximum(start, 0)[:, None] + np.arange(3)
    letters = text[np.minimum(at, max(len(text) - 1, 0))].astype(np.int64)
    digits = letters[:, 1:] - 48
    plain = (start >= 0) & ((digits >= 0) & (digits <= 9)).all(axis=1)
    plain &= (letters[:, 0] >= 65) & (letters[:, 0] <= 69)
    codes = np.where(plain, (letters[:, 0] - 65) * 100 + digits @ np.array([10, 1]), 500)
    for code in np.unique(codes[kept]).tolist():
        mine = kept & (codes == code)
        name = "?" if code == 500 else f"{'ABCDE'[code // 100]}{code % 100:02d}"
        title = "" if code == 500 else _text(batch, int(np.flatnonzero(mine)[0]), _OPENING_TAG)
        output.opening(name, title, np.bincount(sides[mine], minlength=4).tolist())


def take_batch(output: RangeOutput, batch: Batch) -> None:
    """Take a batch of scanned games."""
    from gristmill.chess.kernels import scan

    task, reference = output.task, output.reference
    games, text, uci = batch.games, batch.text, batch.uci
    plain, claimed = _verdicts(batch)
    board = claimed if reference else plain
    reasons = _reasons(batch, task.config, board)
    flags = _flags(batch, plain, claimed, reference)
    identify = _identify(batch, task.source, reference)
    output.counts["total"] += len(games)
    source = b'", "source_file": ' + json.dumps(task.source).encode() + b', "headers": '
    sha256, game_id = hashlib.sha256, ""
    valid: list[bytes] = []
    digests: list[bytes] = []
    columns = [
        games[:, c].tolist()
        for c in (
            scan.WIDE, scan.RESULT, scan.PLIES, scan.HEAD0, scan.HEAD1,
            scan.LIST1, scan.ID0, scan.UCI0, scan.UCI1,
        )
    ]  # fmt: skip
    middles = [
        f', "result": "{rows.RESULTS[code % _OTHER] or "*"}", '
        f'"winner_side": "{_WINNERS[code]}", "plies": '.encode()
        for code in range(6)
    ]
    for i, (reason, flag, wide, code, plies, h0, h1, l1, id0, u0, u1) in enumerate(
        zip(reasons, flags.tolist(), *columns, strict=True)
    ):
        if reason == "empty_game" or (reference and reason == "result_mismatch"):
            game_id = ""
        else:
            game_id = identify(i, wide, id0, u1)
        if reason:
            outcome = _result(batch, i, code)
            said = rows.RESULTS[int(board[i])]
            why = f"the board says {said}, the header {outcome}"
            at = batch.base + int(games[i, scan.START])
            why = why if reason == "result_mismatch" else ""
            output.reject(game_id, reason, plies, outcome, why, at)
            continue
        if flag:
            told = rows.RESULTS[games[i, scan.TERMINATOR]]
            at = batch.base + int(games[i, scan.START])
            output.flag(game_id, flag, _result(batch, i, code), f"movetext {told}", at)
        middle = middles[code]
        if code == _OTHER:
            odd = json.dumps(_result(batch, i, code))
            middle = f', "result": {odd}, "winner_side": "?", "plies": '.encode()
        headers = json.dumps(_tags(batch, i)).encode() if wide else text[h0:h1]
        listed = text[h1:l1]
        valid.append(
            b"".join(
                (
                    b'{"game_id": "', game_id.encode(), source, headers, middle,
                    b"%d" % plies, b', "moves": ', listed, b', "moves_uci": ', listed, b"}\n",
                )
            )
        )  # fmt: skip
        digests.append(sha256(uci[u0:u1]).digest()[:8])
    kept = np.array([not reason for reason in reasons], dtype=np.bool_)
    records = np.zeros(len(valid), GAME)
    records["pgn"] = games[kept, scan.START] + batch.base
    records["size"] = games[kept, scan.END] - games[kept, scan.START]
    records["file"] = task.file
    records["plies"] = games[kept, scan.PLIES]
    records["flags"] = flags[kept]
    records["move_key"] = np.frombuffer(b"".join(digests), ">u8")
    output.keep(valid, records)
    output.phases.append(batch.phases[np.repeat(kept, games[:, scan.PLIES])].tobytes())
    _openings(output, batch, kept)
