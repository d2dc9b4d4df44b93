"""The columns that the UI shows are those of the files and of the format pages."""

from __future__ import annotations

import re

import dagster as dg
import pytest
from dagster._serdes import serialize_value

from assets.columns import NAME, column_metadata, column_schema, stored_bytes
from assets.event_metadata import MOST_BYTES, event_metadata
from gristmill import families
from gristmill.macroxue.format import metadata_db
from gristmill.macroxue.format.rows import STEP_ROW_DTYPE, VALUE_ROW_DTYPE
from gristmill.reasoning.format import align, index, records
from gristmill.synth.builders.harmony_part import schema_of
from gristmill.synth.config import HarmonyConfig
from gristmill.synth.format.trace import schema
from tests.assets.test_event_metadata import published, stored
from tests.paths import CHECKOUT

TABLES = [
    *("macroxue/pack", "macroxue/pool", "macroxue/values"),
    *("synth/harmony", "synth/kd_shards", "synth_smoke/kd_shards"),
    *("chess/valid_games", "chess/game_dataset", "chess/splice_cache", "chess/splice_dataset"),
    *("reasoning/normalized", "reasoning/gpt2_shards", "reasoning/alignment"),
    *("puzzles/arc", "puzzles/sudoku", "puzzles/maze", "puzzles/domino"),
]
ASSETS = [kind.asset for catalog in families.catalogs() for kind in catalog.kinds]


def names(asset: str, table: str = "") -> list[str]:
    found = [column.name for column in families.columns_of(asset)]
    return [name.removeprefix(table) for name in found if name.startswith(table)]


def test_every_asset_with_tables_has_columns() -> None:
    assert [asset for asset in ASSETS if families.columns_of(asset)] == [
        asset for asset in ASSETS if asset in TABLES
    ]
    assert set(TABLES) <= set(ASSETS)
    assert families.columns_of("corn/mill") == ()


def test_steps_and_values_are_the_fields_of_their_rows() -> None:
    steps = {column.name: column.type for column in families.columns_of("macroxue/pack")}
    assert names("macroxue/pack", "steps.") == list(STEP_ROW_DTYPE.names or ())
    assert names("macroxue/values", "values.") == list(VALUE_ROW_DTYPE.names or ())
    assert (steps["steps.board"], steps["steps.branch_evs"]) == ("uint64", "float32[4]")


def test_tables_of_the_database_are_those_that_are_created() -> None:
    created = "".join(
        value
        for value in vars(metadata_db).values()
        if isinstance(value, tuple)
        for value in value
        if isinstance(value, str) and "CREATE" in value
    )
    for table in ("runs", "session"):
        body = re.search(rf"CREATE TABLE {table} \(([^)]*)\)", created)
        assert body is not None
        fields = [field.split()[:2] for field in body.group(1).split(",")]
        shown = [
            [column.name.removeprefix(f"{table}."), column.type]
            for column in families.columns_of("macroxue/pack")
            if column.name.startswith(f"{table}.")
        ]
        assert shown == fields


def test_parquet_columns_are_those_of_the_schema() -> None:
    assert names("synth/harmony") == schema_of(HarmonyConfig()).names
    trace = [
        (column.name.removeprefix("trace."), column.type)
        for column in families.columns_of("synth/kd_shards")
        if column.name.startswith("trace.")
    ]
    assert trace == [(field.name, str(field.type)) for field in schema()]


def test_keys_of_reasoning_are_those_that_are_written() -> None:
    assert names("reasoning/normalized")[:4] == list(records.KEYS)
    assert names("reasoning/alignment") == list(align.KEYS)
    assert names("reasoning/gpt2_shards")[1:-1] == list(index._TYPES)


@pytest.mark.parametrize("asset", TABLES)
def test_the_format_page_has_every_column(asset: str) -> None:
    family = next(f for f in families.FAMILIES if asset.startswith(f))
    page = (CHECKOUT / f"docs/formats/{family}.md").read_text()
    for column in families.columns_of(asset):
        name = column.name.rpartition(".")[2] if family in ("macroxue", "synth") else column.name
        if not name.startswith("("):
            assert re.search(rf"[`_( ]{re.escape(name)}[`. ]", page), name
        assert column.type and column.text


@pytest.mark.parametrize("asset", TABLES)
def test_an_event_has_the_schema_and_stays_small(asset: str) -> None:
    some = published({"rows": 3}, {"config": {"text": "x" * 300_000}})
    some.record.asset = asset
    metadata = event_metadata(some, lambda _: {"page": "word " * 50_000})
    assert metadata[NAME].schema == column_schema(asset)
    assert stored(metadata) <= MOST_BYTES
    alone = len(serialize_value(dg.AssetMaterialization("a", metadata=column_metadata(asset))))
    assert alone - 400 <= stored_bytes(asset) <= 3 * alone


def test_an_artifact_without_tables_has_no_schema() -> None:
    assert column_metadata("synth/harmony_manifest") == {}
    assert stored_bytes("synth/harmony_manifest") == 0
    assert NAME not in event_metadata(published({"rows": 3}))
