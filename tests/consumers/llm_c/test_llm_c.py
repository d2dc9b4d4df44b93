"""GPT-2 shards as llm.c and modded-nanogpt open them: headers, sizes, names and beginnings."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from gristmill.cli import main
from gristmill.families import splits_of
from tests.consumers.llm_c import LLM_C, NANOGPT
from tests.sample_root import SampleRoot

pytestmark = pytest.mark.slow
SEPARATOR = 50256


def tokens_of(path: Path) -> list[int]:
    """The tokens of a file, if both loaders of llm.c take it."""
    data = path.read_bytes()
    magic, version, count, *rest = struct.unpack("<256i", data[:1024])
    assert (magic, version, set(rest)) == (20240520, 1, {0})
    assert len(data) == 1024 + 2 * count
    return np.frombuffer(data, "<u2", offset=1024).tolist()


@LLM_C.opens("reasoning/gpt2_shards", how="the files of `gristmill project --to llm.c`")
@NANOGPT.opens("reasoning/gpt2_shards", how="the files of `gristmill project --to llm.c`")
def test_every_document_is_read_behind_its_separator(
    sample_root: SampleRoot, tmp_path: Path
) -> None:
    place, _ = sample_root.record("reasoning/gpt2_shards")
    words = ["project", str(place), str(tmp_path / "out"), "--to", "llm.c", "--tokens", "1500"]
    done = CliRunner().invoke(main, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    documents: dict[str, list[list[int]]] = {}
    for split in splits_of("reasoning/gpt2_shards", place):
        for batch in split.batches():
            documents.setdefault(split.name, []).extend(batch["input_ids"].to_pylist())
    assert len(list(tmp_path.glob("out/*_train_*.bin"))) > 1
    for name, of in (("train", "train"), ("val", "validation"), ("test", "test")):
        read = []
        for path in sorted(tmp_path.glob(f"out/*_{name}_*.bin")):
            tokens = np.array(tokens_of(path))
            starts = np.flatnonzero(tokens == SEPARATOR)
            assert starts[0] == 0  # a file begins with a document
            read += [each.tolist() for each in np.split(tokens, starts[1:])]
        assert read == [[SEPARATOR, *each[:-1]] for each in documents[of]]
