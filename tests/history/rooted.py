"""Data roots with five versions of one artifact of each family, from drops that differ as known."""

import gzip
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import dagster as dg
import pytest

from gristmill.loading.loader import Loader
from gristmill.loading.mix_file import read_mix
from gristmill.provenance.inventory import Entry

VERSIONS = 5
ROWS = 8


class Case(NamedTuple):
    """An artifact whose drop has rows `version` to `version + ROWS`, and what is built for it.

    assets: by their names, all of one partition; a manifest has none. artifact: PATH or PATH@KEY.
    options: of its source in a mix file; None: no loader reads it. changes: whether row 6 also
    differs in each version.
    """

    name: str
    write: Callable[[Path, int], None]
    assets: str
    partition: str
    artifact: str
    options: str | None = ""
    changes: bool = True

    @property
    def entry(self) -> Entry:
        return Entry(*self.artifact.split("@"))

    @property
    def mix(self) -> str:
        head = f'[source.a]\npath = "{self.entry.artifact}"\nepochs = 4\n'
        return "" if self.options is None else head + self.options


def _jsonl(path: Path, rows: Sequence[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _numbers(version: int) -> range:
    return range(version, version + ROWS)


def _texts(root: Path, version: int) -> None:
    def row(n: int) -> dict[str, str]:
        answer = f"It is {n}. {'Again ' * version if n == 6 else ''}#### {n}"
        return {"question": f"What is {n}?", "answer": answer}

    drop = root / "drops/reasoning/gsm8k"
    _jsonl(drop / "train.jsonl", [*map(row, _numbers(version))])
    _jsonl(drop / "test.jsonl", [{"question": "Why?", "answer": "So. #### 0"}])


def _talks(root: Path, version: int) -> None:
    drop = root / "drops/chat/talks"
    drop.mkdir(parents=True, exist_ok=True)
    (drop / "corpus.toml").write_text(
        'schema = 1\nkind = "chat"\nname = "talks"\nmessages = "messages"\nid = "id"\n'
        '[render]\ntemplate = "drop:chat_template.jinja"\n'
    )
    (drop / "chat_template.jinja").write_text(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    )

    def row(n: int) -> dict[str, Any]:
        said = {"user": f"Hello {n}", "assistant": "Hi" * (version if n == 6 else 1)}
        messages = [{"role": role, "content": text} for role, text in said.items()]
        return {"id": f"talk{n}", "messages": messages}

    _jsonl(drop / "talks.jsonl", [*map(row, _numbers(version))])


def _games(root: Path, version: int) -> None:
    from gristmill.chess.samples import make_games

    games = list(make_games("2024-01", VERSIONS + ROWS, 3))
    drop = root / "drops/chess/lichess_elite_2024-01.pgn"
    drop.parent.mkdir(parents=True, exist_ok=True)
    drop.write_text("".join(games[n].pgn() for n in _numbers(version)))


def _logs(root: Path, version: int) -> None:
    from gristmill.macroxue.samples import write_drop

    every = root.parent / "logs"
    if not every.exists():
        write_drop(every, seed=7, games=VERSIONS + ROWS, max_moves=12, depth=6)
    drop = root / "drops/macroxue/mine"
    shutil.rmtree(drop, ignore_errors=True)
    drop.mkdir(parents=True)
    metas = sorted(every.glob("*.meta.json"))
    for n in _numbers(version):
        stem = metas[n].name.removesuffix(".meta.json")
        for each in every.glob(f"{stem}.*"):
            shutil.copy2(each, drop / each.name)
    changed = drop / metas[6].name.replace(".meta.json", ".jsonl.gz")
    if version <= 6 and changed.exists():
        text = gzip.decompress(changed.read_bytes())
        changed.write_bytes(gzip.compress(text, mtime=version))


def _grids(root: Path, version: int) -> None:
    def row(n: int) -> dict[str, list[str]]:
        text = format(n, "04b").replace("0", ".").replace("1", "#")
        answer = "o" * (version if n == 6 else 1) + text[:2]
        return {"input": ["S" + text], "output": [answer.ljust(5, ".")[:5]]}

    inbox = root / "drops/puzzles/grid-sample"
    _jsonl(inbox / "train.jsonl", [row(n) for n in _numbers(version)])
    _jsonl(inbox / "test.jsonl", [{"input": ["S###S"], "output": ["ooooo"]}])


def _tasks(root: Path, version: int) -> None:
    inbox = root / "drops/puzzles/arc-sample"
    shutil.rmtree(inbox, ignore_errors=True)
    for split, names in (("training", _numbers(version)), ("evaluation", range(90, 91))):
        for n in names:
            own = version if n == 6 else 0
            wide = 3 if split == "evaluation" else 2
            pairs = [{"input": [[n % 9, k] * wide], "output": [[k, own, n % 7]]} for k in (1, 2, 3)]
            path = inbox / split / f"t{n:02}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"train": pairs[:2], "test": pairs[2:]}))


def _synth(root: Path, version: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from gristmill.synth.raw import TEXTS
    from gristmill.synth.samples import write_drop

    every = root.parent / "synth"
    if not every.exists():
        write_drop(every, files=8, rows=60, seed=2)
    drop = root / "drops/synth/first"
    if not drop.exists():
        shutil.copytree(every, drop)
    table = pq.read_table(every / "synth_001.parquet")
    rows = [row for row in table.to_pylist() if all(row[n] for n in TEXTS)]
    rows = [rows[n] for n in _numbers(version)]
    rows[6 - version if version <= 6 else 0][TEXTS[-1]] += " Again" * version
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), drop / "synth_001.parquet")


_DATASET = "chess/elite_pgn chess/valid_games chess/game_dataset"
_SHARDS = "reasoning/normalized reasoning/gpt2_shards reasoning/manifest"
_TALKS, _SYNTH = "chat/conversations chat/kd_shards", "synth/harmony synth/kd_shards"
_GSM8K, _TOKENS = "gsm8k__train", "reasoning/tokenized/gpt2@gsm8k__train"
_GAMES, _MEGATRON = "chess/dataset/elite_2024-01_game", "megatron/chat/talks__00"
CASES = [
    Case("records", _texts, _SHARDS.split()[0], _GSM8K, f"reasoning/raw@{_GSM8K}", None),
    Case("sequences", _texts, _SHARDS, _GSM8K, _TOKENS),
    Case("talks", _talks, _TALKS, "talks__00", _MEGATRON, "seq_len = 64\n"),
    Case("synth", _synth, _SYNTH, "00", "megatron/synth_kd_v1@00"),
    Case("games", _games, _DATASET, "2024-01", _GAMES, changes=False),
    Case("logs", _logs, "macroxue/pack", "mine", "macroxue/packs/mine", "held_out = 0.3\n"),
    Case("grids", _grids, "puzzles/grid", "grid-sample", "puzzles/grid-sample", "groups = true\n"),
    Case("tasks", _tasks, "puzzles/arc", "arc-sample", "puzzles/arc-sample"),
]


def build(root: Path, case: Case, version: int) -> None:
    """Write a version of the drop, and build what the case names."""
    from commands.graph import INBOXES, Graph, register
    from resources import Lake

    case.write(root, version)
    with pytest.MonkeyPatch.context() as patch, dg.DagsterInstance.ephemeral() as instance:
        patch.setenv("GRISTMILL_DATA", str(root))
        lake = Lake()
        for inbox in INBOXES:
            register(instance, lake, inbox)
        graph = Graph(instance, lake)
        for name in ("tokenizers/gpt2", "tokenizers/o200k_harmony"):
            asset = dg.AssetKey(name.split("/"))
            assert [*graph.materialize(asset, graph.keys(asset, ()))]
        for name in case.assets.split():
            key = None if name.endswith("manifest") else case.partition
            found = [*graph.materialize(dg.AssetKey(name.split("/")), [key])]
            assert [each.status for each in found] == ["built"], (version, found)


def state_of(root: Path, case: Case, folder: Path) -> tuple[dict[str, Any], Path, list[Any], Any]:
    """A loader's state after two steps, its mix file, where each sample came from, and step 0."""
    mix = folder / "mix.toml"
    mix.write_text(f"seed = 5\nwindow = 2\n{case.mix}")
    loader = Loader(read_mix(mix, root), 2, form="numpy")
    steps = iter(loader)
    next(steps)
    next(steps)
    numbers = [*loader.numbers(0), *loader.numbers(1)]
    source = loader.plan.sources[0]
    origins = [(number, raw_of(source.origin(number))) for _, number in numbers]
    return loader.state_dict(), mix, origins, loader[0]


def raw_of(traces: Any) -> set[tuple[str, str]]:
    """The raw files of a sample, each with its row or bytes, as a trace or a history says them."""
    found = set()
    for facts in (trace.facts() for trace in traces):
        file = facts.get("raw_steps") or facts.get("raw_file") or facts.get("source")
        place = facts.get("raw_row") or facts.get("raw_bytes") or ""
        if "byte_offset" in facts:
            file, begin = str(facts["pgn"]).split()[0], facts["byte_offset"]
            place = f"{begin}-{begin + facts['bytes']}"
        if file is not None and "pgn_file" not in facts:
            found.add((Path(str(file)).name, str(facts.get("place", place)).removeprefix("line ")))
    return found
