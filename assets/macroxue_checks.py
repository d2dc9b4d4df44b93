"""Asset checks of 2048 packs beside `intact` and `lawful`: what is worth knowing of them."""

from collections import Counter

import dagster as dg

from assets.checks import partitions_of_run
from gristmill import provenance
from gristmill.contract import Violation
from resources import Lake

_LISTED = 50


def noteworthy_check(pack: dg.AssetsDefinition) -> dg.AssetChecksDefinition:
    """`noteworthy` of packs, a warning: notes on their games that are no faults of them."""

    @dg.asset_check(
        asset=pack,
        name="noteworthy",
        description="Games that start late, have gaps or another score than their rewards, rows "
        "whose ranks or EVs leave something open. A warning: the pack is as its drop has it, and "
        "whoever trains on it may want to leave these out.",
    )
    def noteworthy(context: dg.AssetCheckExecutionContext, lake: Lake) -> dg.AssetCheckResult:
        from gristmill.macroxue.game_notes import game_notes

        keys = partitions_of_run(context, pack)
        found: list[tuple[str, Violation]] = []
        checked = 0
        for path in sorted((lake.root / "macroxue/packs").glob(f"*/{provenance.RECORD}")):
            record = provenance.read_record(path)
            if keys is None or record.partition in keys:
                checked += 1
                found += [(str(record.partition), note) for note in game_notes(path.parent)]
        kinds = Counter(note.law for _, note in found)
        listed = "\n".join(f"* `{key}: {note}`" for key, note in found[:_LISTED])
        return dg.AssetCheckResult(
            passed=not found,
            severity=dg.AssetCheckSeverity.WARN,
            description=", ".join(sorted(kinds)) or f"nothing of note in {checked} packs",
            metadata={
                "artifacts": checked,
                "notes": len(found),
                **({"listed": dg.MetadataValue.md(listed)} if listed else {}),
            },
        )

    return noteworthy
