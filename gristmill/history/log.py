"""The versions of an artifact, the newest first, as commands and pages show them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gristmill import families
from gristmill.contract import GristmillError
from gristmill.history.versions import kept, published, reasons
from gristmill.provenance.inventory import Entry


def lines_of(root: Path, entry: Entry) -> tuple[list[dict[str, Any]], list[str]]:
    """The versions of an artifact partition, and what is damaged.

    Each has `data_version`, `created` (ISO 8601), `rows`, `published`, and `why`: what differs from
    the version before it.
    """
    older, wrong = kept(root, entry)
    try:
        now = published(root, entry)
    except GristmillError as error:
        now, wrong = None, [*wrong, str(error)]
    listed = [
        each for each in older if now is None or each.record.data_version != now.record.data_version
    ]
    listed += [now] if now is not None else []
    found = []
    for number, each in enumerate(listed):
        record = each.record
        kind = families.kind_of_asset(record.asset)
        found.append(
            {
                "data_version": record.data_version,
                "created": record.created.isoformat(),
                "rows": None if kind is None else kind.rows_of(record.counts),
                "published": not each.is_kept,
                "why": reasons(listed[number - 1], each) if number else [],
            }
        )
    return found[::-1], wrong
