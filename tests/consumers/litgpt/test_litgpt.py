"""Chunks of litdata as litgpt reads them: blocks over the borders of documents."""

import json
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from click.testing import CliRunner

from gristmill.cli import main
from gristmill.families import splits_of
from tests.consumers.litgpt import LITGPT

pytestmark = pytest.mark.slow
BLOCK = 65
_OPEN = """
import json, sys, litdata
loader = litdata.TokensLoader(block_size=int(sys.argv[2]))
rows = litdata.StreamingDataset(sys.argv[1], item_loader=loader, shuffle=False)
print(json.dumps([row.tolist() for row in rows]))
"""


@LITGPT.opens(
    "reasoning/gpt2_shards",
    "reasoning/tokens",
    "synth/kd_shards",
    how="the folders of `gristmill project --to litdata`",
)
@pytest.mark.parametrize("asset", ["reasoning/gpt2_shards", "reasoning/tokens", "synth/kd_shards"])
def test_blocks_are_cut_of_all_documents(asset, sample_root, tmp_path):
    place, _ = sample_root.record(asset)
    out = tmp_path / "out"
    words = ["project", str(place), str(out), "--to", "litdata", "--tokens", "1500"]
    done = CliRunner().invoke(main, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    parts = [each for each in splits_of(asset, place) if each.name == "train" and each.tokens]
    batches = [tokens for each in parts if each.tokens for tokens, _ in each.tokens.batches()]
    stream = np.concatenate(batches)
    own = json.loads((out / "train/index.json").read_bytes())["chunks"]
    assert len(own) > 1
    bounds = np.cumsum([0, *(each["dim"] for each in own)])
    assert bounds[-1] == len(stream)
    expected = []
    for begin, end in pairwise(bounds):
        whole = (end - begin) // BLOCK
        expected += stream[begin : begin + whole * BLOCK].reshape(whole, BLOCK).tolist()
    done = subprocess.run(
        [sys.executable, "-c", _OPEN, str(out / "train"), str(BLOCK)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == expected
