"""PGN files to validated games: rows, rejects with their reasons, flags, sidecar, reports.

What a worker writes depends on the bytes of its range and the config alone; the parts are put
together in file order. Source: docs/formats/chess.md#validation
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gristmill.chess.builders.equal_games import EqualGames, find_equal_games
from gristmill.chess.builders.range_output import RangeOutput, RangeTask, judge
from gristmill.chess.config import ValidateConfig
from gristmill.chess.format import rows, sidecar
from gristmill.chess.format.move_keys import count_duplicates
from gristmill.chess.format.names import FLAGGED, INVALID, PROFILE, SUMMARY, VALID
from gristmill.chess.format.sidecar import GAME, MOVE
from gristmill.chess.raw.batches import Batch
from gristmill.chess.raw.months import month_in
from gristmill.chess.raw.pgn import PlacedGame, follow, plan, read_range
from gristmill.chess.read.phases import pack_move, phase_codes
from gristmill.contract import BadInput, FileNote, Summary
from gristmill.hashing import sha256_file
from gristmill.run.parts import Bytes, Made, PartStore, StreamFiles, run_streams
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
    parts: store of finished parts, from which a killed build goes on; None for no store.
    progress: gets the stages `validate` and `hash`, in bytes of PGN.

    Raises BadInput for no input, for a file that cannot be PGN, for files without one game, and
    where there are not as many source names as files. Raises MissingPythonChess where a game
    needs python-chess.
    """
    paths = [Path(path) for path in pgn_paths]
    names = _source_names(paths, config)
    out.mkdir()
    tally = _write_streams(paths, names, out, config, parts, progress)
    if tally.counts["total"] == tally.counts["no_game"]:
        raise BadInput(paths[0], "holds no game: no tag and no move of it can be read; bring a PGN")
    equal = find_equal_games(out)
    duplicates = count_duplicates([sidecar.games_file(out, "games")])
    _write_json(sidecar.sources_file(out), {"sources": _sources(paths, names, progress)})
    _write_json(out / SUMMARY, report_of(tally, duplicates, equal, names, config))
    _write_json(out / PROFILE, profile_of(tally, duplicates))
    return _summary(tally, duplicates, equal)


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
) -> Tally:
    """Validate all byte ranges and write rows, rejects, flags, game records and phase codes."""
    files = {
        "valid": out / VALID,
        "invalid": out / INVALID,
        "flagged": out / FLAGGED,
        "games": sidecar.games_file(out, "games"),
        "phases": sidecar.phases_file(out, "games"),
    }
    if config.compat == "current":
        files["moves"] = sidecar.moves_file(out, "games")
    more_columns = "" if config.compat == "reference" else ",error,pgn_offset"
    with StreamFiles(files) as written:
        written.write("invalid", f"{_INVALID_HEAD}{more_columns}\r\n".encode())
        written.write("flagged", _FLAGGED_HEAD.encode())
        tasks = _tasks(paths, names, config)
        return _append_all(tasks, config.workers, store, written, out, progress)


def _tasks(
    paths: Sequence[Path], names: Sequence[str], config: ValidateConfig
) -> list[tuple[str, RangeTask]]:
    return [
        (f"{i:04d}_{item.start:014d}_{item.stop:014d}", RangeTask(item, i, names[i], config, month))
        for i, path in enumerate(paths)
        for month in [(month_in(path.name) or "").replace("-", ".")]
        for item in plan(path, config.share_bytes)
    ]


def _append_all(
    tasks: list[tuple[str, RangeTask]],
    workers: int,
    store: PartStore | None,
    written: StreamFiles,
    scratch: Path,
    progress: Progress,
) -> Tally:
    """Validate all byte ranges; a range that began inside a game is read again from its end."""
    tally, file, expected = Tally(), -1, 0
    total = sum(task.size for _, task in tasks)
    finished = run_streams(validate_range, tasks, store, workers, scratch=scratch)
    with progress.stage("validate", unit="bytes", total=total) as stage:
        for (name, task), (streams, summary) in zip(tasks, finished, strict=True):
            if task.file != file:
                file, expected = task.file, 0
            moved = follow(expected, task.range)
            if moved is None:
                end = _append(streams, summary, written, tally)
            else:
                again = [(f"{name}_from_{expected:014d}", replace(task, range=moved))]
                for part in run_streams(validate_range, again, store, 1, scratch=scratch):
                    end = _append(*part, written, tally)
            expected = end if task.range.stop < task.range.path.stat().st_size else 0
            stage.advance(task.size)
    return tally


def _append(
    streams: Iterable[tuple[str, Bytes]],
    summary: Mapping[str, Any],
    written: StreamFiles,
    tally: Tally,
) -> int:
    """Append the streams of a part and add its counts; returns the offset where its games end.

    A part's records count row offsets from its own first row: the bytes before are added here.
    """
    base, records = written.sizes["valid"], bytearray()
    for name, data in streams:
        if name == "games":
            records += data
        else:
            written.write(name, data)
    games = np.frombuffer(records, sidecar.GAME)
    games["row"] += base
    written.write("games", games.tobytes())
    tally.add(summary)
    return int(summary["end"])


def _sources(
    paths: Sequence[Path], names: Sequence[str], progress: Progress
) -> list[dict[str, Any]]:
    sizes = [path.stat().st_size for path in paths]
    with progress.stage("hash input", unit="bytes", total=sum(sizes)) as stage:
        return [
            {"name": name, "bytes": size, "sha256": sha256_file(path, stage.advance)}
            for name, size, path in zip(names, sizes, paths, strict=True)
        ]


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2))


def _summary(tally: Tally, duplicates: int, equal: EqualGames) -> ValidateSummary:
    counts, flags = tally.counts, tally.by_name("flag")
    valid, total = counts["valid"], counts["total"]
    return ValidateSummary(
        files={
            VALID: FileNote(rows=valid),
            INVALID: FileNote(rows=total - valid),
            FLAGGED: FileNote(rows=sum(flags.values())),
            "sidecar/games.games.bin": FileNote(rows=valid),
            "sidecar/games.phases.bin": FileNote(rows=counts["plies"]),
            SUMMARY: FileNote(payload=False),
        },
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
    """Counts and openings of all parts so far.

    counts: number by name, such as `valid`, `plies` or `reason.too_short`.
    openings: games, White wins, draws, Black wins and the opening's name, by ECO code.
    outside: tag, value and byte offset of the first game whose date is not in the month.
    """

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
    from gristmill.chess.builders.validate_fast import add_batch

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
