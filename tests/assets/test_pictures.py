"""The pictures of every asset as the UI shows them: never scaled, and beside its own colours."""

from __future__ import annotations

import dagster as dg
import pytest

from gristmill import markdown
from gristmill.svg import OVERVIEW, WIDEST
from tests.drawings import images, is_right
from tests.sample_root import SampleRoot

PICTURED = {
    *("macroxue/pack", "macroxue/pool", "chess/valid_games", "chess/game_dataset"),
    *("macroxue/values", "macroxue/training_view", "synth/harmony_manifest", "synth/kd_manifest"),
    *("synth_smoke/kd_manifest", "reasoning/raw_manifest", "reasoning/manifest"),
    *("synth/kd_shards", "synth_smoke/kd_shards", "chat/kd_shards", "reasoning/normalized"),
    *("reasoning/gpt2_shards", "reasoning/alignment"),
    *(f"puzzles/{kind}" for kind in ("arc", "sudoku", "maze", "domino", "grid")),
}


@pytest.fixture(scope="module")
def documents(sample_root: SampleRoot) -> dict[str, list[dict[str, str]]]:
    """The Markdown of the latest event of each partition, by asset, in the order of the event."""
    found: dict[str, list[dict[str, str]]] = {}
    with sample_root.graph(), dg.DagsterInstance.get() as instance:
        for asset in instance.get_asset_keys():
            events = instance.fetch_materializations(asset, limit=1000).records
            latest = {event.partition_key: event for event in reversed(events)}
            for event in latest.values():
                assert event.asset_materialization is not None
                texts = {
                    title: value.md_str
                    for title, value in event.asset_materialization.metadata.items()
                    if isinstance(value, dg.MarkdownMetadataValue)
                }
                found.setdefault(asset.to_user_string(), []).append(texts)
    return found


def test_one_picture_of_an_asset_stands_first_and_is_seen_without_a_click(
    documents: dict[str, list[dict[str, str]]],
) -> None:
    pictured = {asset for asset, events in documents.items() if any(map(_pictures, events))}
    assert pictured == PICTURED
    for asset in PICTURED:
        for texts in documents[asset]:
            assert next(iter(texts)) == "picture", asset
            assert len(texts["picture"]) <= markdown.INLINE, asset
            (picture,) = images(texts["picture"])
            is_right(picture, OVERVIEW)


def test_all_pictures_fit_the_page_of_an_event(
    documents: dict[str, list[dict[str, str]]],
) -> None:
    count = 0
    for events in documents.values():
        for texts in events:
            pictures = _pictures(texts)
            count += len(pictures)
            assert len(pictures) == sum(text.count("data:image/svg") for text in texts.values())
            for picture in pictures:
                is_right(picture, WIDEST)
    assert count > 100


def _pictures(texts: dict[str, str]) -> list[str]:
    return [picture for text in texts.values() for picture in images(text)]
