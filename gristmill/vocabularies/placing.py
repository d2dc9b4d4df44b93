"""The builder of a placed tokenizer, its laws, and the folder that a file is put into."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import orjson

from gristmill.contract import BadInput, FileNote, GristmillError, Summary, Violation
from gristmill.hashing import sha256_file
from gristmill.printable import printable
from gristmill.run.progress import SILENT, Progress
from gristmill.settings.tables import PLACING, PlacingSettings
from gristmill.untrusted import child
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, read_file
from gristmill.vocabularies.pinned import (
    FACTS,
    FILE,
    GPT2,
    MOST_BYTES,
    O200K,
    PROOF,
    VOCABULARIES,
    Declared,
    Form,
    MissingVocabulary,
    Proof,
    TokenizerFile,
    Vocabulary,
    declared_file,
    drop_folder,
    find,
    read_verified,
)
from gristmill.vocabularies.proving import Found, find_facts, prove
from gristmill.vocabularies.tokenizer import Tokenizer, facts_of, open_tokenizer, proof_of

log = logging.getLogger(__name__)

_LIMITS: Final = PlacingSettings()
_NAMES: Final[dict[str, Form]] = {
    ".tiktoken": "tiktoken",
    ".json": "tokenizer.json",
    ".model": "sentencepiece",
}
_EODS: Final = ("<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<｜end▁of▁sentence｜>")


@dataclass(frozen=True)
class PlacedTokenizer(Summary):
    """What `place_tokenizer` found.

    offsets: whether the bytes of its tokens are those of a text.
    """

    tokens: int
    control_tokens: int
    fast: bool
    offsets: bool


def place_tokenizer(
    folder: Path,
    declared: Declared,
    out: Path,
    links: LinkRule = REFUSE_LINKS,
    progress: Progress = SILENT,
    limits: PlacingSettings = _LIMITS,
) -> PlacedTokenizer:
    """Builder: write the files of a tokenizer to `out/<name>/`, with its facts and its proof.

    limits: what both may take together. Without a proof within them the reference encodes all.

    Raises BadInput where the file is not the declared one, where its library refuses it or takes
    more than the limits, where two tokens have one id, where its `eod` is no control token, where
    it makes control tokens of ordinary text, and where it gives a text other ids each time.
    """
    data = declared_file(folder, declared, links)
    (inside := out / declared.name).mkdir(parents=True)
    path = inside / declared.file
    path.write_bytes(data)
    (inside / FILE).write_bytes(read_file(folder / FILE, root=folder, most=1 << 20, links=links))
    source, bare = folder / declared.file, declared.tokenizer(path)
    with progress.stage("read tokens, encode fixed texts", "files", 1) as stage:
        found: Found = _within(limits, find_facts, bare, file=source)
        stage.advance(1)
    special = _checked_ends(folder, declared, found)
    with progress.stage("compare gigatoken beside each character", "files", 1) as stage:
        proof = _proof(limits, found.seconds, bare)
        stage.advance(1)
    tokenizer = Tokenizer(
        name=declared.name,
        form=declared.form,
        path=path,
        sha256=declared.sha256,
        size=found.size,
        eod=special[declared.eod],
        specials=found.specials,
        bos=special[declared.bos] if declared.bos else None,
        pattern=declared.pattern,
        no_offsets=found.no_offsets,
        proof=proof,
    )
    for name, said in ((FACTS, facts_of(tokenizer)), (PROOF, proof_of(proof))):
        (inside / name).write_bytes(orjson.dumps(said, option=orjson.OPT_INDENT_2))
    if proof.why_not:
        slower = "the reference encodes every text, which is slower and gives the same ids"
        log.warning("%s: %s: %s", declared.name, proof.why_not, slower)
    return PlacedTokenizer(
        # The proof names versions of libraries, which change no id.
        files={f"{declared.name}/{PROOF}": FileNote(payload=False)},
        tokens=tokenizer.size,
        control_tokens=len(special),
        fast=not proof.why_not,
        offsets=not tokenizer.no_offsets,
    )


def _checked_ends(folder: Path, declared: Declared, found: Found) -> Mapping[str, int]:
    """The control tokens. Raises BadInput for an end that is none."""
    special = dict(found.specials)
    for key in ("eod", "bos"):
        text = getattr(declared, key)
        if text and text not in special:
            known = ", ".join(map(printable, list(special)[:20])) or "none"
            raise BadInput(
                folder / FILE, f'{key} = "{printable(text)}": is no control token: it has {known}'
            )
    return special


def _proof(limits: PlacingSettings, taken: int, tokenizer: TokenizerFile) -> Proof:
    """The proof of gigatoken; a child that dies of it says that it may not be used."""
    if taken >= limits.seconds:
        return Proof(why_not=f"no time is left to prove gigatoken of {limits.seconds:,} seconds")
    left = replace(limits, seconds=limits.seconds - taken)
    try:
        found: Proof = _within(left, prove, tokenizer, file=tokenizer.path)
    except BadInput as error:
        return Proof(why_not=f"gigatoken: {error.rule}")
    return found


def _within(
    limits: PlacingSettings, function: Callable[[TokenizerFile], Any], *arguments: Any, file: Path
) -> Any:
    """What a function finds in a child process. Raises BadInput with its cure."""
    try:
        return child.run(
            function,
            *arguments,
            file=file,
            seconds=limits.seconds,
            memory_bytes=limits.memory_bytes,
        )
    except child.OverLimit as error:
        cure = f"a larger `seconds` or `memory_bytes` in {PLACING.header} gives it more"
        raise BadInput(file, f"{error.rule}; {cure}") from error
    except BadInput as error:
        raise BadInput(file, error.rule) from error  # it names a copy that goes


def tokenizer_laws(folder: Path, name: str) -> Iterator[Violation]:
    """Yield where a placed tokenizer is not as its facts say."""
    try:
        tokenizer = open_tokenizer(folder / name)
        if tokenizer.name != name or tokenizer.path.parent != folder / name:
            yield Violation("name", f"{name}/{FACTS}", f"is of {tokenizer.name}")
        elif (found := sha256_file(tokenizer.path)) != tokenizer.sha256:
            where = f"{name}/{tokenizer.path.name}"
            yield Violation("sha256", where, f"{found}, its facts have {tokenizer.sha256}")
        ids = [tokenizer.eod, *tokenizer.special.values()]
        if min(ids) < 0 or max(ids) >= tokenizer.size:
            yield Violation("ids", f"{name}/{FACTS}", f"control tokens beyond {tokenizer.size} ids")
        if tokenizer.eod not in tokenizer.special.values():
            yield Violation("eod", f"{name}/{FACTS}", f"{tokenizer.eod} is no control token")
    except (GristmillError, OSError) as error:
        yield Violation("readable", name, str(error))


def put(
    file: Path,
    data_root: Path,
    *,
    name: str,
    eod: str = "",
    bos: str = "",
    pattern: str = "",
    special: dict[str, int] | None = None,
) -> Path:
    """Copy a tokenizer's file to `drops/tokenizers/<name>/`, and write its `tokenizer.toml`.

    file: of a form that its ending says: `.tiktoken`, `.json` or `.model`.
    """
    from gristmill.vocabularies.pinned import read_declared

    form = _NAMES.get(file.suffix)
    if form is None:
        raise BadInput(file, f"the form is unknown: its name must end in {', '.join(_NAMES)}")
    if not eod:
        raise BadInput(
            file,
            "which token ends a document is never guessed: give --eod TEXT, often one of "
            + ", ".join(_EODS),
        )
    if file.stat().st_size > MOST_BYTES:
        raise BadInput(file, f"has more than {MOST_BYTES:,} bytes")
    folder = drop_folder(data_root) / name
    try:
        folder.mkdir(parents=True)
    except FileExistsError as error:
        raise GristmillError(f"{folder}: is there already: give another --name") from error
    try:
        shutil.copyfile(file, folder / file.name)
        values = {"form": form, "file": file.name, "sha256": sha256_file(folder / file.name)}
        values |= {"eod": eod, "bos": bos, "pattern": pattern}
        lines = [f"{key} = {_quoted(value)}" for key, value in values.items() if value]
        if special:
            pairs = ", ".join(f"{_quoted(text)} = {token}" for text, token in special.items())
            lines.append(f"special = {{ {pairs} }}")
        (folder / FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")
        read_declared(folder)
    except BaseException:
        shutil.rmtree(folder)
        raise
    return folder / FILE


def _quoted(text: str) -> str:
    """A text as a string of TOML; JSON's escapes are TOML's, but for DEL."""
    return orjson.dumps(text).decode().replace("\x7f", "\\u007f")


OFFICIAL: Final = "https://openaipublic.blob.core.windows.net/encodings"
"""The publisher's address, as in tiktoken's own source."""

WHEEL: Final = "litellm==1.109.1"
"""A pinned wheel that carries two of tiktoken's files under the names of its cache."""

