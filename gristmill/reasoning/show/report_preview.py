"""A daily report as tables, for the page of its asset."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from gristmill import markdown
from gristmill.reasoning.show.preview import Figures

COLUMNS: Final = (
    "examples",
    "total_tokens",
    "avg_seq_len",
    "pct_with_cot",
    "alignment_coverage",
    "mean_confidence",
    "low_confidence_share",
)
"""Figures of a split that a table has."""


def report_figures(folder: Path, date: str) -> Figures:
    """The splits of a report and what is outside of a tolerance; numbers of all splits together."""
    report: dict[str, Any] = json.loads((folder / f"{date}.json").read_bytes())
    figures: Figures = {
        "splits of the report": splits_table(report),
        "gate": gate_text(report["gate"]),
    }
    if report["warnings"]:
        figures["what to know"] = markdown.bullets(map(str, report["warnings"])) + "\n"
    if flagged := flagged_table(report["invariance"]):
        figures["perturbations"] = flagged
    return figures


def splits_table(report: Mapping[str, Any]) -> str:
    """The splits of a report as a Markdown table."""
    rows = [
        (name, *(number(split.get(column)) for column in COLUMNS))
        for name, split in report["splits"].items()
    ]
    return markdown.table(("split", *COLUMNS), rows, "l" + "r" * len(COLUMNS))


def flagged_table(invariance: Mapping[str, Any]) -> str:
    """Perturbations that change 1 % of the token ids or more, as a Markdown table.

    invariance: of the report. Empty where there are none.
    """
    rows = [
        (name, str(kind), f"{share:.2%}")
        for name, kinds in invariance["flagged"].items()
        for kind, share in kinds.items()
    ]
    return (
        markdown.table(("split", "perturbation", "token ids changed"), rows, "llr") if rows else ""
    )


def gate_text(gate: Mapping[str, Any]) -> str:
    """Whether a report is within the tolerances of its baseline, and what is not."""
    against = f"the report of {gate['baseline']}" if gate["baseline"] else "no baseline"
    first = f"Compared with {markdown.escape(against)}: "
    if gate["passed"]:
        return first + "nothing is outside of a tolerance.\n"
    return first + "\n\n" + markdown.bullets(map(str, gate["breaches"])) + "\n"


def number(value: object) -> str:
    """A number of a report for a table; a dash where it has none."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.2f}" if isinstance(value, float) else "–"
