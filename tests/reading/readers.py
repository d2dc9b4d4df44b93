"""The readers of all families, each with two generations of what it reads.

A new reader is covered by the tests of this folder once it is in READERS; `test_reader.py` fails
for a reader that is not.
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from gristmill import provenance
from gristmill.contract import Summary
from gristmill.publish.build import Build
from gristmill.publish.publish import publish
from gristmill.reading import Verify
from tests.publish.tiny import made_from, raw_input


@dataclass(frozen=True)
class Part:
    """One artifact that a reader reads.

    artifact: path below the data root.
    asset, partition: of its record.
    made: the two versions of the folder by number, made beforehand.
    source: index of the part that it is made from; None for none.
    outer: path of the artifact that it is nested in; None for none.
    shared: whether the record is one of several in the folder.
    """

    artifact: str
    asset: str
    partition: str
    made: Sequence[Path]
    source: int | None = None
    outer: str | None = None
    shared: bool = False


def publish_part(root: Path, parts: Sequence[Part], number: int, version: int) -> None:
    """Publish one version of a part by the real publisher; the builder copies it."""
    part = parts[number]
    root.mkdir(parents=True, exist_ok=True)
    drop = root / f"drop{version}"
    if not drop.exists():
        drop.write_text(f"{version}")
    inputs = [raw_input(root, drop.name)]
    if part.source is not None:
        source = parts[part.source]
        folder = root / source.artifact
        record = provenance.record_path(folder, source.partition, source.shared)
        inputs.append(made_from(provenance.read_record(record)))

    def make(attempt: Any) -> Summary:
        shutil.copytree(part.made[version], attempt.out)
        return Summary({})

    publish(
        Build(
            root=root,
            artifact=part.artifact,
            asset=part.asset,
            partition=part.partition,
            code_version="1",
            config=NoConfig(),
            inputs=inputs,
            make=make,
            shared=part.shared,
            outer=part.outer,
        )
    )


@dataclass(frozen=True)
class NoConfig:
    """A config without fields."""


@dataclass(frozen=True)
class Reader:
    """One reader under test.

    parts: the artifacts that it reads, each after its source.
    open: opens the reader on a data root, at a level.
    used: files that it reads, by path below the data root.
    """

    parts: Sequence[Part]
    open: Callable[[Path, Verify], Any]
    used: Sequence[str]

    def publish(self, root: Path, version: int) -> None:
        """Publish a version of all parts."""
        for number in range(len(self.parts)):
            publish_part(root, self.parts, number, version)


def opens(place: str, *below: str, **options: Any) -> Callable[[Path, Verify], Any]:
    """Opens a class, as `macroxue/read/dataset:StepDataset`, on folders of a data root."""

    def opened(root: Path, verify: Verify) -> Any:
        module, name = place.split(":")
        kind = getattr(import_module(f"gristmill.{module.replace('/', '.')}"), name)
        return kind(*(root / path for path in below), verify=verify, **options)

    return opened


def _steps(folder: Path) -> tuple[Sequence[Part], Sequence[str]]:
    from gristmill.macroxue import ValueConfig, value_sidecar
    from tests.macroxue.games import play, write_pack

    packs, values = [], []
    for version in (0, 1):
        games = [play(10 * version + seed, 30) for seed in range(6)]
        packs.append(write_pack(folder / f"pack{version}", games, shard_rows=50))
        values.append(folder / f"values{version}")
        value_sidecar(packs[-1], values[-1], ValueConfig())
    parts = [
        Part("macroxue/packs/p", "macroxue/pack", "p", packs),
        Part("macroxue/values/p", "macroxue/values", "p", values, source=0),
    ]
    used = [f"macroxue/packs/p/{name}" for name in ("metadata.db", "valuation_types.json")]
    used += [f"macroxue/packs/p/steps-{n:05d}.npy" for n in range(4)]
    used += [f"macroxue/values/p/values-{n:05d}.npy" for n in range(4)]
    return parts, used


@cache
def _games(folder: Path) -> tuple[Sequence[Part], Sequence[str]]:
    from gristmill.chess import build_game_dataset, build_splice_cache, validate
    from gristmill.chess.samples import write_month

    datasets, caches = [], []
    for version in (0, 1):
        pgn = folder / f"pgn{version}" / "lichess_elite_2024-01.pgn"
        pgn.parent.mkdir()
        write_month(pgn, "2024-01", 4, 7 + version)
        validate([pgn], folder / f"valid{version}")
        datasets.append(folder / f"dataset{version}")
        build_game_dataset(folder / f"valid{version}", datasets[-1])
        caches.append(folder / f"cache{version}")
        build_splice_cache(datasets[-1], caches[-1])
    home = "chess/dataset/elite_2024-01_game"
    parts = [
        Part(home, "chess/game_dataset", "2024-01", datasets),
        Part(
            f"{home}/runtime_splice_cache",
            "chess/splice_cache",
            "2024-01",
            caches,
            source=0,
            outer=home,
        ),
    ]
    arrays = ("offsets.u64", "splice_indices.u32", "sample_phase_ids.u8", "sample_games.u32")
    used = [f"{home}/train.jsonl", f"{home}/runtime_splice_cache/manifest.json", *_packed(home)]
    used += [f"{home}/runtime_splice_cache/train/{name}.bin" for name in arrays]
    return parts, used


def _packed(home: str) -> list[str]:
    return [
        f"{home}/sidecar/{name}" for name in ("train.moves.u16.bin", "train.spans.bin", "rows.json")
    ]


def _uncached_games(folder: Path) -> tuple[Sequence[Part], Sequence[str]]:
    parts, used = _games(folder)
    home = parts[0].artifact
    sidecar = [f"{home}/sidecar/{n}" for n in ("train.games.bin", "train.phases.bin")]
    return parts[:1], [used[0], *sidecar, *_packed(home), f"{home}/stats.json"]


def _conversations(folder: Path) -> tuple[Sequence[Part], Sequence[str]]:
    from gristmill.synth import HarmonyConfig, KDConfig, build_kd_shard, to_harmony
    from gristmill.synth.samples import write_drop
    from gristmill.vocabularies.pinned import O200K, find

    vocabulary = find(O200K, VOCABULARIES)
    files = write_drop(folder / "drop", files=10)
    to_harmony(files, folder / "harmony", 0, HarmonyConfig())
    shards = []
    for version in (0, 1):
        shards.append(folder / f"kd{version}")
        config = KDConfig(vocabulary, (0.5, 0.7)[version], max_rows=40)
        build_kd_shard(folder / "harmony/synth_harmony_shard_00.parquet", shards[-1], config)
    home = "megatron/synth_kd_v1"
    names = [
        f"shard_00_{name}.{kind}"
        for name in ("tokens", "lossmask", "span")
        for kind in ("bin", "idx")
    ]
    parts = [Part(home, "synth/kd_shards", "00", shards, shared=True)]
    return parts, [f"{home}/train/{name}" for name in names]


@cache
def _supervised(folder: Path) -> tuple[str, list[Part]]:
    """The split below its corpus, and the parts."""
    from tests.reasoning.published import parts
    from tests.reasoning.supervised_folder import write_supervised

    made = [write_supervised(folder / f"made{n}", seed=n, examples=80, rows=32) for n in (0, 1)]
    return f"{made[0].corpus}/{made[0].split}", parts(made, folder)


def _sequences(folder: Path) -> tuple[Sequence[Part], Sequence[str]]:
    below, listed = _supervised(folder)
    home = listed[0].artifact
    used = [f"{home}/manifest.json"]
    used += [f"{home}/{below}/shard_{n:05d}.pt" for n in range(3)]
    return listed[:2], used


def _stepped_sequences(folder: Path) -> tuple[Sequence[Part], Sequence[str]]:
    below, listed = _supervised(folder)
    used = [f"{listed[0].artifact}/{below}/{name}" for name in ("shard_00001.pt", "index.jsonl")]
    return listed, [*used, f"{listed[2].artifact}/{below}.align.jsonl"]


def _puzzles(folder: Path) -> tuple[Sequence[Part], Sequence[str]]:
    from gristmill.puzzles.format import FIELDS, array, metadata
    from tests.puzzles.read.folders import write_split

    made = []
    for version in (0, 1):
        made.append(folder / f"puzzles{version}")
        write_split(made[-1] / "train", seed=version, groups=30, most_examples=5)
    home = "puzzles/p"
    used = [metadata("train"), *(array("train", "all", field) for field in FIELDS)]
    return [Part(home, "puzzles/arc", "p", made)], [f"{home}/{name}" for name in used]


def open_puzzles(root: Path, verify: Verify) -> Any:
    """The reader in test mode, which gives every example once in a pass."""
    from gristmill.puzzles.read.dataset import PuzzleDataset, PuzzleDatasetConfig

    config = PuzzleDatasetConfig(0, root / "puzzles/p", 4, True, 1, 0, 1)
    return PuzzleDataset(config, verify=verify)


VOCABULARIES = Path()
"""The data root with the vocabularies; the fixture `readers` sets it."""


def open_conversations(root: Path, verify: Verify) -> Any:
    from megatron.core.datasets.gpt_dataset import GPTDatasetConfig
    from megatron.core.datasets.utils import Split

    from gristmill.synth import SynthKDDataset

    prefix = str(root / "megatron/synth_kd_v1/train/shard_00_tokens")
    names = SimpleNamespace(
        vocab_size=201_088, eod=199_999, pad=-1, unique_identifiers={"name": "o200k"}
    )
    config = GPTDatasetConfig(
        blend_per_split=[([prefix], None), None, None],
        random_seed=1,
        sequence_length=64,
        tokenizer=names,
        reset_position_ids=False,
        reset_attention_mask=False,
        eod_mask_loss=False,
        create_attention_mask=False,
    )
    kind = SynthKDDataset.with_verify(verify)
    low = kind.build_low_level_dataset(prefix, config)
    documents = np.arange(kind.numel_low_level_dataset(low), dtype=np.int32)
    return kind(low, prefix, documents, None, Split.train, config)


MADE: dict[str, Callable[[Path], tuple[Sequence[Part], Sequence[str]]]] = {
    "steps": _steps,
    "games": _games,
    "uncached games": _uncached_games,
    "conversations": _conversations,
    "sequences": _sequences,
    "sequences with steps": _stepped_sequences,
    "puzzles": _puzzles,
}
"""Makes both versions of the artifacts, by what they hold."""


def as_torch(opens: Callable[[Path, Verify], Any]) -> Callable[[Path, Verify], Any]:
    """Opens the view of a reader for torch."""
    return lambda root, verify: opens(root, verify).as_torch()


STEPS, GAMES = "macroxue/read/dataset:StepDataset", "chess/read/dataset:GameSpliceDataset"
SHARDS, EXAMPLES = "reasoning/read/shard_reader:ShardReader", "puzzles/read/examples:PuzzleExamples"
open_steps = opens(STEPS, "macroxue/packs/p", "macroxue/values/p")
open_games = opens(GAMES, "chess/dataset/elite_2024-01_game", horizon=3)


def open_stepped_sequences(root: Path, verify: Verify) -> Any:
    steps = root / "reasoning/alignment"
    return opens(SHARDS, "reasoning/tokenized/gpt2", steps=steps)(root, verify)


READERS: dict[str, tuple[str, Callable[[Path, Verify], Any], str]] = {
    "StepDataset": ("steps", open_steps, STEPS),
    "TorchSteps": ("steps", as_torch(open_steps), "macroxue/read/torch_dataset:TorchSteps"),
    "GameSpliceDataset": ("games", open_games, GAMES),
    "GameSpliceDataset without a cache": ("uncached games", open_games, GAMES),
    "TorchSamples": ("games", as_torch(open_games), "chess/read/torch_samples:TorchSamples"),
    "SynthKDDataset": ("conversations", open_conversations, "synth/read/dataset:SynthKDDataset"),
    "ShardReader": ("sequences", opens(SHARDS, "reasoning/tokenized/gpt2"), SHARDS),
    "ShardReader with steps": ("sequences with steps", open_stepped_sequences, SHARDS),
    "PuzzleDataset": ("puzzles", open_puzzles, "puzzles/read/dataset:PuzzleDataset"),
    "PuzzleExamples": ("puzzles", opens(EXAMPLES, "puzzles/p"), EXAMPLES),
}
"""What a reader reads, how it is opened, and its class."""
