"""The group `gristmill`: its own commands, and those that are imported only when called.

Commands that need Dagster are entry points of the group `gristmill.commands`, so that this
package imports nothing above it and `gristmill --help` does not import Dagster. A family's own
commands are those that its catalog names; their module is imported when one is called.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from importlib import import_module, metadata
from typing import Any, Final

import click
from click.core import ParameterSource

from gristmill import families
from gristmill.contract import GristmillError, in_words, is_of_machine
from gristmill.families.kinds import LATER, Listed
from gristmill.printable import plain
from gristmill.run import interrupts
from gristmill.settings.fields import nearest

ENTRY_POINTS: Final = "gristmill.commands"

# Characters of an error, which may quote text of a drop.
_MOST: Final = 5000
# Characters of the first sentence of a help; longer ones wrap.
_LINE: Final = 200

GROUPS: Final = {
    "begin": "Begin",
    "build": "Build",
    "look": "Look",
    "check": "Check",
    "share": "Share",
    "clean": "Clean up",
    "": "Of other packages",
}
"""Each group of commands with its title in `gristmill --help`, in the order of the titles."""

LATE_COMMANDS: Final = {
    "drop": Listed("begin", "Copy a folder or a file into an inbox, to be taken whole.", 2),
    "fetch": Listed("begin", "Download the raw files of a corpus into a drop.", 3),
    "materialize": Listed("build", "Build assets, and print what was built.", 1),
    "build": Listed("build", "Build one partition, or one rank of it, without a Dagster run."),
    "parts": Listed("build", "Make one share of the parts of a partition, for an array job."),
    "ui": Listed("look", "Serve the UI, the sensors and the schedules.", 1),
    "metrics": Listed("check", "Print or serve numbers of the instance for Prometheus."),
    "adopt": Listed("share", "Tell a new instance what is published; removes nothing."),
    "retire": Listed("clean", "Forget a drop that you deleted, and its partition; artifacts stay."),
    "reap": Listed("clean", "Close dead runs, and remove what killed builds left unpublished."),
    "prune": Listed("clean", "Remove old runs, logs and ticks of the instance; artifacts stay."),
}
"""The commands that need Dagster, by name; the rest of their help is in `commands/`."""


class CommandGroup(click.Group):
    """A group that adds `LATE_COMMANDS` and the families' own, and prints errors as one line.

    A GristmillError, or an error of the disk, ends the command with exit status 1, an interrupt
    with 130.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._listed: dict[str, Listed] = {}

    def listed(self, group: str, order: int = LATER) -> Callable[[click.Command], click.Command]:
        """Returns a decorator that adds a command to a group of `GROUPS`, as `Listed` has it."""

        def add(command: click.Command) -> click.Command:
            self.add_command(command)
            self._listed[str(command.name)] = Listed(
                group, command.get_short_help_str(_LINE), order
            )
            return command

        return add

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run the program; an output that is not UTF-8 shows `?` for what it does not have."""
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")
        return super().main(*arguments, **options)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in groups, those of the first week first."""
        listed = self.all_listed()
        width = max(map(len, listed))
        for group, title in GROUPS.items():
            names = [name for name, each in listed.items() if each.group == group]
            if names:
                with formatter.section(title):
                    formatter.write_dl(
                        [(name.ljust(width), listed[name].line) for name in names], col_spacing=2
                    )

    def all_listed(self) -> dict[str, Listed]:
        """All commands by name, in the order of `gristmill --help` within each group."""
        others = dict.fromkeys(_entry_points(), Listed("", ""))
        of_families = {name: listed for name, (_, listed) in families.commands().items()}
        found = {**others, **of_families, **LATE_COMMANDS, **self._listed}
        return dict(sorted(found.items(), key=lambda item: (item[1].order, item[0])))

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
            if isinstance(error, OSError) and not is_of_machine(error):
                raise
            raise click.ClickException(
                plain(" ".join(str(in_words(error)).split()), _MOST)
            ) from error
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            raise SystemExit(interrupts.STATUS) from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands, sorted."""
        return sorted(self.all_listed())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command; for one that is imported late only its name and its line of help."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            return command
        listed = self.all_listed().get(cmd_name)
        return None if listed is None else click.Command(cmd_name, short_help=listed.line)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that `args` call, imported if it is a late one."""
        if not ctx.resilient_parsing:
            self._refuse_unknown(ctx, args[0])
        name, command, rest = super().resolve_command(ctx, args)
        if name is None or super().get_command(ctx, name) is not None:
            return name, command, rest
        if name not in LATE_COMMANDS and name in families.commands():
            return name, _load_own(name), rest
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


def _entry_points() -> dict[str, metadata.EntryPoint]:
    return {point.name: point for point in metadata.entry_points(group=ENTRY_POINTS)}


def _is_default_root(error: click.BadParameter) -> bool:
    """Whether the data root that is refused was given by nobody."""
    param, ctx = error.param, error.ctx
    if param is None or ctx is None or param.name is None or param.envvar != "GRISTMILL_DATA":
        return False
    return ctx.get_parameter_source(param.name) is ParameterSource.DEFAULT


def _load_own(name: str) -> click.Command:
    """Import a command of a family."""
    module, _ = families.commands()[name]
    command = getattr(import_module(module), name.replace("-", "_"), None)
    if not isinstance(command, click.Command):
        raise TypeError(f"{module}: {name}, which the catalog names, must be a click.Command")
    return command


def load_late(name: str) -> click.Command:
    """Import a command of `LATE_COMMANDS`.

    Raises ClickException, which names the extra that is missing.
    """
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
