"""The group `gristmill`: its own commands, and those that are imported only when called.

Commands that need Dagster are entry points of the group `gristmill.commands`, so that this
package imports nothing above it and `gristmill --help` does not import Dagster.
"""

from __future__ import annotations

from importlib import metadata
from typing import Any, Final

import click

from gristmill.contract import GristmillError
from gristmill.printable import plain

ENTRY_POINTS: Final = "gristmill.commands"

# Characters of an error, which may quote text of a drop.
_MOST: Final = 5000

LATE_COMMANDS: Final = {
    "fetch": "Download the raw files of a corpus into a drop.",
    "materialize": "Build assets, and print what was built.",
    "reap": "Close runs whose process is dead; clean up after killed builds.",
    "retire": "Forget the partition of a drop that is gone.",
    "ui": "Serve the UI, the sensors and the schedules.",
}
"""Name and help of the commands that need Dagster; the rest of their help is in `commands/`."""


class CommandGroup(click.Group):
    """A group that adds `LATE_COMMANDS`, and prints the library's errors as one line.

    A GristmillError ends the command with exit status 1.
    """

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except GristmillError as error:
            raise click.ClickException(plain(" ".join(str(error).split()), _MOST)) from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands, sorted."""
        return sorted({*super().list_commands(ctx), *LATE_COMMANDS, *_entry_points()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command; for one that is imported late only its name and its line of help."""
        command = super().get_command(ctx, cmd_name)
        if command is None and (cmd_name in LATE_COMMANDS or cmd_name in _entry_points()):
            return click.Command(cmd_name, short_help=LATE_COMMANDS.get(cmd_name, ""))
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that `args` call, imported if it is a late one."""
        name, command, rest = super().resolve_command(ctx, args)
        if name is None or super().get_command(ctx, name) is not None:
            return name, command, rest
        try:
            return name, _load(name), rest
        except click.ClickException:
            if ctx.resilient_parsing:  # shell completion: no options to offer
                return name, command, rest
            raise


def _entry_points() -> dict[str, metadata.EntryPoint]:
    return {point.name: point for point in metadata.entry_points(group=ENTRY_POINTS)}


def _load(name: str) -> click.Command:
    """Import a late command. Raises ClickException, which names the extra that is missing."""
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
