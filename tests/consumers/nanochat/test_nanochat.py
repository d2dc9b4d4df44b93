"""Parquet of texts as nanochat reads it: files by name, the last for validation, groups by rank."""

from collections import Counter
from pathlib import Path

import orjson
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from gristmill.cli import main
from gristmill.reasoning.render.text import text_of
from tests.consumers.nanochat import NANOCHAT

pytestmark = pytest.mark.slow


def texts(files: list[Path], rank: int, world: int) -> list[str]:
    """The texts of a rank: of each file the row groups rank, rank + world and so on."""
    found = []
    for path in files:
        opened = pq.ParquetFile(path)
        for group in range(rank, opened.num_row_groups, world):
            found += opened.read_row_group(group).column("text").to_pylist()
    return found


@NANOCHAT.opens("reasoning/normalized", how="the files of `gristmill project --to nanochat`")
def test_ranks_share_the_texts_and_validate_with_the_last_file(sample_root, tmp_path):
    place, _ = sample_root.record("reasoning/normalized")
    words = ["project", str(place), str(tmp_path / "out"), "--to", "nanochat"]
    done = CliRunner().invoke(main, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    files = sorted((tmp_path / "out").glob("*.parquet"))
    assert len(files) > 1
    wanted: dict[str, Counter[str]] = {}
    for path in place.glob("*/*.jsonl"):
        if path.parent.name != "rejected":
            rows = map(orjson.loads, path.read_bytes().splitlines())
            wanted.setdefault(path.stem, Counter()).update(filter(None, map(text_of, rows)))
    assert (
        Counter(text for rank in (0, 1) for text in texts(files[:-1], rank, 2)) == wanted["train"]
    )
    assert Counter(texts(files[-1:], 0, 1)) == wanted.get("validation", wanted["test"])
