"""The builds of puzzle datasets: inputs, config, builder, report, laws and place of each.

See also `assets.py` for the assets that publish them, and `recipes.py` for what they are made from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from pydantic import BaseModel

from assets import configs
from assets.puzzles.choices import recipe_settings
from gristmill import families
from gristmill.contract import FileNote, Summary, counts_of
from gristmill.families import Subject
from gristmill.provenance import Input, config_fields, raw_inputs
from gristmill.provenance.record import RECORD
from gristmill.publish.build import Attempt, Build, InputChanged
from gristmill.puzzles.format import names
from gristmill.puzzles.raw import drops
from gristmill.puzzles.raw.known_recipes import ready_sources, recipe_of
from gristmill.puzzles.raw.recipes import CONFIGS, DOMINO, Recipe
from gristmill.puzzles.raw.space import space
from gristmill.untrusted.files import LinkRule
from resources import Lake

RAW = "puzzles/raw"


def puzzle_build(kind: str, lake: Lake, run: BaseModel, key: str | None) -> Build:
    """Returns the build of a dataset.

    kind: of the puzzle, as `sudoku`.
    lake: the data root.
    run: the launchpad's config; its values come before those of the recipe.
    key: name of the recipe.

    Raises NothingToBuild if a drop of the recipe is not there or not complete, GristmillError if a
    drop, the recipe or a setting is refused, or if there is no such recipe.
    """
    recipe = recipe_of(lake, kind, str(key))
    account = ready_sources(lake, recipe)
    config = configs.resolve(CONFIGS[kind], recipe_settings(lake, recipe), run)
    artifact = lake.artifact("puzzles", recipe.name)
    links = lake.link_rule()
    fields = config_fields(config)
    folders = [lake.inbox(drops.INBOX) / source for source in recipe.sources]
    inputs = _inputs(lake, recipe, folders, artifact, links)

    def make(attempt: Attempt) -> Summary:
        summary = _make(kind, folders, attempt, config, links)
        # The publisher compares only the files that were listed, but the dataset may be made of
        # one that arrived after the listing.
        present = [
            file.relative_to(lake.root).as_posix()
            for folder in folders
            for file in drops.source_files(kind, folder, links)
        ]
        if present != [item.path for item in inputs]:
            raise InputChanged(
                f"{recipe.name}: files were added or removed while they were read: materialize the "
                "dataset again once its drops are complete"
            )
        return _with_report(summary, attempt.out, recipe.name)

    return Build(
        root=lake.root,
        artifact=artifact,
        asset=recipe.asset,
        partition=key,
        code_version=config.CODE_VERSION,
        config=config,
        inputs=inputs,
        make=make,
        space=space(config, [(item.path or "", item.bytes or 0) for item in inputs]),
        laws=lambda out: families.check(recipe.asset, Subject(out, config=fields)),
        account=account if recipe.sources else None,
    )


def _inputs(
    lake: Lake, recipe: Recipe, folders: Sequence[Path], artifact: str, links: LinkRule
) -> list[Input]:
    """The raw files of all sources; files that the record knows are not hashed again."""
    known = raw_inputs.known_hashes(lake.root / artifact / RECORD)
    return [
        item
        for source, folder in zip(recipe.sources, folders, strict=True)
        for item in raw_inputs.raw_inputs(
            lake.root,
            drops.source_files(recipe.kind, folder, links),
            RAW,
            source.partition("/")[0],
            known,
            links,
        )
    ]


def _with_report(summary: Summary, out: Path, title: str) -> Summary:
    """Write the report of a dataset into it."""
    from gristmill.puzzles.show.report_page import write_report

    write_report(out, out / names.REPORT, title, counts_of(summary))
    return replace(summary, files={**summary.files, names.REPORT: FileNote(payload=False)})


def _make(
    kind: str, folders: Sequence[Path], attempt: Attempt, config: object, links: LinkRule
) -> Summary:
    """Build the dataset of a kind."""
    build = getattr(import_module(f"gristmill.puzzles.builders.{kind}"), f"build_{kind}")
    common = {"parts": attempt.parts, "progress": attempt.progress}
    if kind == DOMINO:
        summary: Summary = build(attempt.out, config, **common)
    else:
        summary = build(folders, attempt.out, config, **common, links=links)
    return summary
