"""Puzzles: the datasets of each kind, the drops and recipes that they are built from."""

from __future__ import annotations

from typing import Final

from gristmill.asset import Asset
from gristmill.families import Catalog, Kind, Law, Option, PartitionFile, Source
from gristmill.inbox import TOML, DropKind, Shape
from gristmill.lazy_exports import call
from gristmill.puzzles import code
from gristmill.puzzles.config import BUILT_IN, CONFIGS, DOMINO
from gristmill.puzzles.format import SPLITS
from gristmill.settings.tables import Table

_TEXTS: Final = {
    "arc": "ARC tasks and their augmentations: turned and mirrored, with other colours, and in "
    "training moved on the grid. A grid has 30 by 30 cells, and every puzzle an identifier.",
    "sudoku": "Sudokus with one solution each. Augmentations exchange digits, rows, columns, bands "
    "and stacks, and transpose the board; no test puzzle is such a twin of a training puzzle.",
    "maze": "Mazes with a shortest path, if asked for also turned and mirrored.",
    "domino": "Situations of sampled Domino games: the chain, the hand, and the heaviest tile that "
    "can be played. It needs no drop.",
    "grid": "Grids of any symbols, from rows of JSONL: an input and an output each, with groups, "
    "puzzles and sets as the rows name them; turned and mirrored where the recipe asks for it.",
}
"""The description of each kind's asset."""
_RULES_EXCUSED: Final = {"sudoku": {"not_unique": ("unique", "off")}}
_LAWS: Final = "gristmill.puzzles.laws"
_RECIPES: Final = "gristmill.puzzles.builds"
_TRACE = call("gristmill.puzzles.read.examples:traced_example")
_CONTRACT = Law(
    "contract", call(f"{_LAWS}.contract:of_dataset", call(f"{_LAWS}.contract:contract_laws"))
)

_SOURCES = [
    Source(
        asset="puzzles/raw",
        inbox="puzzles",
        drop=DropKind(
            call(f"{_RECIPES}:drop_account"),
            Shape(reserved=("recipes",)),
            call(f"{_RECIPES}:drop_needs"),
            call(f"{_RECIPES}:drop_columns"),
        ),
        text="A folder of raw puzzles under `drops/puzzles/`: ARC tasks, rated Sudokus, puzzle "
        "banks, mazes or grids. Copy one there, and the sensor builds the recipes whose sources "
        "are then all there. `gristmill fetch puzzles` downloads those of the hub.",
        group="puzzles",
        labels=["json", "csv"],
        partitions="puzzles_sources",
        targets=[f"puzzles/{kind}" for kind in CONFIGS],
    ),
    Source(
        asset="puzzles/recipe",
        inbox="puzzles/recipes",
        drop=DropKind(call(f"{_RECIPES}:account"), TOML, call(f"{_RECIPES}:recipe_needs")),
        text="A file `drops/puzzles/recipes/<name>.toml` with `kind`, `sources` and `[settings]`. "
        "Put it there, and the sensor builds its dataset once its sources are there. Built-in "
        "recipes have no file.",
        group="puzzles",
        labels=["toml"],
        partitions="puzzles_recipes",
        targets=[f"puzzles/{kind}" for kind in CONFIGS],
    ),
]


def _dataset(kind: str) -> Asset:
    laws = call(f"{_LAWS}.{'arc' if kind == 'arc' else 'games'}:{kind}_laws")
    traced = f"{_LAWS}.contract:of_traced"
    rules = Law(
        kind,
        call(traced, "rules of grids", laws)
        if kind == "grid"
        else call(f"{_LAWS}.contract:of_dataset", laws),
        rules_excused_by=_RULES_EXCUSED.get(kind, {}),
    )
    words = "trace, draws of augmentations"
    trace = Law("trace", call(traced, words, call(f"{_LAWS}.contract:trace_laws")))
    return Asset(
        f"puzzles/{kind}",
        laws=[_CONTRACT, trace, rules],
        trace=_TRACE,
        history=call("gristmill.puzzles.read.examples:rows"),
        past=call("gristmill.puzzles.read.examples:past"),
        source=call("gristmill.puzzles.read.examples:opened"),
        rows=("examples/train", "examples/test"),
        counted=call(f"{_LAWS}.contract:rows_left_out"),
        compared=call(f"{_LAWS}.across:noted"),
        tests_seen=call(f"{_LAWS}.across:seen"),
        listed=["training_tasks", "evaluation_tasks"] if kind == "arc" else [],
        code=getattr(code, kind.upper()),
        file=PartitionFile("puzzles/recipes", call(f"{_RECIPES}:recipe_change"), BUILT_IN),
        table=Table(f"puzzles/{kind}", CONFIGS[kind]),
        text=_TEXTS[kind],
        group="puzzles",
        labels=["numpy"],
        place="puzzles",
        partitions=f"puzzles_{kind}_recipes",
        # A recipe names its sources, so no mapping of partitions can express the dependency.
        all_of=[*([] if kind == DOMINO else ["puzzles/raw"]), "puzzles/recipe"],
        build=call("gristmill.puzzles.builds:puzzle_build", kind),
        given=call("gristmill.puzzles.builds:settings_of", kind),
        place_of=call("gristmill.puzzles.builds:place_of"),
        available=call(f"{_RECIPES}:wanted_of", kind),
        sample=call("gristmill.puzzles.show:sample"),
        notes=call(f"{_LAWS}.contract:puzzle_notes"),
        # A drop and a recipe that settle at once may both start a run of the recipe: one waits.
        pool="puzzles",
        batch=100,
    )


_OTHER = Kind(
    "puzzles/other", [_CONTRACT, Law("rules", call(f"{_LAWS}.contract:of_other"))], trace=_TRACE
)
"""Folders of other kinds that keep the contract: no asset makes them, but they can be shown."""

CATALOG = Catalog(
    kinds=[_dataset(kind) for kind in CONFIGS],
    others=[_OTHER],
    sources=_SOURCES,
    asset_of=call("gristmill.puzzles.read.rows:asset_of"),
    columns=call("gristmill.puzzles.show:columns"),
    facts=call("gristmill.puzzles.show:facts_of"),
    tables=call("gristmill.puzzles.show:tables"),
    splits=call("gristmill.puzzles.read.rows:splits"),
    options=[
        Option("split", str, "The split; train by default.", choices=SPLITS),
        Option("set", str, "Puzzles: the set of examples; all by default."),
    ],
    samples={
        f"puzzles/{'recipes/domino-sample.toml' if kind == DOMINO else f'{kind}-sample'}": call(
            f"gristmill.puzzles.raw.samples:write_{kind}_sample"
        )
        for kind in ("arc", "sudoku", "maze", "grid", DOMINO)
    },
    forgets={"puzzles": call("gristmill.puzzles.raw.drops:forgets")},
)
