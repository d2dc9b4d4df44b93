"""A wrong answer of the fast engine fails the build: by the sample, or by the laws."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from gristmill.contract import Summary
from gristmill.provenance import Input
from gristmill.publish.build import Attempt, Build, LawsBroken
from gristmill.publish.publish import publish
from gristmill.synth.builders import kd_shard
from gristmill.synth.builders.kd_shard import build_kd_shard
from gristmill.synth.config import KDConfig
from gristmill.synth.laws.kd_shard import kd_laws
from gristmill.vocabularies import compare
from gristmill.vocabularies.compare import EnginesDiffer
from gristmill.vocabularies.engine import TIKTOKEN, Gigatoken
from tests.synth.conversations import as_json, conversation, hashes

Write = Callable[..., Path]
Ids = npt.NDArray[np.uint32]


def _plant(monkeypatch: pytest.MonkeyPatch, text: str, wrong: Callable[[Ids], Ids]) -> None:
    """Let gigatoken answer wrongly for one text."""
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


def _sampled_row(shard: Path, rows: int) -> int:
    return int(compare.sampled(shard.name, 0, rows)[0])


@pytest.mark.parametrize("bad_rows", [0, 10_000])
@pytest.mark.parametrize(
    "wrong",
    [lambda ids: ids[:-1], lambda ids: np.flip(ids).copy(), lambda ids: np.append(ids, ids[:1])],
    ids=["one token less", "reversed", "one token more"],
)
def test_the_first_row_of_a_part_fails_the_build_and_nothing_is_published(
    write_rows: Write,
    vocabulary: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    wrong: Callable[[Ids], Ids],
    bad_rows: int,
) -> None:
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


def test_a_sampled_row_fails_the_build(
    write_rows: Write, vocabulary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = 3 * compare.SHARE
    shard = write_rows(_rows(rows), row_group_size=100)
    row = _sampled_row(shard, rows)
    assert row > 0
    _plant(monkeypatch, f"question {row}", lambda ids: np.flip(ids).copy())
    with pytest.raises(EnginesDiffer, match=rf"parquet:{row + 1}: synth_id 'id{row}'") as raised:
        build_kd_shard(shard, tmp_path / "out", KDConfig(vocabulary, 0.5))
    # It comes from a worker as it is.
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_sample_is_the_same_at_any_number_of_workers(
    write_rows: Write,
    vocabulary: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    workers: int,
) -> None:
    rows = 3 * compare.SHARE
    shard = write_rows(_rows(rows), row_group_size=100)
    monkeypatch.setattr(kd_shard, "_PART_ROWS", 100)
    summary = build_kd_shard(shard, tmp_path / "right", KDConfig(vocabulary, 0.5, workers=workers))
    assert summary.compared_rows == len(compare.sampled(shard.name, 0, rows)) > 0
    assert (summary.fast_texts, summary.tiktoken_texts) == (3 * rows, 0)


def test_a_control_id_from_the_fast_engine_breaks_the_laws(
    write_rows: Write, vocabulary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows outside the sample are left to the laws: no control id may be in a body."""
    shard, root = write_rows(_rows(5)), tmp_path / "root"
    assert not len(compare.sampled(shard.name, 1, 4))
    _plant(monkeypatch, "answer 3 of it", lambda ids: np.append(ids, np.uint32(200_007)))
    with pytest.raises(LawsBroken, match="no control ids in bodies"):
        publish(_build(shard, root, KDConfig(vocabulary, 0.5)))
    assert not list(root.rglob("*.bin"))


def test_the_cure_makes_every_part_again(
    write_rows: Write, vocabulary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts that gigatoken made before the difference was seen are not used."""
    monkeypatch.setattr(kd_shard, "_PART_ROWS", 2)
    shard = write_rows(_rows(6), row_group_size=2)
    build_kd_shard(shard, tmp_path / "right", KDConfig(vocabulary, 0.5))
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


def test_tiktoken_alone_compares_nothing(
    write_rows: Write, vocabulary: Path, tmp_path: Path
) -> None:
    shard = write_rows(_rows(5))
    config = KDConfig(vocabulary, 0.5, engine=TIKTOKEN)
    summary = build_kd_shard(shard, tmp_path / "out", config)
    assert (summary.fast_texts, summary.tiktoken_texts, summary.compared_rows) == (0, 15, 0)
