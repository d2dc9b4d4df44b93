"""Chunks of litdata as litgpt reads them: blocks over the borders of documents."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from gristmill.cli import main
from gristmill.families import splits_of
from tests.consumers.litgpt import LITGPT
from tests.requirements import cannot_run

pytestmark = pytest.mark.slow
BLOCK = 65
_OPEN = """
import json, sys, litdata
loader = litdata.TokensLoader(block_size=int(sys.argv[2]))
rows = litdata.StreamingDataset(sys.argv[1], item_loader=loader, shuffle=False)
print(json.dumps([row.tolist() for row in rows]))
"""


def blocks(folder: Path) -> list[list[int]]:
    """The blocks of all chunks, as the loader cuts them: what is left of a chunk is dropped."""
    index = json.loads((folder / "index.json").read_bytes())
    assert index["config"]["item_loader"] == "TokensLoader"
    assert index["config"]["data_format"] == ["no_header_tensor:16"]
    found = []
    for chunk in index["chunks"]:
        data = (folder / chunk["filename"]).read_bytes()
        assert len(data) == chunk["chunk_bytes"]
        count = int(np.frombuffer(data, "<u4", 1)[0])
        offsets = np.frombuffer(data, "<u4", count + 1, 4)
        assert (count, int(offsets[0])) == (chunk["chunk_size"], 4 * (count + 2))
        tokens = np.frombuffer(data, "<i4", offset=4 * (count + 2))
        assert len(tokens) == chunk["dim"]
        whole = len(tokens) // BLOCK
        found += tokens[: whole * BLOCK].reshape(whole, BLOCK).tolist()
    return found


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
    assert blocks(out / "train") == expected
    assert read_by_litdata(out / "train") == expected


def read_by_litdata(folder: Path) -> list[list[int]]:
    """The blocks as the library reads them in its own process."""
    python = os.environ.get("GRISTMILL_LITDATA", sys.executable)
    if python == sys.executable and find_spec("litdata") is None:
        cannot_run("litdata", "the library litdata is not installed: see tests/consumers/litgpt")
    done = subprocess.run(
        [python, "-c", _OPEN, str(folder), str(BLOCK)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found: list[list[int]] = json.loads(done.stdout.splitlines()[-1])
    return found
