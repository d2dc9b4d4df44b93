"""How a run came out for each of its partitions, from the run's events."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, TypeVar

import dagster as dg

from assets.checks import ON_DISK
from assets.mirrored import STATUS as NOT_PUSHED
from commands.dagster_private import Result
from commands.runs.table import Outcome
from gristmill.markdown import unescaped
from gristmill.printable import unbroken

FALLING_SHORT: Final = "falling short"
"""Metadata of a check: how many partitions its table would name if it were not cut."""
PLANNED: Final = "PLANNED"
"""Status of a check that a run planned and has not evaluated."""
Key = TypeVar("Key", str, "str | None")


def outcomes_of(asset: str, keys: Sequence[str | None], result: Result) -> list[Outcome]:
    """Returns the outcome of each partition of a run: [None] for an asset without partitions."""
    published = _published(result)
    reports = _reports(result)
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
        not_checked=str(metadata.get("not checked", "")),
        changed=_changed(metadata) if metadata["status"] == "built" else (),
    )


def _changed(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    lines = str(metadata.get("config changed", "")).splitlines()
    bullet = "* "  # of Markdown; many lines are plain text
    return tuple(
        unescaped(line.removeprefix(bullet)) if line.startswith(bullet) else line for line in lines
    )


def _published(result: Result) -> dict[str | None, Mapping[str, Any]]:
    """Metadata of what the run published, by partition."""
    found: dict[str | None, Mapping[str, Any]] = {}
    for event in result.get_asset_materialization_events():
        materialization = event.step_materialization_data.materialization
        values = {name: value.value for name, value in materialization.metadata.items()}
        # Dagster may add an event without our facts: see `assets/ranges.py`.
        if "status" in values:
            found[materialization.partition] = values
    return found


def _reports(result: Result) -> dict[str | None, Mapping[str, Any]]:
    """What the run says of each partition that it did not publish or push: status, reason, cure."""
    observed = [
        event.asset_observation_data.asset_observation
        for event in result.get_asset_observation_events()
    ]
    return {
        item.partition: {name: value.value for name, value in item.metadata.items()}
        for item in observed
    }


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
    for value in check.metadata.values():
        if isinstance(value, dg.TableMetadataValue) and value.schema.columns[0].name == "partition":
            named = {row.data["partition"] for row in value.records}
            count = check.metadata.get(FALLING_SHORT)
            if count is not None and int(str(count.value)) > len(named):
                return set(keys)  # the table is cut
            return {key for key in keys if not key or key in named}
    return set(keys)
