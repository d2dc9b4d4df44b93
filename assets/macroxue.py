"""2048: raw self-play drops become packs."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
from gristmill.macroxue.config import PackConfig

from assets import configs
from assets.partitions import macroxue_drops
from assets.publishing import BATCH, Event, publish_asset
from gristmill import rawfiles
from gristmill.artifact import Attempt, Build
from gristmill.contract import Summary
from resources import Lake

GROUP = "macroxue"
PACK = "macroxue/pack"
PACK_CODE = "1"

raw_drop = dg.AssetSpec(
    key=["macroxue", "raw_drop"],
    partitions_def=macroxue_drops,
    group_name=GROUP,
    kinds={"json", "gzip"},
    owners=["team:data"],
    description=(
        "A folder of 2048 self-play logs under `drops/macroxue/`: for each game "
        "`S.meta.json` (or `.meta.json.gz`) and `S.jsonl.gz`. Copy a folder there and its pack "
        "appears."
    ),
)

PackRun = configs.launchpad(PackConfig)


@dg.asset(
    key=["macroxue", "pack"],
    deps=[raw_drop],
    partitions_def=macroxue_drops,
    group_name=GROUP,
    kinds={"numpy", "sqlite"},
    owners=["team:data"],
    code_version=PACK_CODE,
    backfill_policy=BATCH,
    output_required=False,
    description=(
        "A drop as a training-ready pack: `steps.npy` (48-byte rows, or shards), `metadata.db` "
        "with one row a game, `valuation_types.json`, and `trace.jsonl` from run to raw files."
    ),
)
def pack(context: dg.AssetExecutionContext, config: PackRun, lake: Lake) -> Iterator[Event]:  # type: ignore[valid-type]
    def build_of(key: str | None) -> Build:
        return pack_build(lake, str(key), config)

    yield from publish_asset(context, build_of, preview)


def pack_build(lake: Lake, key: str, run: dg.Config) -> Build:
    """What the pack of drop `key` is built from, how, and where it goes."""
    from gristmill.macroxue import drops

    drop = lake.drop(GROUP, key)
    config = configs.resolve(PackConfig, lake.settings(PACK, drop), run)
    artifact = lake.artifact("macroxue", "packs", key)
    known = rawfiles.known_hashes(lake.root / artifact / "provenance.json")
    inputs = rawfiles.raw_inputs(
        lake.root, drops.raw_files(drop), raw_drop.key.to_user_string(), key, known
    )

    def make(attempt: Attempt) -> Summary:
        from gristmill.macroxue import pack

        session = {"fingerprint": attempt.fingerprint}
        return pack([drop], attempt.out, config, parts=attempt.parts, session=session)

    def laws(folder):
        from gristmill.macroxue.laws import pack_laws

        return pack_laws(folder)

    return Build(
        root=lake.root,
        artifact=artifact,
        asset=PACK,
        partition=key,
        code_version=PACK_CODE,
        config=config,
        inputs=inputs,
        make=make,
        laws=laws,
        # Aligned rows take about 1.5 times the compressed bytes, parts as much again.
        space=4 * sum(item.bytes or 0 for item in inputs),
    )


def preview(folder: Path) -> dict[str, str]:
    from gristmill.macroxue.picture import pack_preview

    return pack_preview(folder)
