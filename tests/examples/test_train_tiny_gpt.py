"""The example that trains a tiny GPT on the sample shards: the loss of each span falls."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests import budget
from tests.paths import CHECKOUT
from tests.sample_root import SampleRoot

if (
    not find_spec("torch") or not find_spec("megatron") or not find_spec("megatron.core")
):  # importing them takes seconds
    pytest.skip("torch or megatron-core is not installed", allow_module_level=True)

EXAMPLE = CHECKOUT / "examples/train_tiny_gpt.py"


def run(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore", str(EXAMPLE), *options],
        cwd=CHECKOUT,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_loss_of_each_span_falls(sample_root: SampleRoot, tmp_path: Path) -> None:
    data = sample_root.data / "megatron/synth_kd_v1_smoke"
    picture = tmp_path / "losses.svg"
    steps = max(10, budget.count(50, 0.5))
    done = run("--data", str(data), "--steps", str(steps), "--plot", str(picture))
    assert done.returncode == 0, done.stdout + done.stderr
    for span in ("reasoning", "final"):
        losses = [
            float(loss) for loss in re.findall(rf"{span} ([\d.]+) \(\d+ labels\)", done.stdout)
        ]
        assert len(losses) == steps
        # Before the first step every token of the vocabulary has about the same probability.
        assert 12.1 < losses[0] < 12.4
        assert max(losses[-2:]) < losses[0] - 1
    svg = ElementTree.parse(picture)
    sizes = [
        float(text.get("font-size", 12)) for text in svg.iter("{http://www.w3.org/2000/svg}text")
    ]
    assert len(sizes) > 10
    assert min(sizes) >= 11
    assert picture.stat().st_size < 100_000


@pytest.mark.slow
def test_a_folder_without_shards_is_named(tmp_path: Path) -> None:
    done = run("--data", str(tmp_path))
    assert done.returncode == 1
    assert (
        f"{tmp_path}: has no train/shard_XX_tokens.idx: run `make run`, or give --data"
        in done.stderr
    )
