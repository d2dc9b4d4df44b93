"""Vocabularies that are pinned or placed: names, sizes, hashes, the file, and where it is found.

Of the library, only this package and the command `gristmill/cli.py` (GRISTMILL_DATA) read
environment variables: O200K_HARMONY_VOCAB_PATH and TIKTOKEN_ENCODINGS_BASE here; loading sets the
second one meanwhile. Source: `docs/formats/vocabularies.md#order-of-places`,
`docs/formats/vocabularies.md#loading-offline`.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from gristmill import keys
from gristmill.contract import BadInput, FileNote, GristmillError, Summary
from gristmill.settings.fields import did_you_mean, shown
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, read_file
from gristmill.untrusted.toml import read_toml

if TYPE_CHECKING:
    import numpy as np
    from openai_harmony import HarmonyEncoding


@dataclass(frozen=True)
class Vocabulary:
    """One pinned vocabulary file in tiktoken's form (a base64 token and its rank a line)."""

    name: str
    file: str
    relative: str
    bytes: int
    sha256: str
    pattern: str
    size: int
    specials: tuple[tuple[str, int], ...]
    variable: str | None = None


ENDOFTEXT: Final = "<|endoftext|>"
HARMONY_NAMES: Final = {
    199998: "<|startoftext|>",
    199999: ENDOFTEXT,
    200002: "<|return|>",
    200003: "<|constrain|>",
    200005: "<|channel|>",
    200006: "<|start|>",
    200007: "<|end|>",
    200008: "<|message|>",
    200012: "<|call|>",
    200018: "<|endofprompt|>",
}
"""Every other id from 200000 to 201087 is `<|reserved_N|>`."""

O200K: Final = Vocabulary(
    name="o200k_harmony",
    file="o200k_base.tiktoken",
    relative="o200k_base.tiktoken",
    bytes=3_613_922,
    sha256="446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    pattern="o200k",
    size=201_088,
    specials=tuple((text, token) for token, text in HARMONY_NAMES.items()),
    variable="O200K_HARMONY_VOCAB_PATH",
)
"""openai-harmony's o200k_harmony is o200k_base with its own special tokens."""

GPT2: Final = Vocabulary(
    name="gpt2",
    file="r50k_base.tiktoken",
    relative="gpt2/r50k_base.tiktoken",
    bytes=835_554,
    sha256="306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
    pattern="gpt2",
    size=50_257,
    specials=((ENDOFTEXT, 50_256),),
)
"""GPT-2's ranks; the same as tiktoken's r50k_base."""

VOCABULARIES: Final = (O200K, GPT2)
PLACED: Final = "tokenizers/placed"
"""The key of the asset of tokenizers that people bring."""

_WORD_END: Final = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_UPPER: Final = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER: Final = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
# o200k's seven alternatives in o200k's order. The five without a look-ahead are in
# a group of their own: the meaning is the same, and the regex engine then runs them
# as one automaton.
O200K_PATTERN: Final = (
    "(?:"
    + "|".join(
        (
            r"[^\r\n\p{L}\p{N}]?" + _UPPER + "*" + _LOWER + "+" + _WORD_END,
            r"[^\r\n\p{L}\p{N}]?" + _UPPER + "+" + _LOWER + "*" + _WORD_END,
            r"\p{N}{1,3}",
            r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
            r"\s*[\r\n]+",
        )
    )
    + r")|\s+(?!\S)|\s+"
)

# GPT-2's six alternatives, grouped alike; nothing follows those whose runs need no way back, so
# that the possessive forms of tiktoken's pattern match the same.
GPT2_PATTERN: Final = r"(?:'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+)|\s+(?!\S)|\s+"


def _cl100k(numbers: str) -> str:
    """cl100k's alternatives, grouped alike; `numbers` is the one for digits."""
    return (
        r"(?:'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|"
        + numbers
        + r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+)|\s+(?!\S)|\s+"
    )


PATTERNS: Final[Mapping[str, str]] = {
    "gpt2": GPT2_PATTERN,
    "cl100k": _cl100k(r"\p{N}{1,3}"),
    "o200k": O200K_PATTERN,
    "qwen2": _cl100k(r"\p{N}"),
}
"""The rules that cut a text before the ranks of tiktoken apply, by the name of gigatoken."""

Form = Literal["tiktoken", "tokenizer.json", "sentencepiece"]

FACTS: Final = "facts.json"
"""The file of a placed folder that says what `Tokenizer` does."""

PROOF: Final = "proof.json"
"""The file of a placed folder that says where the fast engine is equal to the reference."""

_SHORT: Final = 1 << 16


