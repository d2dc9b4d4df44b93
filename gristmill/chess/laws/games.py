"""Laws of PGNs and of valid games, notes on them, and what the laws of chess share.

The law of event lines looks at the bytes of the PGN alone, and shares no code with the readers.
Source: docs/formats/chess.md#event-line-law
"""

from __future__ import annotations

import csv
import json
import os
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, TextIO

import numpy as np
from numpy.typing import NDArray

from gristmill.chess.format import folders, rows
from gristmill.chess.format.folders import FOLDER as SIDECAR
from gristmill.chess.format.folders import INVALID, PROFILE, SOURCE, STATS, SUMMARY, VALID
from gristmill.chess.format.rows import LOSSES
from gristmill.chess.raw.drops import folder_of
from gristmill.chess.raw.pgn_text import month_before, month_in
from gristmill.chess.read.row_batches import RowBatch, read_batch, replay_phases, row_ranges
from gristmill.contract import BadInput, Violation
from gristmill.families import Subject
from gristmill.laws import Few
from gristmill.provenance import Record

Law = Callable[..., Iterator[Violation]]
# Errors that a damaged file can cause.
_MALFORMED = (
    OSError, ValueError, TypeError, AttributeError, IndexError, RecursionError, BadInput
)  # fmt: skip


def law(check: Law) -> Law:
    """Decorate a law: its violations name paths relative to the artifact, and it raises nothing."""

    @wraps(check)
    def without_errors(of: Subject | Path) -> Iterator[Violation]:
        path = of.folder if isinstance(of, Subject) else of

        def broken(law: str, where: str, found: str) -> Violation:
            return Violation(law, where.replace(f"{path}/", ""), found.replace(f"{path}/", ""))

        try:
            for violation in check(of):
                yield broken(violation.law, violation.where, violation.found)
        except KeyError as error:
            yield broken("artifact_complete", path.name, f"a file has no {error}")
        except _MALFORMED as error:
            yield broken("artifact_complete", path.name, f"{type(error).__name__}: {error}")

    return without_errors


