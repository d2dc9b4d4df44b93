"""The assets of 2048: packs from raw self-play drops, values of packs, pools of packs."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import dagster as dg

from assets import configs
from assets.checking.rules import Looked, Rule, Scope, command
from assets.checks import checks_of, disk_checks
from assets.macroxue.partitions import macroxue_drops, macroxue_pools
from assets.macroxue.pool_members import stale_members
from assets.publishing import BATCH, Event, publish_asset
from gristmill.contract import Violation
from gristmill.macroxue import MergeConfig, PackConfig, ValueConfig
from resources import Lake

GROUP = "macroxue"
OWNERS = ["team:data"]

PackRun = configs.launchpad(PackConfig)
ValuesRun = configs.launchpad(ValueConfig)
PoolRun = configs.launchpad(MergeConfig)

raw_drop = dg.AssetSpec(
    key=["macroxue", "raw_drop"],
    partitions_def=macroxue_drops,
    group_name=GROUP,
    kinds={"json"},
    owners=OWNERS,
    description=(
        "A folder of 2048 self-play logs under `drops/macroxue/`: for each game "
        "`S.meta.json` (or `.meta.json.gz`) with its `S.jsonl.gz`. Copy a folder there, and the "
        "sensor builds its pack."
    ),
)

pool_members = dg.AssetSpec(
    key=["macroxue", "pool_members"],
    partitions_def=macroxue_pools,
    group_name=GROUP,
    kinds={"toml"},
    owners=OWNERS,
    description=(
        'A file `drops/pools/<pool>.toml` with `members = ["d6_v1", "d7_v1"]`: the packs of a '
        "pool, in order. Put it there, and the sensor builds the pool once its packs are published."
    ),
)


@dg.asset(
    key=["macroxue", "pack"],
    deps=[raw_drop],
    partitions_def=macroxue_drops,
    group_name=GROUP,
    kinds={"numpy", "sqlite"},
    owners=OWNERS,
    code_version=PackConfig.CODE_VERSION,
    backfill_policy=BATCH,
    output_required=False,
    description=(
        "A drop as a training-ready pack: `steps.npy` (48-byte rows, or shards), `metadata.db` "
        "with one row a game, `valuation_types.json`, and `trace.jsonl` from run to raw files."
    ),
)
def pack(context: dg.AssetExecutionContext, config: PackRun, lake: Lake) -> Iterator[Event]:  # type: ignore[valid-type]
    from assets.macroxue import builds

    yield from publish_asset(context, partial(builds.pack_build, lake, config), pack_preview)


@dg.asset(
    key=["macroxue", "values"],
    deps=[pack],
    partitions_def=macroxue_drops,
    group_name=GROUP,
    kinds={"numpy"},
    owners=OWNERS,
    code_version=ValueConfig.CODE_VERSION,
    backfill_policy=BATCH,
    output_required=False,
    description=(
        "Rewards and discounted returns of a pack's steps, row by row, for value heads: "
        "`values.npy`, or shards if the pack has shards."
    ),
)
def values(context: dg.AssetExecutionContext, config: ValuesRun, lake: Lake) -> Iterator[Event]:  # type: ignore[valid-type]
    from assets.macroxue import builds

    yield from publish_asset(context, partial(builds.values_build, lake, config))


@dg.asset(
    key=["macroxue", "pool"],
    # The pool's file names its packs, so no partition mapping can express the dependency.
    deps=[pool_members, dg.AssetDep(pack, partition_mapping=dg.AllPartitionMapping())],
    partitions_def=macroxue_pools,
    group_name=GROUP,
    kinds={"numpy", "sqlite"},
    owners=OWNERS,
    code_version=MergeConfig.CODE_VERSION,
    backfill_policy=BATCH,
    output_required=False,
    description=(
        "Several packs merged into one: runs are renumbered, valuation names are united, and "
        "`trace.jsonl` leads from each run to its pack and raw files."
    ),
)
def pool(context: dg.AssetExecutionContext, config: PoolRun, lake: Lake) -> Iterator[Event]:  # type: ignore[valid-type]
    from assets.macroxue import builds

    yield from publish_asset(context, partial(builds.pool_build, lake, config), pool_preview)


def pack_preview(folder: Path) -> Mapping[str, str]:
    from gristmill.macroxue.show.preview import pack_preview

    return pack_preview(folder)


def pool_preview(folder: Path) -> Mapping[str, str]:
    from gristmill.macroxue.show.pool_table import origin_table

    documents = dict(pack_preview(folder))
    # The picture is seen without a click where it comes first.
    return {"picture": documents.pop("picture"), "members": origin_table(folder), **documents}


def _members_current(scope: Scope) -> Looked:
    pools = {item.subject: item.data_version for item in scope.standing}
    return Looked(
        pools,
        [
            (name.partition("/")[0], Violation("member", name, why))
            for name, why in stale_members(scope.lake, list(pools)).items()
        ],
    )


pool_members_current = checks_of(
    pool,
    "macroxue/pools",
    [
        Rule(
            "pool_members_current",
            "The packs that a pool was merged from are the published ones, and are those that its "
            "file names. This check only warns: materialize the pool to merge the current packs.",
            _members_current,
            lambda asset, pool, _: f"merge the current packs: `{command(asset, pool)}`",
            dg.AssetCheckSeverity.WARN,
            follows=(pack.key,),
        )
    ],
    "pool_members_current",
)


def _notes(folder: Path) -> Iterator[Violation]:
    from gristmill.macroxue.laws.notes import game_notes

    return game_notes(folder)


ASSETS: list[dg.AssetsDefinition | dg.AssetSpec] = [raw_drop, pool_members, pack, values, pool]
CHECKS = [
    *disk_checks(pack, "macroxue/packs", notes=_notes),
    *disk_checks(values, "macroxue/values"),
    *disk_checks(pool, "macroxue/pools"),
    pool_members_current,
]
