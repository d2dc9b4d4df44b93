"""The pictures of every asset as the UI shows them: never scaled, and beside its own colours."""

from __future__ import annotations

import dagster as dg
import pytest

from gristmill import markdown
from gristmill.svg import OVERVIEW
from tests.drawings import images, is_right
from tests.sample_root import SampleRoot

PICTURED = {
    *("macroxue/pack", "macroxue/pool", "macroxue/training_view"),
    *("chess/valid_games", "chess/game_dataset", "chess/splice_cache", "chess/splice_dataset"),
    *("chess/subset", "synth/harmony", "synth/kd_shards", "synth_smoke/kd_shards"),
    *("chat/kd_shards", "synth/distill", "chat/distill", "reasoning/alignment"),
    *(f"puzzles/{kind}" for kind in ("arc", "sudoku", "maze", "domino", "grid")),
}
MARKDOWN = {"picture", "notes", "config changed"}


@pytest.mark.slow
def test_one_picture_of_an_asset_stands_first_and_is_seen_without_a_click(
    sample_root: SampleRoot,
) -> None:
    pictured = set()
    with sample_root.graph(), dg.DagsterInstance.get() as instance:
        for asset in instance.get_asset_keys():
            for event in instance.fetch_materializations(asset, limit=1000).records:
                assert event.asset_materialization is not None
                shown = event.asset_materialization.metadata
                texts = {
                    name: entry.md_str
                    for name, entry in shown.items()
                    if isinstance(entry, dg.MarkdownMetadataValue)
                }
                assert set(texts) <= MARKDOWN
                assert all(len(text) <= markdown.INLINE for text in texts.values())
                if "picture" in texts:
                    pictured.add(asset.to_user_string())
                    assert next(iter(shown)) == "picture"
                    (picture,) = images(texts["picture"])
                    is_right(picture, OVERVIEW)
    assert pictured == PICTURED
