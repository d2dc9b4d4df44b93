"""What one call of `gristmill materialize` asks, how its runs came out, and the table of that.

What shows outcomes needs no Dagster. A call that finds nothing to do keeps its answer: while all
that it depends on is as it was, an equal call gives that answer without Dagster.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rich.text import Text

from commands import checkout, instance
from commands.checkout import console, say, shown_lines
from commands.checkout import shown as shown_text
from gristmill import standing
from gristmill.layout import root_of
from gristmill.markdown import unescaped
from gristmill.printable import unbroken
from gristmill.run import amounts

if TYPE_CHECKING:
    import dagster as dg

    from commands.dagster_private import Result

BUILDS: Final = "builds"
"""Status of what a run is about to build."""
TO_BUILD: Final = "to build"
"""Status of what a dry run would build."""
MAY_FOLLOW: Final = "may follow"
"""Status of what a dry run would build if the bytes of its inputs come out otherwise."""
_STATUSES: Final = (TO_BUILD, MAY_FOLLOW, "built", "unchanged", "not built", "failed")
_COLOURS: Final = {"built": "green", "failed": "red"}
# More unchanged artifacts than these are counted and not listed.
_FEW: Final = 10
# Partitions that one line about a common reason names.
_MOST_NAMED: Final = 5
# Width of a partition's column below its asset: with the numbers, a row has 80 characters.
_KEY: Final = 23


@dataclass(frozen=True)
class Outcome:
    """The outcome of one partition: a row below its asset, or a line with the reason.

    partition: key of the partition; empty for an asset without partitions.
    status: `built`, `unchanged`, `not built` or `failed`; of a dry run TO_BUILD or MAY_FOLLOW.
    rows: number of rows; None for an artifact without rows.
    bytes: sum over all files of the artifact.
    seconds: duration of the recorded build.
    error: class of the library's error that it failed with; empty for any other failure.
    account: what became of the files and rows of its drop; empty for an artifact of no drop.
    columns: what became of the columns of its drop, a line each; empty where nobody knows.
    not_checked: the rules that its config leaves to the readers, in one line; empty for none.
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
    account: str = ""
    columns: str = ""
    not_checked: str = ""

    @property
    def target(self) -> str:
        """The asset, and the partition if there is one."""
        return " ".join(filter(None, (self.asset, self.partition)))


def show(
    outcomes: Sequence[Outcome], seconds: float, started_in: Path, named: bool = False
) -> None:
    """Print what is published by asset, a line for each reason, and a summary.

    outcomes: of all partitions, in order. What has a reason has no row; many unchanged ones are
        counted alone.
    seconds: duration of the command.
    started_in: folders below this folder are shown relative to it.
    named: whether a person named the partitions; default False.
    """
    unchanged = [item for item in outcomes if item.status == "unchanged"]
    listed = [
        item
        for item in outcomes
        if not item.reason and (item.status != "unchanged" or len(unchanged) <= _FEW)
    ]
    _show_by_asset(listed, started_in)
    # What becomes of a column is mostly the same in all partitions of an asset: it is said once.
    counts = Counter((item.asset, line) for item in listed for line in item.columns.split("\n"))
    for item in listed:
        columns = {line: counts.pop((item.asset, line), 0) for line in item.columns.split("\n")}
        lines = {item.account: 1, **columns, item.not_checked: 1}
        for line in (line for line, count in lines.items() if line and count):
            more = f" and {lines[line] - 1:,} more" if lines[line] > 1 else ""
            say(f"{shown_text(item.target)}{more}: {shown_text(line)}")
    for line in reasons(outcomes):
        say(line)
    say(_summary(outcomes, seconds, named))


def _summary(outcomes: Sequence[Outcome], seconds: float, named: bool) -> str:
    count = {status: sum(item.status == status for item in outcomes) for status in _STATUSES}
    if count[TO_BUILD] or count[MAY_FOLLOW]:
        counted = ", ".join(f"{count[status]} {status}" for status in _STATUSES if count[status])
        return f"dry run: {counted} ({seconds:.1f} s)"
    if not count["built"] and not count["failed"]:
        missing, unchanged = count["not built"], count["unchanged"]
        artifacts = f"{unchanged} artifact{'' if unchanged == 1 else 's'}"
        if missing and named:
            return f"{missing} not built, {artifacts} unchanged ({seconds:.1f} s)"
        others = f"; {missing} not built" if missing else ""
        return f"nothing needed doing ({artifacts}, {seconds:.1f} s{others})"
    others = "".join(
        f", {count[status]} {status}"
        for status in ("unchanged", "not built", "failed")
        if count[status]
    )
    return f"{count['built']} built in {seconds:.1f} s{others}; `gristmill ui` shows them"


