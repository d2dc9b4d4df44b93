"""A drop of SYNTH by the recipe of docs/chat.md: its documents are those of SYNTH's own assets."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.inbox.division import contiguous_run
from gristmill.reasoning.builders.chat.conversations import normalize_conversations
from gristmill.reasoning.config import ChatConfig
from gristmill.reasoning.raw.chat.drops import chat_of
from gristmill.synth.builders.chat.part import build_chat_shard
from gristmill.synth.builders.harmony import to_harmony
from gristmill.synth.builders.kd_shard import build_kd_shard
from gristmill.synth.config import ChatKDConfig, HarmonyConfig, KDConfig
from gristmill.synth.format import indexed
from gristmill.synth.raw.files import TEXTS
from gristmill.synth.raw.render import Render
from gristmill.synth.read.trace import trace
from gristmill.synth.samples import write_drop
from gristmill.vocabularies.pinned import O200K
from gristmill.vocabularies.tokenizer import of_pinned
from tests.paths import CHECKOUT

SHARDS = 4
ARRAYS = ("tokens", "lossmask", "span")
PAGE = (CHECKOUT / "docs/chat.md").read_text()
_FOUND = re.search(r"`synth_like/corpus\.toml`\n\n```toml\n(.*?)```", PAGE, re.S)
assert _FOUND is not None
RECIPE = _FOUND[1]


def by_synth(files: Sequence[Path], out: Path, vocabulary: Path, fraction: float) -> list[Path]:
    """The datasets of the four shards by `synth/harmony` and `synth/kd_shards`."""
    made = []
    for number in range(SHARDS):
        shard = out / f"harmony{number}"
        to_harmony(files, shard, number, HarmonyConfig())
        folder = out / f"kd{number}"
        path = shard / f"synth_harmony_shard_{number:02d}.parquet"
        build_kd_shard(path, folder, KDConfig(vocabulary, fraction))
        made.append(folder)
    return made


def by_chat(
    files: Sequence[Path], out: Path, vocabulary: Path, recipe: str = RECIPE, bad_rows: int = 0
) -> list[Path]:
    """The datasets of the shards of a drop by `chat/conversations` and `chat/kd_shards`."""
    drop = out / "synth_like"
    drop.mkdir(parents=True)
    for file in files:
        shutil.copyfile(file, drop / file.name)
    (drop / "corpus.toml").write_text(recipe)
    chat = chat_of(drop)
    taken = {"train": [drop / file.name for file in files]}
    tokenizer = of_pinned(O200K, vocabulary)
    made = []
    for number, key in enumerate(chat.partitions):
        talks, folder = out / f"talks{number}", out / f"chat{number}"
        config = ChatConfig(recipe=chat.table, bad_rows=bad_rows)
        normalize_conversations(drop, taken, talks, key, config)
        kd = ChatKDConfig(vocabulary, 0.0, render=Render().recorded)
        build_chat_shard(talks / f"shard_{number:02d}.parquet", folder, kd, Render(), tokenizer)
        made.append(folder)
    return made


def documents(folders: Sequence[Path]) -> dict[str, tuple[list[int], ...]]:
    """Tokens, mask, span and the offsets of messages of every document, by its synth_id."""
    found = {}
    for number, folder in enumerate(folders):
        for split in ("train", "valid"):
            prefixes = [folder / split / f"shard_{number:02d}_{name}" for name in ARRAYS]
            if not prefixes[0].with_suffix(".bin").exists():
                continue
            arrays = [indexed.read(prefix) for prefix in prefixes]
            for at in range(len(arrays[0])):
                place = trace(folder, f"{number:02d}", split, at)
                assert place.synth_id not in found
                values = [each[at].tolist() for each in arrays]
                found[place.synth_id] = (*values, place.offsets)
    return found


def rows_of(files: Sequence[Path]) -> list[dict[str, str | None]]:
    return [row for file in files for row in pq.read_table(file).to_pylist()]


def rewritten(file: Path, rows: list[dict[str, str | None]]) -> None:
    pq.write_table(pa.Table.from_pylist(rows, schema=pq.read_schema(file)), file)


def without_returns(files: Sequence[Path]) -> None:
    """Write the files again with LF for CRLF in their texts."""
    for file in files:
        rows = pq.read_table(file).to_pylist()
        for row in rows:
            row |= {name: (row[name] or "").replace("\r\n", "\n") for name in TEXTS}
        rewritten(file, rows)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    return write_drop(tmp_path / "raw", files=8, done=False)


def test_each_document_is_that_of_synth_but_for_line_ends(
    tmp_path: Path, files: list[Path], vocabulary: Path
) -> None:
    expected = documents(by_synth(files, tmp_path / "synth", vocabulary, 0.3))
    found = documents(by_chat(files, tmp_path, vocabulary, f"shards = {SHARDS}\n{RECIPE}"))
    assert list(found) != list(expected) and found.keys() == expected.keys()
    rows = rows_of(files)
    assert len(found) == sum(all(row[name] for name in TEXTS) for row in rows) < len(rows)
    returns = {row["synth_id"] for row in rows if any("\r" in (row[name] or "") for name in TEXTS)}
    differs = {key for key, document in found.items() if document != expected[key]}
    assert differs == returns & found.keys() != set()


def test_drops_of_the_runs_of_files_give_the_bytes_of_synth_s_shards(
    tmp_path: Path, files: list[Path], vocabulary: Path
) -> None:
    without_returns(files)
    for number, folder in enumerate(by_synth(files, tmp_path / "synth", vocabulary, 0.0)):
        run = contiguous_run(files, number, SHARDS)
        (own,) = by_chat(run, tmp_path / f"run{number}", vocabulary)
        for name in ARRAYS:
            for end in ("bin", "idx"):
                one = own / f"train/shard_00_{name}.{end}"
                other = folder / f"train/shard_{number:02d}_{name}.{end}"
                assert sha256(one) == sha256(other), (number, name, end)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("column", "text", "change"),
    [
        ("query", "a\r\nb", "differs"),
        ("query", "\ufeffa", "differs"),
        ("synthetic_reasoning", " \n", "differs"),
        ("synthetic_answer", "<think>a</think>b", ""),
        ("query", " a ", ""),
        ("query", "<|end|>", ""),
        ("query", " \n", "is refused"),
        ("synthetic_answer", " \n", "is refused"),
    ],
)
def test_what_a_text_may_have_that_the_recipe_reads_in_another_way(
    tmp_path: Path, files: list[Path], vocabulary: Path, column: str, text: str, change: str
) -> None:
    del files[SHARDS:]
    without_returns(files)
    rows = pq.read_table(files[0]).to_pylist()
    rows[3] |= {**dict.fromkeys(TEXTS, "a text"), column: text}
    rewritten(files[0], rows)
    expected = documents(by_synth(files, tmp_path / "synth", vocabulary, 0.0)[:1])
    found = documents(by_chat(files[:1], tmp_path, vocabulary, bad_rows=1))
    key = str(rows[3]["synth_id"])
    assert {name for name in expected if found.get(name) != expected[name]} == (
        {key} if change else set()
    )
    assert (key in found) == (change != "is refused")
