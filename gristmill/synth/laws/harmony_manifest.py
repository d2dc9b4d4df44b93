"""Laws of the two JSON files of a Harmony dataset."""

from __future__ import annotations

from collections.abc import Iterator

from gristmill.contract import Violation
from gristmill.families import Subject
from gristmill.synth.builders.manifests import MANIFEST, METADATA, json_violations


def law(subject: Subject) -> Iterator[Violation]:
    """Yield a violation for each of both files that is not a JSON object.

    Sizes and rows are not compared: an imported manifest may describe a larger folder.
    """
    for name in (MANIFEST, METADATA):
        yield from json_violations(subject.folder / name)
