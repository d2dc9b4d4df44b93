"""The groups of assets in the UI: what each is about, and its page in `docs/`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

import dagster as dg

from gristmill.browse.web.asked import PREFIX

DOCS: Final = "/docs/"
"""Where `gristmill ui` serves the pages of `docs/`."""
PAGE: Final = "docs"
"""The name of the metadata entry with the address of the page."""
SAMPLES: Final = "browse"
"""The name of the metadata entry with the address of the published artifacts' rows."""
NUMBERS: Final = "numbers.md"
"""The page that says what each row of an event means: a heading an asset."""


@dataclass(frozen=True)
class Group:
    """What the assets of a group are about."""

    subject: str
    page: str


GROUPS: Final = {
    "tokenizers": Group("Vocabularies", "formats/vocabularies.md"),
    "macroxue": Group("2048 self-play", "macroxue.md"),
    "synth/harmony": Group("SYNTH conversations", "synth.md"),
    "synth/full": Group("SYNTH for training", "synth.md"),
    "synth/smoke": Group("SYNTH, small for tests", "synth.md"),
    "chess/monthly": Group("Chess, month by month", "chess.md"),
    "reasoning/texts": Group("Reasoning texts", "reasoning.md"),
    "reasoning/tokens": Group("Reasoning tokens", "reasoning.md"),
    "reasoning/quality": Group("Reasoning steps and reports", "reasoning.md"),
    "chat": Group("Conversations of your own", "chat.md"),
    "puzzles": Group("Puzzles", "puzzles.md"),
}
"""The groups by name. A `/` nests a group in another one. Others are shown without a subject."""


def with_subjects(
    assets: Iterable[dg.AssetsDefinition | dg.AssetSpec],
) -> Sequence[dg.AssetsDefinition | dg.AssetSpec]:
    """Returns assets with their family as owner, their group's subject and its page.

    Those whose group is not in `GROUPS` are left as they are.
    """
    return dg.map_asset_specs(_with_subject, assets)


def _with_subject(spec: dg.AssetSpec) -> dg.AssetSpec:
    group = GROUPS.get(spec.group_name or "")
    if group is None:
        return spec
    place, numbers = f"{DOCS}{group.page}", f"{DOCS}{NUMBERS}"
    return spec.replace_attributes(
        owners=[f"team:{str(spec.group_name).partition('/')[0]}"],
        description=(
            f"{group.subject}: {spec.description}\n\n"
            f"More: [docs/{group.page}]({place}), and [what the rows mean]({numbers}); "
            "`gristmill ui` serves both."
        ),
        metadata={
            **spec.metadata,
            PAGE: dg.MetadataValue.url(place),
            SAMPLES: dg.MetadataValue.url(f"{PREFIX}?asset={quote(spec.key.to_user_string())}"),
        },
    )
