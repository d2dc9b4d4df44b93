"""One tokenizer: a pinned vocabulary, or one that a person placed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import orjson

from gristmill.contract import BadInput
from gristmill.settings.fields import did_you_mean
from gristmill.vocabularies.encode import Encoded, Encoder, encoder_of
from gristmill.vocabularies.engine import AUTO
from gristmill.vocabularies.pinned import (
    CURE,
    FACTS,
    PLACED,
    PROOF,
    VOCABULARIES,
    MissingVocabulary,
    Proof,
    TokenizerFile,
    Vocabulary,
    drop_folder,
    file_of_pinned,
)
from gristmill.vocabularies.pinned import FILE as DECLARED
from gristmill.vocabularies.references import reference_of

if TYPE_CHECKING:
    import numpy as np


class Tokenizer(TokenizerFile):
    """A tokenizer: its file, its ids and their bytes."""

    def encoder(self, engine: str = AUTO) -> Encoder:
        """This process's encoder, loaded once.

        engine: "auto" for gigatoken where it is proven equal, else the reference alone.

        Raises BadInput where the file is not the one that was placed.
        """
        return encoder_of(self, engine)

    def encode(self, texts: Sequence[str], engine: str = AUTO) -> Encoded:
        """Encode each text on its own; the text of a control token is ordinary text.

        texts: any strings. engine: as of `encoder`.

        Raises ValueError for a text that is refused: see `encode.Encoder.encode`.
        """
        return self.encoder(engine).encode(texts)

    @property
    def token_bytes(self) -> Sequence[bytes]:
        """The bytes of each id, [size]; empty for control tokens and for ids that nothing has."""
        return _token_bytes(self)

    @property
    def token_lengths(self) -> npt.NDArray[np.int64]:
        """The number of bytes of each id, int64 [size]."""
        return _token_lengths(self)


def of_pinned(vocabulary: Vocabulary, path: Path) -> Tokenizer:
    """The tokenizer of a pinned vocabulary."""
    return Tokenizer(**vars(file_of_pinned(vocabulary, path)))


def open_tokenizer(folder: Path | str) -> Tokenizer:
    """The tokenizer of a published folder, `<data root>/tokenizer/<name>`.

    folder: of a tokenizer that was placed, or `tokenizer/gpt2` or `tokenizer/o200k_harmony`.

    Raises MissingVocabulary where it is not published, and BadInput where its facts are damaged.
    """
    folder = Path(folder)
    for vocabulary in VOCABULARIES:
        if folder.name == vocabulary.name:
            return of_pinned(vocabulary, folder.parent / vocabulary.relative)
    try:
        facts = orjson.loads((folder / FACTS).read_bytes())
        proof = orjson.loads((folder / PROOF).read_bytes())
        proof |= {"versions": tuple(proof["versions"].items()), "marks": tuple(proof["marks"])}
        specials = tuple(facts.pop("specials").items())
        path = folder / facts.pop("file")
        return Tokenizer(**facts, path=path, specials=specials, proof=Proof(**proof))
    except FileNotFoundError as error:
        raise MissingVocabulary(_missing(folder)) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadInput(folder, f"has damaged facts ({error}): run {CURE}") from error


def _missing(folder: Path) -> str:
    """What to do where no tokenizer is in a folder: place its drop, mend its name, or bring it."""
    found = f"{folder}: no tokenizer is placed there"
    dropped, placed = (
        {each.name for each in place.glob("*/") if (each / file).is_file()}
        for place, file in ((drop_folder(folder.parents[1]), DECLARED), (folder.parent, FACTS))
    )
    if folder.name in dropped:
        return f"{found}, but its drop is there: run `gristmill materialize {PLACED}`"
    near = did_you_mean(folder.name, {*dropped, *placed, *(each.name for each in VOCABULARIES)})
    correct = f"{near} Else bring" if near else ": bring"
    return (
        f"{found}{correct} its file by `gristmill tokenizers FILE --name {folder.name} --eod TEXT`"
        f", then run `gristmill materialize {PLACED}`"
    )


def facts_of(tokenizer: TokenizerFile) -> dict[str, Any]:
    """What `open_tokenizer` reads from `FACTS`."""
    facts = asdict(tokenizer)
    del facts["path"], facts["proof"]
    return facts | {"file": tokenizer.path.name, "specials": dict(tokenizer.specials)}


def proof_of(proof: Proof) -> dict[str, Any]:
    """What `open_tokenizer` reads from `PROOF`."""
    return asdict(proof) | {"versions": dict(proof.versions)}


@lru_cache(maxsize=4)
def _token_bytes(tokenizer: TokenizerFile) -> Sequence[bytes]:
    return reference_of(tokenizer).token_bytes()


@lru_cache(maxsize=4)
def _token_lengths(tokenizer: TokenizerFile) -> npt.NDArray[np.int64]:
    lengths = np.array([len(each) for each in _token_bytes(tokenizer)], dtype=np.int64)
    lengths.flags.writeable = False
    return lengths
