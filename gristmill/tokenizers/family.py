"""Tokenizers that people bring: the asset, and the inbox that it is built from."""

from __future__ import annotations

from gristmill.asset import Asset
from gristmill.code.digest import Code
from gristmill.families import Catalog, Law, Source
from gristmill.inbox import DropKind, Shape
from gristmill.lazy_exports import call
from gristmill.vocabularies.pinned import INBOX, PLACE, PLACED, VOCABULARIES

_HERE = "gristmill.tokenizers.placed"

_RAW = Source(
    asset="tokenizers/raw",
    inbox=INBOX,
    drop=DropKind(
        call(f"{_HERE}:account"), Shape(reserved=tuple(each.file for each in VOCABULARIES))
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
    laws=[Law("tokenizer", call(f"{_HERE}:laws"))],
    rows=("tokens",),
    code=Code(
        entries=("gristmill.vocabularies.placing.place_tokenizer",),
        libraries=("gigatoken", "tiktoken", "tokenizers"),
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
    build=call("gristmill.tokenizers.builds:placed_build"),
    blocking=True,
    batch=100,
)

CATALOG = Catalog(
    kinds=[_PLACED],
    sources=[_RAW],
    asset_of=call(f"{_HERE}:asset_of"),
    facts=call(f"{_HERE}:facts"),
    tables=call(f"{_HERE}:tables"),
)
