"""The recipe of a token dataset. Source: `docs/formats/reasoning.md#token-datasets`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from gristmill import keys
from gristmill.contract import BadInput, GristmillError
from gristmill.corpora.corpus import CORPORA, NAME, is_key
from gristmill.data_root import DataRoot
from gristmill.inbox import TOML
from gristmill.inbox.account import Account, Waits
from gristmill.inbox.kind import IsThere
from gristmill.inbox.listing import list_inbox
from gristmill.provenance import Input
from gristmill.reasoning.config import ALIGNED, TokensConfig
from gristmill.reasoning.format import names
from gristmill.reasoning.format.published import (
    NORMALIZED,
    TOKENS,
    corpus_of,
    published_partitions,
)
from gristmill.reasoning.raw import ready
from gristmill.settings.fields import did_you_mean, shown
from gristmill.settings.tables import Settings, Table, resolve
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from gristmill.untrusted.toml import read_toml
from gristmill.vocabularies.pinned import INBOX as TOKENIZERS
from gristmill.vocabularies.pinned import PLACE, PLACED, VOCABULARIES
from gristmill.vocabularies.tokenizer_file import TokenizerFile

_NOT_SET: Final = {
    "vocabulary": "the recipe names a tokenizer",
    "safetensors": 'the recipe has outputs = ["bin", "safetensors"]',
    "steps": "the file of a corpus names its marks",
}
_PINNED: Final = {each.name for each in VOCABULARIES}
_RECIPE: Final = Table(TOKENS, TokensConfig, not_set=_NOT_SET)


def read_recipe(path: Path, links: LinkRule = REFUSE_LINKS) -> Settings:
    """The checked values of a recipe. Raises BadInput, naming file, key and rule."""
    if reason := keys.refusal(path.stem):
        raise BadInput(path, reason)
    try:
        raw = read_toml(path, root=path.parent, links=links)
    except FileNotFoundError as error:
        raise BadInput(path, "the recipe file is gone: bring it back") from error
    values = _RECIPE.checked(path, raw)
    for key in _AS:
        if not values.get(key):
            raise BadInput(path, f"`{key}` is missing: write {_AS[key]}")
    for name in values["corpora"]:
        if not (is_key(name) or NAME.fullmatch(name)):
            raise BadInput(path, f"corpora: {shown(name)} is no corpus, and no <corpus>__<split>")
    if reason := keys.refusal(values["tokenizer"]):
        raise BadInput(path, f"tokenizer: {reason}")
    # The data root's file may say how many tokens a shard has.
    rest = {"vocabulary": path, "tokens_per_shard": values.get("seq_len", TokensConfig.seq_len)}
    resolve(TokensConfig, Settings({**rest, **values}, path), {})
    return Settings(values, path)


_AS: Final = {
    "corpora": 'corpora = ["gsm8k"]',
    "tokenizer": 'tokenizer = "gpt2", or the name of a folder of drops/tokenizers',
}


def account(file: Path, links: LinkRule = REFUSE_LINKS) -> Account:
    """The account of a recipe file: it is taken. Raises BadInput where it breaks a rule."""
    read_recipe(file, links)
    return Account({"": [file.name]})


def needs(file: Path, root: Path, _is_there: IsThere) -> None:
    """Raise Waits for a recipe whose corpora or tokenizer are not published."""
    lake = DataRoot(root)
    recipe = read_recipe(file, lake.rules(names.RECIPES)[0])
    try:
        dataset_inputs(lake, recipe)
    except GristmillError as error:
        raise Waits(f"{file}: {error}") from error


def recipe_of(lake: DataRoot, dataset: str) -> Settings:
    """The recipe of a dataset, and the table of the data root's file below it.

    Raises NotReady where it is gone, BadInput where it is refused.
    """
    path, _ = lake.ready_drop(names.RECIPES, f"{keys.checked(dataset)}.toml")
    recipe = read_recipe(path, lake.link_rule())
    return Settings({**lake.settings(TOKENS), **recipe}, path)


def marks_of(
    recipe: Settings, tokenizer: TokenizerFile, root: Path, splits: Sequence[Sequence[str]]
) -> str:
    """The marks of steps by split for an alignment, as JSON; "" where no corpus names some.

    Raises BadInput for a tokenizer whose tokens are not the bytes of a text.
    """
    if tokenizer.no_offsets:
        rule = f'leave "{ALIGNED}" out of outputs: {tokenizer.name}: {tokenizer.no_offsets}'
        raise BadInput(recipe.file, rule)
    keys_of = ["__".join(split) for split in splits]
    # The records of two splits may have other versions of the file of their corpus.
    known = {key: steps for key in keys_of if (steps := corpus_of(root, key).steps)}
    return json.dumps(known, sort_keys=True) if known else ""


def dataset_inputs(lake: DataRoot, recipe: Settings) -> list[Input]:
    """The published splits that a recipe names, in its order, and its tokenizer at the end."""
    published, found = published_partitions(lake, names.NORMALIZED), dict[str, None]()
    for name in recipe["corpora"]:
        own = [key for key in published if name in (key, key.partition("__")[0])]
        if not own:
            raise GristmillError(_no_split(lake, name))
        found |= dict.fromkeys(own)
    return [
        *(lake.published(names.NORMALIZED, NORMALIZED, key) for key in found),
        tokenizer_input(lake, recipe["tokenizer"]),
    ]


def tokenizer_input(lake: DataRoot, name: str) -> Input:
    """A published tokenizer as an input. Raises NotBuilt where it is not published.

    A name that no tokenizer has is refused with those that are near.
    """
    if name not in _PINNED and not (lake.root / PLACE / name).is_dir():
        from gristmill.vocabularies.tokenizer import open_tokenizer

        open_tokenizer(lake.root / PLACE / name)
    return lake.published(PLACE, f"tokenizers/{name}" if name in _PINNED else PLACED, name)


def _no_split(lake: DataRoot, name: str) -> str:
    """Why nothing of a corpus or split is published, and what to do."""
    dropped = ready.available(lake)
    known = dropped | {key.partition("__")[0] for key in dropped}
    if name in known:
        return f"{NORMALIZED} of {name} is not built: run `gristmill materialize {NORMALIZED}`"
    near = did_you_mean(name, known | set(CORPORA))
    folder = lake.inbox(ready.INBOX) / name.partition("__")[0]
    bring = f"bring the drop {folder}, or correct corpora"
    return f"corpora: no drop gives {shown(name)}{f'{near} Else {bring}' if near else f': {bring}'}"


def recipe_change(file: Path, root: Path, config: Mapping[str, Any], _raw: Sequence[str]) -> str:
    """What a recipe says that its dataset was not built with, empty where nothing."""
    recipe = read_recipe(file, DataRoot(root).link_rule())
    for key, value in recipe.items():
        now = list(value) if isinstance(value, tuple) else value
        if key in config and config[key] != now:
            return f"{key} is {now} now, was {config[key]}"
    return ""


def wanted(lake: DataRoot) -> Sequence[str]:
    """The datasets whose corpora and tokenizer are built, or have drops to be built from."""
    links, found = lake.rules(names.RECIPES)[0], []
    for name, entries in list_inbox(lake.inbox(names.RECIPES), TOML, links)[0].items():
        try:
            recipe = read_recipe(Path(entries[0].path), links)
        except (GristmillError, OSError):
            continue  # the inbox reports it
        splits = ready.available(lake)
        corpora = splits | {key.partition("__")[0] for key in splits}
        tokenizers = {*_PINNED, *lake.taken(TOKENIZERS), *lake.partitions_of(PLACED, PLACE)}
        if corpora.issuperset(recipe["corpora"]) and recipe["tokenizer"] in tokenizers:
            found.append(name)
    return found
