"""The report of a dataset: one HTML file that needs no other file and no network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Final

from gristmill.printable import cut, printable
from gristmill.puzzles.format.metadata import PuzzleDatasetMetadata
from gristmill.puzzles.read.example import example
from gristmill.puzzles.read.rows import Dataset, SetArrays
from gristmill.puzzles.show.drawings import drawing
from gristmill.puzzles.show.overview import (
    SetNumbers,
    bars,
    drawn,
    first_rows,
    set_numbers,
    token_bars,
    token_counts,
)
from gristmill.puzzles.show.terminal import findings, not_checked, where_from
from gristmill.svg import histogram_svg

EXAMPLES: Final = 12
"""Examples of each set that are drawn by the seed."""
_VARIANTS: Final = 6
"""Puzzles of one group that are drawn next to each other."""
_COUNTED: Final = 256
"""Rows whose tokens are counted."""
_MOST_PICTURES: Final = 1_400_000
"""Bytes of all pictures."""
_MOST_SETS: Final = 12
_MOST_FILES: Final = 20
_MOST_LINES: Final = 200
_MOST_RULES: Final = 4
"""Rules that are named below a picture."""
_LONGEST: Final = 300
"""Characters of one value."""
_STYLE: Final = (
    "body{margin:0;background:#fff;color:#3a332d;font:15px/1.5 'Helvetica Neue',Arial,sans-serif}"
    "main{max-width:1180px;margin:0 auto;padding:24px 28px 60px}"
    "h1{font-size:26px;margin:8px 0}h2{font-size:19px;margin:34px 0 8px;padding-top:14px;"
    "border-top:1px solid #e4dccb}h3{font-size:15px;margin:22px 0 8px}"
    "table{border-collapse:collapse;font-size:14px}td,th{padding:4px 14px 4px 0;text-align:left;"
    "border-bottom:1px solid #eee6d6;vertical-align:top;overflow-wrap:anywhere}"
    "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}"
    ".pictures{display:flex;flex-wrap:wrap;gap:12px;align-items:flex-start}"
    ".spaced{margin-top:12px}svg{max-width:100%;height:auto}"
    "pre{background:#faf8ef;border-radius:8px;padding:14px;overflow:auto;font-size:13px}"
    "code{font-size:12.5px}p.soft,.soft{color:#8a7d70}"
)
# Nothing is fetched, and no script runs, whatever a name in the dataset holds.
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"

Row = Sequence[object]


def write_report(
    folder: Path, path: Path, title: str, counts: Mapping[str, int | float] | None = None
) -> None:
    """Write the report of a dataset.

    counts: numbers of the build, such as duplicates and leaks; default None: no such table.

    The same dataset gives the same bytes. The file takes less than 2 MB.
    Raises BadInput where the dataset cannot be read.
    """
    path.write_text("".join(_page(Dataset(folder), title, counts or {})), encoding="utf-8")


def _page(data: Dataset, title: str, counts: Mapping[str, int | float]) -> Iterator[str]:
    sets = [(*place, data.arrays(*place)) for place in list(data.sets())[:_MOST_SETS]]
    numbers = [set_numbers(*each) for each in sets]
    metadata = {split: data.metadata(split) for split, _, _ in sets}
    shown = _text(title)
    yield (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{shown}</title><style>{_STYLE}</style></head><body><main>\n<h1>{shown}</h1>\n"
    )
    yield f'<p class="soft">{_text(_kind_line(data, metadata))}</p>\n'
    if left := not_checked(data.kind):
        yield f'<p class="soft">{_text(left)}</p>\n'
    yield from _set_table(numbers)
    yield from _examples(data, sets, metadata)
    yield from _sizes(numbers)
    yield from _tokens(sets, metadata)
    if counts:
        yield "<h2>Counts of the build</h2>\n"
        yield _table(("count", "number"), [(k, _number(v)) for k, v in counts.items()], "ln")
    yield from _metadata_table(metadata)
    yield from _origin(data)
    yield _read_back(numbers)
    yield "</main></body></html>\n"


def _kind_line(data: Dataset, metadata: Mapping[str, PuzzleDatasetMetadata]) -> str:
    facts = next(iter(metadata.values()))
    kind = data.kind or "a dataset without a trace"
    return (
        f"{kind} · {facts.seq_len:,} tokens a sequence · {facts.vocab_size:,} tokens in the"
        f" vocabulary · identifiers: {facts.num_puzzle_identifiers:,}"
    )


def _set_table(numbers: Sequence[SetNumbers]) -> Iterator[str]:
    yield "<h2>Splits</h2>\n"
    headers = ("split", "set", "examples", "puzzles", "groups", "augmented examples")
    yield _table(headers, [each.cells for each in numbers], "llnnnn")


def _metadata_table(metadata: Mapping[str, PuzzleDatasetMetadata]) -> Iterator[str]:
    yield "<h2>dataset.json</h2>\n"
    names = list(vars(next(iter(metadata.values()))))
    rows = [[name, *(_value(getattr(each, name)) for each in metadata.values())] for name in names]
    yield _table(("key", *metadata), rows, "l" * (1 + len(metadata)))


def _origin(data: Dataset) -> Iterator[str]:
    if data.kind is None:
        return
    sources = data.sources
    yield "<h2>Made from</h2>\n"
    rows = [(name, _value(value)) for name, value in sources.config.items()]
    yield _table(("config", "value"), rows, "ll")
    if sources.files:
        first = sources.files[:_MOST_FILES]
        yield f"<h3>Source files: {len(sources.files):,}</h3>\n"
        yield _table(("file", "sha256"), [(file.path, file.sha256) for file in first], "ll")
        if len(sources.files) > len(first):
            yield f'<p class="soft">… and {len(sources.files) - len(first):,} more</p>\n'


def _sizes(numbers: Sequence[SetNumbers]) -> Iterator[str]:
    yield "<h2>Sizes</h2>\n"
    always, drawings = [], []
    for each in numbers:
        place = f"{each.split}, set {each.set_name[:30]}"
        for many, whole, sizes in (
            ("puzzles", "group", each.group_sizes),
            ("examples", "puzzle", each.puzzle_sizes),
        ):
            if len(sizes) > 1:
                drawings.append(histogram_svg(f"{place}: {many} of a {whole}", bars(sizes)))
            elif sizes:
                only = next(iter(sizes))
                always.append(
                    (place, f"every {whole} has {only:,} {many if only > 1 else many[:-1]}")
                )
    if always:
        yield _table(("split", "size"), always, "ll")
    yield f'<div class="pictures spaced">\n{"".join(drawings)}</div>\n'


def _tokens(
    sets: Sequence[tuple[str, str, SetArrays]], metadata: Mapping[str, PuzzleDatasetMetadata]
) -> Iterator[str]:
    yield '<h2>Tokens</h2>\n<div class="pictures">\n'
    for split, set_name, arrays in sets:
        rows = drawn(f"tokens of {split} {set_name}", _COUNTED, len(arrays.inputs))
        for name, tokens in (("inputs", arrays.inputs), ("labels", arrays.labels)):
            counted = token_counts(tokens[rows])
            padding = counted.pop(metadata[split].pad_id, 0)
            title = f"{split}, set {set_name[:30]}: tokens of {name}"
            note = f"{len(rows):,} rows; {padding:,} PAD left out"
            yield histogram_svg(title, token_bars(counted), note)
    yield "</div>\n"


def _examples(
    data: Dataset,
    sets: Sequence[tuple[str, str, SetArrays]],
    metadata: Mapping[str, PuzzleDatasetMetadata],
) -> Iterator[str]:
    yield "<h2>Examples</h2>\n"
    left = _MOST_PICTURES
    each_most = _MOST_PICTURES // max(1, 2 * len(sets))
    for split, set_name, arrays in sets:
        for heading, rows in _choices(split, set_name, arrays):
            yield f'<h3>{_text(heading)}</h3>\n<div class="pictures">\n'
            used = 0
            for row in rows:
                shown = _drawing(data, split, set_name, row, arrays, metadata[split])
                if used + len(shown.encode()) > min(each_most, left):
                    yield '<p class="soft">further pictures would make the file too large</p>\n'
                    break
                used += len(shown.encode())
                yield f"{shown}\n"
            left -= used
            yield "</div>\n"


def _choices(split: str, set_name: str, arrays: SetArrays) -> Iterator[tuple[str, list[int]]]:
    total = len(arrays.inputs)
    rows = drawn(f"{split} {set_name}", EXAMPLES, total)
    yield f"{split}, set {set_name}: {len(rows)} of {total:,} examples, by a seeded draw", rows
    groups = len(arrays.group_indices) - 1
    if groups <= 0 or len(arrays.puzzle_identifiers) <= groups:
        return
    group = drawn(f"group of {split} {set_name}", 1, groups)[0]
    variants = first_rows(arrays, group, _VARIANTS)
    if len(variants) > 1:
        yield f"{split}, set {set_name}: first puzzles of group {group:,}", variants


def _drawing(
    data: Dataset,
    split: str,
    set_name: str,
    row: int,
    arrays: SetArrays,
    metadata: PuzzleDatasetMetadata,
) -> str:
    found = example(data, split, set_name, row, arrays)
    broken = [f"breaks: {rule}" for rule in findings(data.kind, metadata, found)]
    named = found.identifier_id != metadata.blank_identifier_id
    title = f"{row:,} · {found.identifier}" if named else f"{row:,}"
    if len(broken) > _MOST_RULES:
        broken[_MOST_RULES:] = [f"… and {len(broken) - _MOST_RULES} more"]
    notes = [*where_from(data, found), *map(printable, broken)]
    return drawing(data.kind or "", found.inputs, found.labels, data.config).large(title, notes)


def _read_back(numbers: Sequence[SetNumbers]) -> str:
    split, name = (numbers[0].split, numbers[0].set_name) if numbers else ("train", "all")
    code = (
        "from gristmill.puzzles import PuzzleDataset, PuzzleDatasetConfig\n\n"
        "config = PuzzleDatasetConfig(\n"
        '    seed=0, dataset_path="FOLDER", global_batch_size=32, test_set_mode=False,\n'
        "    epochs_per_iter=1, rank=0, num_replicas=1,\n)\n"
        f'for set_name, batch, size in PuzzleDataset(config, "{split}"):\n'
        '    batch["inputs"], batch["labels"], batch["puzzle_identifiers"]  # int32 tensors\n\n'
        "import numpy as np\n\n"
        f'inputs = np.load("FOLDER/{split}/{name}__inputs.npy", mmap_mode="r")\n'
    )
    shell = (
        f"gristmill show FOLDER 0 --split {split} --set {name}\n"
        f"gristmill trace FOLDER 0 --split {split} --set {name}\n"
    )
    return (
        "<h2>Read it back</h2>\n"
        "<p>FOLDER is the folder of this file.</p>\n"
        f"<pre>{escape(printable_lines(code))}</pre>\n<pre>{escape(printable_lines(shell))}</pre>\n"
    )


def printable_lines(text: str) -> str:
    """Text whose line ends stay, and whose other characters are printable."""
    return "\n".join(map(printable, text.split("\n")))


def _table(headers: Sequence[str], rows: Iterable[Row], align: str) -> str:
    def line(cells: Row, tag: str) -> str:
        return "".join(
            f"<{tag}{' class=n' * (letter == 'n')}>{_text(str(cell))}</{tag}>"
            for cell, letter in zip(cells, align, strict=True)
        )

    lines = [f"<tr>{line(row, 'td')}</tr>" for row in rows]
    if len(lines) > _MOST_LINES:
        more = f"… and {len(lines) - _MOST_LINES:,} more"
        lines[_MOST_LINES:] = [f"<tr><td>{more}</td></tr>"]
    body = "\n".join(lines)
    return (
        f"<table><thead><tr>{line(headers, 'th')}</tr></thead><tbody>\n{body}\n</tbody></table>\n"
    )


def _number(value: int | float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def _value(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "null" if value is None else str(value)


def _text(text: str) -> str:
    return escape(printable(cut(text, _LONGEST)))
