"""Asset checks: what was checked before the commit, checked again from the disk.

A check looks at every published partition of its asset and names the bad ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from gristmill import verification
from gristmill.verification import Finding
from resources import Lake


def disk_checks(asset: dg.AssetsDefinition, below: str) -> list[dg.AssetChecksDefinition]:
    """`intact` (bytes, records, inputs) and `lawful` (the family's laws) for one asset.

    below: folder relative to the data root that holds the asset's artifacts.
    """
    asset_name = asset.key.to_user_string()

    @dg.asset_check(
        asset=asset,
        name="intact",
        description="Every published file has the size and sha256 of its record, the record is "
        "whole, and what it was built from is still the same.",
    )
    def intact(lake: Lake) -> dg.AssetCheckResult:
        return _result(*verification.survey(lake.root / below, asset_name, check_laws=False))

    @dg.asset_check(
        asset=asset,
        name="lawful",
        description="What must hold of the contents, recomputed from the published files.",
    )
    def lawful(lake: Lake) -> dg.AssetCheckResult:
        return _result(*verification.survey(lake.root / below, asset_name, check_bytes=False))

    return [intact, lawful]


def _result(checked: int, findings: Sequence[Finding]) -> dg.AssetCheckResult:
    listed = "\n".join(f"* `{finding}`" for finding in findings[:50])
    return dg.AssetCheckResult(
        passed=not findings,
        severity=dg.AssetCheckSeverity.ERROR,
        description=str(findings[0]) if findings else f"{checked} artifacts checked",
        metadata={
            "artifacts": checked,
            "findings": len(findings),
            **({"listed": dg.MetadataValue.md(listed)} if listed else {}),
        },
    )
