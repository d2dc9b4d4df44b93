"""Tokenizers in Dagster: the pinned vocabularies, and those that people bring."""

import shlex
from dataclasses import replace

from assets.family import checks_of_asset, definition, family_of
from gristmill import families
from gristmill.asset import Asset, Wanted
from gristmill.contract import GristmillError, Summary
from gristmill.data_root.drops import DataRoot
from gristmill.provenance import raw_inputs
from gristmill.publish.build import Attempt, Build
from gristmill.untrusted.files import has_file
from gristmill.vocabularies.pinned import GPT2, O200K, PLACE, Vocabulary, drop_folder, place


def _asset(vocabulary: Vocabulary, text: str) -> Asset:
    return Asset(
        f"tokenizers/{vocabulary.name}",
        version="1",
        text=f"{text} File `{vocabulary.file}`, pinned by sha256 `{vocabulary.sha256}`. "
        "`gristmill tokenizers` downloads it into the drops; this asset downloads nothing.",
        group="tokenizers",
        labels=["tiktoken"],
        place=PLACE,
        build=lambda wanted: _build(vocabulary, wanted),
        is_asked=lambda root, _partition: _is_asked(vocabulary, root),
    )


def _is_asked(vocabulary: Vocabulary, root: DataRoot) -> bool:
    """Whether its file is there, or a drop of a family that is built with it."""
    if has_file(drop_folder(root.root) / vocabulary.file, root=root.root, links=root.link_rule()):
        return True
    key = f"tokenizers/{vocabulary.name}"
    users = [
        each
        for each in families.catalogs()
        if any(isinstance(kind, Asset) and key in kind.inputs for kind in each.kinds)
    ]
    return any(
        folder.is_dir() and any(folder.iterdir())
        for each in users
        for folder in map(root.inbox, each.drops())
    )


def _build(vocabulary: Vocabulary, wanted: Wanted) -> Build:
    root = wanted.root
    folder, links = drop_folder(root.root), root.link_rule()
    source = folder / vocabulary.file
    if not has_file(source, root=folder, links=links):
        raise GristmillError(
            f"{source}: missing: run `gristmill tokenizers --data-root "
            f"{shlex.quote(str(root.root))}` to download it"
        )

    def make(attempt: Attempt) -> Summary:
        return place(vocabulary, source, attempt.out)

    inputs = raw_inputs.raw_inputs(
        root.root, [source], wanted.asset.asset, None, known={}, links=links
    )
    return wanted.build(PLACE, vocabulary, inputs, make, shared=vocabulary.name)


DECLARED = [
    _asset(O200K, "The vocabulary of openai-harmony's encoding o200k_harmony."),
    _asset(GPT2, "The vocabulary of GPT-2."),
]
ASSETS = [definition(asset) for asset in DECLARED]
_OWN = family_of("tokenizers")
FAMILY = replace(
    _OWN,
    assets=[*ASSETS, *_OWN.assets],
    checks=[
        *(
            check
            for asset, built in zip(DECLARED, ASSETS, strict=True)
            for check in checks_of_asset(asset, built)
        ),
        *_OWN.checks,
    ],
)
