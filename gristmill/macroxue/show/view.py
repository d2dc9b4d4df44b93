"""A training view in a terminal and in Dagster: the pictures of its packs, and what was marked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from gristmill import markdown
from gristmill.families import Request
from gristmill.macroxue.format.metadata_db import read_gaps
from gristmill.macroxue.format.view_files import SIDES, TRAIN, read_description
from gristmill.macroxue.show import terminal
from gristmill.macroxue.show.preview import pack_preview
from gristmill.publish.build import Published

if TYPE_CHECKING:
    from rich.console import RenderableType

_GAPS_SHOWN = 50


def show(request: Request) -> Iterator[RenderableType]:
    """Yield what a person asks to see: a row, a step of a run, or steps of a run, of one side."""
    view = read_description(request.path)
    side = (request.options.get("split") or TRAIN) if view.sides == SIDES else ""
    return terminal.show(replace(request, path=request.path / side))


def preview(published: Published) -> dict[str, str]:
    """Markdown documents that show a view, by title: those of its training rows, and its gaps."""
    folder = published.folder
    view = read_description(folder)
    documents = pack_preview(folder / view.sides[0])
    picture = documents.pop("picture")
    rows = [
        (side or "all", str(gap.run_id), f"{gap.step_index:,}", gap.reason)
        for side in view.sides
        for gap in read_gaps(folder / side / "metadata.db")
    ]
    more = f"\n\n{len(rows) - _GAPS_SHOWN:,} more.\n" if len(rows) > _GAPS_SHOWN else "\n"
    table = markdown.table(("folder", "run", "step", "reason"), rows[:_GAPS_SHOWN], "lrrl")
    gaps = table + more if rows else "No run has missing steps.\n"
    return {"picture": picture, "gaps": gaps, **documents}
