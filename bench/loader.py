"""The loader of all families against what it replaces, in turns in one run.

Run from the checkout: python -m bench.loader [--rows N] [--only PART]. Exit status 1 where a
required ratio is missed: rows of 2048 in batches of 256 at least 1.5 times as fast as
`DataLoader(shuffle=True)`; sequences shuffled over all shards at least 0.75 times as fast as
`ShardReader.batches` with a seed, which shuffles in a shard; a plan of 8 sources at most 600 ns a
sample, 200 by kernels; a plan of 10^12 samples and its first batch less than 50 MB; 1,000 mixtures
in mid-run at most 5 ms each; 10^9 tokens opened, and a random batch of them, in a second; batches
of 256 chess samples from packed moves at least 25 times as fast as from rows, through `collate` 8
times; the line of one of a million runs or examples in at most 20 ms; 32 samples of what `make run`
built led back to their raw bytes in at most 200 ms, and one of every kind in at most 50 ms.
"""

from __future__ import annotations

import json
import resource
import shutil
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from torch.utils.data import DataLoader

from bench import kit
from bench.macroxue_pools import write_pack
from bench.reasoning_reader import CORPUS, SEQ_LEN, SPLIT, write_shards
from gristmill.chess import GameSpliceDataset, build_game_dataset, build_splice_cache, validate
from gristmill.chess.samples import write_month
from gristmill.contract import Trace
from gristmill.loading import Identity, Loader, Mixture, Plan, bijection
from gristmill.loading.bijection import Numbers
from gristmill.loading.mix_file import read_mix
from gristmill.macroxue import StepDataset
from gristmill.macroxue.read.trace import trace
from gristmill.reasoning import ShardReader
from gristmill.reasoning.format import names
from gristmill.reasoning.read.trace import line_of

SHARDS = 16
PLANNED = 1 << 20
GAMES = 4000
LINES = 1_000_000
TOKENS = 10**9
LED_BACK = {
    "macroxue/packs/sample_d6": "",
    "chess/dataset/elite_2024-01_game": "split = 'train'",
    "megatron/synth_kd_v1": "split = 'train'",
    "puzzles/arc-sample": "",
    "distill/synth/02": "split = 'train'",
    "reasoning/tokenized/gpt2": "",
    "reasoning/tokens/mine": "",
}
"""Artifacts of the samples, and the options of each source."""
PACKED = "reasoning/"
"""Of these a sample is a sequence, which may hold dozens of examples."""


class Numbered:
    """Samples by number; `read` is given, as that of a reader whose files have no record."""

    def __init__(self, name: str, length: int, read: Callable[[Numbers], dict[str, Any]]) -> None:
        self.identity = Identity("bench", (name,))
        self.cuts, self.read = np.array([0, length]), read

    def origin(self, number: int) -> Iterator[Trace]:
        """Nothing."""
        return iter(())


def numbers_only(numbers: Numbers) -> dict[str, Any]:
    """A column without files."""
    return {"value": numbers}


def passed(work: Callable[[], Iterable[object]]) -> kit.Work:
    """A work that goes through what `work` gives."""
    return lambda: sum(1 for _ in work())


def compare(
    what: str,
    ours: Callable[[], Iterable[object]],
    theirs: Callable[[], Iterable[object]],
    least: float,
) -> None:
    """Compare the batches of both."""
    kit.compare(what, passed(ours), passed(theirs), "batches per CPU second", least=least)


def rows(given: kit.Given) -> None:
    """Batches of 256 rows of a pack."""
    data = StepDataset(write_pack(given.scratch / "pack", given.rows))
    plan = Plan(Numbered("pack", len(data), data.batch), seed=1)
    steps = data.as_torch()
    compare(
        "2048 rows",
        lambda: Loader(plan, 256),
        lambda: DataLoader(steps, batch_size=256, shuffle=True),
        1.5,
    )


def sequences(given: kit.Given) -> None:
    """Batches of 64 sequences, over all shards and in one shard after the other."""
    root = given.scratch / "shards"
    root.mkdir()
    write_shards(root, SHARDS)
    reader, plan = ShardReader(root, seed=1), Plan(ShardReader(root).source(), seed=1)

    def epoch() -> Iterable[object]:
        reader.start_epoch(0)
        return reader.batches(64)

    compare("sequences", lambda: Loader(plan, 64, form="numpy"), epoch, 0.75)


def samples(given: kit.Given) -> None:
    """Random batches of 256 samples of a month of chess, with packed moves and without."""
    root = given.scratch / "chess"
    pgn, home, bare = root / "lichess_elite_2024-01.pgn", root / "a_game", root / "b_game"
    root.mkdir()
    write_month(pgn, "2024-01", GAMES, 11)
    validate([pgn], root / "valid")
    build_game_dataset(root / "valid", home)
    build_splice_cache(home, home / "runtime_splice_cache")
    shutil.copytree(home, bare, ignore=shutil.ignore_patterns("*.moves.u16.bin"))
    packed, by_rows = GameSpliceDataset(home), GameSpliceDataset(bare)
    batches = np.random.default_rng(0).integers(0, len(packed), (64, 256)).tolist()

    def arrays(data: GameSpliceDataset) -> Callable[[], Iterable[object]]:
        return lambda: (data.batch(numbers) for numbers in batches)

    def loader(data: GameSpliceDataset) -> Callable[[], Iterable[object]]:
        return lambda: DataLoader(data, batch_sampler=batches, collate_fn=data.collate)

    compare("chess as arrays", arrays(packed), arrays(by_rows), 25)
    compare("chess through collate", loader(packed), loader(by_rows), 8)


