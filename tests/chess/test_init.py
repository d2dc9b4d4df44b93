"""The package imports its heavy modules only at first use."""

import subprocess
import sys


def test_importing_the_package_is_cheap() -> None:
    heavy = "{'numpy', 'numba', 'chess', 'torch', 'zstandard'}"
    code = f"import sys, gristmill.chess; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
