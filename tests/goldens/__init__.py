"""Data versions of the sample drops, by the digest of the code that made them.

`builders.json` has for each asset the digests of earlier code and what that code made of the
samples. `python -m tests.goldens` prints the entries of the code that stands, and `--write` adds
them to the file, which is done before the code of a release changes.
"""

from __future__ import annotations

import json
from pathlib import Path

from gristmill import families
from tests.sample_root import SampleRoot

FILE = Path(__file__).with_name("builders.json")
Versions = dict[str, str]
"""Data version by partition; the partition of an asset without any is an empty text."""


def recorded() -> dict[str, dict[str, Versions]]:
    """Versions by asset and digest, as the file has them."""
    entries: dict[str, dict[str, Versions]] = json.loads(FILE.read_text())
    return entries


def measured(root: SampleRoot) -> dict[str, Versions]:
    """Versions by asset in a data root that was built from the samples."""
    versions: dict[str, Versions] = {}
    for _, record in root.records():
        versions.setdefault(record.asset, {})[record.partition or ""] = record.data_version
    return versions


def with_the_code_that_stands(root: SampleRoot) -> dict[str, dict[str, Versions]]:
    """The file's entries, and those of the code that built `root`."""
    entries = recorded()
    for asset, versions in sorted(measured(root).items()):
        code = families.code_of_asset(asset)
        if code.modules:
            entries.setdefault(asset, {})[code.digest] = dict(sorted(versions.items()))
    return entries
