"""What a finding of `gristmill doctor` is; what is looked at is in `doctor` and `engines`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How a finding stands: as it should be, to be known, or missing and needed."""

    OK = "ok"
    NOTE = "note"
    MISSING = "MISSING"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    name: what it is.
    found: what is there.
    use: what Gristmill does with it, or what to do; may be empty.
    verdict: how it stands.
    """

    name: str
    found: str
    use: str
    verdict: Verdict = Verdict.OK

    def __str__(self) -> str:
        use = f" ({self.use})" if self.use else ""
        return f"{self.verdict:<8}{self.name}: {self.found}{use}"