@dataclass(frozen=True)
class Proof:
    """Where gigatoken gives the ids of the reference.

    versions: of gigatoken and of the reference's library, by distribution.
    unproven: the code points for which they are not proven equal, as `proven.UNPROVEN` has them.
    probe: hex sha256 of the fixed texts. texts: how many texts were compared.
    marks: texts of tokens that gigatoken gives other ids, as `<s>` of sentencepiece; the reference
        encodes what holds one.
    """

    why_not: str = ""
    versions: tuple[tuple[str, str], ...] = ()
    unproven: str = ""
    probe: str = ""
    texts: int = 0
    marks: tuple[str, ...] = ()

    def holds_mark(self) -> Callable[[str], object] | None:
        """What tells whether a text holds one of the marks; None where there are none."""
        longest_first = sorted(self.marks, key=len, reverse=True)
        return re.compile("|".join(map(re.escape, longest_first))).search if self.marks else None


@dataclass(frozen=True, eq=False)
class TokenizerFile:
    """The file of a tokenizer. It is small and pickles.

    form: of its file. path: the file. sha256: hex, of the file; every load checks it.
    pattern: name of the rule that cuts a text, of `references.PATTERNS`; "" but for tiktoken.
    no_offsets: why a token is not the bytes of its place in the text; "" where it is.
    proof: where the fast engine may be used; None for a pinned vocabulary.
    """

    name: str
    form: Form
    path: Path
    sha256: str
    size: int
    eod: int
    specials: tuple[tuple[str, int], ...]
    bos: int | None = None
    pattern: str = ""
    no_offsets: str = ""
    proof: Proof | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TokenizerFile) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.sha256, self.path))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type that its ids are stored in: uint16 where all of them fit, else int32."""
        import numpy as np  # configs name the engines, and load nothing heavy

        return np.dtype("<u2" if self.size <= _SHORT else "<i4")

    @property
    def special(self) -> Mapping[str, int]:
        """The id of each control token by its text."""
        return dict(self.specials)

    @property
    def eod_text(self) -> str:
        """The text of the token that ends a document."""
        return next(text for text, token in self.specials if token == self.eod)

    def special_id(self, text: str) -> int:
        """The id of a control token. Raises GristmillError where the tokenizer has none of it."""
        found = self.special.get(text)
        if found is None:
            known = ", ".join(list(self.special)[:20]) or "none"
            raise GristmillError(
                f"{text}: is no control token of the tokenizer {self.name}; it has {known}"
            )
        return found

    def read(self) -> bytes:
        """The bytes of its file. Raises BadInput where it is gone or another one."""
        for vocabulary in VOCABULARIES:
            if self.proof is None and vocabulary.sha256 == self.sha256:
                return read_verified(vocabulary, self.path)
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise BadInput(self.path, f"cannot be read ({error.strerror}): run {CURE}") from error
        found = hashlib.sha256(data).hexdigest()
        if found != self.sha256:
            raise BadInput(
                self.path, f"has the sha256 {found}, and {self.sha256} is expected: run {CURE}"
            )
        return data


CURE: Final = f"`gristmill materialize {PLACED} --rebuild`"


def file_of_pinned(vocabulary: Vocabulary, path: Path) -> TokenizerFile:
    """The file of a pinned vocabulary."""
    return TokenizerFile(
        name=vocabulary.name,
        form="tiktoken",
        path=path,
        sha256=vocabulary.sha256,
        size=vocabulary.size,
        eod=dict(vocabulary.specials)[ENDOFTEXT],
        specials=vocabulary.specials,
        pattern=vocabulary.pattern,
    )


BASE: Final = "TIKTOKEN_ENCODINGS_BASE"

INBOX: Final = "tokenizers"
PLACE: Final = "tokenizer"
"""The folder of all published tokenizers, below the data root."""


class MissingVocabulary(GristmillError):
    """A vocabulary that is in none of the places where `find` searches."""


class NoVocabularyFile(BadInput, MissingVocabulary):
    """A file that was named as a vocabulary, and is not there."""

    def __reduce__(self) -> tuple[type[NoVocabularyFile], tuple[str, str, int | None]]:
        return NoVocabularyFile, (self.file, self.rule, self.row)


@dataclass(frozen=True)
class PlacedVocabulary(Summary):
    """What `place` wrote."""

    tokens: int
    bytes: int
    sha256: str


def read_verified(vocabulary: Vocabulary, path: Path) -> bytes:
    """The bytes of the vocabulary at `path`.

    Raises BadInput with both hashes where the file is not the pinned one or cannot be read, and
    NoVocabularyFile where it is not there; both errors name `gristmill tokenizers`.
    """
    try:
        with path.open("rb") as file:
            # One byte more than the pinned size is enough to recognise another file.
            data = file.read(vocabulary.bytes + 1)
    except OSError as error:
        rule = f"the vocabulary cannot be read ({error.strerror}): run `gristmill tokenizers`"
        kind = NoVocabularyFile if isinstance(error, FileNotFoundError) else BadInput
        raise kind(path, rule) from error
    digest = hashlib.sha256(data)
    if digest.hexdigest() != vocabulary.sha256:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        raise BadInput(
            path,
            f"is not {vocabulary.file}: sha256 {found} found, {vocabulary.sha256} expected"
            f" ({path.stat().st_size} bytes found, {vocabulary.bytes} expected);"
            " remove it and run `gristmill tokenizers`",
        )
    return data


def drop_folder(data_root: Path) -> Path:
    """Where `fetch` puts vocabularies, as raw input of the tokenizer assets."""
    return data_root / "drops" / INBOX


def place(vocabulary: Vocabulary, source: Path, out: Path) -> PlacedVocabulary:
    """Builder: write the verified file at `source` to `out/<vocabulary.relative>`.

    `out` must not exist. The artifact is one file of exactly the pinned bytes.
    """
    data = read_verified(vocabulary, source)
    out.mkdir(parents=True)
    target = out / vocabulary.relative
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    tokens = data.count(b"\n")
    return PlacedVocabulary(
        files={vocabulary.relative: FileNote(rows=tokens)},
        tokens=tokens,
        bytes=len(data),
        sha256=vocabulary.sha256,
    )


FILE: Final = "tokenizer.toml"
MOST_BYTES: Final = 256 << 20
"""Bytes of a tokenizer's file at most."""
_KNOWN: Final = ("form", "file", "sha256", "eod", "bos", "pattern", "special", "licence")
_NEEDED: Final = ("form", "file", "sha256", "eod")
_MOST_SPECIALS: Final = 10_000
_MOST_ID: Final = 1 << 24


