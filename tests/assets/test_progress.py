"""Every builder says how far it is: the assets of the samples, each built once more."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

from gristmill.provenance import Record
from gristmill.run.progress import Report, reporting_to
from tests.sample_root import SampleRoot, build_again

COMMON = {"inputs", "laws", "hash", "publish"}
"""Stages of every publication."""
SMALL = {
    *("tokenizers/gpt2", "tokenizers/o200k_harmony"),
    *("reasoning/raw_manifest", "reasoning/qc_report"),
}
"""Assets whose builders write one small file, or link one."""


def _stages(reports: list[Report]) -> dict[str, list[Report]]:
    stages: dict[str, list[Report]] = defaultdict(list)
    for report in reports:
        if report.moment == "stage":
            stages[report.stage].append(report)
    return stages


def _passes(stage: list[Report]) -> list[list[Report]]:
    """The reports of a stage, apart where it began again."""
    begins = [n for n in range(1, len(stage)) if stage[n].done < stage[n - 1].done]
    return [stage[start:end] for start, end in pairwise([0, *begins, len(stage)])]


@pytest.mark.slow
def test_every_builder_reports_stages_that_end_at_their_total(
    sample_root: SampleRoot, tmp_path: Path
) -> None:
    root = sample_root.copy(tmp_path)
    # The first partition of each asset.
    records: dict[str, Record] = {}
    for _, record in root.records():
        records.setdefault(record.asset, record)
    assert len(records) > 15
    with root.graph() as graph:
        for asset, record in records.items():
            reports: list[Report] = []
            with reporting_to(reports.append):
                outcome = build_again(graph, record)
            assert outcome.status == "built", outcome
            stages = _stages(reports)
            for name, stage in stages.items():
                passes = _passes(stage)
                assert len(passes) == 1, f"{asset} {name}: {stage}"
                last = stage[-1]
                assert last.done == last.total, f"{asset} {name}: {last}"
            assert stages["publish"], asset
            assert (set(stages) - COMMON) or asset in SMALL, f"{asset}: {set(stages)}"
            assert {report.moment for report in reports} >= {"begin", "stage", "end"}
            assert {report.work.split()[0] for report in reports} == {asset}
