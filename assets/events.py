"""What the events of a partition say: of one that is published, and why one is not built."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import quote

import dagster as dg

from assets import choices
from gristmill import families, markdown, provenance
from gristmill.browse.web.asked import Asked
from gristmill.contract import BadInput, GristmillError, in_words
from gristmill.inbox.hub import HubError
from gristmill.inbox.listing import column_lines
from gristmill.keys import refusal
from gristmill.markdown import escape
from gristmill.printable import command, cut, plain, printable
from gristmill.provenance import Input, Record
from gristmill.provenance.find_artifacts import Artifact, used_by
from gristmill.provenance.unusual import inputs_of
from gristmill.publish.build import LawsBroken, Published
from gristmill.run.locks import Busy
from gristmill.settings.tables import FILE

_MOST_RECORDS, _MOST_ROWS, _LONGEST = 20, 8, 120
_BY_SHARD: Final = frozenset({"synth/raw", "synth/ready_harmony"})
"""Raw assets whose partitions are the shards that are built from a drop, not the drops."""


def drop_rows(record: Record, root: Path) -> dict[str, dg.MetadataValue | str]:
    """Returns the raw drops of an artifact, over any number of steps, as rows of an event."""
    found: dict[str, str] = {}
    for name, address in _raw_drops(record, root):
        # A drop that several partitions were built from is shown without one.
        same = found.get(name, address) == address
        found[name] = address if same else address.partition("&")[0]
    names = ["source drop"] if len(found) == 1 else [f"source drop/{name}" for name in found]
    rows: dict[str, dg.MetadataValue | str] = {
        cut(printable(name), _LONGEST): dg.MetadataValue.url(address)
        for name, address in zip(names, found.values(), strict=True)
    }
    if len(rows) > _MOST_ROWS:
        first = dict(list(rows.items())[:_MOST_ROWS])
        return {**first, "more source drops": f"{len(rows) - _MOST_ROWS:,}"}
    return rows


def _raw_drops(record: Record, root: Path) -> Iterator[tuple[str, str]]:
    """Name of each drop, and the page of its partition in the UI."""
    path = provenance.published_record_path(root / record.artifact, record.partition)
    own = [] if path is None else [Artifact(root / record.artifact, path)]
    inputs = inputs_of(record, path) if path is not None else record.inputs
    used = ((each.record, each.inputs) for each in used_by(own, root))
    for holder, given in islice(chain([(record, inputs)], used), _MOST_RECORDS):
        for item in given:
            if item.data_version is None:
                yield from _page(item, holder)


def _page(item: Input, holder: Record) -> Iterator[tuple[str, str]]:
    parts = PurePosixPath(item.path or "").parts
    if item.asset is None or parts[:1] != ("drops",) or len(parts) < 3:
        return
    partition = holder.partition if item.asset in _BY_SHARD else item.partition
    if partition is not None:
        address = (
            f"/assets/{quote(item.asset)}?view=partitions&partition={quote(partition, safe='')}"
        )
        yield "/".join(parts[1:3]), address


COLUMNS: Final = "dagster/column_schema"
ROWS: Final = "dagster/row_count"
"""Names that Dagster shows in places of their own."""

MOST_NUMBERS: Final = 150
"""Most numbers of an event."""
_NUMBER_BYTES = 35_000
_LONGEST_NAME = 100
# What Dagster writes around a value: its type and its class.
_AROUND = 200
_LONGEST_LIST = 1000
_LONGEST_NOTES = 3000
_EXAMPLES = 2
RESERVED: Final = (
    *("path", "samples", "status", "account", "columns", "not checked", "notes", "difference"),
    *("bytes", "seconds", "peak_memory_mb", "tokenizer", "source drop", "counts of 0"),
)
"""Names that no count takes."""


def event_metadata(
    published: Published, sample: Callable[[Path], int] = lambda _: 0
) -> dict[str, Any]:
    """Returns the metadata of an event: the picture, links, numbers to plot.

    sample: takes the folder, and returns the number of the row of its main table that is drawn;
        default: the first.
    """
    record, folder = published.record, published.folder
    metadata: dict[str, Any] = _picture(published, sample)
    metadata["path"] = dg.MetadataValue.path(plain(str(folder)))
    metadata["status"] = "built" if published.rebuilt else "unchanged"
    metadata["samples"] = dg.MetadataValue.url(
        Asked(record.artifact, record.asset, record.partition or "").address("rows")
    )
    metadata |= _notes(published) | _difference(published) | _rows(published)
    metadata |= _numbers(published)
    metadata["dagster/uri"] = folder.absolute().as_uri()
    if (schema := column_schema(record.asset)) is not None:
        metadata[COLUMNS] = dg.MetadataValue.table_schema(schema)
    return metadata


def _numbers(published: Published) -> dict[str, Any]:
    """The counts of the record, those that are 0 and those of a listed group in one line each."""
    record = published.record
    kind, size = families.kind_of_asset(record.asset), sum(item.bytes for item in record.outputs)
    counted = dict(record.counts)
    if counted.get("bytes") == size:
        del counted["bytes"]
    before = published.before.counts if published.before else {}
    lists, zero, plotted = dict[str, list[str]](), list[str](), dict[str, int | float]()
    for name, value in counted.items():
        group, _, own = name.partition("/")
        if kind is not None and own and group in (*kind.listed, families.kinds.FORGOTTEN_BY):
            lists.setdefault(group, []).extend([f"{printable(own)}: {value:,}"] * bool(value))
        # What is 0, and was 0 in the record that stood, is not worth a plot.
        elif isinstance(value, int) and not value and name != "rows" and not before.get(name):
            zero.append(printable(name))
        else:
            plotted[name] = value
    named: dict[str, list[str]] = {"counts of 0": zero, **lists}
    found: dict[str, Any] = {
        name: cut(", ".join(parts), _LONGEST_LIST) for name, parts in named.items() if parts
    }
    found |= bounded_numbers(plotted)
    found |= {"bytes": size, "seconds": record.seconds}
    found["peak_memory_mb"] = round(record.peak_memory_bytes / 1e6, 1)
    rows = kind.rows_of(record.counts) if kind is not None else record.counts.get("rows")
    return found if rows is None else found | {ROWS: int(rows)}


def _picture(published: Published, sample: Callable[[Path], int]) -> dict[str, Any]:
    """The picture of one row, where Dagster shows it inline."""
    from gristmill.browse.opening import first_picture  # it loads NumPy

    drawn = first_picture(published.folder, published.record, sample)
    text = markdown.image(drawn.title, drawn.svg) if drawn is not None else ""
    return {"picture": dg.MetadataValue.md(text)} if 0 < len(text) <= markdown.INLINE else {}


def _notes(published: Published) -> dict[str, Any]:
    """What became of the drop, what nobody checked, and notes."""
    accounted = published.record.account
    columns = "\n".join(column_lines(accounted.columns)) if accounted else ""
    found = {"account": published.account, "columns": columns}
    found["not checked"] = published.not_checked
    notes: dict[str, Any] = {title: plain(text) for title, text in found.items() if text}
    if published.notes:  # as bullets where Dagster shows these inline
        text = markdown.bullets(published.notes)
        is_short = len(text) <= markdown.INLINE
        lines = plain("\n".join(published.notes), _LONGEST_NOTES)
        notes["notes"] = dg.MetadataValue.md(text) if is_short else lines
    return notes


def _difference(published: Published) -> dict[str, Any]:
    """Which rows are not as in the version that was replaced: how many, and the first ones."""
    record, before = published.record, published.before
    if not published.rebuilt or before is None or before.data_version == record.data_version:
        return {}
    from gristmill.history.diff import of_replaced

    root = published.folder.absolute().parents[len(Path(record.artifact).parts) - 1]
    lines = of_replaced(root, record, before, _EXAMPLES)
    return {"difference": plain("\n".join(lines), _LONGEST_NOTES)} if lines else {}


def _rows(published: Published) -> dict[str, Any]:
    """The config that matters, the vocabulary, and the raw drops, one row each."""
    record = published.record
    rows: dict[str, Any] = {**choices.config_rows(record)}
    if record.tokenizer is not None:
        rows["tokenizer"] = record.tokenizer.name
    root = published.folder.absolute().parents[len(Path(record.artifact).parts) - 1]
    return rows | drop_rows(record, root)


def bounded_numbers(counts: Mapping[str, int | float]) -> dict[str, Any]:
    """Returns the numbers of an event, the first ones if there are too many."""
    numbers: dict[str, Any] = {}
    size = 0
    # Stable: otherwise the order of the record stays.
    for name in sorted(counts, key=lambda name: "/" in name):
        shown = cut(printable(name), _LONGEST_NAME)
        if shown in RESERVED or shown.startswith("dagster/"):
            shown = f"counts/{shown}"
        cost = markdown.stored_size(shown) + _AROUND
        if shown in numbers or len(numbers) == MOST_NUMBERS or size + cost > _NUMBER_BYTES:
            continue
        numbers[shown] = counts[name]
        size += cost
    if more := len(counts) - len(numbers):
        numbers["counts left out"] = f"{more:,}; all are in the record on disk"
    return numbers


@cache
def column_schema(asset: str) -> dg.TableSchema | None:
    """Returns the columns of an asset's artifacts; None where they are no tables."""
    columns = families.columns_of(asset)
    if not columns:
        return None
    return dg.TableSchema(
        columns=[dg.TableColumn(each.name, each.type, each.text) for each in columns]
    )


