"""Laws of the two JSON files of a Harmony dataset.

Source: `docs/formats/synth.md#harmony-laws`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gristmill.contract import Violation
from gristmill.synth.builders.manifest_files import MANIFEST, METADATA, json_violations


def harmony_manifest_laws(root: Path, partition: str | None) -> Iterator[Violation]:
    """Yield a violation for each of both files that is not a JSON object.

    partition: name of the manifest's own record. It is not read.

    Sizes and rows are not compared: an imported manifest may describe a larger
    folder.
    """
    for name in (MANIFEST, METADATA):
        yield from json_violations(root / name)
