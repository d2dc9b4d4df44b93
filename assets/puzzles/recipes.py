"""The recipes of a data root: built in, or from a file; and whether their input is there."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from gristmill import keys, provenance
from gristmill.contract import BadInput, GristmillError, NothingToBuild
from gristmill.inbox import TOML, present_drops
from gristmill.puzzles.raw import drops
from gristmill.puzzles.raw.recipe_file import FOLDER, read_recipe_file
from gristmill.puzzles.raw.recipes import BUILT_IN, Recipe, is_part
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from resources import Lake

RECIPES_INBOX = f"{drops.INBOX}/{FOLDER}"


def link_rule(lake: Lake) -> LinkRule:
    """What happens to links in drops; `Inbox.refusal` reports a wrong setting."""
    try:
        return lake.link_rule()
    except GristmillError:
        return REFUSE_LINKS


def recipes(lake: Lake) -> dict[str, Recipe]:
    """Returns the recipes by name; a file takes the place of a built-in recipe.

    lake: the data root. A file that is refused counts as none: the inbox reports it.
    """
    found = dict(BUILT_IN)
    links = link_rule(lake)
    folder = lake.inbox(RECIPES_INBOX)
    for arrival in present_drops(folder, lambda _: None, TOML, links).arrivals:
        try:
            recipe = _read(lake, arrival.path, links)
        except (GristmillError, OSError):
            continue
        found[recipe.name] = recipe
    return found


def recipe_of(lake: Lake, kind: str, name: str) -> Recipe:
    """Returns the recipe of a partition.

    lake: the data root.
    kind: of the asset.
    name: key of the partition.

    Raises BadKey for a name that is no key, BadInput if its file is refused or has another kind,
    GristmillError if there is none.
    """
    path = lake.inbox(RECIPES_INBOX) / f"{keys.checked(name)}.toml"
    if not path.exists() and name in BUILT_IN:
        recipe = BUILT_IN[name]
        _check_published(lake, recipe, path)
    else:
        recipe = _read(lake, path, lake.link_rule())
    if recipe.kind != kind:
        raise BadInput(
            path,
            f"{name} is a recipe of the kind {recipe.kind}: build {recipe.asset}, not "
            f"puzzles/{kind}",
        )
    return recipe


def refusal(path: Path) -> str | None:
    """Returns why a recipe file is not taken, or None.

    path: the file, in `drops/puzzles/recipes/`.
    """
    lake = Lake(data_root=str(path.parents[3]))
    try:
        _read(lake, path, link_rule(lake))
    except GristmillError as error:
        return str(error)
    return None


def missing_sources(lake: Lake, recipe: Recipe, known: Collection[str] | None = None) -> list[str]:
    """Returns the sources of a recipe that are not there.

    lake: the data root.
    recipe: the recipe.
    known: names of the drops that have arrived; default None: those whose folders exist.
    """
    inbox = lake.inbox(drops.INBOX)
    return [
        source
        for source in recipe.sources
        if not (inbox / source).is_dir()
        or (known is not None and source.partition("/")[0] not in known)
    ]


def check_sources(lake: Lake, recipe: Recipe) -> None:
    """Raise NothingToBuild if a source of a recipe is not there.

    lake: the data root.
    recipe: the recipe.
    """
    if missing := missing_sources(lake, recipe):
        folders = ", ".join(f"drops/{drops.INBOX}/{source}" for source in missing)
        raise NothingToBuild(f"the recipe {recipe.name} has no input: there is no folder {folders}")


def buildable(lake: Lake, known: Collection[str] | None = None) -> list[Recipe]:
    """Returns the recipes whose sources are there, without those that a larger one takes in.

    lake: the data root.
    known: as for `missing_sources`.

    ARC alone is built where there is no ConceptARC, not beside the dataset of both: a person asks
    for it by name. Once it stands it is kept current.
    """
    found = [each for each in recipes(lake).values() if not missing_sources(lake, each, known)]
    return [
        recipe
        for recipe in found
        if not any(is_part(recipe, other) for other in found) or _stands(lake, recipe)
    ]


def available(lake: Lake) -> set[str]:
    """Returns the names of the recipes that are built where nobody names one.

    lake: the data root.
    """
    return {recipe.name for recipe in buildable(lake)}


def _stands(lake: Lake, recipe: Recipe) -> bool:
    return (lake.root / lake.artifact("puzzles", recipe.name) / provenance.RECORD).exists()


def _read(lake: Lake, path: Path, links: LinkRule) -> Recipe:
    recipe = read_recipe_file(path, links)
    _check_published(lake, recipe, path)
    return recipe


def _check_published(lake: Lake, recipe: Recipe, path: Path) -> None:
    """Refuse a recipe with the name of a published dataset of another kind."""
    record = lake.root / lake.artifact("puzzles", recipe.name) / provenance.RECORD
    if not record.exists():
        return
    asset = provenance.read_record(record).asset
    if asset != recipe.asset:
        raise BadInput(
            path,
            f'kind = "{recipe.kind}": {asset} has published a dataset of the name {recipe.name}, '
            "and a name has one kind: rename the recipe, or move the dataset away",
        )