_MOST_REASON, _MOST_TRACE = 2000, 10_000


@dataclass(frozen=True)
class Target:
    """One partition of an asset.

    from_drop: whether the partition is a drop, which a person can take away.
    """

    asset: str
    partition: str | None
    from_drop: bool = False

    @classmethod
    def of(cls, context: dg.AssetExecutionContext, partition: str | None) -> Target:
        """Returns a partition of the asset whose step runs."""
        partitions = context.assets_def.partitions_def
        name = getattr(partitions, "name", None)
        parts = {s.partitions for each in families.catalogs() for s in each.sources if s.several}
        from_drop = isinstance(partitions, dg.DynamicPartitionsDefinition) and name not in parts
        return cls(context.asset_key.to_user_string(), partition, from_drop)

    def choice(self, name: str, value: str) -> str:
        """The line of gristmill.toml that chooses a value; empty if the asset has no such field."""
        table = families.tables().get(self.asset)
        if table is None or name not in {spec.name for spec in fields(table.config)}:
            return ""
        return f'set `{name} = "{value}"` in the table `{table.header}` of gristmill.toml'


@dataclass(frozen=True)
class Problem:
    """Why a partition was not built."""

    reason: str
    error: str
    cure: str = ""
    trace: str = ""

    @property
    def text(self) -> str:
        """The reason, and below it what to do."""
        return f"{self.reason}\nWhat to do: {self.cure}" if self.cure else self.reason

    @property
    def first_line(self) -> str:
        """The reason in one line."""
        return self.reason.split("\n", 1)[0]

    def below(self, root: Path) -> Problem:
        """Returns the same problem with paths relative to the data root, as pages show them."""
        prefix = f"{plain(str(root))}/"
        return replace(
            self, reason=self.reason.replace(prefix, ""), cure=self.cure.replace(prefix, "")
        )

    def failure(self) -> dg.Failure:
        """Returns the failure of the step; raise it `from None`, since the cause adds nothing."""
        metadata = {"error": self.error, **({"cure": self.cure} if self.cure else {})}
        return dg.Failure(self.text, metadata=metadata, allow_retries=False)

    def observation(
        self, asset: dg.AssetKey, partition: str | None, root: Path, status: str = "failed"
    ) -> dg.AssetObservation:
        """Returns the event that shows the reason on the page of the partition.

        root: the data root. The description has paths relative to it, the metadata whole ones.
        """
        below = self.below(root)
        shown = f"{status}: {escape(below.reason)}"  # the UI shows it as Markdown
        if self.cure:
            shown += f"\n\nWhat to do: {below.cure}"
        return dg.AssetObservation(
            asset_key=asset,
            partition=partition,
            description=shown,
            metadata={
                "status": status,
                "reason": self.reason,
                "error": self.error,
                **({"cure": self.cure} if self.cure else {}),
            },
        )


