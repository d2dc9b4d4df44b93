"""Tokenizers: what they are built from, how they are judged, and the table of their tokens."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gristmill import families
from gristmill.asset import Asset, Wanted
from gristmill.contract import BadInput, GristmillError, Summary, Violation
from gristmill.data_root import DataRoot
from gristmill.families import Subject
from gristmill.inbox.listing import Account
from gristmill.provenance import raw_inputs
from gristmill.publish.build import Attempt, Build
from gristmill.settings.tables import PLACING, PlacingSettings
from gristmill.untrusted.files import LinkRule, has_file
from gristmill.untrusted.walk import visible_files
from gristmill.vocabularies.pinned import (
    FACTS,
    FILE,
    INBOX,
    PLACE,
    PLACED,
    VOCABULARIES,
    Vocabulary,
    drop_folder,
    place,
    read_declared,
    read_verified,
)
from gristmill.vocabularies.tokenizer import open_tokenizer

if TYPE_CHECKING:
    from gristmill.browse.columns import Columns
    from gristmill.browse.opening import Files
    from gristmill.browse.source import Stored


def placed_build(wanted: Wanted) -> Build:
    """Returns the build of a placed tokenizer. Raises as `DataRoot.ready_drop`."""
    from gristmill.vocabularies.placing import place_tokenizer

    root, name = wanted.root, wanted.partition
    drop, accounted = root.ready_drop(INBOX, name)
    links = root.link_rule()
    declared = read_declared(drop, links)
    limits = PlacingSettings(**root.settings(PLACING.name))
    files = [drop / each for each in accounted.taken[""]]

    def make(attempt: Attempt) -> Summary:
        return place_tokenizer(drop, declared, attempt.out, links, attempt.progress, limits)

    inputs = root.raw_inputs(PLACE, files, "tokenizers/raw", name)
    space = 2 * sum(each.bytes or 0 for each in inputs)
    return wanted.build(PLACE, declared, inputs, make, shared=name, space=space, account=accounted)


def pinned_build(vocabulary: Vocabulary, wanted: Wanted) -> Build:
    """Returns the build of a pinned vocabulary. Raises GristmillError where its file is missing."""
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
    space = sum(each.bytes or 0 for each in inputs)
    return wanted.build(PLACE, vocabulary, inputs, make, shared=vocabulary.name, space=space)


def is_asked(vocabulary: Vocabulary, root: DataRoot, _partition: str) -> bool:
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


def account(drop: Path, links: LinkRule) -> Account:
    """What becomes of each file of a drop. Raises BadInput for a drop that is refused."""
    taken = (FILE, read_declared(drop, links).file)
    others = visible_files(drop, links, taken)
    return Account({"": taken}, dict.fromkeys(others, f"{FILE} does not name it"))


def placed_in(folder: Path) -> list[str]:
    """The names of the tokenizers that are placed in a folder, sorted."""
    return sorted(path.parent.name for path in folder.glob(f"*/{FACTS}"))


def asset_of(folder: Path) -> str | None:
    """The asset of a folder without a record, by its files."""
    return PLACED if placed_in(folder) else None


def laws(subject: Subject) -> Iterator[Violation]:
    """Yield where a placed tokenizer is not as its facts say."""
    from gristmill.vocabularies.placing import tokenizer_laws

    names = [subject.partition] if subject.partition else placed_in(subject.folder)
    if not names:
        yield Violation("readable", str(subject.folder), f"no tokenizer with {FACTS} is in it")
    for name in names:
        yield from tokenizer_laws(subject.folder, name)


def pinned_laws(vocabulary: Vocabulary, subject: Subject) -> Iterator[Violation]:
    """Yield what is wrong with the file of a pinned vocabulary."""
    try:
        read_verified(vocabulary, subject.folder / vocabulary.relative)
    except BadInput as error:
        yield Violation("pinned", vocabulary.relative, error.rule)


def facts(asset: str, folder: Path) -> Iterator[str]:
    """Yield what is in a folder of tokenizers, a line each."""
    for name in placed_in(folder) if asset == PLACED else ():
        it = open_tokenizer(folder / name)
        kinds = f"{it.form}, {it.size:,} ids as {it.dtype}"
        yield f"{name}: {kinds}, {len(it.specials)} control tokens"
    for each in VOCABULARIES if asset != PLACED else ():
        if (path := folder / each.relative).is_file():
            yield f"{each.relative}: {path.stat().st_size:,} bytes"


def tables(asset: str, _folder: Path, files: Files) -> Iterator[Stored]:
    """Yield a table of the tokens of each placed tokenizer in a folder."""
    from gristmill.browse.source import Stored

    for name in placed_in(files.folder) if asset == PLACED else ():
        yield Stored(
            name,
            partial(_rows, files.folder / name),
            searchable=("text",),
            partition=name,
            sample=lambda _, name=name: (name, {}),  # type: ignore[misc]
        )


def _rows(folder: Path) -> Columns:
    from gristmill.browse.columns import of_values

    tokenizer = open_tokenizer(folder)
    control = {token: text for text, token in tokenizer.specials}
    rest = (b"" for _ in range(tokenizer.size))
    rows: list[dict[str, Any]] = [
        {
            "id": token,
            "text": control.get(token, octets.decode("utf-8", "replace")),
            "bytes": octets.hex(),
            "control": token in control,
        }
        for token, octets in zip(
            range(tokenizer.size), chain(tokenizer.token_bytes, rest), strict=False
        )
    ]
    return of_values(tokenizer.path, rows)
