"""The table `[mirror]`: where published artifacts are pushed after each build.

Nothing here is part of a fingerprint. Source: docs/mirror.md#after-each-build.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from gristmill.settings.fields import check_fields
from gristmill.settings.tables import Table


@dataclass(frozen=True)
class MirrorSettings:
    """The mirror that builds push to.

    push: URL of the mirror, as for `gristmill push`; default empty: nothing is pushed.
    assets: keys of the assets that are pushed; default none: all.
    parallel: parts of 16 MiB that are sent at once; default 8.

    Raises ValueError, naming the field, for a value that it cannot hold.
    """

    push: str = field(
        default="",
        metadata={
            "help": "URL of the mirror that artifacts are pushed to once they are published, as "
            "for `gristmill push`; empty: nothing is pushed. A folder is absolute, or relative to "
            "the data root. Needs the extra `mirror`; see mirror.md."
        },
    )
    assets: tuple[str, ...] = field(
        default=(),
        metadata={
            "help": "Assets whose artifacts are pushed, as `macroxue/pack`; empty: all that a run "
            "or a build publishes."
        },
    )
    parallel: int = field(
        default=8,
        metadata={
            "help": "Parts of 16 MiB that are sent at once.",
            "least": 1,
            "most": 64,
            "unit": "parts",
        },
    )

    def __post_init__(self) -> None:
        check_fields(self)

    def takes(self, asset: str) -> bool:
        """Whether what builds of an asset publish is pushed."""
        return bool(self.push) and (not self.assets or asset in self.assets)


MIRROR: Final = Table("mirror", MirrorSettings)
"""A table that belongs to no family."""
