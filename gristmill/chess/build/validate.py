"""PGN files to validated games: rows, rejects with their reasons, flags, sidecar, summary.

Rules: docs/formats/chess.md#validation. `validate_range.py` validates a byte range of a file;
here the parts are put together in file order and the counts added up.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gristmill.chess.build.range_output import RangeTask
from gristmill.chess.build.validate_range import validate_range
from gristmill.chess.config import ValidateConfig
from gristmill.chess.format import sidecar
from gristmill.chess.format.move_keys import count_duplicates
from gristmill.chess.format.names import FLAGGED, INVALID, PROFILE, SUMMARY, VALID
from gristmill.chess.raw.pgn import follow, plan
from gristmill.contract import BadInput, FileNote, Summary
from gristmill.hashing import sha256_file
from gristmill.run.part_streams import Bytes, StreamFiles, run_streams
from gristmill.run.parts import PartStore
from gristmill.run.progress import SILENT, Progress

_INVALID_HEAD = "game_id,source_file,reason,offending_ply,result"
_FLAGGED_HEAD = "game_id,source_file,flag,result,detail,pgn_offset\r\n"


@dataclass(frozen=True)
class ValidateSummary(Summary):
    """Counts of a validation.

    duplicate_games: valid games whose moves an earlier one has too.
    oracle_games: games that needed python-chess. reasons, flags, phases: counts by name.
    """

    total_games: int
    valid_games: int
    invalid_games: int
    duplicate_games: int
    oracle_games: int
    plies: int
    white_wins: int
    black_wins: int
    draws: int
    reasons: Mapping[str, int]
    flags: Mapping[str, int]
    phases: Mapping[str, int]


def _named(counts: Mapping[str, int], kind: str) -> dict[str, int]:
    """The counts `kind.name` by name, in the order in which they were first met."""
    return {k[len(kind) + 1 :]: n for k, n in counts.items() if k.startswith(f"{kind}.")}


def _tasks(
    paths: Sequence[Path], names: Sequence[str], config: ValidateConfig
) -> list[tuple[str, RangeTask]]:
    return [
        (f"{i:04d}_{item.start:014d}_{item.stop:014d}", RangeTask(item, i, names[i], config))
        for i, path in enumerate(paths)
        for item in plan(path, config.share_bytes)
    ]


class _Tally:
    """Counts of all parts so far, and the opening table."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.openings: dict[str, list[Any]] = {}

    def add(self, summary: Mapping[str, Any]) -> None:
        self.counts.update(summary["counts"])
        for code, entry in summary["openings"].items():
            known = self.openings.setdefault(code, [0, 0, 0, 0, ""])
            for i in range(4):
                known[i] += entry[i]
            known[4] = known[4] or entry[4]


