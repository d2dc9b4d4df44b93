"""Placed tokenizers: what their drops hold, how they are judged, the table of their tokens."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gristmill.contract import BadInput, Violation
from gristmill.families import Subject
from gristmill.inbox.listing import Account
from gristmill.untrusted.files import LinkRule
from gristmill.untrusted.walk import visible_files
from gristmill.vocabularies.pinned import (
    FACTS,
    FILE,
    PLACED,
    VOCABULARIES,
    Vocabulary,
    read_declared,
    read_verified,
)
from gristmill.vocabularies.tokenizer import open_tokenizer

if TYPE_CHECKING:
    from gristmill.browse.columns import Columns
    from gristmill.browse.opening import Files
    from gristmill.browse.source import Stored


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
