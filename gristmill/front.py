"""`gristmill build PATH`: files of your own become artifacts, in one command and without Dagster.

It looks, copies the drop with the recipe that the look proposes, and publishes what its family
makes of it, under the same laws and with the same bytes and records as a run of Dagster.
Source: docs/own-files.md.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click

from gristmill import families, keys
from gristmill.asset import Asset, Wanted, declared
from gristmill.cli import data_root_option
from gristmill.contract import GristmillError, NothingToBuild
from gristmill.corpora.corpus import NAME
from gristmill.corpora.raw.drops import CORPUS
from gristmill.corpora.trial import name_of
from gristmill.data_root import DataRoot, NotBuilt
from gristmill.inbox.copying import THERE_ALREADY, Tools, copy_in, source_files
from gristmill.inbox.listing import Account, column_lines, refused_place
from gristmill.inbox.marks import SETTINGS
from gristmill.layout import WORK
from gristmill.leaks import commands as leaks
from gristmill.look import finding, report
from gristmill.printable import command, plain
from gristmill.publish import atomic_fs
from gristmill.publish.build import Build
from gristmill.publish.publish import publish
from gristmill.puzzles.builds import recipes
from gristmill.puzzles.raw.drops import proposal as grids
from gristmill.run import interrupts
from gristmill.run.progress import reporter, shown_on_stderr
from gristmill.run.workers import kept_workers
from gristmill.takedowns.work import arrived
from gristmill.untrusted.files import LinkRule
from gristmill.vocabularies.pinned import VOCABULARIES
from gristmill.vocabularies.placing import fetch

_PINNED: Final = {f"tokenizers/{each.name}": each for each in VOCABULARIES}


@click.command()
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--name", help="Of the dataset; the name of PATH by default.")
@click.option("--replace", is_flag=True, help="Replace a drop that has other contents.")
@data_root_option
def build(path: Path, name: str | None, replace: bool, data_root: Path) -> None:
    """Build what PATH, a folder or a file of your own, becomes: tokens, conversations, games.

    It looks, copies the files into a drop with the recipe that the look proposes, and publishes
    what the family of the drop makes of it, in this process. DATA_ROOT is begun where it is not
    there. Files that nothing reads, a drop that is refused and a build that fails end it with
    status 1; what was published before stays.
    """
    root, path = DataRoot(data_root), path.resolve()
    if name is not None and (reason := keys.refusal(name)):
        raise click.UsageError(f"{reason}: choose another with --name")
    drops = data_root.resolve() / "drops"
    if path in (drops, *drops.parents) or path.parent == drops:
        rule = "what is built would be built again from there: choose another with --data-root"
        raise click.UsageError(f"{path} holds drops of {data_root}: {rule}")
    work = data_root / WORK
    work.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=work) as scratch, interrupts.watched():
        looked = finding.look(path, root.link_rule(), name=name)
        if name is not None:  # a recipe of puzzles names the drop
            looked.takers = [
                dataclasses.replace(each, recipe=grids(each.path, root.link_rule(), name))
                if each.recipe and not each.beside
                else each
                for each in looked.takers
            ]
        found, links = finding.alone(looked, Path(scratch), root.link_rule(), name)
        for line in report.lines(looked, data_root, is_built=True):
            click.echo(line)
        beside = (path if path.is_dir() else path.parent) / CORPUS
        if path.is_dir() and not found.takers and beside.exists():
            rules = [found.refused.get(each, "") for each in (finding.OWN, finding.TALKS)]
            # The family that does not refuse its kind has the reason.
            rule = next((each for each in rules if 'kind = "chat"' not in each), "")
            rule = f"{rule or f'{beside}: reads no row'}; where there is none, it is guessed"
            raise GristmillError(f"{path}: nothing is built: {rule}")
        if path.is_file() and beside.exists() and found.proposal.good:
            click.echo(plain(f"note: {beside} is not taken: build the folder to build with it"))
        for line in leaks.lines(data_root, path):
            click.echo(plain(f"note: {line}"))
        if not found.takers and not found.proposal.good:
            cure = found.proposal.text and f": build a folder of it and this {CORPUS}, corrected"
            if name is not None and not NAME.fullmatch(name):
                cure = f": --name takes lower case, digits and single _, as {name_of(name)}"
            raise GristmillError(f"{path}: nothing is built: no recipe reads it{cure}")
        inbox, place = _copied(root, found, name, links, replaces=replace)
    _say_account(root, inbox, place)
    with kept_workers():
        built = [*_published(root, inbox, place)]
    if not built:
        raise GristmillError(f"{place}: nothing is built of it")
    click.echo(f"built in {plain(str(data_root))}; look at it with")
    own = [str(built[-1].partition)] if built[-1].shared else []
    click.echo(f"  {command('show', os.path.relpath(built[-1].folder), *own)}")
    click.echo(f"  {command('browse', os.path.relpath(data_root))}")


def _copied(
    root: DataRoot, found: finding.Look, name: str | None, links: LinkRule, *, replaces: bool
) -> tuple[str, Path]:
    """Copy what was looked at, with the recipe of the look; returns the inbox and the drop."""
    taker, made = next(iter(found.takers), None), found.proposal
    if taker is not None:
        inbox, source = taker.inbox, taker.path
        adds = {taker.beside: taker.recipe.encode()} if taker.beside else {}
    else:
        inbox, source, adds = made.inbox, found.reading.path, {CORPUS: made.text.encode()}
    shape = families.drop_kind(inbox).shape
    sizes = source_files(source, links)
    is_folder = bool(source.is_dir() or adds or not shape.endings)
    own = shape.key_of(source.name) if taker is not None else found.name
    key = name or (taker.name if taker is not None else "") or own
    place = root.inbox(inbox) / (key if is_folder else key + shape.ending_of(source.name))
    if reason := refused_place(place.parent, place.name, shape, links, is_folder=is_folder):
        raise click.UsageError(reason)
    if taker is not None and taker.recipe and not taker.beside:
        made_for = recipes(root).get(found.name)
        if made_for is None or place.name not in made_for.drops:
            finding.write(found, root.root)
    # A person may have corrected the drop's own.
    beside = [each for each in (*adds, SETTINGS) if each not in sizes] if is_folder else []
    kept = {each: (place / each).read_bytes() for each in beside if (place / each).is_file()}
    adds |= kept
    size = sum(sizes.values())
    with shown_on_stderr() as shown, shown.stage("copy", "bytes", size) as stage:
        tools = Tools(atomic_fs.place, atomic_fs.exchange, stage.advance, links, adds=adds)
        above = source.parent if is_folder and source.is_file() else source
        copied = copy_in(above, place, sizes, tools, replaces)
    click.echo(plain(str(copied)))
    if kept and copied.status != THERE_ALREADY:
        click.echo(plain(f"kept: {', '.join(kept)} of the drop"))
    if again := arrived(root.root, copied):
        click.echo(plain(again))
    return inbox, place


def _say_account(root: DataRoot, inbox: str, place: Path) -> None:
    """Print what becomes of the files and columns. Raises GristmillError for a refused drop."""
    accounts = list[Account]()
    judged = root.judged(inbox, place, accounts)
    columns = [each for made in accounts for each in root.columns(place, made)]
    for line in (*column_lines(columns), *judged.notes):
        click.echo(plain(line))
    if not judged.is_buildable:
        raise GristmillError(f"{place}: {judged.state}: {judged.reason}")


def _published(root: DataRoot, inbox: str, place: Path) -> Iterator[Build]:
    """Publish what the family of a drop makes of it, in the order of its assets; yield each."""
    drop, made = place.relative_to(root.root).as_posix(), dict[str, list[str]]()
    for asset in _assets(inbox):
        before = next((made[each] for each in asset.inputs if each in made), None)
        follows = any(each in made for each in asset.all_of)
        for key in asset.ready(root) if before is None or not asset.partitions else before:
            interrupts.raise_again()
            if not asset.is_asked(root, key):
                continue
            try:
                build = _build(Wanted(asset, root, key))
            except NothingToBuild as reason:
                click.echo(plain(f"{asset.asset} {key}".rstrip() + f": not built: {reason}"))
                continue
            paths = (str(each.path) for each in build.inputs)
            is_own = any(path == drop or path.startswith(f"{drop}/") for path in paths)
            if before is None and not (is_own or follows):
                continue
            _publish(build, key)
            if asset.partitions:  # no manifest
                made.setdefault(asset.asset, []).append(key)
                yield build


def _build(wanted: Wanted) -> Build:
    """The build of a partition, once the pinned vocabulary that it takes is there."""
    try:
        return wanted.asset.build(wanted)
    except NotBuilt as error:
        if error.asset not in _PINNED:
            raise
        fetch(wanted.root.root, [_PINNED[error.asset]])
        asset = declared()[error.asset]
        _publish(asset.build(Wanted(asset, wanted.root, "")))
        return wanted.asset.build(wanted)


def _publish(build: Build, key: str = "") -> None:
    name = f"{build.asset} {key}".rstrip()
    progress = reporter(work=name)
    with shown_on_stderr(), progress.working() as lines:
        published = publish(build, wait=True, progress=progress)
        lines.append("done")
    what = "published" if published.rebuilt else "unchanged"
    click.echo(plain(f"{name}: {what}, {published.folder}"))
    for note in (published.account, published.not_checked, *published.notes):
        if note:
            click.echo(plain(f"  {note}"))


def _assets(inbox: str) -> Iterator[Asset]:
    """The assets that the drops of an inbox become, and the manifests that readers ask for."""
    sources = (each for catalog in families.catalogs() for each in catalog.sources)
    known, targets = declared(), next(each.targets for each in sources if each.inbox == inbox)
    yield from (known[name] for name in targets)
    for asset in known.values():
        if asset.follows and not asset.partitions and {*targets} & {*asset.all_of}:
            yield asset
