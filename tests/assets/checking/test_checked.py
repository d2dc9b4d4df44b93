"""Every asset that is built has the checks that it should have."""

import dagster as dg

import definitions
from assets import choices
from assets.checking.checked import CHECKED

BUILT = [
    asset
    for family in definitions.families()
    for asset in family.assets
    if isinstance(asset, dg.AssetsDefinition)
]


def test_every_built_asset_says_whether_it_was_built_and_is_intact():
    assert {asset.key for asset in BUILT} <= set(CHECKED)
    assert all({"built", "intact"} <= set(item.rules) for item in CHECKED.values())


def test_every_asset_with_a_config_warns_where_files_choose_another():
    checked = [CHECKED[asset.key] for asset in BUILT]
    warned = {item.name for item in checked if "noteworthy" in item.rules}
    # The raw file of a month is compared with those of the other months.
    assert warned == choices.configured() | {"chess/elite_pgn"}
    rules = [item.rules["noteworthy"] for item in checked if "noteworthy" in item.rules]
    assert {rule.severity for rule in rules} == {dg.AssetCheckSeverity.WARN}
    assert not any(rule.blocking for rule in rules)
