"""What a record says of the machine."""

import re
import subprocess
import sys

import numpy

from gristmill.provenance import environment
from tests.paths import CHECKOUT


def test_versions_of_what_can_have_a_say():
    found = environment.libraries()
    assert found["numpy"] == numpy.__version__
    assert "gristmill" in found and "no-such-library" not in found


def test_the_commit_of_the_checkout():
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    found = environment.git_sha()
    if head.returncode == 0:
        assert found is not None and re.fullmatch(r"[0-9a-f]{40}(-dirty)?", found)
        assert found.startswith(head.stdout.strip())
    else:
        assert found is None


def test_peak_memory_counts_from_the_reset_and_sees_children():
    code = (
        "import subprocess, sys; from gristmill.provenance import environment as e\n"
        "big = bytearray(200 << 20); del big; high = e.peak_memory_bytes()\n"
        "e.reset_peak_memory(); low = e.peak_memory_bytes()\n"
        "subprocess.run([sys.executable, '-c', 'x = bytearray(b\"1\") * (300 << 20)'])\n"
        "print(high >> 20, low >> 20, e.peak_memory_bytes() >> 20)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    high, low, with_child = map(int, done.stdout.split())
    assert low < 100 < 200 <= high < 300 <= with_child
