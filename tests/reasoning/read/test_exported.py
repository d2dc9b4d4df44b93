"""Documents of token shards as other programs get them: those of the index, over all shards."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.reasoning.format import names
from gristmill.reasoning.format.published import TOKENS
from gristmill.reasoning.read import exported
from tests.reasoning.exported_root import build_dataset


def dataset(root: Path, ranks: int) -> Path:
    """A dataset by the tokenizer tiny, several sequences a shard."""
    build_dataset(root, seq_len=32, tokens_per_shard=256, world_size=ranks)
    return root / names.TOKENS / "mine"


def documents(folder: Path, root: Path) -> list[list[int]]:
    """The documents of the split, and a check of their bounds."""
    split = exported.split_of(TOKENS, folder, "gsm8k__train", root)
    assert split.tokens is not None
    found = []
    for tokens, bounds in split.tokens.batches():
        assert (bounds[0], bounds[-1]) == (0, len(tokens))
        found += [tokens[a:b].tolist() for a, b in pairwise(bounds)]
    return found


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("piece", [50, 1 << 22])
def test_documents_are_those_of_the_index_over_all_shards(
    ranks: int, piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exported, "_PIECE", piece)
    folder = dataset(tmp_path, ranks)
    assert len(list(folder.glob("*/*/*.bin"))) > ranks
    split = exported.split_of(TOKENS, folder, "gsm8k__train", tmp_path)
    rows = [row for batch in split.batches() for row in batch["input_ids"].to_pylist()]
    found = documents(folder, tmp_path)
    assert len(found) == 12
    assert sorted(found) == sorted(rows)
    if ranks == 1:
        assert found == rows


def test_shards_that_end_within_a_document_are_refused(tmp_path: Path) -> None:
    folder = dataset(tmp_path, 1)
    path = max(folder.glob("*/*/*.meta.json"))
    text = path.read_text()
    count = int(text.partition('"text_tokens": ')[2].partition(",")[0])
    path.write_text(text.replace(f'"text_tokens": {count}', f'"text_tokens": {count - 1}'))
    with pytest.raises(BadInput, match="tokens behind its last document"):
        documents(folder, tmp_path)