def problem_of(error: Exception, target: Target) -> Problem:
    """Returns why a target was not built."""
    error = in_words(error)
    name = type(error).__name__
    if isinstance(error, GristmillError):
        return Problem(plain(str(error), _MOST_REASON), name, _cure(error, target))
    reason = plain(f"{name}: {error}", _MOST_REASON)
    trace = "".join(traceback.format_exception(error))
    # The end of a trace says more than its begin.
    return Problem(reason, name, _cure(error, target), plain(trace[-_MOST_TRACE:], _MOST_TRACE))


def _cure(error: Exception, target: Target) -> str:
    cure = next(cure for kind, cure in _CURES if isinstance(error, kind))
    return cure if isinstance(cure, str) else cure(error, target)


def _of_bad_input(error: Exception, target: Target) -> str:
    if isinstance(error, BadInput) and Path(error.file).name == FILE:
        return "correct this file, then build again"
    ways = ["correct the file and build again"]
    if choice := target.choice("on_error", "quarantine"):
        ways.append(f"to build without the part that breaks the rule, {choice}")
    if target.from_drop and target.partition and not refusal(target.partition):
        ways.append(
            f"to give the drop up, remove it and run `{command('retire', target.partition)}`"
        )
    return "; ".join(ways)


def _of_broken_laws(error: Exception, target: Target) -> str:
    if choice := target.choice("game_laws", "warn"):
        return f"correct the drop; to publish it although it breaks rules of the game, {choice}"
    return (
        "correct the input if it breaks the rule; if it does not, the builder is wrong: report "
        "these lines"
    )


_CURES: Final[tuple[tuple[type[Exception], str | Callable[[Exception, Target], str]], ...]] = (
    (BadInput, _of_bad_input),
    (LawsBroken, _of_broken_laws),
    (
        Busy,
        "wait until that build ends, then build again; if its run hangs, end the process and run "
        "`gristmill prune`",
    ),
    (HubError, "build again later: it continues with the bytes that are here"),
    (GristmillError, ""),  # the text of any other error of the library says what to do
    (
        PermissionError,
        "let the user who builds read and write this file or folder, then build again",
    ),
    (
        Exception,
        "gristmill does not expect this error: report it with the stack trace of the run's log",
    ),
)
"""What to do by the class of an error; the first class that fits counts."""
