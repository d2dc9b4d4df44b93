"""Tokenizers: the pinned vocabularies, those that people bring, and the inbox of these."""

from __future__ import annotations

from gristmill.asset import Asset
from gristmill.code.digest import Code
from gristmill.families import Catalog, Law, Source
from gristmill.inbox import DropKind, Shape
from gristmill.lazy_exports import call
from gristmill.settings.tables import PLACING
from gristmill.vocabularies.pinned import (
    GPT2,
    INBOX,
    O200K,
    PLACE,
    PLACED,
    VOCABULARIES,
    Vocabulary,
)

_BUILDS = "gristmill.tokenizers.builds"

_RAW = Source(
    asset="tokenizers/raw",
    inbox=INBOX,
    drop=DropKind(
        call(f"{_BUILDS}:account"), Shape(reserved=tuple(each.file for each in VOCABULARIES))
    ),
    text="A folder `drops/tokenizers/<name>/` with the file of a tokenizer and `tokenizer.toml`, "
    "which says its form, its sha256 and the text that ends a document. `gristmill tokenizers "
    "FILE` makes it.",
    group="tokenizers",
    labels=["toml"],
    partitions="tokenizers",
    targets=[PLACED],
)

_PLACED = Asset(
    PLACED,
    laws=[Law("tokenizer", call(f"{_BUILDS}:laws"))],
    rows=("tokens",),
    code=Code(
        entries=("gristmill.vocabularies.placing.place_tokenizer",),
        libraries=("gigatoken", "sentencepiece", "tiktoken", "tokenizers"),
        compatible_with=("90a3297e6087ac396d1652b205b278815871b5f92bcb1cad7654fafd1b2d4964",),
    ),
    version="1",
    text="A tokenizer that a person brought: its file, what it says of itself, and the proof that "
    "the fast engine gives the ids of its own library. Without the proof its own library encodes "
    "every text.",
    group="tokenizers",
    labels=["tiktoken"],
    place=PLACE,
    partitions="tokenizers",
    inputs=["tokenizers/raw"],
    build=call(f"{_BUILDS}:placed_build"),
    blocking=True,
    batch=100,
)


def _pinned(vocabulary: Vocabulary, text: str) -> Asset:
    return Asset(
        f"tokenizers/{vocabulary.name}",
        laws=[Law("pinned", call(f"{_BUILDS}:pinned_laws", vocabulary))],
        code=Code(
            entries=("gristmill.vocabularies.pinned.place",),
            # Records of 0.9.0 have the digest of no code.
            compatible_with=("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",),
        ),
        version="1",
        text=f"{text} File `{vocabulary.file}`, pinned by sha256 `{vocabulary.sha256}`. "
        "`gristmill tokenizers` downloads it into the drops; this asset downloads nothing.",
        group="tokenizers",
        labels=["tiktoken"],
        place=PLACE,
        build=call(f"{_BUILDS}:pinned_build", vocabulary),
        is_asked=call(f"{_BUILDS}:is_asked", vocabulary),
    )


CATALOG = Catalog(
    kinds=[
        _pinned(O200K, "The vocabulary of openai-harmony's encoding o200k_harmony."),
        _pinned(GPT2, "The vocabulary of GPT-2."),
        _PLACED,
    ],
    sources=[_RAW],
    settings=[PLACING],
    asset_of=call(f"{_BUILDS}:asset_of"),
    facts=call(f"{_BUILDS}:facts"),
    tables=call(f"{_BUILDS}:tables"),
)
