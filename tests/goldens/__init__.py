"""Data versions of the sample drops, by the digest of the code that made them.

`builders.json` has for each asset the digests of earlier code and what that code made of the
samples. `python -m tests.goldens` prints the entries of the code that stands, and `--write` adds
them to the file, which is done before the code of a release changes.
"""

import hashlib
import json
from pathlib import Path

from gristmill import families
from gristmill.provenance import Record, data_version
from gristmill.reasoning.format import reports
from tests.sample_root import SampleRoot

FILE = Path(__file__).with_name("builders.json")
DAY = "2026-11-25"
"""The day of the reports in the file."""

Versions = dict[str, str]
"""Data version by partition; the partition of an asset without any is an empty text."""


def recorded() -> dict[str, dict[str, Versions]]:
    """Versions by asset and digest, as the file has them."""
    entries: dict[str, dict[str, Versions]] = json.loads(FILE.read_text())
    return entries


def measured(root: SampleRoot) -> dict[str, Versions]:
    """Versions by asset in a data root that was built from the samples."""
    versions: dict[str, Versions] = {}
    for folder, record in root.records():
        key, version = record.partition or "", record.data_version
        if record.asset == "reasoning/qc_report":
            key, version = DAY, _on_the_day(folder, record)
        versions.setdefault(record.asset, {})[key] = version
    return versions


def _on_the_day(folder: Path, record: Record) -> str:
    """The data version that a report of the quality has on the day of the goldens.

    Only the current day can be built, which is in the name and the contents of the report. Token
    datasets are left out: they are inputs, so that no report of code that did not count them stays.
    """
    (output,) = record.outputs
    report = json.loads((folder / output.path).read_bytes()) | {"date": DAY, "run_id": None}
    starts = tuple(f"{name}{mark}" for name in report.pop(reports.DATASETS, {}) for mark in ":/")
    report["warnings"] = [each for each in report["warnings"] if not each.startswith(starts)]
    content = hashlib.sha256(reports.to_bytes(report)).hexdigest()
    return data_version(
        [output.model_copy(update={"path": f"{DAY}.json", "content_sha256": content})]
    )


def with_the_code_that_stands(root: SampleRoot) -> dict[str, dict[str, Versions]]:
    """The file's entries, and those of the code that built `root`."""
    entries = recorded()
    for asset, versions in sorted(measured(root).items()):
        code = families.code_of_asset(asset)
        if code.entries:
            entries.setdefault(asset, {})[code.digest] = dict(sorted(versions.items()))
    return entries
