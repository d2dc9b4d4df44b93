"""Puzzles: which laws, views, traces and sample drops belong to which asset."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gristmill.code.digest import Code
from gristmill.contract import Trace, Violation
from gristmill.families import (
    Catalog,
    Column,
    Kind,
    Law,
    Option,
    PartitionFile,
    Request,
    Subject,
)
from gristmill.inbox import TOML, DropKind, Shape
from gristmill.inbox.account import Account
from gristmill.inbox.kind import IsThere
from gristmill.puzzles import code
from gristmill.puzzles.format.names import IDENTIFIERS, SOURCES, SPLITS, metadata
from gristmill.puzzles.raw.recipes import BUILT_IN, CONFIGS
from gristmill.settings.tables import Table
from gristmill.untrusted.files import LinkRule

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gristmill.puzzles.read.rows import Dataset

_KIND_OF_SHAPE: Final = {(12, 900): "arc", (11, 81): "sudoku", (6, 900): "maze", (8, 72): "domino"}
"""The kind of a dataset without a trace, by vocab_size and seq_len."""
_OTHER: Final = "puzzles/other"
"""Folders of other kinds that keep the contract: no asset makes them, but they can be shown."""


def _facts(_: str, folder: Path) -> Iterable[str]:
    from gristmill.puzzles.show.overview import facts

    return facts(folder)


def _columns(asset: str) -> Sequence[Column]:
    from gristmill.puzzles.show.columns import columns

    return columns(asset)


def _dataset(subject: Subject) -> Dataset:
    """The dataset of a subject, opened once for all its laws, with the workers of its config."""
    from gristmill.puzzles.read.rows import Dataset

    if "dataset" not in subject.opened:
        asked = subject.config.get("workers")
        # A record of a larger machine may name more than this one has.
        workers = min(asked, os.cpu_count() or 1) if type(asked) is int else 1
        subject.opened["dataset"] = Dataset(subject.folder, workers)
    dataset: Dataset = subject.opened["dataset"]
    return dataset


def _contract_laws(subject: Subject) -> Iterable[Violation]:
    from gristmill.puzzles.laws.contract import contract_laws

    return contract_laws(_dataset(subject))


def _trace_laws(subject: Subject) -> Iterable[Violation]:
    from gristmill.puzzles.laws.trace import trace_laws

    if subject.missing({SOURCES: "trace, draws of augmentations"}):
        return ()
    return trace_laws(_dataset(subject))


def _unknown_laws(subject: Subject) -> Iterable[Violation]:
    subject.left_out.append("rules of its puzzle: its files do not say which puzzle it is")
    return ()


def _arc_laws(subject: Subject) -> Iterable[Violation]:
    from gristmill.puzzles.laws.arc import arc_laws

    return arc_laws(_dataset(subject))


def _sudoku_laws(subject: Subject) -> Iterable[Violation]:
    from gristmill.puzzles.laws.sudoku import sudoku_laws

    return sudoku_laws(_dataset(subject))


def _maze_laws(subject: Subject) -> Iterable[Violation]:
    from gristmill.puzzles.laws.maze import maze_laws

    return maze_laws(_dataset(subject))


def _domino_laws(subject: Subject) -> Iterable[Violation]:
    from gristmill.puzzles.laws.domino import domino_laws

    return domino_laws(_dataset(subject))


def _show(request: Request) -> Iterable[RenderableType]:
    from gristmill.puzzles.show.terminal import shown
    from gristmill.puzzles.show.tracing import place

    yield from shown(request.path, request.number, *place(request))


def _trace(request: Request) -> Iterable[Trace]:
    from gristmill.puzzles.show.tracing import traced_example

    return traced_example(request)


def _asset_of(folder: Path) -> str | None:
    from gristmill.contract import GristmillError
    from gristmill.puzzles.read.rows import Dataset

    if not all((folder / name).is_file() for name in (IDENTIFIERS, *map(metadata, SPLITS))):
        return None
    try:
        data = Dataset(folder)
        shape = data.metadata("train").vocab_size, data.metadata("train").seq_len
        kind = data.kind or _KIND_OF_SHAPE.get(shape)
    except GristmillError:
        return None
    return f"puzzles/{kind}" if kind in CONFIGS else _OTHER


def _sample(kind: str) -> Callable[[Path], object]:
    """What writes the sample drop of a kind."""

    def write(path: Path) -> None:
        module = import_module(f"gristmill.puzzles.raw.samples.{kind}")
        getattr(module, f"write_{kind}_sample")(path)

    return write


def _write_domino(path: Path) -> None:
    """Games are sampled, so that a recipe is all that a sample needs."""
    path.write_text('kind = "domino"\n\n[settings]\nnum_games = 200\nnum_aug = 2\n')


def _account(drop: Path, links: LinkRule) -> Account:
    from gristmill.puzzles.raw.known_recipes import drop_account

    return drop_account(drop, links)


def _needs(drop: Path, root: Path, is_there: IsThere) -> None:
    from gristmill.puzzles.raw.known_recipes import drop_needs

    drop_needs(drop, root, is_there)


def _recipe_account(file: Path, links: LinkRule) -> Account:
    from gristmill.puzzles.raw.known_recipes import account

    return account(file, links)


def _recipe_needs(file: Path, root: Path, is_there: IsThere) -> None:
    from gristmill.puzzles.raw.known_recipes import recipe_needs

    recipe_needs(file, root, is_there)


def _recipe_change(file: Path, root: Path, config: Mapping[str, Any], raw: Sequence[str]) -> str:
    from gristmill.puzzles.raw.known_recipes import recipe_change

    return recipe_change(file, root, config, raw)


def _kind(
    name: str,
    laws: Callable[[Subject], Iterable[Violation]],
    code_of_kind: Code,
    **excused: tuple[str, str],
) -> Kind:
    of_kind = Law(name, laws, rules_excused_by=excused)
    return Kind(
        f"puzzles/{name}",
        [Law("contract", _contract_laws), Law("trace", _trace_laws), of_kind],
        _show,
        _trace,
        rows=("examples/train", "examples/test"),
        code=code_of_kind,
        file=PartitionFile("puzzles/recipes", _recipe_change, BUILT_IN),
    )


CATALOG = Catalog(
    columns=_columns,
    facts=_facts,
    kinds=[
        _kind("arc", _arc_laws, code.ARC),
        _kind("sudoku", _sudoku_laws, code.SUDOKU, not_unique=("unique", "off")),
        _kind("maze", _maze_laws, code.MAZE),
        _kind("domino", _domino_laws, code.DOMINO),
    ],
    others=[
        Kind(
            _OTHER,
            [Law("contract", _contract_laws), Law("rules", _unknown_laws)],
            _show,
            _trace,
        )
    ],
    asset_of=_asset_of,
    options=[
        Option("split", str, "The split; train by default.", choices=SPLITS),
        Option("set", str, "Puzzles: the set of examples; all by default."),
    ],
    inboxes={
        "puzzles": DropKind(_account, Shape(reserved=("recipes",)), _needs),
        "puzzles/recipes": DropKind(_recipe_account, TOML, _recipe_needs),
    },
    samples={
        **{f"puzzles/{kind}-sample": _sample(kind) for kind in ("arc", "sudoku", "maze")},
        "puzzles/recipes/domino-sample.toml": _write_domino,
    },
    settings=[Table(f"puzzles/{kind}", config) for kind, config in CONFIGS.items()],
)
