"""`gristmill drop`: copy a folder or a file into an inbox, so that it is taken whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import click
from rich.markup import escape

from assets.inbox import Inbox
from commands.checkout import CheckoutCommand, called, say, shown
from commands.graph import INBOXES, first_and_last
from gristmill.asset import Asset, Wanted, declared
from gristmill.chess.laws.incoming import file_notes
from gristmill.contract import GristmillError
from gristmill.corpora.corpus import CORPORA
from gristmill.corpora.raw.drops import CORPUS
from gristmill.data_root.states import DropStates
from gristmill.inbox import REFUSED, UNREAD
from gristmill.inbox.copying import THERE_ALREADY, Copied, Tools, copy_in, source_files
from gristmill.inbox.listing import Account, column_lines, list_inbox, refused_place
from gristmill.leaks import commands as leaks
from gristmill.look.finding import OWN, TALKS, look, refused_rows
from gristmill.look.reading import listed
from gristmill.look.report import lines
from gristmill.provenance import unusual
from gristmill.provenance.find_artifacts import artifacts, readable
from gristmill.provenance.raw_inputs import DropHashes
from gristmill.publish import atomic_fs
from gristmill.puzzles.builds import buildable, recipes, takes
from gristmill.puzzles.raw.drops import INBOX as PUZZLES
from gristmill.puzzles.raw.drops import proposal
from gristmill.run import amounts
from gristmill.run.progress import shown_on_stderr
from gristmill.takedowns.work import arrived
from gristmill.untrusted.files import LinkRule
from resources import Lake

CHESS = "chess"
_MOST_NAMED = 4
_INBOXES = {inbox.folder: inbox for inbox in INBOXES}


@click.command(cls=CheckoutCommand)
@click.argument("path", type=click.Path(exists=True, resolve_path=True, path_type=Path))
@click.option(
    "--family",
    type=click.Choice(sorted(_INBOXES)),
    help="The inbox below drops/. Without it PATH is looked at, and nothing is copied.",
)
@click.option("--name", help="Key of the drop; the name of PATH by default.")
@click.option("--replace", is_flag=True, help="Replace a drop that has other contents.")
@click.option(
    "--keep-numbers",
    is_flag=True,
    help="With --replace, of a corpus: write tombstones, so that rows that stay keep their ids.",
)
def drop(
    path: Path, family: str | None, name: str | None, replace: bool, keep_numbers: bool
) -> None:
    """Copy PATH, a folder or a file, into an inbox, so that the drop is taken whole.

    It appears there in one step, with a list of its sums, by which it is verified. A copy that was
    interrupted continues where it stopped when the command is run again. A drop that is there with
    the same contents is left alone; one with others needs --replace. The last line is the state
    that the drop is in now; status 1 if it is refused, and the copy stays. Of a folder that is no
    known corpus and has no recipe, the command says what `gristmill look` says, with status 1.
    """
    lake = Lake()
    if family is None:
        _look(path, lake.rules(OWN)[0], name, "name the inbox with --family", 2)
    if keep_numbers and not (replace and family == OWN):
        raise click.UsageError(f"--keep-numbers goes with --replace --family {OWN}")
    inbox = _INBOXES[family]
    links, _, wrong = lake.rules(family)
    if wrong:
        raise GristmillError(wrong)
    place = _place(lake, inbox, path, name, links)
    if family == OWN and place.name not in CORPORA and not (path / CORPUS).exists():
        _look(path, links, name, f"it is no known corpus, and has no {CORPUS}", 1)
    said = list[str]()

    def staged(copy: Path) -> None:
        from gristmill.reasoning.builders.forget import renumbered  # imports what reads rows

        said.extend(renumbered(lake, place.name, copy, keeps=keep_numbers))

    copied = _copy(path, place, links, replace, staged if family == OWN else None)
    for line in (*said, str(copied)):
        say(shown(line))
    if again := arrived(lake.root, copied):
        say(shown(again))
    _say_state(lake, inbox, place, is_known=copied.status == THERE_ALREADY)


def _look(path: Path, links: LinkRule, name: str | None, reason: str, status: int) -> NoReturn:
    """Print what is in a folder or a file, and end the command with a status."""
    for line in lines(look(path, links, name=name)):
        say(escape(line))
    for line in leaks.lines(Lake().root, path):
        say(f"note: {escape(shown(line))}")
    say(f"[red]nothing is copied[/]: {reason}")
    raise SystemExit(status)


def _say_state(lake: Lake, inbox: Inbox, place: Path, *, is_known: bool) -> None:
    """Print the account and the state of a drop. Ends the command with status 1 if refused."""
    made = list[Account]()
    found = lake.judged(inbox.folder, place, made)
    columns = [each for account in made for each in lake.columns(place, account)]
    files = [line for account in made for line in account.lines]
    for line in (*files, *column_lines(columns), *found.notes):
        say(shown(line))
    for line in leaks.lines(lake.root, place):
        say(f"[yellow]note[/] {shown(line)}")
    if found.is_buildable and is_known and DropStates(lake.root).is_taken(place):
        for line in _said_of(lake, place):
            say(f"[yellow]note[/] {shown(line)}")
        say("taken: what is built from it is current")
        return
    if found.is_buildable:
        _say_builds(lake, inbox, place)
        say(f"ready: its sensor takes it within a minute, or run `{called('materialize --all')}`")
        return
    colour = "red" if found.state == REFUSED else "yellow"
    say(f"[{colour}]{found.state}[/]: {shown(found.reason)}")
    links = lake.rules(inbox.folder)[0]
    if found.state == UNREAD and inbox.folder == PUZZLES and (text := proposal(place, links)):
        say(f"a build by these lines: {takes(place, text, links)}")
    if found.state == REFUSED:
        raise SystemExit(1)


def _said_of(lake: Lake, place: Path) -> Iterator[str]:
    """What is unusual in what was built from a drop."""
    across = unusual.AcrossPartitions(artifacts(lake.root))
    for item, record, inputs in readable(artifacts(lake.root)):
        if any(place in (path := lake.root / str(each.path), *path.parents) for each in inputs):
            for line in unusual.lines(item, record, across.of(record.asset)):
                yield f"{' '.join(filter(None, (record.asset, record.partition)))}: {line}"


def _say_builds(lake: Lake, inbox: Inbox, place: Path) -> None:
    """Print what the builds of a drop will take, and raw files of them that are equal."""
    notes: dict[str, None] = {}
    links = lake.rules(inbox.folder)[0]
    if inbox.folder == CHESS:
        found = listed(place, links)
        notes |= dict.fromkeys(file_notes(found.root, found.others, links))
    elif inbox.folder in (OWN, TALKS):
        notes |= dict.fromkeys(refused_rows(place, links))
    for asset, wanted, asks in _builds_of(lake, inbox, place):
        builds = []
        for key in wanted:
            with suppress(GristmillError, OSError):  # its input is built first, or it says why not
                builds.append(asset.build(Wanted(asset, lake, key)))
        if not builds:
            continue
        keys = first_and_last(wanted, most=_MOST_NAMED)
        rows, size = sum(each.rows for each in builds), sum(each.space for each in builds)
        how = f", if you ask: `{called(f'materialize {asset.asset} --partition {keys}')}`"
        say(f"{asset.asset} {shown(keys)}: {amounts.needed(rows, size)}{how if asks else ''}")
        others = _others(lake, inbox, place, links) if asset.across else {}
        for build in builds:
            equal = (build.artifact, build.partition, build.inputs, others)
            notes |= {note.found: None for note in unusual.equal_notes(asset.asset, *equal)}
    for line in notes:
        say(f"[yellow]note[/] {shown(line)}")


def _others(lake: Lake, inbox: Inbox, place: Path, links: LinkRule) -> dict[str, dict[str, str]]:
    """The other drops of an inbox that are files of known sums, as `unusual` takes them."""
    found: dict[str, dict[str, str]] = {}
    for key, entries in list_inbox(lake.inbox(inbox.folder), inbox.shape, links)[0].items():
        for path in (Path(entry.path) for entry in entries if entry.path != str(place)):
            if path.is_file() and (sha256 := DropHashes(lake.root, path).of_now(path.name, links)):
                found.setdefault(sha256, {})[path.relative_to(lake.root).as_posix()] = key
    return found


def _builds_of(lake: Lake, inbox: Inbox, place: Path) -> Iterator[tuple[Asset, list[str], bool]]:
    """The assets that are built from a drop, their partitions, and whether a person must ask."""
    known = [declared()[target.key.to_user_string()] for target in inbox.targets]
    if inbox.folder == PUZZLES:
        given = [recipe.name for recipe in buildable(lake)]
        for recipe in recipes(lake).values():
            if place.name in recipe.drops and (recipe.is_large or recipe.name in given):
                asset = next(each for each in known if each.asset == recipe.asset)
                yield asset, [recipe.name], recipe.name not in given
    elif inbox.starts is None:
        keys = [inbox.shape.key_of(place.name)]
        if inbox.keys_of is not None:
            keys = list(inbox.keys_of(place))
        elif not inbox.is_by_drop:
            keys = list(inbox.partitions.get_partition_keys())
        for asset in known:
            yield asset, keys, False


def _copy(
    path: Path, place: Path, links: LinkRule, replace: bool, staged: Callable[[Path], None] | None
) -> Copied:
    if path == place:
        raise click.UsageError(f"{path} is in the inbox already")
    if place.is_relative_to(path) or path.is_relative_to(place):
        raise click.UsageError(f"{path}: holds its own copy or is in it: name another folder")
    size = sum((sizes := source_files(path, links)).values())
    with shown_on_stderr() as progress, progress.stage("copy", "bytes", size) as stage:
        tools = Tools(atomic_fs.place, atomic_fs.exchange, stage.advance, links, staged)
        return copy_in(path, place, sizes, tools, replace)


def _place(lake: Lake, inbox: Inbox, path: Path, name: str | None, links: LinkRule) -> Path:
    """Where the drop goes. Raises click.UsageError for a name or a kind that cannot be there."""
    folder, shape = lake.inbox(inbox.folder), inbox.shape
    file, is_folder, endings = path.name, path.is_dir(), " or ".join(shape.endings)
    ending = "" if is_folder else shape.ending_of(file)
    apart = ": unpack it, or put it into a folder of its own" if shape.folders else ""
    takes = f"drops/{inbox.folder}/ takes"
    for is_wrong, rule in (
        (
            is_folder and endings and not shape.folders,
            f"{path} is a folder: {takes} {endings} files",
        ),
        (not is_folder and not endings, f"{path} is a file: {takes} folders; put it into one"),
        (not is_folder and not ending, f"{file} must end in {endings}{apart}"),
    ):
        if is_wrong:
            raise click.UsageError(rule)
    if name is not None:
        file = name if ending and name.endswith(ending) else name + ending
    if reason := refused_place(folder, file, shape, links, is_folder=is_folder):
        raise click.UsageError(reason)
    return folder / file
