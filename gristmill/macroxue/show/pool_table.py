"""The origin of `macroxue/pool` as a Markdown table: members and raw drops."""

from __future__ import annotations

from pathlib import Path

from gristmill import markdown
from gristmill.contract import BadInput
from gristmill.macroxue.builders.pool_sidefiles import pool_members
from gristmill.macroxue.format.jsonl import read_lines
from gristmill.macroxue.format.metadata_db import read_runs
from gristmill.markdown import Markdown

_HEADERS = (
    "pack",
    "runs",
    "rows",
    "share",
    "run ids",
    "first row",
    "highest score",
    "raw drops",
)
_DROPS_SHOWN = 8


def origin_table(pool: Path) -> str:
    """Markdown: the pack and the raw drops that the rows and runs of a pool came from.

    One line for each member, in order: its runs and rows, its percentage of the rows, its run ids,
    its first row, its highest score, and the raw drops in its trace. Raises BadInput where the
    folder is no pool, or has no trace.jsonl.
    """
    members = pool_members(pool)
    runs = read_runs(pool / "metadata.db")
    trace = read_lines(pool / "trace.jsonl")
    if sum(entry["runs"] for entry in members) != len(runs):
        raise BadInput(
            pool / "metadata.db",
            f"has {len(runs)} runs, but not those that session key 'packs' counts",
        )
    total = sum(run.steps for run in runs)
    rows: list[tuple[str, ...]] = []
    for entry in members:
        first, count = entry["first_run"], entry["runs"]
        own = slice(first, first + count)
        drops = sorted({str(line["drop"]) for line in trace[own] if "drop" in line})
        best = max((run.max_score for run in runs[own]), default=0)
        rows.append(
            (
                markdown.code(str(entry["name"])),
                f"{count:,}",
                f"{entry['rows']:,}",
                f"{entry['rows'] / total:.1%}",
                f"{first:,}–{first + count - 1:,}",
                f"{entry['first_row']:,}",
                f"{best:,}",
                _drops(drops),
            )
        )
    rows.append(("all", f"{len(runs):,}", f"{total:,}", "100.0%"))
    return markdown.table(_HEADERS, rows, "lrrrlrrl") + "\n"


def _drops(drops: list[str]) -> Markdown:
    text = ", ".join(markdown.code(drop) for drop in drops[:_DROPS_SHOWN]) or "not traced"
    more = len(drops) - _DROPS_SHOWN
    return Markdown(f"{text} and {more} more" if more > 0 else text)
