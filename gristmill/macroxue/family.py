"""2048: which laws, views, traces and sample drops belong to which asset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gristmill.contract import Trace, Violation
from gristmill.families import (
    Catalog,
    Column,
    Kind,
    Law,
    Misuse,
    Option,
    PartitionFile,
    Request,
    Subject,
)
from gristmill.inbox import TOML, DropKind
from gristmill.inbox.account import Account
from gristmill.inbox.kind import IsThere
from gristmill.macroxue import code
from gristmill.macroxue.config import PackConfig, ValueConfig
from gristmill.macroxue.raw.pool_file import POOL_TABLE
from gristmill.settings.tables import Table
from gristmill.untrusted.files import LinkRule

if TYPE_CHECKING:
    from rich.console import RenderableType


def _facts(asset: str, folder: Path) -> Iterable[str]:
    from gristmill.macroxue.show.facts import facts

    return facts(asset, folder)


def _columns(asset: str) -> Sequence[Column]:
    from gristmill.macroxue.show.columns import columns

    return columns(asset)


def _pack_laws(subject: Subject) -> Iterable[Violation]:
    from gristmill.macroxue.laws.pack import DATABASE, NAMES, TRACE, pack_laws

    without = subject.missing({DATABASE: "runs", NAMES: "row_valuation_type", TRACE: "trace"})
    return pack_laws(subject.folder, without)


def _pool_laws(subject: Subject) -> Iterable[Violation]:
    from gristmill.macroxue.laws.pool import pool_laws

    return pool_laws(subject.folder)


def _game_laws(subject: Subject) -> Iterable[Violation]:
    from gristmill.macroxue.laws.games import game_laws
    from gristmill.macroxue.laws.pack import DATABASE

    if subject.missing({DATABASE: "games"}):
        return ()
    return game_laws(subject.folder, subject.noted)


def _value_laws(subject: Subject) -> Iterable[Violation]:
    from gristmill.macroxue.laws.values import value_laws

    (pack,) = subject.inputs
    return value_laws(subject.folder, pack)


def _show(request: Request) -> Iterable[RenderableType]:
    from gristmill.macroxue.show import terminal

    run, step = request.options.get("run"), request.options.get("step")
    if run is None:
        if step is not None:
            raise Misuse("--step needs --run")
        return terminal.shown_row(request.path, request.number)
    if step is not None:
        return terminal.shown_step(request.path, run, step)
    return terminal.shown_run(request.path, run, request.options.get("steps", _STEPS))


def _trace(request: Request) -> Iterable[Trace]:
    from gristmill.macroxue.read.origins import run_origins

    return run_origins(request.path, request.number, request.options.get("step"))


def _trace_value(request: Request) -> Iterable[Trace]:
    from gristmill.macroxue.read.origins import value_origins

    if request.options.get("step") is not None:
        raise Misuse("--step does not apply to value sidecars: a sample is a row")
    return value_origins(request.path, request.number)


def _asset_of(folder: Path) -> str | None:
    from gristmill.macroxue.format.kind_of import kind_of

    kind = kind_of(folder)
    # The pack reader refuses foreign rows and names their reader.
    foreign = kind in ("self_play", "legacy")
    if kind is None and any(folder.glob("steps*.npy")):
        return "macroxue/pack"  # its tables are missing
    assets = {"pack": "macroxue/pack", "pool": "macroxue/pool", "values": "macroxue/values"}
    return "macroxue/pack" if foreign else assets.get(kind or "")


def _account(drop: Path, links: LinkRule) -> Account:
    from gristmill.macroxue.raw.drops import account

    return account(drop, links)


def _pool_account(file: Path, links: LinkRule) -> Account:
    from gristmill.macroxue.raw.pool_members import account

    return account(file, links)


def _pool_needs(file: Path, root: Path, is_there: IsThere) -> None:
    from gristmill.macroxue.raw.pool_members import needs

    needs(file, root, is_there)


def _pool_change(file: Path, root: Path, config: Mapping[str, Any], raw: Sequence[str]) -> str:
    from gristmill.macroxue.raw.pool_members import change

    return change(file, root, config, raw)


def _write_d6(path: Path) -> None:
    from gristmill.macroxue.samples import write_drop

    write_drop(path, 272_350_805, games=10, max_moves=800, depth=6)


def _write_d7(path: Path) -> None:
    from gristmill.macroxue.samples import write_drop

    write_drop(path, 1_273_930_896, games=10, max_moves=800, depth=7, legacy=True, high=False)


def _write_pool(path: Path) -> None:
    path.write_text('members = ["sample_d6", "sample_d7"]\n')


_STEPS = 6
_PLAYED = Law("games", _game_laws, excused_by=("game_laws", "warn"))

CATALOG = Catalog(
    columns=_columns,
    facts=_facts,
    kinds=[
        Kind(
            "macroxue/pack",
            [Law("pack", _pack_laws), _PLAYED],
            _show,
            _trace,
            set_aside={"quarantined_by_rule": "quarantined"},
            code=code.PACK,
        ),
        Kind(
            "macroxue/pool",
            [Law("pool", _pool_laws), _PLAYED],
            _show,
            _trace,
            code=code.POOL,
            file=PartitionFile("pools", _pool_change),
        ),
        Kind(
            "macroxue/values",
            [Law("values", _value_laws, needs_inputs=True)],
            trace=_trace_value,
            code=code.VALUES,
        ),
    ],
    asset_of=_asset_of,
    options=[
        Option(
            "run",
            int,
            "2048: show steps of this run, from its first to its last.",
            commands=("show",),
        ),
        Option(
            "step",
            int,
            "2048: only the step with this step_index: of --run (show), of the run (trace).",
        ),
        Option(
            "steps",
            int,
            "2048: how many steps of --run, at even distances.",
            _STEPS,
            least=1,
            commands=("show",),
        ),
    ],
    inboxes={"macroxue": DropKind(_account), "pools": DropKind(_pool_account, TOML, _pool_needs)},
    samples={
        "macroxue/sample_d6": _write_d6,
        "macroxue/sample_d7": _write_d7,
        "pools/samples.toml": _write_pool,
    },
    settings=[
        Table("macroxue/pack", PackConfig, inboxes=("macroxue",)),
        Table("macroxue/values", ValueConfig),
        POOL_TABLE,
    ],
)