def read_json(path: Path) -> tuple[dict[str, Any], list[Violation]]:
    """Read a JSON object that has at least one key."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        return {}, [Violation("readable_json", str(path), repr(error))]
    if not isinstance(value, dict) or not value:
        return {}, [Violation("readable_json", str(path), "not a JSON object, or an empty one")]
    return value, []


def difference(name: str, where: Path | str, found: Any, recorded: Any) -> list[Violation]:
    """Check that a value is the recorded one."""
    if found == recorded:
        return []
    return [Violation(name, str(where), f"found {found!r}, recorded {recorded!r}")]


@contextmanager
def open_csv(path: Path) -> Iterator[TextIO]:
    """Open a CSV file for `csv.reader`, with fields of any length; ValueError for a damaged one."""
    # An error text may be as long as its PGN. The limit holds for the process.
    limit = csv.field_size_limit(max(path.stat().st_size + 1, 1 << 17))
    try:
        with path.open(newline="", encoding="utf-8") as file:
            yield file
    except csv.Error as error:
        raise ValueError(str(error)) from error
    finally:
        csv.field_size_limit(limit)


SIDECAR_LAWS = "phases_rederived, rows_as_sidecar"
"""The laws that need the sidecar."""
_RANGE_BYTES = 4 << 20


def check_rows(
    jsonl: Path, root: Path, name: str, *, is_ours: bool, has_sidecar: bool = True
) -> Iterator[Violation | RowBatch]:
    """Check rows against their sidecar; yields batches, too. is_ours: no game is replayed."""
    from gristmill.chess.kernels import rowshape

    try:
        beside = folders.Sidecar.open(root, name)
        if beside is None and has_sidecar:
            yield Violation("has_sidecar", str(jsonl), "no sidecar")
        rows = 0
        for byte_range in row_ranges(jsonl, _RANGE_BYTES, beside):
            batch = read_batch(byte_range, by_keys=True)
            rows += len(batch.columns)
            # Without a sidecar the codes are those of a replay already.
            if beside and not is_ours:
                codes = replay_phases(batch.moves, batch.columns[:, rowshape.N])
                if len(wrong := np.flatnonzero(codes != batch.codes)):
                    place = f"{jsonl}: ply {wrong[0]} of the rows from byte {byte_range.start} on"
                    found = f"{len(wrong)} codes differ from the replay"
                    yield Violation("phases_rederived", place, found)
            if beside and beside.has_moves:
                yield from _check_moves(batch, beside)
            yield batch
        if beside and beside.has_moves:
            sizes = [(folders.moves_file(root, name), beside.plies * folders.MOVE.itemsize)]
            if name != "games":
                sizes.append((folders.spans_file(root, name), rows * folders.SPAN.itemsize))
            for file, size in sizes:
                yield from difference("moves_packed", file, file.stat().st_size, size)
        if beside:
            yield from difference("rows_counted", jsonl, rows, beside.games)
    except (BadInput, OSError) as error:
        yield Violation("rows_as_sidecar", str(jsonl), str(error))


def _check_moves(batch: RowBatch, beside: folders.Sidecar) -> Iterator[Violation]:
    """The packed moves are those of the rows, and in a dataset the spans lead to them."""
    from gristmill.chess.kernels import rowshape

    first, ply, plies = batch.byte_range.first, batch.byte_range.ply, batch.columns[:, rowshape.N]
    agrees = np.array_equal(beside.moves(ply, len(batch.moves)), batch.moves)
    if beside.rows != "games":
        spans = folders.spans_of(plies, batch.columns[:, rowshape.WINNER], ply)
        agrees = agrees and np.array_equal(beside.spans(first, len(plies)), spans)
    if not agrees:
        place = f"{beside.rows}: rows from byte {batch.byte_range.start} on"
        yield Violation("moves_packed", place, "packed moves or spans are not those of the rows")


@law
def archive_laws(subject: Subject) -> Iterator[Violation]:
    """Find what breaks the laws of the PGN of a month, or those of a collection."""
    path = subject.folder
    has_source = not subject.missing({SOURCE: "pgn_as_recorded"})
    source, faults = read_json(path / SOURCE) if has_source else ({}, [])
    yield from faults
    pgns = sorted(path.glob("*.pgn"))
    recorded = [each["pgn"] for each in source.get("files", [source])] if source else []
    if len(pgns) != (len(recorded) or 1):
        yield Violation("one_pgn", str(path), f"{len(pgns)} PGN files")
        return
    for pgn, facts in zip(pgns, sorted(recorded, key=lambda each: str(each["name"])), strict=False):
        found = {"name": pgn.name, "bytes": pgn.stat().st_size, "sha256": subject.sha256(pgn)}
        yield from difference("pgn_as_recorded", pgn, found, facts)


@law
def validated_laws(subject: Subject) -> Iterator[Violation]:
    """Find where rows, sidecar, phases, winners and counts of validated games do not agree."""
    from gristmill.chess.kernels import rowshape

    path = subject.folder
    without = subject.missing({PROFILE: "plies_profiled", SIDECAR: SIDECAR_LAWS})
    summary, summary_faults = read_json(path / SUMMARY)
    profile, profile_faults = ({}, []) if PROFILE in without else read_json(path / PROFILE)
    yield from summary_faults + profile_faults
    games = plies = 0
    ours, has_sidecar = subject.has_record, SIDECAR not in without
    for item in check_rows(path / VALID, path, "games", is_ours=ours, has_sidecar=has_sidecar):
        if isinstance(item, Violation):
            yield item
            continue
        games += len(item.columns)
        plies += int(item.columns[:, rowshape.N].sum())
        yield from _check_fields(item, path / VALID)
        if summary.get("compat") == "current" and (item.codes == 0).any():
            yield Violation("moves_legal", str(path / VALID), "a move is not legal from the start")
    if profile:
        yield from difference("plies_profiled", path / PROFILE, plies, profile.get("plies"))
    if summary:
        yield from _check_summary(path, summary, games)


def _check_fields(batch: RowBatch, where: Path) -> Iterator[Violation]:
    """The fields of a row agree with each other."""
    from gristmill.chess.kernels import rowshape

    columns, start = batch.columns, batch.byte_range.start
    wrong = np.flatnonzero(columns[:, rowshape.N] != columns[:, rowshape.PLIES])
    if len(wrong):
        place = f"{where}: row {int(wrong[0])} from byte {start} on"
        yield Violation("plies_counted", place, "plies is not the number of moves")
    starts = columns[:, rowshape.RES0]
    lengths = columns[:, rowshape.RES1] - starts
    sides = np.full(len(columns), ord(rows.winner_side("")))
    for result, side in rows.WINNERS.items():
        is_result = lengths == len(result)
        for offset, byte in enumerate(result.encode()):
            is_result &= batch.buf[starts + offset] == byte
        sides[is_result] = ord(side)
    for number in np.flatnonzero(sides != columns[:, rowshape.WINNER]).tolist():
        text = batch.buf[starts[number] : starts[number] + lengths[number]].tobytes()
        place = f"{where}: row {number} from byte {start} on"
        found = f"result {text!r}, winner_side {chr(columns[number, rowshape.WINNER])}"
        yield Violation("winner_of_result", place, found)


def _check_summary(path: Path, summary: dict[str, Any], games: int) -> Iterator[Violation]:
    """The counts of summary.json add up, and are those of the rows and of the rejected games."""
    yield from difference("valid_counted", path / SUMMARY, games, summary["valid_games"])
    try:
        with open_csv(path / INVALID) as file:
            rejected = sum(1 for _ in csv.reader(file)) - 1
    except (OSError, ValueError) as error:
        yield Violation("readable_csv", str(path / INVALID), repr(error))
    else:
        recorded = summary["invalid_games"]
        yield from difference("invalid_counted", path / INVALID, rejected, recorded)
        reasons = sum(summary["invalid_reason_counts"].values())
        yield from difference("reasons_counted", path / SUMMARY, reasons, rejected)
    total = summary["valid_games"] + summary["invalid_games"]
    yield from difference("total_counted", path / SUMMARY, total, summary["total_games"])


_EVENT, _MARK = b"[Event ", b"\xef\xbb\xbf"
_WINDOW = 4 << 20
_RECORDS = 1 << 16
# Of the tags: behind a blank line none may follow it.
_EVENT_TAG = re.compile(rb"(?:\A|[\r\n])(?:\xef\xbb\xbf)?\[Event ")
_LINE_END = re.compile(rb"\r\n|\n|\r")
# Outside a comment: what begins one, and lines and rests of lines that are no movetext.
_MARKUP = re.compile(rb"\{|;[^\r\n]*|(?<=[\r\n])%[^\r\n]*")


@law
def event_line_laws(subject: Subject) -> Iterator[Violation]:
    """Check that every line of the PGN that begins with `[Event ` belongs to a game.

    The line starts a game that was read or rejected, is one of its tags, lies in a closed
    comment of it, or follows no blank line in its movetext. Memory does not grow with the PGN.
    PGNs of other sizes than `sources.json` records are not compared.
    """
    path, (pgn_folder,) = subject.folder, subject.inputs
    recorded, faults = read_json(folders.sources_file(path))
    yield from faults
    pgns = sorted(pgn_folder.glob("*.pgn"))
    sources = recorded.get("sources", ())
    if [source["bytes"] for source in sources] != [pgn.stat().st_size for pgn in pgns]:
        return
    for number, (pgn, source) in enumerate(zip(pgns, sources, strict=True)):
        few = Few(pgn.name, "{more} more lines belong to no game")
        with pgn.open("rb", buffering=0) as file:
            stretches = _stretches(path, number, source)
            for offset, found in _lines_without_game(file.fileno(), stretches):
                yield from few.at("event_line_accounted", f"{pgn.name}: byte {offset}", found)
        yield from few.rest()


@dataclass(frozen=True)
class _Games:
    """Games that begin in a stretch of the PGN; a rejected one ends where the next starts."""

    start: int
    stop: int
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


def _stretches(path: Path, number: int, source: Mapping[str, Any]) -> Iterator[_Games]:
    """The games of a PGN, valid and rejected, some records at a time."""
    file, item = folders.games_file(path, "games"), folders.GAME.itemsize

    def of(record: int) -> int:
        (found,) = np.fromfile(file, folders.GAME, 1, offset=record * item)
        return int(found["file"])

    records = range(file.stat().st_size // item)
    first, behind = (bisect_left(records, number + more, key=of) for more in (0, 1))
    with open_csv(path / INVALID) as table:
        own = (row for row in csv.DictReader(table) if row["source_file"] == source["name"])
        rejected = np.sort(np.fromiter((int(row["pgn_offset"]) for row in own), np.int64))
    start, size = 0, source["bytes"]
    while start < size:
        # One record more than wanted: where it begins, the next stretch does.
        most = min(_RECORDS + 1, behind - first)
        found = np.fromfile(file, folders.GAME, most, offset=first * item)
        stop = int(found["pgn"][-1]) if len(found) > _RECORDS else size
        found = found[:_RECORDS]
        valid = found["pgn"].astype(np.int64)
        others = rejected[slice(*np.searchsorted(rejected, [start, stop]))]
        starts = np.concatenate([valid, others])
        ends = np.concatenate([valid + found["size"], np.full(len(others), stop)])
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
        yield _Games(start, stop, starts, np.minimum(ends, np.append(starts[1:], stop)))
        start, first = stop, first + _RECORDS


def _lines_without_game(file: int, stretches: Iterator[_Games]) -> Iterator[tuple[int, str]]:
    """Byte offset of each line that belongs to no game, and why."""
    for games in stretches:
        for game, pairs in groupby(_inner_lines(file, games), itemgetter(0)):
            lines = [line for _, line in pairs]
            if game < 0:
                yield from ((line, "no game begins here or before it") for line in lines)
            else:
                start, end = int(games.starts[game]), int(games.ends[game])
                yield from _outside(os.pread(file, end - start, start), start, lines)


def _inner_lines(file: int, games: _Games) -> Iterator[tuple[int, int]]:
    """(number of the last game before it, -1 for none; byte offset) of lines that start no game."""
    starts = np.append(games.starts, -1)
    for lines in _event_lines(file, games.start, games.stop):
        before = np.searchsorted(games.starts, lines, "right") - 1
        inner = starts[before] != lines
        yield from zip(before[inner].tolist(), lines[inner].tolist(), strict=True)


def _event_lines(file: int, start: int, stop: int) -> Iterator[NDArray[np.int64]]:
    """Byte offsets of the lines in [start, stop) that begin with `[Event `, window by window."""
    margin = len(_MARK) + 1
    for at in range(start, stop, _WINDOW):
        base = max(at - margin, 0)
        limit = min(at + _WINDOW, stop)
        data = os.pread(file, limit + len(_MARK + _EVENT) - base, base)
        lines = []
        found = data.find(_EVENT)
        while found >= 0:
            marked = data[max(found - len(_MARK), 0) : found] == _MARK
            line = found - len(_MARK) * marked
            begins = base + line == 0 or (line > 0 and data[line - 1] in b"\r\n")
            if begins and at <= base + line < limit:
                lines.append(base + line)
            found = data.find(_EVENT, found + 1)
        yield np.array(lines, np.int64)


def _outside(text: bytes, start: int, lines: list[int]) -> Iterator[tuple[int, str]]:
    """Those of the lines that do not belong to the game `text`, which begins at `start`."""
    movetext = _end_of_tags(text)
    comments = _comments(text, movetext)
    opened, closed = next(comments, (len(text), len(text)))
    for line in lines:
        at = line - start
        while closed is not None and closed <= at < len(text):
            opened, closed = next(comments, (len(text), len(text)))
        if at >= len(text):
            yield line, f"it lies behind the game at byte {start}, and starts none"
        elif _follows_blank(text, at) and (at >= movetext or _EVENT_TAG.search(text, 0, at)):
            yield line, f"it follows a blank line of the game at byte {start}, and starts none"
        elif closed is None and opened < at:
            yield line, f"it lies in an unclosed comment of the game at byte {start}"


def _follows_blank(text: bytes, at: int) -> bool:
    """Whether the line before the one at `at` holds at most spaces and tabs."""
    at -= 2 if text[max(at - 2, 0) : at] == b"\r\n" else 1
    while at > 0 and text[at - 1] in b" \t":
        at -= 1
    return at > 0 and text[at - 1] in b"\r\n"


def _end_of_tags(text: bytes) -> int:
    """The position of the first line of movetext: blank lines and comments may lie before it."""
    at = 0
    while at < len(text):
        found = _LINE_END.search(text, at)
        end = found.end() if found else len(text)
        line = text[at:end].decode("utf-8", "replace").removeprefix("\ufeff")
        if not (line.isspace() or line.startswith(("[", "%", ";"))):
            return at
        at = end
    return at


def _comments(text: bytes, at: int) -> Iterator[tuple[int, int | None]]:
    """(start, end) of the comments in braces from `at` on; None for an end that is missing."""
    while found := _MARKUP.search(text, at):
        at = found.end()
        if found[0] == b"{":
            closed = text.find(b"}", at)
            if closed < 0:
                yield found.start(), None
                return
            yield found.start(), closed + 1
            at = closed + 1


_SETTING_OF: Final = {
    "too_short": "min_plies",
    "below_elo": "elo_floor",
    "other_time_control": "time_controls",
    "abandoned": "drop_abandoned",
    "bot_player": "drop_bots",
    "other_title": "titles",
    "other_event": "events",
    **{name: name for name in LOSSES.values()},
}
"""The setting by which a game is rejected, by the reason."""
_REPLACED: Final = json.dumps("\N{REPLACEMENT CHARACTER}")[1:-1].encode()
_DRIFT_GAMES: Final = 10_000
"""Valid games that two months have at least: shares of fewer games differ by chance."""
_FAR: Final = 5.0
"""Percent that differ between two months, from which on a note names them."""
_CURE: Final = "; change the setting under [chess.month] in gristmill.toml"


@law
def validated_notes(path: Path) -> Iterator[Violation]:
    """Find what is unusual in a validated folder; the check `noteworthy` warns of it."""
    summary, faults = read_json(path / SUMMARY)
    yield from faults
    if faults:
        return
    where = str(path / SUMMARY)
    if equal := summary.get("equal_games"):
        first = equal["first"]
        rule = f"{equal['games']:,} games are in the PGN once more, such as {first['game_id']} at "
        rule += f"byte {first['pgn_offset']}: drop_duplicates leaves them out of the datasets"
        yield Violation("equal_games", where, rule)
    if outside := summary.get("games_outside_month"):
        first = outside["first"]
        rule = f"{outside['games']:,} games have a date outside of the month, such as "
        rule += f"{first['tag']} {first['value']} at byte {first['pgn_offset']}"
        yield Violation("other_month", where, rule)
    yield from _replaced(path / VALID)


def of_month(record: Record, path: Path) -> Iterator[Violation]:
    """Yield `no_valid_game`, and `drift` where a month differs from the month before."""
    yield from no_valid_game(record)
    yield from _drift(path)


def _drift(path: Path) -> Iterator[Violation]:
    """Find in what a month is far from the month before: results, phases, verdicts, openings."""
    month = month_in(path.name)
    if month is None or path.name != folder_of(month):
        return
    files = [each / PROFILE for each in (path, path.with_name(folder_of(month_before(month))))]
    profiles = [json.loads(file.read_bytes()) for file in files if file.is_file()]
    if len(profiles) < 2 or min(profile["games"] for profile in profiles) < _DRIFT_GAMES:
        return
    now, then = map(_counts, profiles)
    points = {name: _apart(now[name], then[name]) for name in now}
    far = [f"{value:.0f} % of the {name}" for name, value in points.items() if value >= _FAR]
    if far:
        rule = f"{', '.join(far)} would have to be others to be as those of {month_before(month)}"
        yield Violation("drift", str(path / PROFILE), rule)


def _counts(profile: Mapping[str, Any]) -> dict[str, Mapping[str, int]]:
    return {
        "results": profile["winners"],
        "phases": profile["phases"],
        "verdicts": {**profile["reasons"], "valid": profile["games"]},
        "openings": {code: entry[0] for code, entry in profile["openings"].items()},
    }


def _apart(now: Mapping[str, int], then: Mapping[str, int]) -> float:
    """Half the sum of the differences of shares in percent: 100 for nothing in common."""
    whole, before = max(sum(now.values()), 1), max(sum(then.values()), 1)
    return 50 * sum(
        abs(now.get(name, 0) / whole - then.get(name, 0) / before) for name in {*now, *then}
    )


def _replaced(file: Path) -> Iterator[Violation]:
    """Find rows with U+FFFD, which stands for each byte that was not UTF-8."""
    if not file.is_file():
        return
    count = first = at = 0
    with file.open("rb") as rows:
        while data := rows.read(_RANGE_BYTES):
            data += rows.readline()
            if _REPLACED in data:
                for line in data.splitlines(keepends=True):
                    if _REPLACED in line:
                        first = first if count else at
                        count += 1
                    at += len(line)
            else:
                at += len(data)
    if count:
        rule = f"{count:,} games have U+FFFD in a tag, such as the row at byte {first}, where the "
        rule += 'PGN has a byte that is not UTF-8: in a collection set encoding = "latin-1" below '
        yield Violation("not_utf8", str(file), f"{rule}[chess.collection]")


def no_valid_game(record: Record) -> Iterator[Violation]:
    """Yield `no_valid_game` where every game of the PGN is rejected, with reasons and settings."""
    counts, total = record.counts, record.counts.get("total_games", 0)
    if not total or counts.get("valid_games"):
        return
    found, is_by_setting = [], False
    for name, count in counts.items():
        if count and name.startswith("reasons/"):
            reason = name.removeprefix("reasons/")
            setting = _SETTING_OF.get(reason)
            is_by_setting |= setting is not None
            found.append(f"{count:,} {reason}{_asked(record, [setting] if setting else [])}")
    rule = f"none of {total:,} games is valid: {', '.join(found)}"
    rule += _CURE if is_by_setting else ""
    yield Violation("no_valid_game", f"{record.artifact}/{SUMMARY}", rule)


_MOST_SHARED: Final = 0.01
"""The share of deep contexts from which on a note is made of it: real months have 0.003."""


def of_dataset(record: Record, folder: Path) -> Iterator[Violation]:
    """Yield the notes on the counts of a game dataset."""
    yield from no_game(record, folder)
    yield from deep_contexts(record, folder)


def deep_contexts(record: Record, _: Path) -> Iterator[Violation]:
    """Yield `deep_contexts` where many held-out contexts behind the openings stand in train."""
    for name, share in record.counts.items():
        if (
            name.startswith("contexts_in_train/")
            and name.endswith("more")
            and share >= _MOST_SHARED
        ):
            rule = f"{share:.1%} of its contexts of {name.partition(', ')[2]} stand in train, too"
            split = name.partition("/")[2].partition(",")[0]
            yield Violation("deep_contexts", f"{record.artifact}/{split}.jsonl", rule)


def no_game(record: Record, _: Path) -> Iterator[Violation]:
    """Yield `no_game` where no valid game of the month is in a split, with reasons and settings."""
    counts = record.counts
    total, taken = (counts.get(name, 0) for name in ("input_games", "eligible_games"))
    if counts.get("spliceable_games"):
        return
    rule = "there is no valid game"
    if total:
        lack = "result" if record.config.get("games") == "finished" else "winner"
        rule = (
            f"none of {total:,} valid games is in a split: {total - taken:,} have no {lack}"
            f"{_asked(record, ['games'])}, {taken:,} too few moves"
            f"{_asked(record, ['min_context', 'min_target'])}{_CURE}"
        )
    yield Violation("no_game", f"{record.artifact}/{STATS}", rule)


def _asked(record: Record, names: list[str]) -> str:
    """Settings as they were, in brackets."""
    given = [
        f"{name} = {json.dumps(record.config[name])}" for name in names if name in record.config
    ]
    return f" ({', '.join(given)})" if given else ""
