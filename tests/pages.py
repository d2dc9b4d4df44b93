"""The blocks of README and of the pages of docs/ that are typed by tests.

A block that is not typed has a line before it that no page shows: `[fragment]: # (WHY)`.
"""

import re
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(
    r"^(?:\[fragment\]: # \((?P<why>[^\n]*)\)\n\n?)?"
    r"```(?P<language>python|sh)\n(?P<code>.*?)^```$",
    re.M | re.S,
)


@dataclass(frozen=True)
class Block:
    """A block of code of a page. line: of its first fence, from 1. why: of a fragment, or empty."""

    page: str
    line: int
    language: str
    code: str
    why: str

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def script(self) -> str:
        """What bash runs: the lines themselves, or Python with them."""
        if self.language == "sh":
            return self.code
        return f"python - <<'END_OF_BLOCK'\n{self.code}END_OF_BLOCK\n"


def blocks(page: Path) -> list[Block]:
    """All blocks of a page, fragments included."""
    text = page.read_text()
    return [
        Block(
            page.name,
            text.count("\n", 0, found.start("language")) + 1,
            found["language"],
            found["code"],
            found["why"] or "",
        )
        for found in BLOCK.finditer(text)
    ]


def typed(several: list[Block]) -> str:
    """One bash script of all blocks but fragments, which ends at the first line that fails."""
    lines = ["set -eEuo pipefail", "trap 'echo \"failed in $AT: $BASH_COMMAND\" >&2' ERR"]
    lines += [f"AT={each.name}\n{each.script}" for each in several if not each.why]
    return "\n".join(lines)
