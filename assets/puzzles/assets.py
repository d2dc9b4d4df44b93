"""The assets of the puzzles: datasets of ARC, Sudoku, Maze and Domino, one for each recipe."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import dagster as dg

from assets import configs
from assets.checks import disk_checks
from assets.publishing import BATCH, Event, publish_asset
from assets.puzzles.partitions import OF_KIND, puzzles_recipes, puzzles_sources
from gristmill.contract import Violation
from gristmill.publish.build import Published
from gristmill.puzzles.raw.recipes import CONFIGS, DOMINO, KINDS
from resources import Lake

GROUP = "puzzles"
OWNERS = ["team:data"]
Figures = Mapping[str, str | int | float]

_TEXTS = {
    "arc": "ARC tasks and their augmentations: turned and mirrored, with other colours, and in "
    "training moved on the grid. A grid has 30 by 30 cells, and every puzzle an identifier.",
    "sudoku": "Sudokus with one solution each. Augmentations exchange digits, rows, columns, bands "
    "and stacks, and transpose the board; no test puzzle is such a twin of a training puzzle.",
    "maze": "Mazes with a shortest path, if asked for also turned and mirrored.",
    "domino": "Situations of sampled Domino games: the chain, the hand, and the heaviest tile that "
    "can be played. It needs no drop.",
}
"""The description of each kind's asset."""

RUNS = {kind: configs.launchpad(config) for kind, config in CONFIGS.items()}
"""The launchpad's config of each kind."""

raw = dg.AssetSpec(
    key=["puzzles", "raw"],
    partitions_def=puzzles_sources,
    group_name=GROUP,
    kinds={"json", "csv"},
    owners=OWNERS,
    description=(
        "A folder of raw puzzles under `drops/puzzles/`: ARC tasks, rated Sudokus, puzzle banks "
        "or mazes. Copy one there, and the sensor builds the recipes whose sources are then all "
        "there. `gristmill fetch puzzles` downloads those of the hub."
    ),
)

recipe = dg.AssetSpec(
    key=["puzzles", "recipe"],
    partitions_def=puzzles_recipes,
    group_name=GROUP,
    kinds={"toml"},
    owners=OWNERS,
    description=(
        "A file `drops/puzzles/recipes/<name>.toml` with `kind`, `sources` and `[settings]`. Put "
        "it there, and the sensor builds its dataset once its sources are there. Built-in recipes "
        "have no file."
    ),
)

# A drop and a recipe that settle at once may both start a run of the recipe: one waits.
_POOL = "puzzles"

# A recipe names its sources, so no partition mapping can express the dependency.
_RECIPE = dg.AssetDep(recipe, partition_mapping=dg.AllPartitionMapping())
_RAW = dg.AssetDep(raw, partition_mapping=dg.AllPartitionMapping())


def _built(kind: str) -> dg.AssetsDefinition:
    """The asset that builds the recipes of a kind."""
    run = RUNS[kind]

    @dg.asset(
        key=["puzzles", kind],
        deps=[_RECIPE] if kind == DOMINO else [_RAW, _RECIPE],
        partitions_def=OF_KIND[kind],
        group_name=GROUP,
        kinds={"numpy"},
        owners=OWNERS,
        pool=_POOL,
        code_version=CONFIGS[kind].CODE_VERSION,
        backfill_policy=BATCH,
        output_required=False,
        description=_TEXTS[kind],
    )
    def dataset(context: dg.AssetExecutionContext, config: run, lake: Lake) -> Iterator[Event]:  # type: ignore[valid-type]
        from assets.puzzles import builds

        yield from publish_asset(
            context, partial(builds.puzzle_build, kind, lake, config), partition_preview=_preview
        )

    return dataset


def _preview(published: Published) -> Figures:
    from gristmill.puzzles.show.preview import puzzle_figures

    return puzzle_figures(published.folder, published.record.counts)


def _notes(folder: Path) -> Iterator[Violation]:
    from gristmill.puzzles.laws.notes import puzzle_notes

    return puzzle_notes(folder)


BUILT = {kind: _built(kind) for kind in KINDS}
ASSETS: list[dg.AssetsDefinition | dg.AssetSpec] = [raw, recipe, *BUILT.values()]
CHECKS = [
    check for asset in BUILT.values() for check in disk_checks(asset, "puzzles", notes=_notes)
]
