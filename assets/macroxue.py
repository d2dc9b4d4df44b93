"""2048: raw self-play drops become packs."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg

from assets import configs
from assets.checks import disk_checks
from assets.partitions import macroxue_drops
from assets.publishing import BATCH, Event, publish_asset
from gristmill import laws
from gristmill.artifact import Attempt, Build
from gristmill.contract import Summary
from gristmill.macroxue.drops import raw_files
from gristmill.macroxue.packer import CODE_VERSION, PackConfig
from gristmill.macroxue.packer import pack as build_pack
from resources import Lake

GROUP = "macroxue"
PACK = "macroxue/pack"
RAW_DROP = "macroxue/raw_drop"

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
    code_version=CODE_VERSION,
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
    drop = lake.drop("macroxue", key)
    config = configs.resolve(PackConfig, lake.settings(PACK, drop), run)
    artifact = lake.artifact("macroxue", "packs", key)
    inputs = lake.raw_inputs(artifact, raw_files(drop), RAW_DROP, key)

    def make(attempt: Attempt) -> Summary:
        session = {"fingerprint": attempt.fingerprint}
        return build_pack(drop, attempt.out, config, parts=attempt.parts, session=session)

    return Build(
        root=lake.root,
        artifact=artifact,
        asset=PACK,
        partition=key,
        code_version=CODE_VERSION,
        config=config,
        inputs=inputs,
        make=make,
        laws=lambda folder: laws.check(PACK, folder),
        # Rows take about 1.5 times the compressed bytes, and the parts as much again.
        space=4 * sum(item.bytes or 0 for item in inputs),
    )


def preview(folder: Path) -> dict[str, str]:
    from gristmill.macroxue.picture import pack_preview

    return pack_preview(folder)


ASSETS = [raw_drop, pack]
CHECKS = disk_checks(pack, "macroxue/packs")
