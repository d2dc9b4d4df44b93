"""Drops and recipes that are ready: splits and audits as inputs, token datasets by their recipes.

Source: `docs/formats/reasoning.md#token-datasets`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gristmill import keys
from gristmill.contract import BadInput, GristmillError, NothingToBuild
from gristmill.corpora.corpus import CORPORA, NAME, Corpus, corpus_and_split, is_key, ordered
from gristmill.corpora.raw import drops
from gristmill.data_root import DataRoot
from gristmill.inbox import TOML
from gristmill.inbox.listing import Account, IsThere, Waits, list_inbox
from gristmill.inbox.marks import FORGOTTEN
from gristmill.provenance import Input, raw_inputs
from gristmill.reasoning.config import ALIGNED, CorpusConfig, NormalizeConfig, TokensConfig
from gristmill.reasoning.format import names
from gristmill.reasoning.format.published import (
    NORMALIZED,
    RAW,
    SHARDS,
    TOKENS,
    corpus_of,
    is_published,
    published_partitions,
    record_path,
)
from gristmill.settings.fields import did_you_mean, shown
from gristmill.settings.tables import Settings, Table, resolve
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from gristmill.untrusted.toml import read_toml
from gristmill.vocabularies.pinned import INBOX as TOKENIZERS
from gristmill.vocabularies.pinned import PLACE, PLACED, VOCABULARIES, TokenizerFile

if TYPE_CHECKING:
    from gristmill.asset import Wanted
    from gristmill.corpora.raw.forgotten import Forgotten

INBOX = "reasoning"


def keys_of(path: Path) -> list[str]:
    """Returns the partitions that are built from a drop: those of the splits that it has.

    path: the drop, a folder that is not refused.
    """
    return [
        f"{path.name}__{split}"
        for split in drops.splits_of(path, DataRoot(path.parents[2]).rules(INBOX)[0])
    ]


def files_of(lake: DataRoot, name: str, split: str) -> tuple[Path, Corpus, list[Path], Account]:
    """Returns a drop, its corpus, the raw files of a split in order, and their account.

    Raises NothingToBuild if the drop of the corpus is not there or not complete, or has no file of
    the split, and GristmillError if it is refused.
    """
    came = is_published(lake, names.NORMALIZED, f"{name}__{split}")
    if not came and not os.path.lexists(lake.inbox(INBOX) / name):
        raise NothingToBuild(f"there is no drop drops/{INBOX}/{name}")
    folder, account = lake.ready_drop(INBOX, name)
    corpus = drops.corpus_of(folder, lake.link_rule())
    files = drops.splits(folder, corpus, lake.link_rule()).get(split)
    if not files:
        raise NothingToBuild(f"drops/{INBOX}/{name} has no file of the split {split}")
    return folder, corpus, files, account.of(split)


def available(lake: DataRoot) -> set[str]:
    """Returns the partitions that the drops give, and those that are published."""
    dropped = {key for name in lake.taken(INBOX) for key in keys_of(lake.inbox(INBOX) / name)}
    return dropped | set(published_partitions(lake, names.NORMALIZED))


def split_inputs(lake: DataRoot, files: Iterable[Path], partition: str) -> list[Input]:
    """Returns raw files as inputs; files that the partition's record knows are not hashed again.

    lake: the data root.
    files: the files of the split.
    partition: key of the partition.

    Raises BadInput where two of them have the same bytes.
    """
    known = raw_inputs.known_hashes(record_path(lake, names.NORMALIZED, partition))
    inputs = raw_inputs.raw_inputs(lake.root, files, RAW, partition, known, lake.link_rule())
    raw_inputs.refuse_equal(lake.root, inputs)
    return inputs


def forgotten(lake: DataRoot, drop: Path, corpus: Corpus, split: str) -> Forgotten | None:
    """The tombstones of a split, if it has any. Errors as `corpora.raw.forgotten.read`."""
    if not os.path.lexists(drop / FORGOTTEN):
        return None
    from gristmill.corpora.raw import forgotten as file

    every = file.read(drop, corpus.splits, lake.link_rule())
    own = [each for each in every if each.split == split]
    return file.Forgotten(drop, own, file.key_of(lake.root), corpus) if own else None


def config_of(wanted: Wanted, corpus: Corpus, drop: Path) -> NormalizeConfig:
    """How a split is normalised: the file of its drop, else of the data root, and its recipe."""
    from gristmill.corpora.raw.transforms import versions

    config = wanted.config(NormalizeConfig, wanted.root.settings(NORMALIZED, drop))
    if corpus.table or corpus.version != "1":
        return CorpusConfig(**vars(config), corpus=corpus.table, version=versions(corpus))
    return config


def drop_change(file: Path, root: Path, config: Mapping[str, Any], _: Sequence[str]) -> str:
    """What the recipe of a drop says other than the config of a record; empty where nothing."""
    links = DataRoot(root).link_rule()
    if "recipe" in config:
        from gristmill.corpora.raw.chat.messages import chat_of

        tables = str(config["recipe"]), chat_of(file.parent, links).table
    else:
        tables = str(config.get("corpus", "")), drops.corpus_of(file.parent, links).table
    old, new = (json.loads(each or "{}") for each in tables)
    other = (key for key in {**old, **new} if old.get(key) != new.get(key))
    return next((f"{key} is {new.get(key)} now, was {old.get(key)}" for key in other), "")


def audit_inputs(lake: DataRoot, partition: str) -> list[Input]:
    """Returns the audits of a partition as inputs: its file, or none."""
    path = lake.inbox(INBOX) / names.audits(partition)
    if not os.path.lexists(path):  # a link that leads nowhere is refused below
        return []
    known = raw_inputs.known_hashes(record_path(lake, names.ALIGNMENT, partition))
    return raw_inputs.raw_inputs(lake.root, [path], RAW, partition, known, lake.link_rule())


def dropped(lake: DataRoot) -> list[str]:
    """Returns the partitions of `available` in the order of the corpora."""
    return ordered(available(lake))


def may_have_steps(root: DataRoot, key: str) -> bool:
    """Whether records of a split may have steps: those of a corpus of plain text have none.

    The file of the drop says it, else the record of the normalised split.
    """
    folder = root.inbox(INBOX) / key.partition("__")[0]
    with suppress(GristmillError, OSError):
        found = (folder / drops.CORPUS).stat()
        return not _is_text(folder, root.link_rule(), found.st_mtime_ns, found.st_size)
    return not corpus_of(root.root, key).is_text


@lru_cache(maxsize=1 << 14)
def _is_text(folder: Path, links: LinkRule, _mtime_ns: int, _size: int) -> bool:
    return drops.corpus_of(folder, links).is_text


def of_drop(table: str, root: DataRoot, key: str) -> Settings:
    """Returns what files give for a split: the file of its drop, else the data root's."""
    corpus, _ = corpus_and_split(key)
    folder = root.inbox(INBOX) / corpus.name
    return root.settings(table, folder if folder.is_dir() else None)


