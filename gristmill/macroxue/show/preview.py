"""The Markdown that shows a pack in Dagster's UI: runs, distributions, boards.

There raw HTML is stripped and only Markdown tables and images with data
addresses render; drawing stands in `picture.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from gristmill.macroxue.format.metadata_db import Run
from gristmill.macroxue.read.lookup import Pack, PackedStep
from gristmill.macroxue.rules.moves import DIRECTIONS
from gristmill.macroxue.show.board import plain_name, step_svg
from gristmill.svg import data_uri, histogram_svg

_FIRST, _BEST = 10, 20
_SCORE_BINS = 10
_RUNS_SHOWN = 3
# Three boards in a row fit the width of the dialog in which Dagster shows Markdown.
SCALE = 0.66


def pack_preview(path: Path) -> dict[str, str]:
    """Markdown documents of the pack at `path`, by title.

    Together under 100 kB whatever the pack's size; reads the tables and nine
    rows. Raises BadInput where the pack is not whole.
    """
    pack = Pack(path)
    return {
        "table of runs": _runs(pack.runs, len(pack)),
        "distributions": _distributions(pack.runs),
        "boards": _boards(pack),
    }


def _runs(runs: Sequence[Run], rows: int) -> str:
    best = sorted(runs, key=lambda run: (-run.max_score, run.id))[:_BEST]
    shown = sorted({run.id: run for run in [*runs[:_FIRST], *best]}.values(), key=lambda r: r.id)
    top = best[0].id if best else None
    lines = [
        f"**{len(runs):,} runs, {rows:,} steps**",
        "",
        "| id | seed | steps | score | highest tile |",
        "|---:|---:|---:|---:|---:|",
    ]
    for run in shown:
        score = f"**{run.max_score:,}**" if run.id == top else f"{run.max_score:,}"
        lines.append(f"| {run.id} | {run.seed} | {run.steps:,} | {score} | {run.highest_tile:,} |")
    if len(shown) < len(runs):
        lines += ["", f"The first {_FIRST} and the best {_BEST}; {len(runs) - len(shown):,} more."]
    return "\n".join(lines) + "\n"


def score_bins(scores: Sequence[int]) -> list[tuple[str, int]]:
    """Counts of scores in at most eleven bins of a round width, from the lowest one used."""
    width = 1
    span = max(scores) - min(scores)
    while span / width >= _SCORE_BINS:
        # 1, 2, 5, 10, 20, 50, ...
        width = width * 5 // 2 if str(width)[0] == "2" else width * 2
    counts = Counter(score // width for score in scores)
    return [(_short(slot * width), counts[slot]) for slot in range(min(counts), max(counts) + 1)]


def _short(number: int) -> str:
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if abs(number) >= size:
            return f"{number / size:.4g}{unit}"
    return str(number)


def _distributions(runs: Sequence[Run]) -> str:
    if not runs:
        return "No runs.\n"
    scores = sorted(run.max_score for run in runs)
    tiles = Counter(run.highest_tile for run in runs)
    mean = sum(scores) / len(scores)
    by_score = histogram_svg(
        "Score", score_bins(scores), f"runs from each score on, of {len(runs):,}"
    )
    by_tile = histogram_svg(
        "Highest tile", [(f"{tile}", tiles[tile]) for tile in sorted(tiles)][-20:], "runs"
    )
    return "\n".join(
        [
            "| | lowest | median | mean | highest |",
            "|---|---:|---:|---:|---:|",
            f"| score | {scores[0]:,} | {scores[len(scores) // 2]:,} | {mean:,.0f} |"
            f" {scores[-1]:,} |",
            "",
            f"![score of the runs]({data_uri(by_score)})",
            "",
            f"![highest tile of the runs]({data_uri(by_tile)})",
            "",
        ]
    )


def _boards(pack: Pack) -> str:
    played = [run for run in pack.runs if run.steps]
    if not played:
        return "No steps.\n"
    ranked = sorted(played, key=lambda run: (-run.max_score, run.id))
    chosen = {run.id: run for run in (ranked[0], ranked[len(ranked) // 2], ranked[-1])}
    lines = ["| | start | middle | late |", "|---|---|---|---|"]
    for run in list(chosen.values())[:_RUNS_SHOWN]:
        first = pack.first_row(run.id)
        rows = [first, first + run.steps // 2, first + (run.steps - 1) * 19 // 20]
        cells = " | ".join(_cell(step) for step in pack.steps(rows))
        lines.append(f"| **run {run.id}** | {cells} |")
    return "\n".join(lines) + "\n"


def _cell(step: PackedStep) -> str:
    name = f"run {step.run.id}, step {step.step_index}"
    image = f"![{name}]({data_uri(step_svg(step, SCALE))})"
    return f"{image} {DIRECTIONS[step.move]}, `{plain_name(step.valuation)}`"
