"""2048: raw self-play drops become packs, packs get values and are merged into pools."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import dagster as dg

from assets import configs
from assets.checks import disk_checks, partitions_of_run
from assets.partitions import macroxue_drops, macroxue_pools
from assets.publishing import BATCH, Event, publish_asset
from gristmill import laws, provenance
from gristmill.artifact import Attempt, Build
from gristmill.contract import GristmillError, NothingToBuild, Summary, Violation
from gristmill.macroxue import MergeConfig, PackConfig, ValueConfig, merger, packer
from gristmill.macroxue import values as value_builder
from gristmill.macroxue.drops import raw_files
from gristmill.macroxue.pool_file import PoolFile, read_pool_file
from gristmill.provenance import Input
from resources import Lake

GROUP = "macroxue"
OWNERS = ["team:data"]
RAW_DROP, PACK = "macroxue/raw_drop", "macroxue/pack"
VALUES, POOL = "macroxue/values", "macroxue/pool"

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
        "`S.meta.json` (or `.meta.json.gz`) with its `S.jsonl.gz`. Copy a folder there and its "
        "pack appears."
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
        "pool, in order. Put it there and the pool appears once its packs do."
    ),
)


@dg.asset(
    key=["macroxue", "pack"],
    deps=[raw_drop],
    partitions_def=macroxue_drops,
    group_name=GROUP,
    kinds={"numpy", "sqlite"},
    owners=OWNERS,
    code_version=packer.CODE_VERSION,
    backfill_policy=BATCH,
    output_required=False,
    description=(
        "A drop as a training-ready pack: `steps.npy` (48-byte rows, or shards), `metadata.db` "
        "with one row a game, `valuation_types.json`, and `trace.jsonl` from run to raw files."
    ),
)
def pack(context: dg.AssetExecutionContext, config: PackRun, lake: Lake) -> Iterator[Event]:  # type: ignore[valid-type]
    yield from publish_asset(context, partial(pack_build, lake, config), pack_preview)


@dg.asset(
    key=["macroxue", "values"],
    deps=[pack],
    partitions_def=macroxue_drops,
    group_name=GROUP,
    kinds={"numpy"},
    owners=OWNERS,
    code_version=value_builder.CODE_VERSION,
    backfill_policy=BATCH,
    output_required=False,
    description=(
        "Rewards and discounted returns of a pack's steps, row by row, for value heads: "
        "`values.npy`, or shards as the pack has."
    ),
)
def values(context: dg.AssetExecutionContext, config: ValuesRun, lake: Lake) -> Iterator[Event]:  # type: ignore[valid-type]
    yield from publish_asset(context, partial(values_build, lake, config))


@dg.asset(
    key=["macroxue", "pool"],
    # Which packs a pool is made of stands in its file: no mapping can say it.
    deps=[pool_members, dg.AssetDep(pack, partition_mapping=dg.AllPartitionMapping())],
    partitions_def=macroxue_pools,
    group_name=GROUP,
    kinds={"numpy", "sqlite"},
    owners=OWNERS,
    code_version=merger.CODE_VERSION,
    backfill_policy=BATCH,
    output_required=False,
    description=(
        "Packs merged into one: runs renumbered, valuation names joined, `trace.jsonl` from each "
        "run to its pack and raw files."
    ),
)
def pool(context: dg.AssetExecutionContext, config: PoolRun, lake: Lake) -> Iterator[Event]:  # type: ignore[valid-type]
    yield from publish_asset(context, partial(pool_build, lake, config), pool_preview)


def pack_build(lake: Lake, run: dg.Config, key: str | None) -> Build:
    """What the pack of drop `key` is built from, how, and where it goes."""
    _refuse_merged_away(lake, str(key))
    drop = lake.drop("macroxue", str(key))
    config = configs.resolve(PackConfig, lake.settings(PACK, drop), run)
    artifact = lake.artifact("macroxue", "packs", str(key))
    inputs = lake.raw_inputs(artifact, raw_files(drop), RAW_DROP, str(key))

    def make(attempt: Attempt) -> Summary:
        session = {"fingerprint": attempt.fingerprint}
        return packer.pack(drop, attempt.out, config, parts=attempt.parts, session=session)

    leave_out = "game_laws" if config.game_laws == "warn" else ""
    return Build(
        root=lake.root,
        artifact=artifact,
        asset=PACK,
        partition=key,
        code_version=packer.CODE_VERSION,
        config=config,
        inputs=inputs,
        make=make,
        laws=lambda folder: laws.check(PACK, folder, leave_out=leave_out),
        # Rows take about 1.5 times the compressed bytes, and the parts as much again.
        space=4 * sum(item.bytes or 0 for item in inputs),
    )


def values_build(lake: Lake, run: dg.Config, key: str | None) -> Build:
    """What the value sidecar of drop `key` is built from, how, and where it goes."""
    _refuse_merged_away(lake, str(key))
    source = lake.published(lake.artifact("macroxue", "packs", str(key)), PACK, key)
    folder = lake.root / str(source.path)
    config = configs.resolve(ValueConfig, lake.settings(VALUES), run)
    return Build(
        root=lake.root,
        artifact=lake.artifact("macroxue", "values", str(key)),
        asset=VALUES,
        partition=key,
        code_version=value_builder.CODE_VERSION,
        config=config,
        inputs=[source],
        make=lambda attempt: value_builder.value_sidecar(folder, attempt.out, config),
        laws=lambda out: laws.check(VALUES, out, inputs=[folder]),
        space=_bytes_of(folder) // 2,
    )


def pool_build(lake: Lake, run: dg.Config, key: str | None) -> Build:
    """What pool `key` is merged from, how, and where it goes."""
    described = read_pool_file(lake.inbox("pools") / f"{key}.toml")
    artifact = lake.artifact("macroxue", "pools", str(key))
    inputs = [_member(lake, artifact, name) for name in described.members]
    settings = {**lake.settings(POOL), **described.settings, "names": described.members}
    config = configs.resolve(MergeConfig, settings, run)
    folders = [lake.root / str(item.path) for item in inputs]

    def make(attempt: Attempt) -> Summary:
        if gone := [folder.name for folder in folders if not folder.exists()]:
            raise GristmillError(
                f"{', '.join(gone)}: deleted when this pool was made: say delete_members = false "
                f"in drops/pools/{key}.toml and materialize {PACK} for them first"
            )
        session = {"fingerprint": attempt.fingerprint}
        return merger.merge(folders, attempt.out, config, session=session)

    return Build(
        root=lake.root,
        artifact=artifact,
        asset=POOL,
        partition=key,
        code_version=merger.CODE_VERSION,
        config=config,
        inputs=inputs,
        make=make,
        laws=lambda folder: laws.check(
            POOL, folder, leave_out="game_laws" if config.game_laws == "warn" else ""
        ),
        space=sum(_bytes_of(folder) for folder in folders if folder.exists()),
        deletes=[str(item.path) for item in inputs] if described.delete_members else [],
    )


def _member(lake: Lake, pool_artifact: str, name: str) -> Input:
    """The published pack `name`, or what the pool's record says of it where it was deleted."""
    artifact = lake.artifact("macroxue", "packs", name)
    path = lake.root / pool_artifact / provenance.RECORD
    if not (lake.root / artifact).exists() and path.exists():
        record = provenance.read_record(path)
        for item in provenance.read_inputs(record, path):
            if item.path == artifact and artifact in record.deleted_inputs:
                return item
    return lake.published(artifact, PACK, name)