def shard_settings(root: DataRoot, key: str) -> Settings:
    """Returns what files give for token shards; `allow` names the split's own corpus alone."""
    corpus, _ = corpus_and_split(key)
    given = of_drop(SHARDS, root, key)
    if "allow" not in given:
        return given
    own = tuple(name for name in given["allow"] if name == corpus.name)
    return Settings({**given, "allow": own}, given.file)


def refuse_terms(corpus: Corpus, allow: Sequence[str]) -> None:
    """Raise NothingToBuild if the terms of a corpus forbid training and `allow` lacks its name."""
    if corpus.licence.training_allowed is False and corpus.name not in allow:
        raise NothingToBuild(
            f"the terms of {corpus.name} ({corpus.licence.id}, {corpus.licence.url}) forbid "
            f'training: to tokenise it, set allow = ["{corpus.name}"] in [reasoning.gpt2_shards]'
        )


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
    dropped = available(lake)
    known = dropped | {key.partition("__")[0] for key in dropped}
    if name in known:
        return f"{NORMALIZED} of {name} is not built: run `gristmill materialize {NORMALIZED}`"
    near = did_you_mean(name, known | set(CORPORA))
    folder = lake.inbox(INBOX) / name.partition("__")[0]
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
        splits = available(lake)
        corpora = splits | {key.partition("__")[0] for key in splits}
        tokenizers = {*_PINNED, *lake.taken(TOKENIZERS), *lake.partitions_of(PLACED, PLACE)}
        if corpora.issuperset(recipe["corpora"]) and recipe["tokenizer"] in tokenizers:
            found.append(name)
    return found