def _append(
    streams: Iterable[tuple[str, Bytes]],
    summary: Mapping[str, Any],
    written: StreamFiles,
    tally: _Tally,
) -> int:
    """Append one part's streams and add up its counts; return the offset where its games end.

    Its records learn where its rows begin in the whole.
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


def _append_all(
    tasks: list[tuple[str, RangeTask]],
    workers: int,
    store: PartStore | None,
    written: StreamFiles,
    scratch: Path,
    progress: Progress,
) -> _Tally:
    """Validate all ranges; one that began in the wrong place is done again from the right one."""
    tally, file, expected = _Tally(), -1, 0
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
                redo = [(f"{name}_from_{expected:014d}", replace(task, range=moved))]
                for part in run_streams(validate_range, redo, store, 1, scratch=scratch):
                    end = _append(*part, written, tally)
            expected = end if task.range.stop < task.range.path.stat().st_size else 0
            stage.advance(task.size)
    return tally


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2))


def _profile(tally: _Tally, twins: int) -> dict[str, Any]:
    """What profile.json holds: distributions of the valid games."""
    counts = tally.counts
    return {
        "games": counts["valid"],
        "plies": counts["plies"],
        "winners": _named(counts, "winner"),
        "phases": _named(counts, "phase"),
        "plies_bins": dict(sorted(_named(counts, "plies").items(), key=lambda kv: int(kv[0]))),
        "reasons": _named(counts, "reason"),
        "flags": _named(counts, "flag"),
        "duplicate_games": twins,
        "openings": dict(sorted(tally.openings.items())),
    }


def _summary(counts: Mapping[str, int], twins: int) -> ValidateSummary:
    valid, total = counts["valid"], counts["total"]
    reasons, flags = _named(counts, "reason"), _named(counts, "flag")
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
        duplicate_games=twins,
        oracle_games=counts["oracle"],
        plies=counts["plies"],
        white_wins=counts["winner.W"],
        black_wins=counts["winner.B"],
        draws=counts["winner.D"],
        reasons=reasons,
        flags=flags,
        phases=_named(counts, "phase"),
    )


def validate(
    pgn_paths: Sequence[Path],
    out: Path,
    config: ValidateConfig = ValidateConfig(),  # noqa: B008 (frozen)
    *,
    parts: PartStore | None = None,
    progress: Progress = SILENT,
) -> ValidateSummary:
    """Validate PGN files into the folder `out`, in the order given.

    Writes valid_games.jsonl (docs/formats/chess.md#valid-rows), invalid_games.csv (#rejected-games:
    error text and byte offset), flagged_games.csv, summary.json (#validation-summary),
    profile.json (distributions) and `sidecar/`. With compat="reference" the
    rows, rejects and summary are those of the original code (#compatibility-mode). Memory
    does not grow with the number of games.

    parts: store of finished parts, where a killed build goes on.
    progress: gets the stages "validate" and "hash", in bytes of PGN.

    Raises BadInput for no input, a file that cannot be PGN, or names that do
    not match; `MissingPythonChess` where python-chess is needed and absent.
    """
    paths = [Path(path) for path in pgn_paths]
    if not paths:
        raise BadInput("pgn_paths", "No PGN inputs found; pass at least one .pgn file")
    reference = config.compat == "reference"
    names = list(config.source_names) or [str(p) if reference else p.name for p in paths]
    if len(names) != len(paths):
        raise BadInput("source_names", f"{len(names)} names for {len(paths)} PGN files")
    out.mkdir()
    files = {
        "valid": out / VALID,
        "invalid": out / INVALID,
        "flagged": out / FLAGGED,
        "games": sidecar.games_file(out, "games"),
        "phases": sidecar.phases_file(out, "games"),
    }
    with StreamFiles(files) as written:
        head = _INVALID_HEAD + ("\r\n" if reference else ",error,pgn_offset\r\n")
        written.write("invalid", head.encode())
        written.write("flagged", _FLAGGED_HEAD.encode())
        tasks = _tasks(paths, names, config)
        tally = _append_all(tasks, config.workers, parts, written, out, progress)
    counts = tally.counts
    reasons, flags = _named(counts, "reason"), _named(counts, "flag")
    valid, total = counts["valid"], counts["total"]
    twins = count_duplicates([files["games"]])
    sizes = [path.stat().st_size for path in paths]
    with progress.stage("hash", unit="bytes", total=sum(sizes)) as stage:
        sources = [
            {"name": name, "bytes": size, "sha256": sha256_file(path, stage.advance)}
            for name, size, path in zip(names, sizes, paths, strict=True)
        ]
    _write_json(sidecar.sources_file(out), {"sources": sources})
    summary: dict[str, Any] = {
        "input_files": names,
        "input_source": ",".join(names),
        "auto_sharded_single_file": False,
        "auto_shard_game_count": None,
        "total_games": total,
        "valid_games": valid,
        "invalid_games": total - valid,
        "valid_ratio": valid / total if total else 0.0,
        "invalid_reason_counts": reasons,
        "outputs": {"valid_games": VALID, "invalid_games": INVALID},
    }
    if not reference:
        summary |= {"compat": config.compat, "flag_counts": flags, "duplicate_games": twins}
    _write_json(out / SUMMARY, summary)
    _write_json(
        out / PROFILE,
        _profile(tally, twins),
    )
    return _summary(counts, twins)