def _refuse_merged_away(lake: Lake, key: str) -> None:
    """Raise NothingToBuild for a pack that a pool has taken in and deleted.

    As long as the pool's file says so, building the pack would only have it deleted again.
    """
    artifact = lake.artifact("macroxue", "packs", key)
    if (lake.root / artifact).exists():
        return
    for path in sorted((lake.root / "macroxue/pools").glob(f"*/{provenance.RECORD}")):
        file = lake.inbox("pools") / f"{path.parent.name}.toml"
        if not file.exists() or artifact not in provenance.read_record(path).deleted_inputs:
            continue
        described = read_pool_file(file)
        if described.delete_members and key in described.members:
            raise NothingToBuild(
                f"{key} stands in the pool {path.parent.name}, which deleted its pack: to build "
                f"it again say delete_members = false in {file.name}"
            )


def _bytes_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir() if file.is_file())


def pool_refusal(path: Path) -> str | None:
    """Why the pool that the file `path` describes cannot be merged yet, None where it can."""
    lake = Lake(data_root=str(path.parents[2]))
    try:
        described: PoolFile = read_pool_file(path)
        for name in described.members:
            _member(lake, lake.artifact("macroxue", "pools", path.stem), name)
    except GristmillError as error:
        return str(error)
    return None


def pack_preview(folder: Path) -> Mapping[str, str]:
    from gristmill.macroxue.preview import pack_preview

    return pack_preview(folder)


def pool_preview(folder: Path) -> Mapping[str, str]:
    from gristmill.macroxue.pool_tables import origin_table

    return {"members": origin_table(folder), **pack_preview(folder)}


@dg.asset_check(
    asset=pool,
    name="pool_members_current",
    # Evaluated when a pack is built anew, though the pool is not.
    additional_deps=[pack],
    automation_condition=dg.AutomationCondition.any_deps_updated(),
    description="The packs that a pool was merged from are still the published ones, and are "
    "those that its file names. A warning: materialize the pool to take the new ones in.",
)
def pool_members_current(context: dg.AssetCheckExecutionContext, lake: Lake) -> dg.AssetCheckResult:
    keys = partitions_of_run(context, pool)
    stale = {}
    for path in sorted((lake.root / "macroxue/pools").glob(f"*/{provenance.RECORD}")):
        record = provenance.read_record(path)
        if keys is None or record.partition in keys:
            inputs = provenance.read_inputs(record, path)
            changed = _changed(lake, record, inputs)
            stale |= {f"{record.partition}/{name}": why for name, why in changed}
    return dg.AssetCheckResult(
        passed=not stale,
        severity=dg.AssetCheckSeverity.WARN,
        description="; ".join(f"{name} {why}" for name, why in stale.items()) or "all are current",
        metadata={"changed": len(stale)},
    )


def _changed(
    lake: Lake, record: provenance.Record, inputs: Sequence[Input]
) -> Iterator[tuple[str, str]]:
    """Members of a pool that are not what it was merged from, and what became of them."""
    for item in inputs:
        if item.path is None or item.path in record.deleted_inputs:
            continue
        found = provenance.published_version(lake.root / item.path, item.partition)
        if found != item.data_version:
            yield str(item.partition), "is gone" if found is None else "was built anew"
    file = lake.inbox("pools") / f"{record.partition}.toml"
    if not file.exists():
        yield file.name, "is gone"
    elif (named := read_pool_file(file).members) != tuple(item.partition for item in inputs):
        yield file.name, f"names other members now: {', '.join(named)}"


def _notes(folder: Path) -> Iterator[Violation]:
    from gristmill.macroxue.game_notes import game_notes

    return game_notes(folder)


ASSETS = [raw_drop, pool_members, pack, values, pool]
CHECKS = [
    *disk_checks(pack, "macroxue/packs", notes=_notes),
    *disk_checks(values, "macroxue/values"),
    *disk_checks(pool, "macroxue/pools"),
    pool_members_current,
]
