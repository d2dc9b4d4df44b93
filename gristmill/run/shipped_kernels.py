"""Machine code of kernels that comes with the package: a fresh machine compiles little.

`kernels.zip` beside this module has what numba keeps of a kernel, compiled for x86-64-v3, which
most processors since 2015 are. An entry is found by the key of the kernel and its signature, so one
of other code, Python, numba or NumPy is never found: the kernel is compiled, as everywhere else.
`make kernels` makes the archive, at each release.
"""

from __future__ import annotations

import hashlib
import lzma
import pickle
import platform
import sys
import zipfile
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

from gristmill.run.kernel_key import kernel_key

ARCHIVE: Final = Path(__file__).with_name("kernels.zip")

PROCESSOR: Final = ("x86-64-v3", "")
_FEATURES: Final = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_DIGITS: Final = 32
_NOT_THERE: Final = (
    KeyError, OSError, EOFError, zipfile.BadZipFile, lzma.LZMAError, RuntimeError,
)  # fmt: skip
"""What reading an entry raises that is not there, or of a damaged archive; RuntimeError also is
NotImplementedError, of a method that a damaged entry names."""


def find(dispatcher: Any, signature: Any) -> Any:
    """What numba kept of a kernel for a signature, as it takes it; None where it is not shipped."""
    if not _runs_here():
        return None
    name = entry(kernel_key(dispatcher, PROCESSOR), signature)
    try:
        with zipfile.ZipFile(ARCHIVE) as archive:
            # The archive's checksum is compared; it is as trusted as the code.
            return pickle.loads(archive.read(name))
    except _NOT_THERE:
        return None


@cache
def _runs_here() -> bool:
    """Whether this process compiles for a machine that runs the archive's code."""
    import numba
    from llvmlite import binding

    features, config = binding.get_host_cpu_features(), cast(Any, numba.config)
    return (
        sys.platform == "linux"
        and platform.machine() == "x86_64"
        and config.CPU_NAME is None
        and all(features.get(name) for name in _FEATURES)
    )


def entry(key: str, signature: Any) -> str:
    """The name of an archive's entry, from the first digits of the key of a kernel at least."""
    return f"{key[:_DIGITS]}/{hashlib.sha256(str(signature).encode()).hexdigest()[:_DIGITS]}"
