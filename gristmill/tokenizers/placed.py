"""Placed tokenizers: what their drops hold, how they are judged and shown."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gristmill.contract import BadInput, Violation
from gristmill.families import Misuse, Request, Subject
from gristmill.inbox.account import Account
from gristmill.untrusted.files import LinkRule
from gristmill.untrusted.walk import visible_files
from gristmill.vocabularies.declared import FILE, read_declared
from gristmill.vocabularies.pinned import PLACED, VOCABULARIES, Vocabulary, read_verified
from gristmill.vocabularies.tokenizer import Tokenizer, open_tokenizer
from gristmill.vocabularies.tokenizer_file import FACTS

if TYPE_CHECKING:
    from gristmill.browse.columns import Columns
    from gristmill.browse.opening import Files
    from gristmill.browse.source import Stored

_EXAMPLE: Final = "Tom has 12 apples, and   don't you eat them: na\u00efve, \u4f60\u597d.\n"
_MOST_SHOWN: Final = 50


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
        yield f"{name}: {_line(open_tokenizer(folder / name))}"
    for each in VOCABULARIES if asset != PLACED else ():
        if (path := folder / each.relative).is_file():
            yield f"{each.relative}: {path.stat().st_size:,} bytes"


def show(request: Request) -> Iterator[str]:
    """Yield what a tokenizer does; the sample is its name. Raises Misuse where it is not there."""
    names = placed_in(request.path)
    name = names[0] if request.sample == "0" and len(names) == 1 else request.sample
    if name not in names:
        raise Misuse(f"{request.path} has no tokenizer {name}: name one of {', '.join(names)}")
    tokenizer = open_tokenizer(request.path / name)
    yield f"{name}: {_line(tokenizer)}"
    proof = tokenizer.proof
    assert proof is not None
    yield proof.why_not or f"gigatoken gives the ids of its own library in {proof.texts:,} texts"
    yield f"offsets: {tokenizer.no_offsets or 'its tokens are the bytes of a text'}"
    yield f"ends a document: {tokenizer.eod}"
    shown = [f"{token} {text}" for text, token in tokenizer.specials[:_MOST_SHOWN]]
    yield f"control tokens: {', '.join(shown)}"
    yield "|".join(
        tokenizer.token_bytes[token].decode("utf-8", "backslashreplace").replace("\n", "\\n")
        for token in np.frombuffer(tokenizer.encode([_EXAMPLE]).ids[0], dtype=np.int32)
    )


def _line(tokenizer: Tokenizer) -> str:
    count = len(tokenizer.specials)
    return f"{tokenizer.form}, {tokenizer.size:,} ids as {tokenizer.dtype}, {count} control tokens"


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