_FOLDER = "litellm/litellm_core_utils/tokenizers/"
_MEMBERS: Final = {
    O200K: _FOLDER + "fb374d419588a4632f3f557e76b4b70aebbca790",
    # p50k_base: r50k_base, then 24 tokens of runs of spaces.
    GPT2: _FOLDER + "ec7223a39ce59f226a68acc30dc1af2788490e15",
}
_P50K_BYTES = 836_186
_P50K_SHA256 = "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069"
_GPT2_RANKS = 50_256
_READ_BYTES = 1 << 16


def fetch(
    data_root: Path,
    wanted: Sequence[Vocabulary] = VOCABULARIES,
    *,
    wheel: str | Path | None = WHEEL,
    base: str = OFFICIAL,
    timeout: float = 30.0,
) -> list[Path]:
    """Put vocabularies, verified, into `<data_root>/drops/tokenizers`; return the files.

    Takes files of this machine (`find`), else members of the wheel, else
    `<base>/<file>`. Uses no network where all files are on this machine.

    wanted: which; default: all.
    wheel: a requirement for pip, a path to a wheel, or None to leave it out.

    Raises GristmillError with the failure of each way if all of them fail, and
    BadInput if a file on this machine is not the pinned one.
    """
    folder = drop_folder(data_root)
    folder.mkdir(parents=True, exist_ok=True)
    missing = []
    for vocabulary in wanted:
        target = folder / vocabulary.file
        try:
            source = find(vocabulary, data_root)
        except MissingVocabulary:
            missing.append(vocabulary)
            continue
        if target.exists():
            read_verified(vocabulary, target)
        else:
            _commit(vocabulary, source.read_bytes(), target)

    failures = []
    if missing and wheel is not None:
        try:
            for vocabulary, data in _from_wheel(missing, wheel).items():
                _commit(vocabulary, data, folder / vocabulary.file)
                missing.remove(vocabulary)
        except (GristmillError, OSError, subprocess.SubprocessError, zipfile.BadZipFile) as error:
            log.warning("the wheel %s did not give the vocabularies: %s", wheel, error)
            failures.append(f"{wheel}: {error}")
    for vocabulary in missing:
        address = f"{base}/{vocabulary.file}"
        try:
            # One byte more than the file has at most: a wrong answer cannot fill the memory.
            answered = bytearray()
            with urllib.request.urlopen(address, timeout=timeout) as answer:
                while len(answered) <= vocabulary.bytes and (received := answer.read(_READ_BYTES)):
                    answered += received
            _commit(vocabulary, bytes(answered), folder / vocabulary.file)
        except (GristmillError, OSError) as error:
            failures.append(f"{address}: {error}")
            raise GristmillError(
                f"{vocabulary.file} could not be fetched ({'; '.join(failures)});"
                f" put it into {folder} by hand"
            ) from error
    return [folder / vocabulary.file for vocabulary in wanted]


