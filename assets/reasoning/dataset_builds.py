"""The builds that take all published splits: both manifests, and the daily report.

See also `builds.py`: what is built for one split.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

from assets import configs
from assets.reasoning.builds import VOCABULARY, tokenizer, vocabulary_input
from assets.reasoning.partitions import today
from assets.reasoning.records import (
    ALIGNMENT,
    MANIFEST,
    MANIFEST_VERSION,
    NORMALIZED,
    RAW_MANIFEST,
    REPORT,
    SHARDS,
    is_published,
    manifest_config,
    published_inputs,
    published_partitions,
    published_records,
    record_path,
)
from gristmill import families, provenance
from gristmill.contract import BadInput, GristmillError, NothingToBuild, Summary
from gristmill.families import Subject
from gristmill.provenance import Input
from gristmill.publish.build import Attempt, Build
from gristmill.reasoning.config import ReportConfig
from gristmill.reasoning.format import names, reports
from resources import Lake


def raw_manifest_build(lake: Lake, key: str | None) -> Build:
    """Returns the build of the manifest of the normalised files.

    lake: the data root.
    key: not used, since the manifest has no partitions.

    Raises NothingToBuild if no split is published.
    """
    from gristmill.reasoning.builders.raw_manifest import write_raw_manifest

    records = published_records(lake, names.NORMALIZED)
    if not records:
        raise NothingToBuild("no split is normalised")
    previous = _previous_manifest(lake)

    def make(attempt: Attempt) -> Summary:
        return write_raw_manifest(
            [record.model_dump(mode="json") for record in records],
            previous,
            attempt.out,
            generated_at=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    return Build(
        root=lake.root,
        artifact=names.NORMALIZED,
        asset=RAW_MANIFEST,
        partition=names.MANIFEST_RECORD,
        code_version=MANIFEST_VERSION,
        config=manifest_config(records),
        inputs=published_inputs(lake, names.NORMALIZED, NORMALIZED),
        make=make,
        laws=lambda out: families.check(RAW_MANIFEST, Subject(out, names.MANIFEST_RECORD)),
        shared=True,
    )


def _previous_manifest(lake: Lake) -> Mapping[str, Any] | None:
    """The raw manifest that is published, whose entries without a record stay.

    None where there is none, and where it is damaged: nothing wrong may be taken over.

    Raises BadInput for one without a record that is not JSON.
    """
    folder = lake.root / names.NORMALIZED
    try:
        data = (folder / names.MANIFEST).read_bytes()
    except FileNotFoundError:
        return None
    path = record_path(lake, names.NORMALIZED, names.MANIFEST_RECORD)
    if path.exists():
        try:
            outputs = provenance.read_record(path).outputs
        except GristmillError:
            return None
        sha256 = hashlib.sha256(data).hexdigest()
        if (names.MANIFEST, sha256) not in {(item.path, item.sha256) for item in outputs}:
            return None
    try:
        previous = json.loads(data)
    except ValueError as error:
        raise BadInput(folder / names.MANIFEST, f"is not JSON: {error}: remove the file") from error
    if not isinstance(previous, dict):
        raise BadInput(folder / names.MANIFEST, "is no manifest: remove the file")
    return previous


def manifest_build(lake: Lake, key: str | None) -> Build:
    """Returns the build of the manifest of the token shards, and of the index of all splits.

    lake: the data root.
    key: not used, since the manifest has no partitions.

    Raises NothingToBuild if no split has token shards.
    """
    from gristmill.reasoning.builders.manifest import write_manifest

    records = published_records(lake, names.TOKENIZED)
    if not records:
        raise NothingToBuild("no split has token shards")
    folder = lake.root / names.TOKENIZED
    partitions = published_partitions(lake, names.TOKENIZED)

    def make(attempt: Attempt) -> Summary:
        return write_manifest(folder, attempt.out, partitions, progress=attempt.progress)

    return Build(
        root=lake.root,
        artifact=names.TOKENIZED,
        asset=MANIFEST,
        partition=names.MANIFEST_RECORD,
        code_version=MANIFEST_VERSION,
        config=manifest_config(records),
        inputs=published_inputs(lake, names.TOKENIZED, SHARDS),
        make=make,
        laws=lambda out: families.check(MANIFEST, Subject(out, names.MANIFEST_RECORD, [folder])),
        shared=True,
        tokenizer=tokenizer(),
    )


def report_build(lake: Lake, run: BaseModel, run_id: str, key: str | None) -> Build:
    """Returns the build of a day's report on everything that is published.

    lake: the data root.
    run: the launchpad's config.
    run_id: id of the run, which the report names.
    key: the day, as `2026-11-22`.

    Raises NothingToBuild for another day than the current one in UTC, and if no split is
    published; BadInput if the baseline is not published.
    """
    from gristmill.reasoning.builders.report import coverage_report

    date, now = str(key), today().isoformat()
    if date != now:
        raise NothingToBuild(
            f"a report describes what is published now, so that only {now} can be built (the "
            "current day in UTC)"
        )
    inputs = _report_inputs(lake)
    if not inputs:
        raise NothingToBuild("no split is published")
    config = configs.resolve(
        ReportConfig, lake.settings(REPORT), run, filled_in={"vocabulary": VOCABULARY}
    )
    baseline, before = _baseline(lake, config.baseline, date)
    resolved = replace(config, vocabulary=lake.root / VOCABULARY)

    def make(attempt: Attempt) -> Summary:
        return coverage_report(
            lake.root, attempt.out, resolved, date=date, baseline=baseline, run_id=run_id
        )

    return Build(
        root=lake.root,
        artifact=names.REPORTS,
        asset=REPORT,
        partition=date,
        code_version=ReportConfig.CODE_VERSION,
        config=config,
        inputs=[*inputs, vocabulary_input(lake), *before],
        make=make,
        laws=lambda out: families.check(REPORT, Subject(out, date)),
        shared=True,
        tokenizer=tokenizer(),
    )


def _report_inputs(lake: Lake) -> list[Input]:
    """Everything published that a report describes."""
    inputs = [
        *published_inputs(lake, names.NORMALIZED, NORMALIZED),
        *published_inputs(lake, names.TOKENIZED, SHARDS),
        *published_inputs(lake, names.ALIGNMENT, ALIGNMENT),
    ]
    for folder, asset in ((names.NORMALIZED, RAW_MANIFEST), (names.TOKENIZED, MANIFEST)):
        if is_published(lake, folder, names.MANIFEST_RECORD):
            inputs.append(lake.published(folder, asset, names.MANIFEST_RECORD))
    return inputs


def _baseline(
    lake: Lake, chosen: str | None, date: str
) -> tuple[dict[str, Any] | None, list[Input]]:
    """The report that drift is measured against, and that report as an input.

    A report of the same day, which the build replaces, is no input. Before there is one, a report
    whose own day is the baseline is compared with nothing.
    """
    if chosen is None:
        return None, []
    found = is_published(lake, names.REPORTS, chosen)
    if chosen == date:
        return (reports.read(reports.path(lake.root / names.REPORTS, date)) if found else None), []
    if not found:
        raise BadInput(
            lake.settings(REPORT).file,
            f'[reasoning.qc_report] baseline = "{chosen}": there is no report {chosen}.json: name '
            "the day of a report that is published",
        )
    before = lake.published(names.REPORTS, REPORT, chosen)
    return reports.read(reports.path(lake.root / names.REPORTS, chosen)), [before]
