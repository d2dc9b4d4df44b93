"""The table at the end of `gristmill materialize`: the outcome of each partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.table import Table

from commands.terminal import console, say, shown_lines
from commands.terminal import shown as shown_text

_COLOURS = {"built": "green", "failed": "red"}


@dataclass(frozen=True)
class Outcome:
    """The outcome of one partition: a row of the table.

    asset: key of the asset, as `macroxue/pack`.
    partition: key of the partition; empty for an asset without partitions.
    status: `built`, `unchanged`, `not built` or `failed`.
    rows: number of rows; None for an artifact without rows.
    bytes: sum over all files of the artifact.
    seconds: duration of the recorded build.
    place: the published folder; empty if nothing was published.
    reason: why the partition was not built, or how it failed.
    error: class of the library's error that it failed with; empty for any other failure.
    """

    asset: str
    partition: str
    status: str
    rows: int | None = None
    bytes: int = 0
    seconds: float = 0.0
    place: str = ""
    reason: str = ""
    error: str = ""

    @property
    def target(self) -> str:
        """The asset, and the partition if there is one."""
        return " ".join(filter(None, (self.asset, self.partition)))


def show(outcomes: Sequence[Outcome], seconds: float, started_in: Path) -> None:
    """Print the table, the reasons of partitions that were not built, and a summary.

    outcomes: the rows of the table, in order.
    seconds: duration of the command.
    started_in: folders below this folder are shown relative to it.
    """
    console.print(_table(outcomes, started_in))
    for item in outcomes:
        if item.reason:
            colour = "red" if item.status == "failed" else "yellow"
            line = f"{shown_text(item.target)}: {shown_lines(item.reason)}"
            say(f"[{colour}]{item.status}[/] {line}")
    if all(item.status in ("unchanged", "not built") for item in outcomes):
        say(f"nothing needed doing ({len(outcomes)} artifacts, {seconds:.1f} s)")
    else:
        built = sum(item.status == "built" for item in outcomes)
        say(f"{built} built in {seconds:.1f} s; `gristmill ui` shows them")


def _table(outcomes: Sequence[Outcome], started_in: Path) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("asset", "partition", "status", "folder"):
        table.add_column(name, overflow="fold")
    for name in ("rows", "bytes", "seconds"):
        table.add_column(name, justify="right")
    for item in outcomes:
        colour = _COLOURS.get(item.status, "default")
        place = Path(item.place)
        shown = place.relative_to(started_in) if place.is_relative_to(started_in) else place
        table.add_row(
            item.asset,
            shown_text(item.partition),
            f"[{colour}]{item.status}[/]",
            shown_text(str(shown)) if item.place else "",
            "" if item.rows is None else f"{item.rows:,}",
            f"{item.bytes:,}" if item.place else "",
            f"{item.seconds:.2f}" if item.place else "",
        )
    return table