def _commit(vocabulary: Vocabulary, data: bytes, target: Path) -> None:
    """Verify bytes and write them so that `target` is whole or absent, also after a power loss."""
    received = hashlib.sha256(data).hexdigest()
    if received != vocabulary.sha256:
        raise GristmillError(
            f"received {len(data)} bytes with sha256 {received}, but {vocabulary.file} has"
            f" {vocabulary.bytes} bytes and sha256 {vocabulary.sha256}"
        )
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    scratch = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        scratch.chmod(0o644)
        scratch.replace(target)
    finally:
        scratch.unlink(missing_ok=True)
    directory = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _from_wheel(wanted: list[Vocabulary], wheel: str | Path) -> dict[Vocabulary, bytes]:
    if isinstance(wheel, Path):
        return {vocabulary: _member(vocabulary, wheel) for vocabulary in wanted}
    with tempfile.TemporaryDirectory(prefix="gristmill-wheel-") as folder:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
        command += ["--disable-pip-version-check", "--quiet", "--dest", folder, wheel]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        files = list(Path(folder).glob("*.whl"))
        if done.returncode or len(files) != 1:
            raise GristmillError(f"pip download failed: {done.stderr.strip()[-500:]}")
        return {vocabulary: _member(vocabulary, files[0]) for vocabulary in wanted}


def _member(vocabulary: Vocabulary, wheel: Path) -> bytes:
    """One vocabulary from its member of the wheel, which is read up to its known size."""
    name = _MEMBERS[vocabulary]
    size = _P50K_BYTES if vocabulary is GPT2 else vocabulary.bytes
    with zipfile.ZipFile(wheel) as archive:
        try:
            member = archive.open(name)
        except KeyError as error:
            raise GristmillError(f"{wheel.name} has no member {name}") from error
        with member:
            data = member.read(size + 1)
    if len(data) != size:
        raise GristmillError(f"{wheel.name}: {name} does not have {size} bytes")
    if vocabulary is not GPT2:
        return data
    if hashlib.sha256(data).hexdigest() != _P50K_SHA256:
        raise GristmillError(f"{wheel.name}: {name} is not p50k_base.tiktoken")
    lines = data.splitlines(keepends=True)
    return b"".join(line for line in lines if int(line.split()[1]) < _GPT2_RANKS)
