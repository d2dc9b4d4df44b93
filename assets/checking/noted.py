"""What the laws noted of an artifact before its commit, so that its run need not read it again.

They are kept as verdicts of their own name beside those of the checks, by data version.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from assets.checking.verdicts import Verdict, Verdicts
from gristmill.contract import Violation

NOTED: Final = "noted before the commit"
"""Name of these verdicts; no check has it."""

Notes = Mapping[tuple[str, str], Sequence[Violation]]
"""What was noted, by partition and data version."""


def keep(
    verdicts: Verdicts, asset: str, subject: str, version: str, noted: Sequence[Violation]
) -> None:
    """Keep what the laws noted of an artifact.

    verdicts: where to.
    asset: key of the asset.
    subject: the partition.
    version: data version of the artifact.
    noted: what is unusual in it; may be empty.
    """
    text = json.dumps([[one.law, one.where, one.found] for one in noted])
    verdicts.keep(asset, NOTED, [Verdict(subject, version, text if noted else None)])


def kept(verdicts: Verdicts, asset: str) -> Notes:
    """Returns what the laws noted of the artifacts of an asset.

    An artifact that is not in the result was not judged, or by another release.
    """
    found: dict[tuple[str, str], list[Violation]] = {}
    for one in verdicts.of(asset, NOTED):
        with suppress(ValueError, TypeError):
            listed = json.loads(one.problem) if one.problem else []
            found[one.subject, one.data_version] = [Violation(*item) for item in listed]
    return found
