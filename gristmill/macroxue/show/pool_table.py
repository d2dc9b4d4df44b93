"""The members of a pool as a Markdown table."""

from __future__ import annotations

from pathlib import Path

from gristmill.contract import BadInput
from gristmill.macroxue.build.pool_sidefiles import pool_members
from gristmill.macroxue.format.jsonl import read_lines
from gristmill.macroxue.format.metadata_db import read_runs


def _cell(text: object) -> str:
    return str(text).replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")


def origin_table(pool: Path) -> str:
    """Markdown: which rows and runs of a pool came from which pack and raw drops.

    One line for each member, in order, with its share of the rows, its range of
    run ids and rows, its highest score, and the raw drops its trace names. Raises
    BadInput where the folder is no pool or lacks its trace.
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
    lines = [
        "| pack | runs | rows | share | run ids | first row | highest score | raw drops |",
        "|---|---:|---:|---:|---|---:|---:|---|",
    ]
    for entry in members:
        first, count = entry["first_run"], entry["runs"]
        own = slice(first, first + count)
        drops = sorted({str(line["drop"]) for line in trace[own] if "drop" in line})
        shown = ", ".join(f"`{_cell(drop)}`" for drop in drops[:8]) or "not traced"
        more = f" and {len(drops) - 8} more" if len(drops) > 8 else ""
        best = max((run.max_score for run in runs[own]), default=0)
        lines.append(
            f"| `{_cell(entry['name'])}` | {count:,} | {entry['rows']:,} |"
            f" {entry['rows'] / total:.1%} | {first:,}–{first + count - 1:,} |"
            f" {entry['first_row']:,} | {best:,} | {shown}{more} |"
        )
    lines.append(f"| all | {len(runs):,} | {total:,} | 100.0% | | | | |")
    return "\n".join(lines) + "\n"
