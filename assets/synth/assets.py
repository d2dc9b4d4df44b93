"""The assets of SYNTH: Harmony conversations from raw Parquet, Megatron datasets from those."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import dagster as dg

from assets import configs, tokenizers
from assets.checks import disk_checks
from assets.publishing import Event, publish_asset
from assets.synth import harmony_builds, kd_builds
from assets.synth.kd_builds import FULL, SMOKE, Dataset
from assets.synth.partitions import synth_shards
from assets.synth.records import FOLDER, MANIFEST_VERSION
from gristmill.contract import Violation
from gristmill.provenance import Record
from gristmill.publish.build import Published
from gristmill.synth.config import HarmonyConfig, KDConfig
from gristmill.vocabularies.pinned import O200K
from resources import Lake

GROUP = "synth/harmony"
OWNERS = ["team:data"]

HarmonyRun = configs.launchpad(HarmonyConfig, leave_out=["num_shards"])

raw = dg.AssetSpec(
    key=["synth", "raw"],
    partitions_def=synth_shards,
    group_name=GROUP,
    kinds={"parquet", "huggingface"},
    owners=OWNERS,
    description=(
        "A folder of raw SYNTH files under `drops/synth/`. It is complete with 500 files (or as "
        "many as `[synth.raw] files` says), or with a file `.done`; before that nothing is built, "
        "since every shard is built from consecutive files of the complete drop. "
        "`gristmill fetch synth` downloads the files from the hub."
    ),
)

ready_harmony = dg.AssetSpec(
    key=["synth", "ready_harmony"],
    partitions_def=synth_shards,
    group_name=GROUP,
    kinds={"parquet"},
    owners=OWNERS,
    description=(
        "A ready Harmony folder under `drops/synth_harmony/`: four shards with `manifest.json` and "
        "`metadata.json`, which are imported unchanged instead of a conversion."
    ),
)


@dg.asset(
    key=["synth", "harmony"],
    deps=[raw, ready_harmony],
    partitions_def=synth_shards,
    group_name=GROUP,
    kinds={"parquet"},
    owners=OWNERS,
    code_version=HarmonyConfig.CODE_VERSION,
    output_required=False,
    description=(
        "Conversations of a drop as `synth_harmony_v1` Parquet: system, developer, user, and the "
        "assistant's analysis and final messages. Rows without a query, reasoning or answer are "
        "omitted and counted."
    ),
)
def harmony(context: dg.AssetExecutionContext, config: HarmonyRun, lake: Lake) -> Iterator[Event]:  # type: ignore[valid-type]
    yield from publish_asset(context, partial(harmony_builds.harmony_build, lake, config))


@dg.asset(
    key=["synth", "harmony_manifest"],
    deps=[dg.AssetDep(harmony, partition_mapping=dg.AllPartitionMapping())],
    group_name=GROUP,
    kinds={"json"},
    owners=OWNERS,
    code_version=MANIFEST_VERSION,
    output_required=False,
    automation_condition=dg.AutomationCondition.eager(),
    description=(
        "`metadata.json` and `manifest.json` of the four shards, written from their records; from "
        "an imported folder its own files, byte for byte. Rebuilt automatically after the shards."
    ),
)
def harmony_manifest(context: dg.AssetExecutionContext, lake: Lake) -> Iterator[Event]:
    yield from publish_asset(context, partial(harmony_builds.harmony_manifest_build, lake))


def _kd_assets(dataset: Dataset, content: str) -> tuple[dg.AssetsDefinition, dg.AssetsDefinition]:
    """The assets for the shards and the manifest of one Megatron dataset."""
    run_config = configs.launchpad(
        KDConfig,
        leave_out=["vocabulary"],
        defaults=dataset.defaults,
        name=f"{dataset.prefix.title().replace('_', '')}KDConfigRun",
    )

    @dg.asset(
        key=[dataset.prefix, "kd_shards"],
        deps=[harmony, tokenizers.o200k_harmony],
        partitions_def=synth_shards,
        group_name=dataset.group,
        kinds={"megatron", "tiktoken", *dataset.kinds},
        owners=OWNERS,
        code_version=KDConfig.CODE_VERSION,
        output_required=False,
        description=(
            f"{content} as Megatron IndexedDatasets: tokens, loss mask and span for train and "
            "valid, aligned to labels, and a trace from every document to its row and synth_id."
        ),
    )
    def shards(
        context: dg.AssetExecutionContext,
        config: run_config,  # type: ignore[valid-type]
        lake: Lake,
    ) -> Iterator[Event]:
        build_of = partial(kd_builds.kd_build, lake, dataset, config)
        yield from publish_asset(context, build_of, partition_preview=partial(kd_preview, lake))

    @dg.asset(
        key=[dataset.prefix, "kd_manifest"],
        deps=[
            dg.AssetDep(shards, partition_mapping=dg.AllPartitionMapping()),
            harmony_manifest,
        ],
        group_name=dataset.group,
        kinds={"json", *dataset.kinds},
        owners=OWNERS,
        code_version=MANIFEST_VERSION,
        output_required=False,
        automation_condition=dg.AutomationCondition.eager(),
        description=(
            f"`{dataset.folder}/manifest.json`: config, tokenizer, input and the files of all "
            "shards, written from their records. The shards must have equal configs. Rebuilt "
            "automatically after the shards."
        ),
    )
    def manifest(context: dg.AssetExecutionContext, lake: Lake) -> Iterator[Event]:
        build_of = partial(kd_builds.kd_manifest_build, lake, dataset)
        yield from publish_asset(context, build_of, manifest_preview)

    return shards, manifest


kd_shards, kd_manifest = _kd_assets(FULL, "The conversations of a Harmony shard")
smoke_shards, smoke_manifest = _kd_assets(
    SMOKE, "The first 250 conversations of a Harmony shard, a tenth of them valid,"
)


def kd_preview(lake: Lake, published: Published) -> Mapping[str, str]:
    """Returns counts, lengths and some conversations of one shard as Markdown."""
    from gristmill.synth.show.preview import picture, preview

    record = published.record
    vocabulary = lake.root / "tokenizer" / O200K.relative
    number = str(record.partition)
    return {
        "picture": picture(record.counts),
        "preview": preview(published.folder, number, vocabulary, record.counts),
    }


def manifest_preview(folder: Path) -> Mapping[str, str]:
    """Returns a table of a Megatron dataset's shards as Markdown."""
    from gristmill.synth.show.preview import manifest_table

    return {"inventory": manifest_table(folder)}


def kd_notes(record: Record) -> Iterator[Violation]:
    """Yields the keys of messages that a shard does not have, since they are not rendered."""
    from gristmill.synth.show.preview import unknown_keys

    if found := unknown_keys(record.counts):
        where = f"{record.artifact} [{record.partition}]"
        yield Violation("unknown_keys", where, found)


ASSETS: list[dg.AssetsDefinition | dg.AssetSpec] = [
    raw,
    ready_harmony,
    harmony,
    harmony_manifest,
    kd_shards,
    kd_manifest,
    smoke_shards,
    smoke_manifest,
]
CHECKS = [
    check
    for asset, folder, counted in (
        (harmony, FOLDER, None),
        (harmony_manifest, FOLDER, None),
        (kd_shards, FULL.folder, kd_notes),
        (kd_manifest, FULL.folder, None),
        (smoke_shards, SMOKE.folder, kd_notes),
        (smoke_manifest, SMOKE.folder, None),
    )
    for check in disk_checks(asset, folder, counted=counted)
]
