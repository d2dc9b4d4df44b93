"""The reference: bytes of shards 00 and 01, sizes of all shards, totals and edge cases."""

import json
from pathlib import Path

import numpy as np
import pytest

from gristmill.synth.builders.kd_shard import build_kd_shard
from gristmill.synth.config import KDConfig
from gristmill.synth.laws import kd_laws
from gristmill.synth.render import documents, harmony
from gristmill.synth.render.documents import BadRow, Renderer
from gristmill.vocabularies.engine import AUTO, ENGINES, TIKTOKEN
from tests.synth.conversations import hashes

pytestmark = pytest.mark.real

TOTALS = {  # `docs/formats/synth.md#reference-totals`: train rows, tokens, valid rows, tokens
    "00": (219, 189_817, 31, 25_876),
    "01": (221, 186_605, 29, 22_874),
    "02": (223, 192_866, 27, 22_998),
    "03": (225, 193_386, 25, 21_716),
}


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def built(
    real: Path, vocabulary: Path, engine: str, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    root = tmp_path_factory.mktemp("kd")
    for number, totals in TOTALS.items():
        shard = real / f"synth_harmony/synth_harmony_shard_{number}.parquet"
        summary = build_kd_shard(shard, root / number, KDConfig(vocabulary, 0.1, engine=engine))
        texts = 3 * summary.rows
        expected = (0, texts) if engine == TIKTOKEN else (texts, 0)
        assert (summary.fast_texts, summary.tiktoken_texts) == expected
        assert (
            summary.train_rows,
            summary.train_tokens,
            summary.valid_rows,
            summary.valid_tokens,
        ) == totals
    return root


def test_shards_00_and_01_have_the_bytes_of_the_reference(real, built):
    built_hashes = hashes(built / "00") | hashes(built / "01")
    golden = [line.split() for line in (real / "golden_sha256.txt").read_text().splitlines()]
    assert len(golden) == 24
    assert {path: built_hashes[path] for _, path in golden} == {
        path: value for value, path in golden
    }


@pytest.mark.parametrize("number", TOTALS)
def test_both_engines_give_the_same_bytes_at_that_fraction(real, vocabulary, tmp_path, number):
    shard = real / f"synth_harmony/synth_harmony_shard_{number}.parquet"
    for engine in ENGINES:
        build_kd_shard(shard, tmp_path / engine, KDConfig(vocabulary, 0.001, engine=engine))
    assert hashes(tmp_path / AUTO) == hashes(tmp_path / TIKTOKEN)


@pytest.mark.parametrize("number", TOTALS)
def test_the_laws_hold_for_every_shard(built, number):
    assert list(kd_laws(built / number, number, 0.1)) == []


@pytest.mark.parametrize("number", TOTALS)
def test_megatron_reads_every_shard(built, number):
    indexed_dataset = pytest.importorskip("megatron.core.datasets.indexed_dataset")
    for split, rows in (("train", TOTALS[number][0]), ("valid", TOTALS[number][2])):
        for suffix, dtype in (("tokens", np.int32), ("lossmask", np.uint8), ("span", np.uint8)):
            prefix = str(built / number / split / f"shard_{number}_{suffix}")
            dataset = indexed_dataset.IndexedDataset(prefix)
            assert len(dataset) == rows
            assert dataset[0].dtype == dtype
            assert (
                sum(len(dataset[i]) for i in range(rows))
                == TOTALS[number][1 if split == "train" else 3]
            )


def test_both_renderers_give_the_tokens_or_the_error_of_every_edge_case(real, vocabulary):
    """Compare tokens, mask and span, or the type and text of the error."""
    encoding, renderer = harmony.encoding(vocabulary), Renderer(vocabulary)
    cases = json.loads((real / "edge_cases.json").read_text())
    assert len(cases) == 17
    for case in cases:
        text = json.dumps({"messages": case["messages"]})
        if "error" in case:
            with pytest.raises(Exception) as caught:  # noqa: PT011  the case names the type
                harmony.render(harmony.parse(text), encoding)
            mro = [kind.__name__ for kind in type(caught.value).__mro__]
            assert case["error_type"] in mro, case["name"]
            assert str(caught.value) == case["error"], case["name"]
            with pytest.raises(BadRow):
                renderer.read(text)
            continue
        rendered = harmony.render(harmony.parse(text), encoding)
        assert list(rendered.tokens) == case["tokens"], case["name"]
        token_span = np.repeat([*rendered.spans, 0], [*rendered.lengths, 1])
        assert token_span.tolist() == case["token_span"], case["name"]
        assert (token_span != 0).astype(int).tolist() == case["token_mask"], case["name"]
        made = documents.assemble([renderer.read(text)], vocabulary)
        assert made.tokens.tolist() == case["tokens"], case["name"]
        assert made.span.tolist() == [*case["token_span"][1:], 0], case["name"]