@dataclass(frozen=True)
class Declared:
    """What a `tokenizer.toml` says. The fields are its keys."""

    name: str
    form: Form
    file: str
    sha256: str
    eod: str
    bos: str = ""
    pattern: str = ""
    special: Mapping[str, int] = field(default_factory=dict)
    licence: str = ""

    def tokenizer(self, path: Path) -> TokenizerFile:
        """The tokenizer, of which size and ids are not yet known. path: of its file."""
        specials = tuple(sorted(self.special.items(), key=lambda each: each[1]))
        size = max(self.special.values(), default=-1) + 1
        eod = self.special.get(self.eod, -1)
        return TokenizerFile(
            self.name, self.form, path, self.sha256, size, eod, specials, None, self.pattern
        )


def read_declared(folder: Path, links: LinkRule = REFUSE_LINKS) -> Declared:
    """Read and check the `tokenizer.toml` of a drop.

    Raises BadInput, naming file, key and rule.
    """
    path = folder / FILE
    try:
        raw = read_toml(path, root=folder, links=links)
    except FileNotFoundError as error:
        raise BadInput(path, "is missing: `gristmill tokenizers FILE` writes it") from error
    if unknown := sorted(set(raw) - set(_KNOWN)):
        known = f"the known keys are {', '.join(_KNOWN)}"
        raise BadInput(
            path, f"unknown key {shown(unknown[0])}{did_you_mean(unknown[0], _KNOWN)}; {known}"
        )
    for key in _NEEDED:
        if key not in raw:
            raise BadInput(path, f"`{key}` is missing: write {_AS[key]}")
    for key, value in raw.items():
        if key != "special" and not (isinstance(value, str) and 0 < len(value) <= 500):
            raise BadInput(path, f"{key} = {shown(value)}: must be a text of 1 to 500 characters")
    _check_name(path, folder.name)
    _check_values(path, raw)
    return Declared(folder.name, **raw)


_AS: Final = {
    "form": 'form = "tokenizer.json"',
    "file": 'file = "tokenizer.json"',
    "sha256": 'sha256 = "<64 hexadecimal digits>", which `sha256sum FILE` prints',
    "eod": 'eod = "<|endoftext|>", the text of the token that ends a document',
}


def _check_name(path: Path, name: str) -> None:
    reason = keys.refusal(name)
    if reason is None and name in {*(each.name for each in VOCABULARIES), "provenance"}:
        reason = f"{name} is the name of a built-in tokenizer: rename the folder"
    if reason is not None:
        raise BadInput(path, reason)


