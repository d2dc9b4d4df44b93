"""Token datasets: our whole build by a placed tokenizer against encode_ordinary alone.

The ranks of GPT-2 are placed as a person places a tokenizer of their own, with the proof. The build
of `reasoning/tokens` to `.bin`, laws and hashes included, stands beside a bare loop of tiktoken's
encode_ordinary over the same texts, with its own pattern; with either engine. CPU seconds of this
process and its children; medians of interleaved rounds. Ends with status 1 where a floor is missed.

    python -m bench.reasoning_tokens [--records 100000] [--rounds 3]
"""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import orjson

from bench import kit, plain_tiktoken
from bench.reasoning_build import lines, normalized, write_drops
from gristmill.asset import Wanted, declared
from gristmill.data_root import DataRoot
from gristmill.publish.publish import publish
from gristmill.reasoning.format import names
from gristmill.reasoning.render.text import text_of
from gristmill.vocabularies.engine import AUTO, TIKTOKEN
from gristmill.vocabularies.pinned import ENDOFTEXT, GPT2, PLACED, find
from gristmill.vocabularies.placing import put

_FLOORS = {TIKTOKEN: 0.9, AUTO: 1.5}


def prepared(root: Path, records: int, vocabulary: Path) -> list[str]:
    """Publish normalised files and the tokenizer, and write the recipe; returns the splits."""
    partitions = write_drops(root, records)
    normalized(root, partitions)
    put(vocabulary, root, name="own", eod=ENDOFTEXT, pattern="gpt2", special=dict(GPT2.specials))
    publish(declared()[PLACED].build(Wanted(declared()[PLACED], DataRoot(root), "own")))
    recipe = root / "drops" / names.RECIPES / "all.toml"
    recipe.parent.mkdir(parents=True)
    recipe.write_text(f'corpora = {orjson.dumps(partitions).decode()}\ntokenizer = "own"\n')
    return partitions


def built(root: Path, engine: str) -> None:
    """Publish the dataset, with nothing left of the one before."""
    shutil.rmtree(root / names.TOKENS, ignore_errors=True)
    asset = declared()["reasoning/tokens"]
    publish(asset.build(Wanted(asset, DataRoot(root), "all", {"engine": engine})))


def build(given: kit.Given) -> None:
    root, vocabulary = given.scratch, find(GPT2, kit.DATA)
    partitions = prepared(root, given.records, vocabulary)
    texts = [text_of(orjson.loads(line)) for line in lines(root, partitions)]
    for engine, floor in _FLOORS.items():
        what = f"tokens and encode_ordinary, engine {engine}"
        plain_tiktoken.compare(what, partial(built, root, engine), GPT2, texts, given, floor)


if __name__ == "__main__":
    kit.main(__doc__, build, records=100_000, rounds=3)
