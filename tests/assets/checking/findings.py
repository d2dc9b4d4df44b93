"""What the evaluation of a check says of each partition, as a person reads it in the UI."""

import dagster as dg

from assets.checking.evaluations import TABLE, WHOLE_ASSET
from gristmill.printable import unbroken

_COLUMNS = {"partition", "problem", "cure"}


def findings_in(evaluation: dg.AssetCheckEvaluation | None) -> dict[str, tuple[str, str]]:
    """Returns the problem and the cure by partition, as an evaluation shows them."""
    table = evaluation.metadata.get(TABLE) if evaluation else None
    if not isinstance(table, dg.TableMetadataValue):
        return {}
    return {
        str(row.data["partition"]).replace(WHOLE_ASSET, ""): (
            unbroken(str(row.data["problem"])),
            unbroken(str(row.data["cure"])),
        )
        for row in table.records
        if set(row.data) == _COLUMNS
    }
