"""Figures and pictures of a dataset for the pages of its assets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from gristmill import markdown
from gristmill.markdown import Markdown, escape
from gristmill.publish.build import Published
from gristmill.puzzles.laws.of_subject import equal_tasks
from gristmill.puzzles.read.example import example
from gristmill.puzzles.read.rows import Dataset, SetArrays
from gristmill.puzzles.show.drawings import drawing
from gristmill.puzzles.show.overview import (
    SetNumbers,
    all_numbers,
    bars,
    drawn,
    first_rows,
)
from gristmill.svg import histogram_svg, small_shares

Figures = dict[str, str | int | float]

_DRAWN: Final = 3
"""Examples of each set that are drawn by the seed."""
_VARIANTS: Final = 3
"""Puzzles of one group that are drawn."""
_MOST: Final = 28_000
"""Characters of all pictures of examples, as they are stored."""
_MOST_SETS: Final = 6
_MOST_FIELDS: Final = 30
_LONGEST: Final = 120
"""Characters of a name or value."""
_NAMED: Final = {
    "duplicates_removed": "duplicates removed",
    "ambiguous_dropped": "puzzles with another number of solutions than one, dropped",
    "leaks_dropped": "test examples dropped, since training has them",
}
"""Counts of the build that have a line of their own."""


def puzzle_figures(folder: Path, counts: Mapping[str, int | float]) -> Figures:
    """What the page of a dataset shows: numbers, tables, pictures of examples.

    All in all they take less than 60 kB. Raises BadInput where the dataset cannot be read.
    """
    data = Dataset(folder)
    numbers = all_numbers(data)
    figures: Figures = {
        "picture": _picture(data, numbers),
        "rows": sum(each.examples for each in numbers),
        "splits": _splits(numbers[:_MOST_SETS]),
    }
    known = [each for each in numbers if each.augmented is not None and each.examples]
    if known:
        augmented = sum(each.augmented or 0 for each in known)
        figures["augmented_percent"] = round(
            100 * augmented / sum(each.examples for each in known), 2
        )
    noted = [(text, f"{counts[name]:,}") for name, text in _NAMED.items() if name in counts]
    if noted:
        figures["left out"] = markdown.table(("what", "number"), noted, "lr")
    if equal := equal_tasks(data.sources) if data.kind is not None else []:
        rows = [
            (escape(path, _LONGEST), escape(first, _LONGEST))
            for path, first in equal[:_MOST_FIELDS]
        ]
        figures["equal tasks"] = markdown.table(("task", "has the pairs of"), rows, "ll")
    if data.kind is not None:
        figures["made from"] = _made_from(data)
    histograms = list(_histograms(numbers[:_MOST_SETS]))
    if histograms:
        figures["group sizes"] = markdown.images(histograms)
    pictures = list(_pictures(data))
    if pictures:
        figures["examples"] = markdown.images(pictures) + "\n"
    return figures


def _picture(data: Dataset, numbers: Sequence[SetNumbers]) -> str:
    """An example that the seed draws, or the examples of each split, for the overview."""
    parts = [(f"{each.split} {each.set_name}"[:20], each.examples) for each in numbers]
    sizes = small_shares("Examples", parts)
    drawings = [sizes]
    for split, set_name in list(data.sets())[:1]:
        arrays = data.arrays(split, set_name)
        for row in drawn(f"picture of {split}", 1, len(arrays.inputs)):
            found = example(data, split, set_name, row, arrays)
            drawn_row = drawing(data.kind or "", found.inputs, found.labels, data.config)
            small = drawn_row.small(f"{split} {row:,}")
            drawings[:0] = [] if small is None else [small]
    return markdown.inline_image("example", *drawings)


def _splits(numbers: Sequence[SetNumbers]) -> str:
    headers = ("split", "set", "examples", "puzzles", "groups", "augmented")
    return markdown.table(headers, [each.cells for each in numbers], "llrrrr")


def _made_from(data: Dataset) -> str:
    sources = data.sources
    folders = {file.path.partition("/")[0] for file in sources.files}
    rows: list[tuple[str, str]] = [
        ("kind", sources.kind),
        ("sources", escape(", ".join(sorted(folders)[:10]) or "generated", _LONGEST)),
        ("source files", f"{len(sources.files):,}"),
    ]
    rows += [
        # A limit that is not set.
        (escape(str(name), _LONGEST), escape("all" if value is None else str(value), _LONGEST))
        for name, value in list(sources.config.items())[:_MOST_FIELDS]
    ]
    return markdown.table(("what", "value"), rows, "ll")


def _histograms(numbers: Sequence[SetNumbers]) -> Iterator[Markdown]:
    for each in numbers:
        for name, sizes in (
            ("puzzles of a group", each.group_sizes),
            ("examples of a puzzle", each.puzzle_sizes),
        ):
            if len(sizes) > 1:
                title = f"{each.split} {each.set_name[:20]}: {name}"
                yield markdown.image(title, histogram_svg(title, bars(sizes)))


def _pictures(data: Dataset) -> Iterator[Markdown]:
    left = _MOST
    places = list(data.sets())[:_MOST_SETS]
    for split, set_name in places:
        arrays = data.arrays(split, set_name)
        for row in _rows(split, set_name, arrays):
            found = example(data, split, set_name, row, arrays)
            named = found.identifier_id != data.metadata(split).blank_identifier_id
            title = f"{split} {row:,}" + f" · {found.identifier}" * named
            large = drawing(data.kind or "", found.inputs, found.labels, data.config).large(title)
            image = markdown.image(f"{split} {row}", large)
            # A picture that is too large is passed over: a smaller one may still fit.
            if len(image) <= left:
                left -= len(image)
                yield image


def _rows(split: str, set_name: str, arrays: SetArrays) -> list[int]:
    """The examples of a set to draw: those of one group, then some by the seed."""
    groups = len(arrays.group_indices) - 1
    variants: list[int] = []
    if 0 < groups < len(arrays.puzzle_identifiers):
        group = drawn(f"group of {split} {set_name}", 1, groups)[0]
        variants = first_rows(arrays, group, _VARIANTS)
    rows = variants + drawn(f"{split} {set_name}", _DRAWN, len(arrays.inputs))
    return list(dict.fromkeys(rows))


def of_dataset(published: Published) -> Figures:
    """What the page of a published dataset shows."""
    return puzzle_figures(published.folder, published.record.counts)
