"""Chess: which laws, views, traces and sample drops belong to which asset."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gristmill.chess import code
from gristmill.chess.config import MonthConfig
from gristmill.chess.raw.drops import ENDINGS
from gristmill.chess.raw.months import month_in
from gristmill.contract import Trace, Violation
from gristmill.families import Catalog, Column, Kind, Law, Option, Request, Subject
from gristmill.inbox import DropKind, Shape
from gristmill.inbox.account import Account
from gristmill.settings.tables import Table
from gristmill.untrusted.files import LinkRule

if TYPE_CHECKING:
    from rich.console import RenderableType

_ASSETS = {
    "validated": "chess/valid_games",
    "dataset": "chess/game_dataset",
    "cache": "chess/splice_cache",
    "splices": "chess/splice_dataset",
}


def _facts(asset: str, folder: Path) -> Iterable[str]:
    from gristmill.chess.show.facts import facts

    return facts(asset, folder)


def _columns(asset: str) -> Sequence[Column]:
    from gristmill.chess.show.columns import columns

    return columns(asset)


def _archive_laws(subject: Subject) -> Iterable[Violation]:
    from gristmill.chess.format.names import SOURCE
    from gristmill.chess.laws.archive import archive_laws

    has_source = not subject.missing({SOURCE: "pgn_as_recorded"})
    return archive_laws(subject.folder, has_source=has_source)


def _validated_laws(subject: Subject) -> Iterable[Violation]:
    from gristmill.chess.format.names import PROFILE
    from gristmill.chess.format.sidecar import FOLDER
    from gristmill.chess.laws.validate import validated_laws

    without = subject.missing({PROFILE: "plies_profiled", FOLDER: _SIDECAR_LAWS})
    return validated_laws(subject.folder, sampled=subject.sampled, without=without)


def _event_line_laws(subject: Subject) -> Iterable[Violation]:
    from gristmill.chess.laws.event_lines import event_line_laws

    return event_line_laws(subject.folder, *subject.inputs)


def _dataset_laws(subject: Subject) -> Iterable[Violation]:
    from gristmill.chess.format.sidecar import FOLDER
    from gristmill.chess.laws.game_dataset import dataset_laws

    has_sidecar = not subject.missing({FOLDER: f"{_SIDECAR_LAWS}, rows_noted"})
    return dataset_laws(subject.folder, sampled=subject.sampled, has_sidecar=has_sidecar)


def _cache_laws(subject: Subject) -> Iterable[Violation]:
    from gristmill.chess.laws.splice_cache import cache_laws

    dataset = subject.inputs if all(path.exists() for path in subject.inputs) else ()
    if not subject.has_record:
        subject.left_out.append("source_unchanged: where the manifest does not name the source")
    return cache_laws(subject.folder, *dataset, sampled=subject.sampled, is_ours=subject.has_record)


def _splice_laws(subject: Subject) -> Iterable[Violation]:
    from gristmill.chess.laws.splice_dataset import splice_laws

    return splice_laws(subject.folder)


def _show(request: Request) -> Iterable[RenderableType]:
    from gristmill.chess.show.terminal import render

    split = request.options.get("split") or "train"
    yield render(request.path, request.number, split, request.options.get("ply"))


def _trace(request: Request) -> Iterable[Trace]:
    from gristmill.chess.read.origins import game_origins

    return game_origins(request.path, request.sample, request.options.get("split"))


def _trace_cache(request: Request) -> Iterable[Trace]:
    from gristmill.chess.read.origins import cache_origins

    return cache_origins(request.path, request.number, request.options.get("split"))


def _trace_splice(request: Request) -> Iterable[Trace]:
    from gristmill.chess.read.origins import splice_origins

    return splice_origins(request.path, request.number, request.options.get("split"))


def _trace_pgn(request: Request) -> Iterable[Trace]:
    from gristmill.chess.read.origins import pgn_origins

    return pgn_origins(request.path)


def _asset_of(folder: Path) -> str | None:
    from gristmill.chess.format.kind_of import kind_of
    from gristmill.chess.format.names import SOURCE

    if (folder / SOURCE).is_file() and any(folder.glob("*.pgn")):
        return "chess/elite_pgn"
    return _ASSETS.get(kind_of(folder) or "")


def _account(drop: Path, links: LinkRule) -> Account:
    from gristmill.chess.raw.drops import account

    return account(drop, links)


def _place_of(drop: Path) -> str:
    return month_in(drop.name) or str(drop)


def _write_month(month: str, games: int, path: Path) -> None:
    from gristmill.chess.samples import write_month

    write_month(path, month, games=games, seed=1)


_SIDECAR_LAWS = "phases_rederived, rows_as_sidecar"
_GAME_COUNTS = ("games/train", "games/val", "games/test")
_SAMPLE_COUNTS = ("samples/train", "samples/val", "samples/test")

_VALIDATED = Law(
    "validated",
    _validated_laws,
    rules_excused_by={"moves_legal": ("compat", "reference")},
)
_EVENT_LINES = Law(
    "event_lines", _event_line_laws, needs_inputs=True, excused_by=("compat", "reference")
)

CATALOG = Catalog(
    columns=_columns,
    facts=_facts,
    kinds=[
        Kind("chess/elite_pgn", [Law("archive", _archive_laws)], trace=_trace_pgn, code=code.ELITE),
        Kind(
            "chess/valid_games",
            [_VALIDATED, _EVENT_LINES],
            _show,
            _trace,
            rows=("valid_games",),
            set_aside={"reasons": "rejected"},
            code=code.VALID,
        ),
        Kind(
            "chess/game_dataset",
            [Law("dataset", _dataset_laws)],
            _show,
            _trace,
            rows=_GAME_COUNTS,
            code=code.GAMES,
        ),
        Kind(
            "chess/splice_cache",
            [Law("cache", _cache_laws)],
            _show,
            _trace_cache,
            rows=_SAMPLE_COUNTS,
            code=code.CACHE,
        ),
        Kind(
            "chess/splice_dataset",
            [Law("splices", _splice_laws)],
            _show,
            _trace_splice,
            rows=_SAMPLE_COUNTS,
            code=code.SPLICES,
        ),
    ],
    asset_of=_asset_of,
    options=[
        Option(
            "ply", int, "Chess: the position after so many plies of a game.", commands=("show",)
        ),
        Option("split", str, "The split; train by default.", choices=("train", "val", "test")),
    ],
    inboxes={"chess": DropKind(_account, Shape(ENDINGS, key_in=month_in, any_case=True))},
    samples={
        "chess/sample_2024-01.zip": partial(_write_month, "2024-01", 600),
        "chess/sample_2024-02.pgn": partial(_write_month, "2024-02", 700),
    },
    place_of=_place_of,
    settings=[Table("chess/month", MonthConfig)],
)
