"""Token files as llm.c and modded-nanogpt open them: headers, sizes, names and beginnings."""

import struct
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from gristmill.cli import main
from gristmill.families import splits_of
from tests.consumers.llm_c import LLM_C, NANOGPT

pytestmark = pytest.mark.slow
HOW = "the files of `gristmill project --to llm.c`"


def tokens_of(path: Path, expected: tuple[int, int], dtype: str) -> list[int]:
    """The tokens of a file, if both loaders of llm.c take it."""
    data = path.read_bytes()
    magic, version, count, *rest = struct.unpack("<256i", data[:1024])
    assert ((magic, version), set(rest)) == (expected, {0})
    assert len(data) == 1024 + np.dtype(dtype).itemsize * count
    return np.frombuffer(data, dtype, offset=1024).tolist()


@LLM_C.opens("reasoning/gpt2_shards", "reasoning/tokens", "synth/kd_shards", how=HOW)
@NANOGPT.opens("reasoning/gpt2_shards", how=HOW)
@pytest.mark.parametrize("asset", ["reasoning/gpt2_shards", "reasoning/tokens", "synth/kd_shards"])
def test_every_document_is_read_behind_its_separator(asset, sample_root, tmp_path):
    place, _ = sample_root.record(asset)
    words = ["project", str(place), str(tmp_path / "out"), "--to", "llm.c", "--tokens", "1500"]
    done = CliRunner().invoke(main, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    form = ((20240520, 1), "<u2") if "reasoning" in asset else ((20240801, 7), "<u4")
    documents: dict[str, list[list[int]]] = {}
    separator = 0
    for split in splits_of(asset, place):
        rows = [row for batch in split.batches() for row in batch["input_ids"].to_pylist()]
        assert split.tokens is not None
        separator = split.tokens.end
        # A row of DistillKit has another last token than the document.
        last = -1 if rows[0][-1] != separator else None
        documents.setdefault(split.name, []).extend(row[: last or -1] for row in rows)
    assert len(list(tmp_path.glob("out/*_train_*.bin"))) > 1
    for name, of in (("train", "train"), ("val", "validation"), ("test", "test")):
        read = []
        for path in sorted(tmp_path.glob(f"out/*_{name}_*.bin")):
            tokens = np.array(tokens_of(path, *form))
            starts = np.flatnonzero(tokens == separator)
            assert starts[0] == 0  # a file begins with a document
            read += [each.tolist() for each in np.split(tokens, starts[1:])]
        ends = slice(1, None if "reasoning" in asset else -1)
        assert [each[ends] for each in read] == documents.get(of, [])
