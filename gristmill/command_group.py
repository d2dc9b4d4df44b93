"""The group `gristmill`: its own commands, and those that are imported only when called.

Commands that need Dagster are entry points of the group `gristmill.commands`, so that this package
imports nothing above it and `gristmill --help` does not import Dagster. A family's own commands are
those that its catalog names. The module of each of these, and of what `OWN` names, is imported when
one is called.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from gristmill import families
from gristmill.contract import GristmillError, in_words, is_of_machine
from gristmill.printable import plain
from gristmill.run import interrupts
from gristmill.settings.fields import nearest

if TYPE_CHECKING:
    from importlib import metadata

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
        "build": "Build one partition, or one rank of it, without a Dagster run.",
        "parts": "Make one share of the parts of a partition, for an array job.",
    },
    "Look": {
        "ls": "List the artifacts, and whether each is current.",
        "show": "Show one sample of an artifact.",
        "browse": "Show, search and filter the rows of artifacts in a browser.",
        "trace": "Say which raw bytes one sample came from.",
    },
    "Check": {
        "verify": "Hash artifacts against their records, and check their laws.",
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
        "retire": "Forget a drop whose raw files are gone, and its partition.",
        "prune": "Close dead runs, remove what killed builds left, and old runs.",
        "adopt": "Tell a new instance what is published; removes nothing.",
    },
}
"""The commands by what a person wants, those of the first week first: name and line of help.

The families' own commands join these groups: `families.commands`.
"""

OWN: Final[Mapping[str, str]] = {
    "look": "gristmill.look.command",
    **dict.fromkeys(("show", "trace"), "gristmill.sample_commands"),
    "browse": "gristmill.browse.commands",
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
        for group, lines in grouped().items():
            with formatter.section(group):
                formatter.write_dl([(name.ljust(width), line) for name, line in lines.items()])

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
            self._refuse_unknown(ctx, args[0])
        name, command, rest = super().resolve_command(ctx, args)
        if name is None or super().get_command(ctx, name) is not None:
            return name, command, rest
        if name in OWN:
            return name, _load_own(name, OWN[name]), rest
        if (own := families.commands().get(name)) is not None:
            return name, _load_own(name, own.module), rest
        try:
            return name, load_late(name), rest
        except click.ClickException:
            if ctx.resilient_parsing:  # shell completion: no options to offer
                return name, command, rest
            raise

    def _refuse_unknown(self, ctx: click.Context, name: str) -> None:
        """End with status 2 for an unknown command; click itself knows no late one to suggest."""
        if name.startswith("-") or self.get_command(ctx, name) is not None:
            return
        close = nearest(name, self.list_commands(ctx))
        ctx.fail(f"No such command {name!r}.{f' Did you mean {close!r}?' if close else ''}")


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


def _is_default_root(error: click.BadParameter) -> bool:
    """Whether the data root that is refused was given by nobody."""
    param, ctx = error.param, error.ctx
    if param is None or ctx is None or param.name is None or param.envvar != "GRISTMILL_DATA":
        return False
    return ctx.get_parameter_source(param.name) is ParameterSource.DEFAULT


@contextmanager
def _kept(module: str) -> Iterator[None]:
    """Collect no garbage while a module is imported for the first time: it stays until the end."""
    if module in sys.modules:
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _load_own(name: str, module: str) -> click.Command:
    """Import a command that `OWN` or the catalog of a family names."""
    with _kept(module):
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
        with _kept(point.module):
            command = point.load()
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"`gristmill {name}` needs a checkout of Gristmill with the extra `pipeline`: "
            f'in the checkout, run pip install -e ".[pipeline,chess]" ({error})'
        ) from error
    if not isinstance(command, click.Command):
        raise TypeError(f"{point.value}: an entry point of {ENTRY_POINTS} must be a click.Command")
    return command
