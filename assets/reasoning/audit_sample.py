"""The weekly audit sample as observations on the page of the alignment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import dagster as dg

from gristmill import markdown
from gristmill.reasoning.builds import today
from gristmill.reasoning.format import names
from gristmill.reasoning.format.corpora import CORPORA
from gristmill.reasoning.format.published import ALIGNMENT
from gristmill.reasoning.raw.drops import AUDITS
from gristmill.reasoning.raw.ready import INBOX
from resources import Lake

COUNT: Final = 5
"""Examples of each corpus; `gristmill audit` draws as many."""


def observations(lake: Lake) -> Iterator[dg.AssetObservation]:
    """Yield this week's sample of each corpus that has examples without an audit.

    Raises BadInput where an alignment is not that of its index.
    """
    from gristmill.reasoning.read.audit_sample import draw, week_of

    week = week_of(today())
    folders = (lake.root / names.TOKENIZED, lake.root / names.ALIGNMENT, lake.inbox(INBOX) / AUDITS)
    for corpus in CORPORA:
        drawn = draw(*folders, corpus, week, COUNT)
        if not drawn:
            continue
        rows = [(each.row.example_id, f"{each.row.confidence:g}", each.row.notes) for each in drawn]
        yield dg.AssetObservation(
            asset_key=dg.AssetKey.from_user_string(ALIGNMENT),
            description=f"audit sample of {corpus}, {week}: "
            f"run `gristmill audit --corpus {corpus} --week {week}`",
            metadata={
                "week": week,
                "examples": len(drawn),
                "least confidence": drawn[0].row.confidence,
                "sample": dg.MetadataValue.md(
                    markdown.table(("example", "confidence", "notes"), rows, "lrl")
                ),
            },
        )
