"""One share of a PGN file made into validated rows, rejects, flags and sidecar records.

The worker half of validation: what a share yields depends on its bytes and the
config alone. Putting shares together is `validate`'s.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gristmill.chess import oracle, rows
from gristmill.chess.config import ValidateConfig
from gristmill.chess.judge import filtered, has_filters, judge
from gristmill.chess.pgn import Batch, Odd, Share, read_share
from gristmill.chess.phases import phase_codes
from gristmill.chess.sections import Made
from gristmill.chess.sidecar import GAME

PLIES_BIN = 10
_ECO = re.compile(rb"[A-E][0-9][0-9]")
_EVENT, _SITE, _DATE, _ROUND, _WHITE, _BLACK, _RESULT = range(7)
_UTC_DATE, _UTC_TIME, _URL = 7, 8, 9
_ECO_TAG, _OPENING = 14, 15


@dataclass(frozen=True)
class ShareTask:
    """A share, the number of its file among the inputs, and the name for `source_file`."""

    share: Share
    file: int
    source: str
    config: ValidateConfig


@dataclass
class Harvest:
    """What has come of a share so far."""

    task: ShareTask
    rows: list[bytes] = field(default_factory=list)
    records: list[tuple[int, ...]] = field(default_factory=list)
    phases: list[bytes] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    openings: dict[str, list[Any]] = field(default_factory=dict)
    row_bytes: int = 0

    def __post_init__(self) -> None:
        self._invalid = io.StringIO()
        self.invalid = csv.writer(self._invalid)
        self._flagged = io.StringIO()
        self.flagged = csv.writer(self._flagged)
        self.reference = self.task.config.compat == "reference"

    def reject(self, game_id: str, reason: str, ply: int, result: str, why: str, at: int) -> None:
        """Note an invalid game (spec 1.7; the last two columns are ours)."""
        row: list[Any] = [game_id, self.task.source, reason, ply, result]
        self.invalid.writerow(row if self.reference else [*row, why, at])
        self.counts[f"reason.{reason}"] += 1

    def flag(self, game_id: str, flags: int, result: str, detail: str, at: int) -> None:
        """Note a valid game that is worth a look."""
        for bit, name in rows.FLAGS.items():
            if flags & bit:
                self.counts[f"flag.{name}"] += 1
                self.flagged.writerow([game_id, self.task.source, name, result, detail, at])

    def keep(self, row: bytes, record: tuple[int, ...], winner: str) -> None:
        """Take a valid row; `record` is GAME without the row's offset."""
        self.rows.append(row)
        self.records.append((self.row_bytes, *record))
        self.row_bytes += len(row)
        self.counts[f"winner.{winner}"] += 1

    def opening(self, eco: bytes, name: bytes, winner: str) -> None:
        """Count a game for its opening; codes that are none count as `?`."""
        code = eco.decode() if _ECO.fullmatch(eco) else "?"
        entry = self.openings.get(code)
        if entry is None:
            entry = self.openings[code] = [0, 0, 0, 0, ""]
        entry[0] += 1
        if winner != "?":
            entry["WDB".index(winner) + 1] += 1
        if not entry[4] and name and code != "?":
            entry[4] = name.decode("utf-8", "replace")[:80]

    def made(self, end: int) -> Made:
        """The share's sections and summary."""
        records = np.array(self.records, dtype=GAME)
        phases = b"".join(self.phases)
        for code, n in enumerate(np.bincount(np.frombuffer(phases, np.uint8) & 3, minlength=4)):
            self.counts[f"phase.{rows.PHASES[code]}"] += int(n)
        bins, sizes = np.unique(records["plies"] // PLIES_BIN, return_counts=True)
        for at, n in zip(bins.tolist(), sizes.tolist(), strict=True):
            self.counts[f"plies.{at * PLIES_BIN}"] += n
        self.counts["plies"] += len(phases)
        self.counts["valid"] += len(self.rows)
        sections = {
            "valid": b"".join(self.rows),
            "invalid": self._invalid.getvalue().encode(),
            "flagged": self._flagged.getvalue().encode(),
            "games": records.tobytes(),
            "phases": phases,
        }
        return sections, {"end": end, "counts": dict(self.counts), "openings": self.openings}


def _odd(harvest: Harvest, odd: Odd) -> None:
    """Take a game that the oracle read."""
    game, task = odd.game, harvest.task
    harvest.counts["total"] += 1
    harvest.counts["oracle"] += 1
    headers = rows.ordered_headers(game.headers)
    reason, ply, flags, why = judge(game, task.config)
    digest = rows.moves_digest(game.moves)
    if harvest.reference:
        game_id = rows.reference_id(task.source, headers, game.moves)
    else:
        game_id = rows.content_id(headers, digest)
    if reason:
        known = reason == "too_short" or (
            not harvest.reference and reason not in ("pgn_errors", "empty_game")
        )
        harvest.reject(game_id if known else "", reason, ply, game.result, why, odd.offset)
        return
    winner = rows.winner_side(game.result)
    told = "/".join(game.terminators)
    harvest.flag(game_id, flags, game.result, f"movetext {told}", odd.offset)
    row = rows.valid_row(game_id, task.source, headers, game.result, game.moves)
    key = int.from_bytes(digest[:8], "big")
    harvest.keep(row, (odd.offset, odd.size, task.file, len(game.moves), flags, key), winner)
    harvest.phases.append(phase_codes([game.moves])[0])
    harvest.opening(headers.get("ECO", "").encode(), headers.get("Opening", "").encode(), winner)


def _verdicts(batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    """Result codes that the board gives without and with claims; 0 while a game is open."""
    from gristmill.chess.kernels import ending, scan
    from gristmill.chess.kernels.headers import DRAW

    said = batch.games[:, scan.VERDICT]
    plain = np.array([0, 1, 2, DRAW, 0, 0])[said]
    claimed = np.array([0, 1, 2, DRAW, DRAW, 0])[said]
    for i in np.flatnonzero(said == ending.UNSURE).tolist():
        game = batch.games[i]
        moves = batch.uci[game[scan.UCI0] : game[scan.UCI1]].decode().split(" ")
        one, two = oracle.claimed_result(moves)
        plain[i] = rows.RESULTS.index(one) % 4
        claimed[i] = rows.RESULTS.index(two) % 4
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


def _take(harvest: Harvest, batch: Batch) -> None:
    """Take a batch of scanned games."""
    from gristmill.chess.kernels import scan
    from gristmill.chess.kernels.headers import DRAW, NO_RESULT, OTHER, UNKNOWN

    config, task, reference = harvest.task.config, harvest.task, harvest.reference
    games, text, uci, buf = batch.games, batch.text, batch.uci, batch.buf
    harvest.counts["total"] += len(games)
    plain, claimed = _verdicts(batch)
    result, plies = games[:, scan.RESULT], games[:, scan.PLIES]
    told = games[:, scan.TERMINATOR]
    board = claimed if reference else plain
    open_result = (result == NO_RESULT) | (result == UNKNOWN)
    mismatch = (board > 0) & ~open_result & (board != result)
    flags = np.where((claimed == DRAW) & (plain == 0) & (result < DRAW) & (result > 0), 1, 0)
    flags |= np.where((told > 0) & (told <= DRAW) & (told != result), rows.RESULT_CONFLICT, 0)
    flags |= np.where(result == OTHER, rows.ODD_RESULT, 0)
    if reference:
        flags[:] = 0
    bad = np.where(plies == 0, 1, np.where(mismatch, 2, np.where(plies < config.min_plies, 3, 0)))
    filters = has_filters(config)
    source = json.dumps(task.source).encode()
    source_raw = task.source.encode()
    winners = ("?", "W", "B", "D", "?", "?")
    sha256, sha1, base = hashlib.sha256, hashlib.sha1, batch.base
    kept = np.zeros(len(games), dtype=bool)
    columns = zip(
        games.tolist(), batch.known.tolist(), bad.tolist(), flags.tolist(), strict=True
    )
    for i, (game, known, fault, flag) in enumerate(columns):
        start, end, n, _, _, wide, code, term, h0, h1, l0, l1, u0, u1, _, _ = game
        at = base + start
        moves = uci[u0:u1]
        tags: Mapping[str, str] | None = _tags(batch, i) if wide or filters else None
        if code == OTHER:
            r0, r1 = known[_RESULT]
            outcome = buf[r0:r1].decode("utf-8", "replace")
        else:
            outcome = rows.RESULTS[code] or "*"
        if fault == 1:
            harvest.reject("", "empty_game", 0, outcome, "", at)
            continue
        digest = sha256(moves).digest()
        if reference:
            words = moves.split(b" ", 16)[:16]
            if wide and tags:
                texts = [tags.get(name, "").encode() for name in rows.ROSTER[:6]]
            else:
                texts = [buf[a:b] if a >= 0 else b"" for a, b in known[:6]]
            game_id = sha1(
                b"|".join([source_raw, *texts, b" ".join(words)]), usedforsecurity=False
            ).hexdigest()
        elif wide and tags:
            game_id = rows.content_id(tags, digest)
        else:
            (w0, w1), (b0, b1) = known[_WHITE], known[_BLACK]
            (a0, a1), (d0, d1) = known[_URL], known[_UTC_DATE]
            if a1 > a0:
                when = buf[a0:a1]
            elif d1 > d0:
                a0, a1 = known[_UTC_TIME]
                when = buf[d0:d1] + b" " + buf[a0 : max(a0, a1)] if a0 >= 0 else buf[d0:d1] + b" "
            else:
                (a0, a1), (d0, d1) = known[_DATE], known[_ROUND]
                date = buf[a0:a1] if a0 >= 0 else b""
                when = date + b" " + (buf[d0:d1] if d0 >= 0 else b"")
            white = buf[w0:w1] if w0 >= 0 else b""
            black = buf[b0:b1] if b0 >= 0 else b""
            head = b"\n\n%b\n%b\n%b\n" % (white, black, when)
            game_id = sha256(head + digest).hexdigest()[:40]
        if fault == 2:
            said = rows.RESULTS[int(board[i])]
            why = f"the board says {said}, the header {outcome}"
            harvest.reject("" if reference else game_id, "result_mismatch", n, outcome, why, at)
            continue
        reason = "too_short" if fault else (filtered(tags, config) if filters and tags else "")
        if reason:
            harvest.reject(game_id, reason, n, outcome, "", at)
            continue
        if flag:
            harvest.flag(game_id, flag, outcome, f"movetext {rows.RESULTS[term]}", at)
        winner = winners[code]
        headers = json.dumps(tags).encode() if wide else text[h0:h1]
        listed = text[l0:l1]
        harvest.keep(
            b'{"game_id": "%b", "source_file": %b, "headers": %b, "result": %b, '
            b'"winner_side": "%b", "plies": %d, "moves": %b, "moves_uci": %b}\n'
            % (
                game_id.encode(),
                source,
                headers,
                json.dumps(outcome).encode() if code == OTHER else b'"%b"' % outcome.encode(),
                winner.encode(),
                n,
                listed,
                listed,
            ),
            (at, end - start, task.file, n, flag, int.from_bytes(digest[:8], "big")),
            winner,
        )
        kept[i] = True
        (e0, e1), (o0, o1) = known[_ECO_TAG], known[_OPENING]
        harvest.opening(
            buf[e0:e1] if e0 >= 0 else b"", buf[o0:o1] if o0 >= 0 else b"", winner
        )
    harvest.phases.append(batch.phases[np.repeat(kept, plies)].tobytes())


def harvest_share(task: ShareTask) -> Made:
    """Validate one share: sections valid, invalid, flagged, games, phases; summary with `end`."""
    harvest, end = Harvest(task), task.share.start
    for item in read_share(task.share):
        if isinstance(item, Batch):
            _take(harvest, item)
        elif isinstance(item, Odd):
            _odd(harvest, item)
        else:
            end = item
    return harvest.made(end)
