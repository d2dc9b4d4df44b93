"""The schedules of the reasoning family: the daily report, the weekly audit sample."""

from collections.abc import Iterator
from typing import Final

import dagster as dg

from gristmill import markdown
from gristmill.corpora.raw.drops import AUDITS
from gristmill.reasoning.builds import today
from gristmill.reasoning.format import names
from gristmill.reasoning.format.published import ALIGNMENT, published_partitions
from gristmill.reasoning.raw import INBOX
from resources import Lake

COUNT: Final = 5
"""Examples of each corpus; `gristmill audit` draws as many."""


reasoning_report = dg.define_asset_job(
    "reasoning_report",
    selection=[dg.AssetKey(["reasoning", "qc_report"])],
    description="The report of the current day, with drift, invariance and coverage.",
)


@dg.schedule(
    name="reasoning_daily_report",
    job=reasoning_report,
    cron_schedule="0 5 * * *",
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description="Every day at 05:00 UTC: the report of that day. Off by default.",
)
def reasoning_daily_report() -> dg.RunRequest:
    """Returns the run of the current day's report."""
    day = today().isoformat()
    return dg.RunRequest(run_key=day, partition_key=day)


@dg.op(
    description="Draws examples of every aligned split for an audit, the least sure ones first, "
    "and reports their ids on the page of `reasoning/alignment`."
)
def draw_audit_sample(context: dg.OpExecutionContext, lake: Lake) -> None:
    """Report the audit sample of every aligned split as an observation."""
    for observation in observations(lake):
        context.log_event(observation)


@dg.job(
    name="reasoning_audit_sample",
    description="The examples whose steps a person looks at this week: see `gristmill audit`.",
)
def reasoning_audit_sample() -> None:
    """Draw the audit sample."""
    draw_audit_sample()


reasoning_weekly_audits = dg.ScheduleDefinition(
    name="reasoning_weekly_audits",
    job=reasoning_audit_sample,
    cron_schedule="0 6 * * 1",
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description="Every Monday at 06:00 UTC: draws the audit sample. Off by default.",
)

JOBS = [reasoning_report, reasoning_audit_sample]
SCHEDULES = [reasoning_daily_report, reasoning_weekly_audits]


def observations(lake: Lake) -> Iterator[dg.AssetObservation]:
    """Yield this week's sample of each corpus that has examples without an audit.

    Raises BadInput where an alignment is not that of its index.
    """
    from gristmill.reasoning.read.alignment import draw, week_of

    week = week_of(today())
    folders = (lake.root / names.TOKENIZED, lake.root / names.ALIGNMENT, lake.inbox(INBOX) / AUDITS)
    aligned = published_partitions(lake, names.ALIGNMENT)
    for corpus in dict.fromkeys(key.split("__")[0] for key in aligned):
        drawn = draw(*folders, corpus, week, COUNT)
        if not drawn:
            continue
        rows = (each.row for each in drawn)
        lines = (f"{row.example_id}, {row.confidence:g}: {row.notes}" for row in rows)
        yield dg.AssetObservation(
            asset_key=dg.AssetKey.from_user_string(ALIGNMENT),
            description=f"audit sample of {corpus}, {week}: "
            f"run `gristmill audit --corpus {corpus} --week {week}`",
            metadata={
                "week": week,
                "examples": len(drawn),
                "least confidence": drawn[0].row.confidence,
                "sample": dg.MetadataValue.md(markdown.bullets(lines)),
            },
        )
