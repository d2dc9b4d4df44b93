"""Fetching vocabularies at set-up: from this machine, a pinned wheel or the publisher."""

from __future__ import annotations

import hashlib
import logging
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile
from pathlib import Path
from typing import Final

from gristmill.contract import GristmillError
from gristmill.vocabularies.find import find
from gristmill.vocabularies.pinned import (
    GPT2,
    O200K,
    VOCABULARIES,
    MissingVocabulary,
    Vocabulary,
    drop_folder,
    read_verified,
)

log = logging.getLogger(__name__)

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
    *,
    wheel: str | Path | None = WHEEL,
    base: str = OFFICIAL,
    timeout: float = 30.0,
) -> list[Path]:
    """Put every vocabulary, verified, into `<data_root>/drops/tokenizers`; return the files.

    Takes files of this machine (`find`), else members of the wheel, else
    `<base>/<file>`. Uses no network where all files are on this machine.

    data_root: the data root.
    wheel: a requirement for pip, a path to a wheel, or None to leave it out.
    base: an address; default the publisher's.
    timeout: seconds without an answer from `base`; default 30.

    Raises GristmillError with the failure of each way if all of them fail, and
    BadInput if a file on this machine is not the pinned one.
    """
    folder = drop_folder(data_root)
    folder.mkdir(parents=True, exist_ok=True)
    missing = []
    for vocabulary in VOCABULARIES:
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
            _commit(vocabulary, _download(vocabulary, address, timeout), folder / vocabulary.file)
        except (GristmillError, OSError) as error:
            failures.append(f"{address}: {error}")
            raise GristmillError(
                f"{vocabulary.file} could not be fetched ({'; '.join(failures)});"
                f" put it into {folder} by hand"
            ) from error
    return [folder / vocabulary.file for vocabulary in VOCABULARIES]


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


def _download(vocabulary: Vocabulary, address: str, timeout: float) -> bytes:
    """The answer, at most one byte more than the file has: a wrong one cannot fill the memory."""
    data = bytearray()
    with urllib.request.urlopen(address, timeout=timeout) as answer:
        while len(data) <= vocabulary.bytes and (received := answer.read(_READ_BYTES)):
            data += received
    return bytes(data)
