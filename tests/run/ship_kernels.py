"""Makes the archive of kernels that comes with the package: `make kernels`, at each release."""

import os
import pickle
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from gristmill.run.kernels import ARCHIVE, CACHE_DIR, PROCESSOR, entry

_TIME = (2020, 1, 1, 0, 0, 0)


def environment(folder: Path) -> dict[str, str]:
    """The variables of a process that compiles for the archive, and keeps it in `folder`."""
    name, features = PROCESSOR
    return {
        **os.environ,
        CACHE_DIR: str(folder),
        "NUMBA_CPU_NAME": name,
        "NUMBA_CPU_FEATURES": features,
    }


def pack(folder: Path, archive: Path) -> int:
    """Write an archive of the kernels that `folder` holds; returns how many."""
    entries = dict(sorted(_kept(folder)))
    with zipfile.ZipFile(archive, "w") as file:
        for name, data in entries.items():
            file.writestr(zipfile.ZipInfo(name, _TIME), data, zipfile.ZIP_LZMA)
    return len(entries)


def _kept(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the entries of the overloads that numba's index files list."""
    for index in folder.glob("*.nbi"):
        with index.open("rb") as file:
            pickle.load(file)  # numba's version
            key, overloads = pickle.loads(file.read())
        for (signature, _, _), name in overloads.items():
            yield entry(key, signature), folder.joinpath(name).read_bytes()


def main() -> None:
    """Build the samples and look for leaks with an empty cache, and pack what was compiled."""
    with tempfile.TemporaryDirectory() as scratch:
        root, folder = Path(scratch, "data"), Path(scratch, "kernels")
        folder.mkdir(mode=0o700)
        asked, text = root / "drops/evals/asked/a.txt", Path(scratch, "a.jsonl")
        asked.parent.mkdir(parents=True)
        asked.write_text("What has a head and four legs, and is no animal of a farm?\n")
        text.write_text('{"text": "nothing of it"}\n' * 20_000)  # so large that it has pieces
        command = Path(sys.executable).with_name("gristmill")
        for words in (
            ["tokenizers", "--data-root", root],
            ["samples", root],
            ["materialize", "--all", "--data-root", root],
            ["leaks", text, "--data-root", root],
        ):
            variables = environment(folder) | {"DAGSTER_HOME": scratch}
            subprocess.run([command, *words], env=variables, check=True)
        kernels = pack(folder, ARCHIVE)
    sys.stdout.write(f"{ARCHIVE}: {kernels} kernels, {ARCHIVE.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