def reasons(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """Yield a line for each reason: partitions of an asset that have one reason share it."""
    together: dict[tuple[str, str, str], list[Outcome]] = {}
    for item in outcomes:
        if item.reason:
            together.setdefault((item.asset, item.status, item.reason), []).append(item)
    for (asset, status, reason), items in together.items():
        names = [shown_text(item.partition) for item in items[:_MOST_NAMED] if item.partition]
        more = f" and {len(items) - _MOST_NAMED} more" if len(items) > _MOST_NAMED else ""
        target = " ".join(filter(None, (asset, ", ".join(names)))) + more
        colour = "red" if status == "failed" else "yellow"
        yield f"[{colour}]{status}[/] {target}: {shown_lines(reason)}"


def _show_by_asset(outcomes: Sequence[Outcome], started_in: Path) -> None:
    """Print each asset, its partitions with their numbers, and their folders on own lines."""
    for asset, items in groupby(outcomes, key=lambda item: item.asset):
        of_asset = list(items)
        places = {_place(item, started_in) for item in of_asset if item.place}
        say(f"[bold]{asset}[/]")
        if len(places) == 1:
            say(f"  {places.pop()}")
        for item in of_asset:
            key = Text.from_markup(shown_text(item.partition))
            if key.cell_len > _KEY:
                say(f"  {shown_text(item.partition)}")
                key = Text()
            key.align("left", _KEY)
            status = Text(item.status, style=_COLOURS.get(item.status, ""))
            cells = [Text(), key, status]
            if item.place:
                status.align("left", len("unchanged"))
                rows = "" if item.rows is None else f"{item.rows:,} rows"
                numbers = f"{rows:>16}  {amounts.size(item.bytes):>9}"
                cells += [Text(numbers), Text(f"{amounts.duration(item.seconds):>11}")]
            console.print(Text("  ").join(cells))
            if places and item.place:
                say(f"    {_place(item, started_in)}")


def _place(item: Outcome, started_in: Path) -> str:
    place = Path(item.place)
    shown = place.relative_to(started_in) if place.is_relative_to(started_in) else place
    return shown_text(str(shown)) if item.place else ""


Key = TypeVar("Key", str, "str | None")


def outcomes_of(asset: str, keys: Sequence[str | None], result: Result) -> list[Outcome]:
    """Returns the outcome of each partition of a run: [None] for an asset without partitions."""
    from assets.publishing import STATUS as NOT_PUSHED

    published = _published(result)
    observed = [
        event.asset_observation_data.asset_observation
        for event in result.get_asset_observation_events()
    ]
    reports = {
        item.partition: {name: value.value for name, value in item.metadata.items()}
        for item in observed
    }
    reason_of_run, error_of_run = _failure(result)
    found = []
    for key in keys:
        name, said = key or "", reports.get(key, {})
        reason = str(said.get("reason", reason_of_run))
        if cure := said.get("cure"):
            reason = f"{reason}\nWhat to do: {cure}"
        error = str(said.get("error", error_of_run))
        if key in published:
            problem = _failed_checks(asset, name, result)
            if said.get("status") == NOT_PUSHED:
                problem = "\n".join(filter(None, (problem, reason)))
            built = outcome_of(asset, name, published[key])
            found.append(Outcome(asset, name, "failed", reason=problem) if problem else built)
        elif said.get("status") == "not built":
            found.append(Outcome(asset, name, "not built", reason=str(said["reason"])))
        else:
            found.append(Outcome(asset, name, "failed", reason=reason, error=error))
    return found


def outcome_of(asset: str, partition: str, metadata: Mapping[str, Any]) -> Outcome:
    """Returns the outcome of a published partition, or, with an empty key, of a whole asset."""
    return Outcome(
        asset,
        partition,
        status=metadata["status"],
        rows=metadata.get("dagster/row_count"),
        bytes=metadata["bytes"],
        seconds=metadata["seconds"],
        place=str(metadata["path"]),
        account=str(metadata.get("account", "")),
        columns=str(metadata.get("columns", "")),
        not_checked=str(metadata.get("not checked", "")),
    )


def _published(result: Result) -> dict[str | None, Mapping[str, Any]]:
    found: dict[str | None, Mapping[str, Any]] = {}
    for event in result.get_asset_materialization_events():
        materialization = event.step_materialization_data.materialization
        values = {name: value.value for name, value in materialization.metadata.items()}
        # Dagster may add an event without our facts: see `assets/versions.py`.
        if "status" in values:
            found[materialization.partition] = values
    return found


def _failure(result: Result) -> tuple[str, str]:
    """Why the run failed, and the class of the library's error; empty for any other error."""
    for event in result.get_step_failure_events():
        failure = event.step_failure_data
        if failure.user_failure_data:
            reason = str(failure.user_failure_data.description).strip()
            error = failure.user_failure_data.metadata.get("error")
            return reason, str(error.value) if error else ""
        # An error that the library does not expect is shown with its traceback.
        return (failure.error.to_string().strip() if failure.error else "the run failed"), ""
    return "the run failed", ""


def _failed_checks(asset: str, partition: str, result: Result) -> str:
    """What the checks of the run found in a partition; empty if nothing, or only warnings."""
    import dagster as dg

    from assets.family import ON_DISK

    failed = {
        check.check_name: f"check {check.check_name}: "
        + unescaped(unbroken(check.description or ""))
        for check in result.get_asset_check_evaluations()
        if not check.passed
        and check.severity is dg.AssetCheckSeverity.ERROR
        and named_in(check, [partition])
    }
    if not failed:
        return ""
    reasons = "; ".join(failed.values())
    if not ON_DISK & set(failed):
        return reasons
    option = f" --partition {partition}" if partition else ""
    command = f"gristmill materialize {asset}{option} --rebuild"
    return f"{reasons}: if its files are damaged, run `{command}`"


def named_in(check: dg.AssetCheckEvaluation, keys: Collection[Key]) -> set[Key]:
    """Returns those of some partitions that a failed check is about.

    A table in its metadata with a column `partition` names them; without one it is about all.
    """
    import dagster as dg

    from assets.checking.evaluations import PROBLEMS

    for value in check.metadata.values():
        if isinstance(value, dg.TableMetadataValue) and value.schema.columns[0].name == "partition":
            named = {row.data["partition"] for row in value.records}
            count = check.metadata.get(PROBLEMS)
            if count is not None and int(str(count.value)) > len(named):
                return set(keys)  # the table is cut
            return {key for key in keys if not key or key in named}
    return set(keys)


_INDEX: Final = "history/runs/index.db"
"""What the instance says of partitions, checks and ends of runs is in this database."""
_CODE: Final = ("assets", "commands", "resources", "sensors", "definitions.py")


@dataclass(frozen=True)
class Answer:
    """What a call says at its end.

    lines: what follows the table, as rich's markup.
    is_failure: whether the call ends with status 1. is_named: whether a person named partitions.
    """

    outcomes: Sequence[Outcome]
    lines: Sequence[str]
    is_failure: bool = False
    is_named: bool = False


@dataclass(frozen=True)
class Call:
    """The words of one call of the command; without `selection` it is about every asset."""

    selection: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    listed: Path | None = None
    words: tuple[str, ...] = ()
    rebuild: bool = False
    replace_differing: bool = False
    dry_run: bool = False
    wait: bool = True

    def stamp(self) -> str | None:
        """What the answer depends on, now; None where nobody can say all of it."""
        if any((self.partitions, self.listed, self.words, self.rebuild, self.dry_run)):
            return None
        home = instance.dagster_home()
        if (history := instance.history_that_opens(checkout.CHECKOUT, home)) is None:
            return None
        files = (history / _INDEX, history / f"{_INDEX}-wal")
        code = (checkout.CHECKOUT / name for name in _CODE)
        return standing.stamp(
            root_of(checkout.CHECKOUT), (self.selection, history), (*code, *files)
        )

    def standing_answer(self) -> Answer | None:
        """The answer of an equal call before, where all that it depends on is as it was.

        A process that has imported Dagster saves nothing, and may have changed its code.
        """
        if "dagster" in sys.modules or (stamp := self.stamp()) is None:
            return None
        if (kept := standing.kept(self._note(), stamp)) is None:
            return None
        return Answer([Outcome(**each) for each in kept["outcomes"]], kept["lines"])

    def keep(self, answer: Answer, stamp: str) -> None:
        """Keep an answer for the next call; stamp: from before it was found."""
        outcomes = [asdict(each) for each in answer.outcomes]
        standing.keep(self._note(), stamp, {"outcomes": outcomes, "lines": answer.lines})

    def _note(self) -> Path:
        state = instance.state_folder(checkout.CHECKOUT, instance.dagster_home())
        return standing.note_of(state, (str(root_of(checkout.CHECKOUT)), self.selection))
