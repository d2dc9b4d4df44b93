"""The previews of 2048 in Dagster: runs, counts, boards, origins; the returns of values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gristmill import markdown
from gristmill.contract import BadInput
from gristmill.macroxue.builders.pool_members import pool_members
from gristmill.macroxue.format.jsonl import read_lines
from gristmill.macroxue.format.metadata_db import Run, read_runs
from gristmill.macroxue.format.shards import open_values, value_files
from gristmill.macroxue.read.gather import Gather
from gristmill.macroxue.read.lookup import Pack
from gristmill.macroxue.show.board import small_step_svg, step_svg
from gristmill.markdown import Markdown
from gristmill.publish.build import Published
from gristmill.svg import histogram_svg, small_histogram

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


_FIRST, _BEST = 10, 20
_SCORE_BINS = 10
_RUNS_SHOWN = 3
_SAMPLED = 10_000


def pack_preview(path: Path) -> dict[str, str]:
    """Markdown documents that show a pack or pool, by title.

    Together they have less than 100 kB for any number of runs and rows. Only the tables and nine
    rows are read. Raises BadInput where files are missing or disagree.
    """
    pack = Pack(path)
    return {
        "picture": _picture(pack),
        "table of runs": _runs(pack.runs, len(pack)),
        "distributions": _distributions(pack.runs),
        "boards": _boards(pack),
    }


def _picture(pack: Pack) -> str:
    """A late board of the best run, small enough for the overview."""
    played = [run for run in pack.runs if run.steps]
    if not played:
        return "No steps.\n"
    best = min(played, key=lambda run: (-run.max_score, run.id))
    (step,) = pack.steps([pack.first_row(best.id) + _late(best)])
    scores = score_bins([run.max_score for run in pack.runs])
    histogram = small_histogram("Score", scores, f"{len(pack.runs):,} runs")
    return markdown.inline_image(f"run {best.id}", small_step_svg(step), histogram)


def _late(run: Run) -> int:
    return (run.steps - 1) * 19 // 20


def _runs(runs: Sequence[Run], rows: int) -> str:
    best = sorted(runs, key=lambda run: (-run.max_score, run.id))[:_BEST]
    shown = sorted({run.id: run for run in [*runs[:_FIRST], *best]}.values(), key=lambda r: r.id)
    top = best[0].id if best else None
    lines = []
    for run in shown:
        score = f"{run.max_score:,}"
        lines.append(
            (
                str(run.id),
                str(run.seed),
                f"{run.steps:,}",
                markdown.bold(score) if run.id == top else score,
                f"{run.highest_tile:,}",
            )
        )
    paragraphs = [
        f"**{len(runs):,} runs, {rows:,} steps**",
        markdown.table(("id", "seed", "steps", "score", "highest tile"), lines, "rrrrr"),
    ]
    if len(shown) < len(runs):
        paragraphs.append(
            f"The first {_FIRST} and the best {_BEST}; {len(runs) - len(shown):,} more."
        )
    return "\n\n".join(paragraphs) + "\n"


def score_bins(scores: Sequence[int]) -> list[tuple[str, int]]:
    """Labels and counts of at most eleven bins of a round width.

    scores: one or more; the first bin holds the lowest, the last bin the highest.
    """
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
    summary = ("score", f"{scores[0]:,}", f"{scores[len(scores) // 2]:,}", f"{mean:,.0f}")
    paragraphs = [
        markdown.table(
            ("", "lowest", "median", "mean", "highest"), [(*summary, f"{scores[-1]:,}")], "lrrrr"
        ),
        markdown.image("score of the runs", by_score),
        markdown.image("highest tile of the runs", by_tile),
    ]
    return "\n\n".join(paragraphs) + "\n"


def _boards(pack: Pack) -> str:
    played = [run for run in pack.runs if run.steps]
    if not played:
        return "No steps.\n"
    ranked = sorted(played, key=lambda run: (-run.max_score, run.id))
    chosen = {run.id: run for run in (ranked[0], ranked[len(ranked) // 2], ranked[-1])}
    paragraphs = []
    for run in list(chosen.values())[:_RUNS_SHOWN]:
        first = pack.first_row(run.id)
        steps = pack.steps([first, first + run.steps // 2, first + _late(run)])
        boards = [
            markdown.image(f"run {run.id}, step {step.step_index}", step_svg(step))
            for step in steps
        ]
        paragraphs += [markdown.bold(f"run {run.id}: start, middle, late"), markdown.images(boards)]
    return "\n\n".join(paragraphs) + "\n"


def of_pack(published: Published) -> dict[str, str]:
    """Markdown documents that show a published pack, by title."""
    return pack_preview(published.folder)


def of_values(published: Published) -> dict[str, str]:
    """The returns of published values, as a picture. At most _SAMPLED rows are read.

    Raises BadInput for a file that is missing or damaged.
    """
    folder = published.folder
    rows = Gather([open_values(file) for file in value_files(folder)])
    if not len(rows):
        return {"picture": "No steps.\n"}
    places = np.linspace(0, len(rows) - 1, min(len(rows), _SAMPLED)).astype(np.int64)
    returns = rows.rows(places)["return_raw"]
    note = f"mean {returns.mean():,.0f}, {len(rows):,} steps"
    bars = small_histogram("Return of a step", score_bins([int(each) for each in returns]), note)
    return {"picture": markdown.inline_image("Returns", bars)}


def of_pool(published: Published) -> dict[str, str]:
    """Markdown documents that show a published pool, by title."""
    documents = pack_preview(published.folder)
    # The picture is seen without a click where it comes first.
    picture = documents.pop("picture")
    return {"picture": picture, "members": origin_table(published.folder), **documents}


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
