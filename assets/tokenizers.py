"""The pinned vocabularies as assets, so that tokenized datasets can depend on them."""

import shlex
from collections.abc import Iterator

import dagster as dg

from assets.checks import disk_checks
from assets.family import BuildOf, Family
from assets.publishing import Event, publish_asset
from gristmill.contract import GristmillError, Summary
from gristmill.provenance import raw_inputs
from gristmill.publish.build import Attempt, Build
from gristmill.untrusted.files import has_file
from gristmill.vocabularies.pinned import GPT2, O200K, Vocabulary, drop_folder, place
from resources import Lake

CODE_VERSION = "1"


def _asset(vocabulary: Vocabulary, description: str) -> dg.AssetsDefinition:
    @dg.asset(
        key=["tokenizers", vocabulary.name],
        group_name="tokenizers",
        kinds={"tiktoken"},
        owners=["team:data"],
        code_version=CODE_VERSION,
        output_required=False,
        description=(
            f"{description} File `{vocabulary.file}`, pinned by sha256 `{vocabulary.sha256}`. "
            "`gristmill tokenizers` downloads it into the drops; this asset downloads nothing."
        ),
    )
    def asset(context: dg.AssetExecutionContext, lake: Lake) -> Iterator[Event]:
        yield from publish_asset(context, lambda _: _build(vocabulary, lake))

    return asset


def _build(vocabulary: Vocabulary, lake: Lake) -> Build:
    folder, links = drop_folder(lake.root), lake.link_rule()
    source = folder / vocabulary.file
    if not has_file(source, root=folder, links=links):
        root = shlex.quote(str(lake.root))
        raise GristmillError(
            f"{source}: missing: run `gristmill tokenizers --data-root {root}` to download it"
        )

    def make(attempt: Attempt) -> Summary:
        return place(vocabulary, source, attempt.out)

    asset = f"tokenizers/{vocabulary.name}"
    return Build(
        root=lake.root,
        artifact=lake.artifact("tokenizer"),
        asset=asset,
        partition=vocabulary.name,
        code_version=CODE_VERSION,
        config=vocabulary,
        inputs=raw_inputs.raw_inputs(lake.root, [source], asset, None, known={}, links=links),
        make=make,
        shared=True,
    )


def _build_of(vocabulary: Vocabulary) -> BuildOf:
    return lambda lake, _: _build(vocabulary, lake)


o200k_harmony = _asset(O200K, "The vocabulary of openai-harmony's encoding o200k_harmony.")
gpt2 = _asset(GPT2, "The vocabulary of GPT-2.")

ASSETS = [o200k_harmony, gpt2]
CHECKS = [check for asset in ASSETS for check in disk_checks(asset, "tokenizer", has_laws=False)]
FAMILY = Family(
    assets=ASSETS,
    checks=CHECKS,
    builds={f"tokenizers/{vocabulary.name}": _build_of(vocabulary) for vocabulary in (O200K, GPT2)},
)
