"""The assets of the reasoning corpora: normalised records, token shards, alignment, reports."""

from collections.abc import Iterator, Mapping
from functools import partial

import dagster as dg

from assets import configs, tokenizers
from assets.checks import disk_checks
from assets.publishing import BATCH, Event, publish_asset
from assets.reasoning.checks import quality_checks, shard_checks
from assets.reasoning.partitions import reasoning_days, reasoning_splits
from assets.reasoning.records import MANIFEST_VERSION
from gristmill.publish.build import Published
from gristmill.reasoning.config import (
    AlignConfig,
    NormalizeConfig,
    ReportConfig,
    TokenizeConfig,
)
from gristmill.reasoning.format import names
from resources import Lake

TEXTS, TOKENS, QUALITY = "reasoning/texts", "reasoning/tokens", "reasoning/quality"
OWNERS = ["team:data"]
Figures = Mapping[str, str | int | float]

# The published vocabulary is used, whatever a run says.
_FILLED_IN = ["vocabulary"]
NormalizeRun = configs.launchpad(NormalizeConfig)
TokenizeRun = configs.launchpad(TokenizeConfig, leave_out=_FILLED_IN)
AlignRun = configs.launchpad(AlignConfig, leave_out=_FILLED_IN)
ReportRun = configs.launchpad(ReportConfig, leave_out=_FILLED_IN)

# A manifest describes the partitions that are published: it does not wait for the others.
_FOLLOWS_ANY = dg.AutomationCondition.eager().without(~dg.AutomationCondition.any_deps_missing())

raw = dg.AssetSpec(
    key=["reasoning", "raw"],
    partitions_def=reasoning_splits,
    group_name=TEXTS,
    kinds={"json"},
    owners=OWNERS,
    description=(
        "Records of a corpus in the folder `drops/reasoning/<corpus>/`, as JSONL, JSON, Parquet, "
        "CSV or TSV, with the split in the file's name; and the audits of its alignment, "
        "`drops/reasoning/audits/<corpus>__<split>.jsonl`. `gristmill fetch reasoning` downloads "
        "the public releases."
    ),
)


@dg.asset(
    key=["reasoning", "normalized"],
    deps=[raw],
    partitions_def=reasoning_splits,
    group_name=TEXTS,
    kinds={"json"},
    owners=OWNERS,
    code_version=NormalizeConfig.CODE_VERSION,
    backfill_policy=BATCH,
    output_required=False,
    description=(
        "One split as JSONL with the keys `question`, `answer`, `cot`, `source_dataset` and the "
        "extras of its corpus. Lists and nested values are flattened; records that cannot be used "
        "are set aside and counted by reason."
    ),
)
def normalized(
    context: dg.AssetExecutionContext,
    config: NormalizeRun,  # type: ignore[valid-type]
    lake: Lake,
) -> Iterator[Event]:
    from assets.reasoning import builds

    yield from publish_asset(
        context,
        partial(builds.normalized_build, lake, config),
        partition_preview=_normalized_preview,
    )


@dg.asset(
    key=["reasoning", "raw_manifest"],
    deps=[dg.AssetDep(normalized, partition_mapping=dg.AllPartitionMapping())],
    group_name=TEXTS,
    kinds={"json"},
    owners=OWNERS,
    code_version=MANIFEST_VERSION,
    output_required=False,
    automation_condition=_FOLLOWS_ANY,
    description=(
        "`reasoning/raw/manifest.json`: source, columns, licence and files of every corpus that "
        "is normalised. Rebuilt automatically after a split."
    ),
)
def raw_manifest(context: dg.AssetExecutionContext, lake: Lake) -> Iterator[Event]:
    from assets.reasoning import dataset_builds

    yield from publish_asset(
        context,
        partial(dataset_builds.raw_manifest_build, lake),
        partition_preview=_licences_preview,
    )


@dg.asset(
    key=["reasoning", "gpt2_shards"],
    deps=[normalized, tokenizers.gpt2],
    partitions_def=reasoning_splits,
    group_name=TOKENS,
    kinds={"pytorch", "tiktoken"},
    owners=OWNERS,
    code_version=TokenizeConfig.CODE_VERSION,
    backfill_policy=BATCH,
    output_required=False,
    description=(
        "The rendered texts of a split as GPT-2 tokens, one end-of-text token after each, packed "
        "into sequences of equal length: `shard_NNNNN.pt` with `input_ids` int32, its meta file, "
        "and `index.jsonl` with the place of every example. A corpus whose terms forbid training "
        "is left out unless `allow` names it."
    ),
)
def gpt2_shards(
    context: dg.AssetExecutionContext,
    config: TokenizeRun,  # type: ignore[valid-type]
    lake: Lake,
) -> Iterator[Event]:
    from assets.reasoning import builds

    yield from publish_asset(
        context, partial(builds.shards_build, lake, config), partition_preview=_shards_preview
    )