def plans(_: kit.Given) -> None:
    """What a plan takes without reading."""
    eight = tuple(Numbered(f"s{n}", 10**9, numbers_only) for n in range(8))
    plan, places = Plan(Mixture(eight, (10**9,) * 8), seed=1), np.arange(PLANNED)
    one = kit.spent(lambda: [plan.at(part) for part in np.split(places, PLANNED // 8192)])
    kit.bounded("plan of 8 sources: ns a sample", one / PLANNED * 1e9, most=600)
    while bijection.kernels() is None:
        plan.at(places)
    one = kit.spent(lambda: [plan.at(part) for part in np.split(places, PLANNED // 8192)])
    kit.bounded("the same by kernels", one / PLANNED * 1e9, most=200)
    mixtures = [Mixture(eight, tuple(range(n, n + 8))) for n in range(1, 1001)]
    many = kit.spent(lambda: [plan.changed(10**6, each).at(places[:256]) for each in mixtures])
    kit.bounded("another mixture and its first batch: ms", many, most=5)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    long = Plan(Numbered("long", 10**12, numbers_only), seed=1)
    next(iter(Loader(long, 256, form="numpy")))
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    kit.bounded("plan of 10^12 samples and its first batch: MB", more, most=50)


def opening(given: kit.Given) -> None:
    """What it takes to open shards of 10^9 tokens and read a batch of random sequences."""
    root = given.scratch / "many"
    root.mkdir()
    write_shards(root, 1)
    (entry,) = json.loads((root / names.MANIFEST).read_text())
    first, entries = root / entry["path"], list[dict[str, object]]()
    for number in range(-(-TOKENS // entry["token_count"])):
        path = names.shard(CORPUS, SPLIT, number)
        if number:
            (root / path).hardlink_to(first)
        entries.append({**entry, "path": path, "shard_index": number})
    (root / names.MANIFEST).write_text(json.dumps(entries))

    def opened() -> None:
        plan = Plan(ShardReader(root).source(), seed=1)
        assert plan.length * SEQ_LEN >= TOKENS
        next(iter(Loader(plan, 64, form="numpy")))

    seconds = min(kit.spent(opened, time.perf_counter) for _ in range(3))
    kit.bounded("opening 10^9 tokens and a batch: s", seconds, most=1)


def origins(given: kit.Given) -> None:
    """What it takes to lead the samples of a batch back to their raw files, in what is built."""
    mix = given.scratch / "mix.toml"
    for path, split in LED_BACK.items():
        mix.write_text(f"[source.one]\npath = {json.dumps(path)}\nepochs = 1\n{split}\n")
        plan = read_mix(mix, kit.DATA)
        read = plan.sources[0].origin
        batches = np.split(plan.at(np.arange(3 * 32) % plan.length)[1], 3)

        def led(numbers: Numbers, read: Callable[[int], Iterator[Trace]] = read) -> None:
            for number in numbers.tolist():
                for step in read(number):
                    step.facts()

        spent = median(kit.spent(partial(led, numbers)) for numbers in batches)
        if not path.startswith(PACKED):
            kit.bounded(f"32 samples of {path} led back: ms", spent * 1e3, most=200)
        one = median(kit.spent(partial(led, batches[0][at : at + 1])) for at in range(32))
        kit.bounded(f"one sample of {path} led back: ms", one * 1e3, most=50)


def lines(given: kit.Given) -> None:
    """What the way back from a sample takes where a million lines are in a trace or an index."""
    root = given.scratch / "lines"
    root.mkdir()
    index = root / names.split_index("gsm8k", "train")
    index.parent.mkdir(parents=True)
    shard, digest = f"{names.TOKENIZED}/gsm8k/train/shard_%05d.pt", "0" * 64
    with (root / "trace.jsonl").open("w") as runs, index.open("w") as examples:
        for number in range(LINES):
            raw = {"drop": "d", "meta": "m", "meta_sha256": digest, "steps": "s"}
            raw |= {"steps_sha256": digest, "meta_bytes": 9, "steps_bytes": 9}
            runs.write(json.dumps({"run_id": number, "rows": 1, "first_row": number, **raw}) + "\n")
            place = {"shard_path": shard % (number // 4000), "sequence_index": number % 4000}
            row = {"example_id": names.example_id("gsm8k", "train", number), **place}
            row |= {"token_start": 0, "num_tokens": 7, "num_tokens_with_eos": 8}
            spans = [{**place, "start": 0, "end": 8}]
            examples.write(
                json.dumps({**row, "spans": spans, "rank": 0, "text_sha256": digest}) + "\n"
            )
    wanted = [names.example_id("gsm8k", "train", number) for number in range(7, LINES, LINES // 50)]
    by_run = kit.spent(lambda: [trace(root, at) for at in range(7, LINES, LINES // 50)])
    by_id = kit.spent(lambda: [line_of(root, "gsm8k__train", each) for each in wanted])
    kit.bounded("one of a million runs: ms", by_run / len(wanted) * 1e3, most=20)
    kit.bounded("one of a million examples: ms", by_id / len(wanted) * 1e3, most=20)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # torch warns about itself
    kit.main(__doc__, plans, opening, rows, sequences, samples, lines, origins, rows=300_000)
