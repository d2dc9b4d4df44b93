"""Two assets of many partitions: one publishes a small artifact, one only reports."""

from collections.abc import Iterator
from dataclasses import dataclass

import dagster as dg

from assets.publishing import BATCH, Event, publish_asset
from gristmill.contract import FileNote, Summary
from gristmill.publish.build import Attempt, Build
from resources import Lake

parts = dg.StaticPartitionsDefinition([f"p{number:04}" for number in range(1000)])
source = dg.AssetSpec("source", partitions_def=parts)


@dataclass(frozen=True)
class Nothing:
    """No configuration."""


@dataclass(frozen=True)
class Rows(Summary):
    rows: int


@dg.asset(deps=[source], partitions_def=parts, backfill_policy=BATCH)
def bare() -> dg.MaterializeResult:  # type: ignore[type-arg]
    return dg.MaterializeResult(metadata={"rows": 1})


@dg.asset(
    deps=[source],
    partitions_def=parts,
    code_version="1",
    backfill_policy=BATCH,
    output_required=False,
)
def published(context: dg.AssetExecutionContext, lake: Lake) -> Iterator[Event]:
    def build_of(key: str | None) -> Build:
        def make(attempt: Attempt) -> Rows:
            attempt.out.mkdir()
            (attempt.out / "rows.txt").write_text(f"{key}\n")
            return Rows(files={"rows.txt": FileNote(rows=1)}, rows=1)

        return Build(
            root=lake.root,
            artifact=f"bench/{key}",
            asset="published",
            partition=key,
            code_version="1",
            config=Nothing(),
            inputs=[],
            make=make,
        )

    yield from publish_asset(context, build_of)
