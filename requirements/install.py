"""Install requirements with hashes: by uv, or by pip where uv is not to be had or fails.

`python requirements/install.py UV FILE...` runs in the environment that it fills. UV is the
program, which need not be there. uv reads none of pip's settings, so it is given those that decide
where packages come from. Both check the sha256 of every file that they take.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

NAMES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
    "timeout": "UV_HTTP_TIMEOUT",
}
"""Settings of pip, and the variables by which uv takes the same."""
UNUSED = (
    *("pyarrow/libarrow_flight.so*", "pyarrow/_flight*.so", "pyarrow/_s3fs*.so"),
    *("pyarrow/libarrow_s3.so*", "pyarrow/include/**/*", "pyarrow/tests/**/*"),
    *("pyarrow/libarrow_python.so", "pyarrow/libarrow_python.so.*.*", "zstandard/_cffi*.so"),
    *("numpy/**/tests/**/*", "numba/tests/**/*", "dagster_webserver/**/*.map"),
    *("uvloop/loop*.so", "pyarrow/*.px[di]", "pyarrow/*.pyx", "pyarrow/includes/*"),
)
"""Files of packages that no program here opens, 120 MB; without uvloop its users take asyncio."""
ORDER = ("global", "install", ":env:")
"""Sections of pip's settings; a later one comes first."""


def variables(listed: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables for uv that say what pip's settings say.

    listed: what `pip config list` prints: a line `section.name='value'` for each setting.
    environment: the variables that are set; they stay as they are.
    """
    found: dict[str, str] = {}
    for section in ORDER:
        for line in listed.splitlines():
            place, _, value = line.partition("=")
            of, _, name = place.rpartition(".")
            if of == section and name in NAMES:
                words = str(ast.literal_eval(value)).split()
                found[NAMES[name]] = ("," if name == "find-links" else " ").join(words)
    # pip takes a version from any index that has it, uv from the first that knows the name.
    found["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return {name: value for name, value in found.items() if name not in environment}


def install(uv: Path, files: list[str]) -> int:
    """Install the requirements of the files, in the environment of this Python.

    uv: the program; where it is not there or fails, pip installs.

    Returns the status of the program that installed.
    """
    python = [sys.executable, "-m", "pip"]
    words = ["--require-hashes", "--no-deps", "--no-build-isolation"]
    words += [word for file in files for word in ("-r", file)]
    names = ", ".join(files)
    if uv.is_file():
        print(f"uv installs {names}", flush=True)
        listed = subprocess.run(
            [*python, "config", "list"], capture_output=True, text=True, check=True
        )
        done = subprocess.run(
            [uv, "pip", "install", "--python", sys.executable, *words],
            env={**os.environ, **variables(listed.stdout, os.environ)},
            check=False,
        )
        if done.returncode == 0:
            return 0
    print(f"pip installs {names}: this takes a minute or two", flush=True)
    return subprocess.run([*python, "install", *words], check=False).returncode


def trim(site: Path) -> None:
    """Remove the files of `UNUSED` below a folder of packages."""
    for pattern in UNUSED:
        for file in [each for each in site.glob(pattern) if each.is_file()]:
            file.unlink()


if __name__ == "__main__":
    status = install(Path(sys.argv[1]), sys.argv[2:])
    trim(Path(sysconfig.get_paths()["purelib"]))
    sys.exit(status)
