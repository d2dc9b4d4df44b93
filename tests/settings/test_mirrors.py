"""The table `[mirror]`: which assets a build pushes."""

from __future__ import annotations

import pytest

from gristmill.settings.mirrors import MirrorSettings


@pytest.mark.parametrize(
    ("push", "assets", "pushed"),
    [
        ("s3://barn/grain", (), {"macroxue/pack": True, "synth/harmony": True}),
        ("s3://barn/grain", ("macroxue/pack",), {"macroxue/pack": True, "synth/harmony": False}),
        ("", (), {"macroxue/pack": False}),
        ("", ("macroxue/pack",), {"macroxue/pack": False}),
    ],
)
def test_a_build_is_pushed_where_a_mirror_is_named_and_all_or_its_asset_are(
    push: str, assets: tuple[str, ...], pushed: dict[str, bool]
) -> None:
    settings = MirrorSettings(push=push, assets=assets)
    assert {asset: settings.takes(asset) for asset in pushed} == pushed
