"""A batch of rows that passes a cap on tokens, and wrong answers of the fast engine in a part."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gristmill.contract import Summary
from gristmill.hashing import HashedFile
from gristmill.provenance import Input
from gristmill.publish.build import Attempt, Build, LawsBroken
from gristmill.publish.publish import publish
from gristmill.run.parts import VARIABLE
from gristmill.synth.builders import kd_part, kd_shard
from gristmill.synth.builders.kd_part import Sorted, _up_to_cap
from gristmill.synth.builders.kd_shard import build_kd_shard
from gristmill.synth.config import KDConfig
from gristmill.synth.laws import kd_laws
from gristmill.synth.render.documents import Documents
from gristmill.vocabularies import encode
from gristmill.vocabularies.encode import EnginesDiffer
from gristmill.vocabularies.engine import TIKTOKEN, Gigatoken
from tests.synth.conversations import as_json, conversation, hashes

Write = Callable[..., Path]
Ids = npt.NDArray[np.uint32]


def _documents(places: list[int]) -> Documents:
    """A document of two messages and ten times its place plus ten tokens for each place."""
    lengths = np.array([10 * place + 10 for place in places], dtype=np.int32)
    runs = np.array([n for length in lengths for n in (length - 1, 1)], dtype=np.int32)
    total = int(lengths.sum())
    return Documents(
        np.repeat(np.array(places, dtype=np.int32), lengths),
        np.zeros(total, dtype=np.uint8),
        lengths,
        runs,
        np.full(len(places), 2, dtype=np.int32),
    )


@pytest.mark.parametrize(
    ("tokens", "kept", "refused"),
    [
        (1, [0], []),
        (10, [0], []),
        (11, [0, 2], [1]),
        (40, [0, 2], [1]),
        (41, [0, 2, 3], [1]),
        (80, [0, 2, 3], [1]),
        (81, [0, 2, 3, 5], [1, 4]),
        (140, [0, 2, 3, 5], [1, 4]),
        (141, [0, 2, 3, 5], [1, 4, 6]),
    ],
)
def test_documents_up_to_the_one_that_reaches_the_cap_are_kept(tokens, kept, refused):
    """Rows 0, 2, 3 and 5 have 10, 30, 40 and 60 tokens; 1, 4 and 6 are refused."""
    places = {"train": [0, 3], "valid": [2, 5]}
    rows = Sorted(list("abcdefg"), {1: "bad", 4: "bad", 6: "bad"})
    of_rows: dict[str, list[Any]] = {name: [*numbers] for name, numbers in places.items()}
    rows.places, rows.conversations = places, of_rows
    made = _up_to_cap(rows, {name: _documents(numbers) for name, numbers in places.items()}, tokens)
    assert sorted(rows.places["train"] + rows.places["valid"]) == kept
    assert rows.conversations == rows.places
    assert list(rows.refused) == refused
    for split, documents in made.items():
        expected = _documents(rows.places[split])
        for name in ("tokens", "span", "lengths", "runs", "run_counts"):
            assert getattr(documents, name).tolist() == getattr(expected, name).tolist(), name


def test_a_batch_without_documents_keeps_its_refused_rows_and_half_the_bytes_are_a_part(tmp_path):
    rows = Sorted(["a"], {0: "bad"})
    made = _up_to_cap(rows, {split: _documents([]) for split in kd_part.SPLITS}, 5)
    assert rows.refused == {0: "bad"}
    assert all(not len(documents.lengths) for documents in made.values())
    count = 100_000
    span = np.repeat([0, 1, 2, 0], count // 4).tolist()
    batch = kd_part.Batch(
        {"train": documents([200_000] * count, span, [count]), "valid": EMPTY}, b"", b""
    )
    with HashedFile(tmp_path / "part") as file:
        kd_part.write(file, batch)
    assert file.bytes < 3.01 * count  # the datasets have 4 + 1 + 1 bytes a token


def _plant(monkeypatch: pytest.MonkeyPatch, text: str, wrong: Callable[[Ids], Ids]) -> None:
    """Let gigatoken answer wrongly for one text."""
    monkeypatch.setattr(encode, "_BEFORE_FAST", 0)
    right = Gigatoken.encoder

    def encoder(self: Gigatoken, characters: int) -> Callable[[str], Ids]:
        encode = right(self, characters)
        return lambda each: wrong(encode(each)) if each == text else encode(each)

    monkeypatch.setattr(Gigatoken, "encoder", encoder)


def _rows(count: int) -> list[tuple[str, str]]:
    return [
        (f"id{row}", as_json(conversation(f"question {row}", "thought", f"answer {row} of it")))
        for row in range(count)
    ]


def _build(shard: Path, root: Path, config: KDConfig) -> Build:
    def make(attempt: Attempt) -> Summary:
        return build_kd_shard(shard, attempt.out, config, attempt.parts)

    return Build(
        root=root,
        artifact="megatron/synth_kd_v1",
        asset="synth/kd_shards",
        partition="07",
        code_version=KDConfig.CODE_VERSION,
        config=config,
        inputs=[Input(path=shard.name, sha256="0" * 64, bytes=shard.stat().st_size)],
        make=make,
        laws=lambda folder: kd_laws(folder, "07", config.valid_fraction),
        shared=True,
    )


@pytest.mark.parametrize(
    ("wrong", "bad_rows"),
    [
        (lambda ids: ids[:-1], 0),
        (lambda ids: np.flip(ids).copy(), 10_000),
        (lambda ids: np.append(ids, ids[:1]), 0),
    ],
    ids=["one token less", "reversed", "one token more"],
)
def test_a_bad_first_row_fails_it(write_rows, vocabulary, tmp_path, monkeypatch, wrong, bad_rows):
    shard, root = write_rows(_rows(5)), tmp_path / "root"
    config = KDConfig(vocabulary, 0.5, bad_rows=bad_rows)
    with monkeypatch.context() as patched:
        _plant(patched, "answer 0 of it", wrong)
        with pytest.raises(EnginesDiffer) as caught:
            publish(_build(shard, root, config))
    text = str(caught.value)
    assert f"{shard}:1: synth_id 'id0': the engines differ at token" in text
    assert 'set `engine = "tiktoken"`' in text and "gigatoken gives" in text and len(text) < 1000
    assert not list(root.rglob("*.bin"))
    assert not list(root.rglob("*.json"))


def test_a_sampled_row_fails_the_build(write_rows, kd_build, monkeypatch):
    rows = 3 * encode.SHARE
    shard = write_rows(_rows(rows), row_group_size=100)
    row = int(encode.sampled(shard.name, 0, rows)[0])
    assert row > 0
    _plant(monkeypatch, f"question {row}", lambda ids: np.flip(ids).copy())
    with pytest.raises(EnginesDiffer, match=rf"parquet:{row + 1}: synth_id 'id{row}'") as raised:
        kd_build(shard, "out", 0.5)
    # It comes from a worker as it is.
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_sample_is_the_same_at_any_workers(write_rows, kd_build, monkeypatch, workers):
    rows = 3 * encode.SHARE
    shard = write_rows(_rows(rows), row_group_size=100)
    monkeypatch.setattr(kd_shard, "_PART_ROWS", 100)
    summary = kd_build(shard, "right", 0.5, workers=workers)
    assert summary.compared_rows == len(encode.sampled(shard.name, 0, rows)) > 0
    assert (summary.fast_texts, summary.tiktoken_texts) == (3 * rows, 0)


def test_a_control_id_of_the_engine_breaks_laws(write_rows, vocabulary, tmp_path, monkeypatch):
    """Rows outside the sample are left to the laws: no control id may be in a body."""
    shard, root = write_rows(_rows(5)), tmp_path / "root"
    assert not len(encode.sampled(shard.name, 1, 4))
    _plant(monkeypatch, "answer 3 of it", lambda ids: np.append(ids, np.uint32(200_007)))
    with pytest.raises(LawsBroken, match="no control ids in bodies"):
        publish(_build(shard, root, KDConfig(vocabulary, 0.5)))
    assert not list(root.rglob("*.bin"))


def test_the_cure_makes_every_part_again(write_rows, kd_build, vocabulary, tmp_path, monkeypatch):
    """Parts that gigatoken made before the difference was seen are not used."""
    monkeypatch.setenv(VARIABLE, "0")
    monkeypatch.setattr(kd_shard, "_PART_ROWS", 2)
    shard = write_rows(_rows(6), row_group_size=2)
    kd_build(shard, "right", 0.5)
    root, config = tmp_path / "root", KDConfig(vocabulary, 0.5, engine=TIKTOKEN)
    with monkeypatch.context() as patched:
        # The first part is wrong in its second row, and the third in its first.
        for row in (1, 4):
            _plant(patched, f"answer {row} of it", lambda ids: np.flip(ids).copy())
        with pytest.raises(EnginesDiffer, match="parquet:5: synth_id 'id4'"):
            publish(_build(shard, root, KDConfig(vocabulary, 0.5)))
    assert list(root.rglob("*.part")), "finished parts are kept"
    published = publish(_build(shard, root, config)).folder
    assert hashes(published / "train") == hashes(tmp_path / "right" / "train")
    record = publish(_build(shard, root, KDConfig(vocabulary, 0.5)))
    assert not record.rebuilt, "the engine is not in the fingerprint"


def test_tiktoken_alone_compares_nothing(write_rows, vocabulary, tmp_path):
    shard = write_rows(_rows(5))
    config = KDConfig(vocabulary, 0.5, engine=TIKTOKEN)
    summary = build_kd_shard(shard, tmp_path / "out", config)
    assert (summary.fast_texts, summary.tiktoken_texts, summary.compared_rows) == (0, 15, 0)


NONE = np.zeros(0, dtype=np.int32)


def documents(tokens: list[int], span: list[int], lengths: list[int]) -> Documents:
    ids = np.array(tokens, dtype=np.int32)
    spans = np.array(span, dtype=np.uint8)
    return Documents(ids, spans, np.array(lengths, dtype=np.int32), NONE, NONE)


EMPTY = documents([], [], [])
EDGES = documents([0, 1, 65_535, 65_536, 199_999, 201_087, (1 << 24) - 1], [0] * 7, [3, 4])


@pytest.mark.parametrize(
    "train",
    [
        EMPTY,
        EDGES,
        documents([7], [2], [1]),
        documents([5, 6, 7, 8], [0, 1, 2, 0], [4]),
        documents([5, 6, 7, 8], [1, 1, 0, 0], [2, 2]),
        documents([5, 6, 7, 8], [0, 0, 0, 1], [4]),
    ],
)
def test_batches_come_back(tmp_path, train):
    path = tmp_path / "part"
    batches = [
        kd_part.Batch({"train": train, "valid": EDGES}, b"trace", b"refused"),
        kd_part.Batch({"train": EMPTY, "valid": train}, b"", b""),
    ]
    with HashedFile(path) as file:
        for batch in batches:
            kd_part.write(file, batch)
    for written, read in zip(batches, kd_part.read(path), strict=True):
        assert (read.trace, read.refused) == (written.trace, written.refused)
        for split, made in written.documents.items():
            for name in ("tokens", "span", "lengths"):
                expected, found = getattr(made, name), getattr(read.documents[split], name)
                assert found.dtype == expected.dtype
                assert found.tolist() == expected.tolist()
