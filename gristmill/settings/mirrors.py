"""The table `[mirror]`: where published artifacts are pushed after each build.

Nothing here is part of a fingerprint. Source: docs/mirror.md#after-each-build.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from gristmill.settings.fields import Checked
from gristmill.settings.kinds import Help, Le, Positive, Unit
from gristmill.settings.tables import Table


@dataclass(frozen=True)
class MirrorSettings(Checked):
    """The mirror that builds push to."""

    push: Annotated[
        str,
        Help(
            "URL of the mirror that artifacts are pushed to once they are published, as "
            "for `gristmill push`; empty: nothing is pushed. A folder is absolute, or relative to "
            "the data root. Needs the extra `mirror`; see mirror.md."
        ),
    ] = ""
    assets: Annotated[
        tuple[str, ...],
        Help(
            "Assets whose artifacts are pushed, as `macroxue/pack`; empty: all that a run "
            "or a build publishes."
        ),
    ] = ()
    parallel: Annotated[
        Positive, Le(64), Unit("parts"), Help("Parts of 16 MiB that are sent at once.")
    ] = 8

    def takes(self, asset: str) -> bool:
        """Whether what builds of an asset publish is pushed."""
        return bool(self.push) and (not self.assets or asset in self.assets)


MIRROR: Final = Table("mirror", MirrorSettings)
"""A table that belongs to no family."""
