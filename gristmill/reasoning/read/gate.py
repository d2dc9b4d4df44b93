"""The gate of the daily reports: may shards be staged, and read by a verified reader?

Source: `docs/formats/reasoning.md#reports`.
"""

from __future__ import annotations

from pathlib import Path

from gristmill.contract import GristmillError
from gristmill.reasoning.format import reports


class GateClosed(GristmillError):
    """The newest report drifted too far from its baseline."""


def check_gate(folder: Path) -> None:
    """Raise GateClosed where the gate of the newest report did not pass.

    folder: of the reports; without a folder or a report the gate is open.

    The error names the report, its breaches, and how a person accepts the change. Raises
    BadInput for a report that cannot be read.
    """
    days = reports.dates(folder)
    if not days:
        return
    path = reports.path(folder, days[-1])
    report = reports.read(path)
    if report["gate"]["passed"]:
        return
    breaches = report["gate"]["breaches"]
    accept = f'set baseline = "{days[-1]}" in [reasoning.qc_report]'
    if report["drift"]["baseline"] == report["date"]:
        # The counts of the first report of the day are its baseline, whoever builds it again.
        accept = (
            "remove baseline from [reasoning.qc_report], materialize reasoning/qc_report, and set "
            "baseline to the day of that report"
        )
    more = f"; and {len(breaches) - 5} more" if len(breaches) > 5 else ""
    raise GateClosed(
        f"{path}: the gate did not pass: {'; '.join(breaches[:5])}{more}: correct the data, or "
        f"accept a drift: {accept}; then materialize reasoning/qc_report again"
    )