def _check_values(path: Path, raw: Mapping[str, Any]) -> None:
    """Raise BadInput for values that do not fit each other."""
    form, special = raw["form"], raw.get("special", {})
    if form not in get_args(Form):
        raise BadInput(path, f"form = {shown(form)}: must be one of {', '.join(get_args(Form))}")
    if "/" in raw["file"] or keys.refusal(raw["file"]) or raw["file"] == FILE:
        raise BadInput(path, f"file = {shown(raw['file'])}: must be the name of a file beside it")
    if not re.fullmatch("[0-9a-f]{64}", raw["sha256"]):
        raise BadInput(path, f"sha256 = {shown(raw['sha256'])}: must have 64 hexadecimal digits")
    if form != "tiktoken":
        for key in ("pattern", "special"):
            if key in raw:
                raise BadInput(path, f"{key}: the file of the form {form} says it: leave it out")
        return
    if raw.get("pattern") not in PATTERNS:
        raise BadInput(
            path,
            f"pattern = {shown(raw.get('pattern'))}: ranks need the rule that cuts a text: must be "
            f"one of {', '.join(PATTERNS)}",
        )
    if (
        not isinstance(special, dict)
        or not 0 < len(special) <= _MOST_SPECIALS
        or not all(type(token) is int and 0 <= token < _MOST_ID for token in special.values())
        or len(set(special.values())) != len(special)
    ):
        raise BadInput(path, 'special: must give each control token its id, as { "<|x|>" = 5 }')
    for key in ("eod", "bos"):
        if key in raw and raw[key] not in special:
            raise BadInput(path, f"{key} = {shown(raw[key])}: must be one of `special`")


def declared_file(folder: Path, declared: Declared, links: LinkRule = REFUSE_LINKS) -> bytes:
    """The bytes of the file that a `tokenizer.toml` names."""
    path = folder / declared.file
    try:
        data = read_file(path, root=folder, most=MOST_BYTES, links=links)
    except FileNotFoundError as error:
        raise BadInput(path, f"is missing, and {FILE} names it: put it there") from error
    found = hashlib.sha256(data).hexdigest()
    if found != declared.sha256:
        raise BadInput(
            path,
            f"has the sha256 {found}, {FILE} has {declared.sha256}: bring the right file, or "
            "write its sha256 there",
        )
    return data


def find(vocabulary: Vocabulary, data_root: Path) -> Path:
    """The verified file of a vocabulary, without any network.

    Takes the first file of these: the one that O200K_HARMONY_VOCAB_PATH names, in
    the folder TIKTOKEN_ENCODINGS_BASE, in `<data_root>/tokenizer`, in
    `<data_root>/drops/tokenizers`. Raises BadInput where that file is not the
    pinned one, and MissingVocabulary where there is none.
    """
    if vocabulary.variable and (named := os.environ.get(vocabulary.variable)):
        path = Path(named)
        if not path.is_file():
            raise BadInput(path, f"{vocabulary.variable} names this file, which does not exist")
        read_verified(vocabulary, path)
        return path
    places = [
        data_root / "tokenizer" / vocabulary.relative,
        drop_folder(data_root) / vocabulary.file,
    ]
    base = os.environ.get(BASE)
    if base and "://" not in base:
        places.insert(0, Path(base) / vocabulary.file)
    for path in places:
        if path.is_file():
            read_verified(vocabulary, path)
            return path
    raise MissingVocabulary(
        f"{vocabulary.file} is not in {data_root}: run `gristmill tokenizers`, or put the file"
        f" into {drop_folder(data_root)}"
    )


_environment = threading.Lock()


@contextmanager
def _encodings_base(path: Path) -> Iterator[None]:
    """Let openai-harmony read its vocabulary from the file `path` alone."""
    with _environment, tempfile.TemporaryDirectory(prefix="gristmill-vocabulary-") as folder:
        # openai-harmony takes a folder and expects its own file name in it, which a
        # file that the user names need not have.
        (Path(folder) / O200K.file).symlink_to(path.resolve())
        before = os.environ.get(BASE)
        os.environ[BASE] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ[BASE]
            else:
                os.environ[BASE] = before


def load_harmony_file(path: Path) -> HarmonyEncoding:
    """openai-harmony's encoding for gpt-oss, from the vocabulary at `path`.

    With TIKTOKEN_ENCODINGS_BASE set, openai-harmony 0.0.8 reads `<base>/o200k_base.tiktoken` at
    every load and asks no network. Raises as `read_verified`.
    """
    from openai_harmony import HarmonyEncodingName, load_harmony_encoding

    read_verified(O200K, path)
    with _encodings_base(path):
        return load_harmony_encoding(HarmonyEncodingName.HARMONY_GPT_OSS)
