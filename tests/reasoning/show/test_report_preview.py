"""Tables of a daily report."""

from __future__ import annotations

import json
from pathlib import Path

from gristmill.reasoning.show.report_preview import gate_text, report_figures


def test_a_report_is_a_table_of_splits_and_what_is_outside_of_a_tolerance(tmp_path: Path) -> None:
    report = {
        "splits": {"gsm8k__test": {"examples": 1319, "total_tokens": 210519, "pct_with_cot": 0.0}},
        "gate": {"passed": False, "baseline": "2026-11-20", "breaches": ["gsm8k__test: <x>"]},
        "warnings": ["gsm8k__test: 2 raw records were rejected"],
        "invariance": {"flagged": {"gsm8k__test": {"nbsp": 0.028}}},
    }
    (tmp_path / "2026-11-22.json").write_text(json.dumps(report))
    figures = report_figures(tmp_path, "2026-11-22")
    assert "1,319 | 210,519 | – | 0.00 |" in str(figures["splits of the report"])
    assert "2 raw records were rejected" in str(figures["what to know"])
    assert "nbsp | 2.80% |" in str(figures["perturbations"])
    assert "the report of 2026" in str(figures["gate"]) and "&lt;x&gt;" in str(figures["gate"])


def test_a_gate_that_passed_says_so() -> None:
    text = gate_text({"passed": True, "baseline": None, "breaches": []})
    assert text == "Compared with no baseline: nothing is outside of a tolerance.\n"