@dg.asset(
    key=["reasoning", "manifest"],
    deps=[dg.AssetDep(gpt2_shards, partition_mapping=dg.AllPartitionMapping())],
    group_name=TOKENS,
    kinds={"json"},
    owners=OWNERS,
    code_version=MANIFEST_VERSION,
    output_required=False,
    automation_condition=_FOLLOWS_ANY,
    description=(
        "`manifest.json`, the meta data of all shards, and `index.jsonl`, the places of all "
        "examples. Rebuilt automatically after a split."
    ),
)
def manifest(context: dg.AssetExecutionContext, lake: Lake) -> Iterator[Event]:
    from assets.reasoning import dataset_builds

    yield from publish_asset(context, partial(dataset_builds.manifest_build, lake))


@dg.asset(
    key=["reasoning", "alignment"],
    deps=[raw, normalized, gpt2_shards, tokenizers.gpt2],
    partitions_def=reasoning_splits,
    group_name=QUALITY,
    kinds={"json"},
    owners=OWNERS,
    code_version=AlignConfig.CODE_VERSION,
    backfill_policy=BATCH,
    output_required=False,
    description=(
        "The reasoning steps of every example of a split: their ranges of characters and of "
        "tokens, labels, and how sure they are. Audits in `drops/reasoning/audits/` are merged in."
    ),
)
def alignment(
    context: dg.AssetExecutionContext,
    config: AlignRun,  # type: ignore[valid-type]
    lake: Lake,
) -> Iterator[Event]:
    from assets.reasoning import builds

    yield from publish_asset(
        context, partial(builds.alignment_build, lake, config), partition_preview=_steps_preview
    )


@dg.asset(
    key=["reasoning", "qc_report"],
    deps=[
        raw_manifest,
        manifest,
        tokenizers.gpt2,
        *(
            dg.AssetDep(each, partition_mapping=dg.AllPartitionMapping())
            for each in (normalized, gpt2_shards, alignment)
        ),
    ],
    partitions_def=reasoning_days,
    group_name=QUALITY,
    kinds={"json"},
    owners=OWNERS,
    code_version=ReportConfig.CODE_VERSION,
    output_required=False,
    description=(
        "`reports/YYYY-MM-DD.json`: examples, tokens, share with CoT, alignment and confidence of "
        "every split, what perturbed records change, and drift against the baseline that "
        "`[reasoning.qc_report] baseline` names. Only the current day in UTC can be built."
    ),
)
def qc_report(
    context: dg.AssetExecutionContext,
    config: ReportRun,  # type: ignore[valid-type]
    lake: Lake,
) -> Iterator[Event]:
    from assets.reasoning import dataset_builds

    build_of = partial(dataset_builds.report_build, lake, config, context.run.run_id)
    yield from publish_asset(context, build_of, partition_preview=_report_preview)


def _normalized_preview(published: Published) -> Figures:
    from gristmill.reasoning.show.preview import normalized_figures

    return normalized_figures(
        published.folder, str(published.record.partition), published.record.counts
    )


def _licences_preview(published: Published) -> Figures:
    from gristmill.reasoning.show.preview import licence_figures

    return licence_figures(published.folder)


def _shards_preview(published: Published) -> Figures:
    from gristmill.reasoning.show.preview import shards_figures

    return shards_figures(
        published.folder, str(published.record.partition), published.record.counts
    )


def _steps_preview(published: Published) -> Figures:
    from gristmill.reasoning.show.preview import alignment_figures

    return alignment_figures(
        published.folder, str(published.record.partition), published.record.counts
    )


def _report_preview(published: Published) -> Figures:
    from gristmill.reasoning.show.preview import report_figures

    return report_figures(published.folder, str(published.record.partition))


ASSETS: list[dg.AssetsDefinition | dg.AssetSpec] = [
    raw,
    normalized,
    raw_manifest,
    gpt2_shards,
    manifest,
    alignment,
    qc_report,
]
CHECKS = [
    *(
        check
        for asset, folder in (
            (normalized, names.NORMALIZED),
            (raw_manifest, names.NORMALIZED),
            (gpt2_shards, names.TOKENIZED),
            (manifest, names.TOKENIZED),
            (alignment, names.ALIGNMENT),
            (qc_report, names.REPORTS),
        )
        for check in disk_checks(asset, folder, blocking=True)
    ),
    shard_checks(manifest),
    quality_checks(qc_report),
]
