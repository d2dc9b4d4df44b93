"""Groups in the UI: each asset says what it is about, and no two look alike."""

from collections import defaultdict

import dagster as dg
import pytest

from assets.family import GROUPS, PAGE, with_subjects
from definitions import build_defs
from tests.paths import CHECKOUT


@pytest.fixture(scope="module")
def specs() -> list[dg.AssetSpec]:
    return list(build_defs().resolve_all_asset_specs())


def test_every_group_has_assets_and_a_page(specs: list[dg.AssetSpec]) -> None:
    assert {spec.group_name for spec in specs} == set(GROUPS)
    for group in GROUPS.values():
        assert (CHECKOUT / "docs" / group.page).is_file()
    assert GROUPS["macroxue"].subject == "2048 self-play"
    assert len({group.subject for group in GROUPS.values()}) == len(GROUPS)


def test_an_asset_says_what_it_is_about_and_where_to_read_more(
    specs: list[dg.AssetSpec],
) -> None:
    for spec in specs:
        assert spec.owners == [f"team:{str(spec.group_name).split('/')[0]}"]
        group = GROUPS[str(spec.group_name)]
        assert str(spec.description).startswith(f"{group.subject}: ")
        page = spec.metadata[PAGE]
        assert page == dg.MetadataValue.url(f"/docs/{group.page}")
        assert f"[docs/{group.page}](/docs/{group.page})" in str(spec.description)
        assert "[what the rows mean](/docs/numbers.md)" in str(spec.description)


def test_assets_of_one_name_differ_in_what_the_graph_shows(specs: list[dg.AssetSpec]) -> None:
    """A node shows the last part of the key, the first words and the kinds."""
    named = defaultdict(list)
    for spec in specs:
        named[spec.key.path[-1]].append((str(spec.description)[:14], *sorted(spec.kinds)))
    assert any(len(shown) > 1 for shown in named.values())
    for name, shown in named.items():
        assert len({words for words, *_ in shown}) == len(shown), name
        assert len(set(shown)) == len(shown), name


def test_assets_of_one_name_stand_in_boxes_of_different_names(specs: list[dg.AssetSpec]) -> None:
    """From afar a node shows the last part of its key, and its box the last part of the group."""
    drawn = defaultdict(list)
    for spec in specs:
        drawn[spec.key.path[-1]].append(str(spec.group_name).split("/")[-1])
    for name, boxes in drawn.items():
        assert len(set(boxes)) == len(boxes), name


def test_assets_keep_everything_else() -> None:
    before = dg.AssetSpec(
        "x", group_name="puzzles", description="Text.", kinds={"csv"}, metadata={"own": 1}
    )
    (after,) = with_subjects([before])
    assert isinstance(after, dg.AssetSpec)
    assert str(after.description).startswith("Puzzles: Text.\n\n")
    assert (after.key, after.kinds, after.metadata["own"]) == (before.key, {"csv"}, 1)


def test_assets_of_a_group_that_is_not_listed_stay_as_they_are() -> None:
    strange = dg.AssetSpec("x", group_name="strange", description="Text.")
    assert with_subjects([strange]) == [strange]
