"""Real data roots before a build of every asset, and builds of them that are killed or fail.

For each asset of the definitions there are two states: "first", where its inputs are published
and it is not, and "next", where its inputs were built from other drops than it was. `python -m
tests.publish.real_builds FOLDER VOCABULARIES ASSET...` writes them; that takes about half a minute.
"""

from __future__ import annotations

import errno
import json
import os
import queue
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gristmill import provenance
from gristmill.history import versions
from gristmill.history.rows import ROWS, scan
from gristmill.layout import HISTORY, WORK
from gristmill.provenance import find_artifacts
from gristmill.run import parts
from tests import budget
from tests.macroxue.games import play
from tests.macroxue.step_drops import save, self_play
from tests.publish.killing import Call, Server, wait_for_end
from tests.publish.tiny import garbage
from tests.sample_root import write_talks
from tests.tiny_tokenizer import put_recipe, put_tiny

STATES = ("first", "next")


def states_of(asset: str) -> tuple[str, ...]:
    """The states that are disturbed: both, or where the suite has a budget, the seed's."""
    return STATES if budget.is_whole() else (budget.dice(asset).choice(STATES),)


OWN, COLLECTION, STEPS = "mine__train", "mine", "steps"
"""Partitions of a corpus that its drop describes, of a collection of PGNs, and of steps of another
program: targets beside the first of an asset."""


@dataclass(frozen=True)
class Target:
    """A partition of an asset in a state; `name` is a folder."""

    state: str
    asset: str
    partition: str | None

    @property
    def name(self) -> str:
        return f"{self.state} {self.asset} {self.partition or ''}".strip().replace("/", "+")


@dataclass(frozen=True)
class Fault:
    """What happens at the `nth` time that a build comes to `place`.

    how: "before" and "torn" kill; a number is the errno with which the call fails.
    """

    target: Target
    place: str
    nth: int
    how: str


EXPORTED = ["llm.c", "litdata", "nanochat"]


# Drops in two versions. What is not named here is as `gristmill samples` writes it.
def _two_macroxue(root: Path, version: int) -> None:
    from gristmill.macroxue.samples import write_drop

    for name, seed in (("one", 1), ("two", 50)):
        folder = root / "drops/macroxue" / name
        shutil.rmtree(folder, ignore_errors=True)
        write_drop(folder, seed=seed + version, games=2, max_moves=25, depth=6)
    shutil.rmtree(steps := root / "drops/macroxue" / STEPS, ignore_errors=True)
    save(steps, self_play([play(seed, 25) for seed in (version, 9)], [4, 2]), shards=2)
    pool = root / "drops/pools/both.toml"
    pool.parent.mkdir(parents=True, exist_ok=True)
    pool.write_text('members = ["one", "two"]\n')
    _write(root / "drops/views/both.toml", 'pool = "both"\n[macroxue.training_view]\nnum_bins = 0')


def _two_synth(root: Path, version: int) -> None:
    from gristmill.synth.samples import write_drop

    folder = root / "drops/synth/first"
    shutil.rmtree(folder, ignore_errors=True)
    write_drop(folder, files=8, rows=6, seed=version)
    _write(folder / "gristmill.toml", "[synth.distill]\nenglish_share = 0.0")


def _two_chess(root: Path, version: int) -> None:
    from gristmill.chess.samples import write_month

    drop = root / "drops/chess/lichess_elite_2024-01.pgn"
    drop.parent.mkdir(parents=True, exist_ok=True)
    write_month(drop, "2024-01", 40, version)
    own = root / "drops/chess" / COLLECTION
    own.mkdir(exist_ok=True)
    write_month(own / "a.zip", "2024-01", 20, version)
    write_month(own / "b.pgn", "2024-01", 20, version + 2)
    _write(own / "gristmill.toml", "[chess.subset]\ntrain = 9\ntest = 1")


def _two_reasoning(root: Path, version: int) -> None:
    folder = root / "drops/reasoning/gsm8k"
    folder.mkdir(parents=True, exist_ok=True)
    for split, records in (("train", 6), ("test", 4)):
        lines = [
            {
                "question": f"{n} and {version}?",
                "answer": f"<<{n}+{version}={n + version}>>\n#### {n + version}",
            }
            for n in range(records)
        ]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    own = root / "drops/reasoning/mine"
    _write(own / "corpus.toml", 'schema = 1\nname = "mine"\nquestion = "q"\nanswer = "a"')
    _write(
        own / "part.jsonl",
        json.dumps({"q": f"What is {version}?", "a": "1. One <<1+1=2>>.\n2. Two."}),
    )
    asked = {"question": f"How many are {version} and two more of them?"}
    _write(root / "drops/evals/asked/asked.jsonl", json.dumps(asked))
    shutil.rmtree(root / "drops/chat", ignore_errors=True)
    write_talks(root, 4 * version)
    _write(root / "drops/chat/talks/gristmill.toml", "[chat.distill]\nmax_length = 4096")


def _two_puzzles(root: Path, version: int) -> None:
    from gristmill.puzzles.raw.samples import generated_sudoku

    inbox = root / "drops/puzzles"
    sudokus = {"train": range(2 + version), "test": range(5, 7)}
    straight = ("S G######", "SoG######", 1)
    bent = ("S  ## ##G", "Soo##o##G", 2)
    mazes = {"train": [straight, bent][:version], "test": [("S ## ##G#", "So##o##G#", 3)]}
    for split in ("train", "test"):
        boards = [generated_sudoku(number) for number in sudokus[split]]
        for kind, puzzles in (("sudoku", boards), ("maze", mazes[split])):
            rows = [f"made,{','.join(map(str, puzzle))}" for puzzle in puzzles]
            text = "\n".join(["source,question,answer,rating", *rows])
            _write(inbox / f"{kind}-sample" / f"{split}.csv", text)
    for width, split in enumerate(("training", "evaluation"), 2):
        pairs = [{"input": [[n] * width], "output": [[version + 3, n]]} for n in range(3)]
        task = json.dumps({"train": pairs[:2], "test": pairs[2:]})
        _write(inbox / "arc-sample" / split / f"{split[0]}.json", task)
    for split, given, filled in (("train", "S.#", "So#"), ("test", "S", "o")):
        row = json.dumps({"input": [given] * version, "output": [filled] * version})
        _write(inbox / "grid-sample" / f"{split}.jsonl", row)
    for recipe in ("domino-sample", "domino-optimal-play"):
        text = f'kind = "domino"\n[settings]\nnum_games = {20 + version}\nnum_aug = 1\n'
        _write(inbox / "recipes" / f"{recipe}.toml", text)


def _two_tokenizers(root: Path, version: int) -> None:
    shutil.rmtree(root / "drops/tokenizers/tiny", ignore_errors=True)
    put_tiny(root, last=b" " * (1 + version))
    put_recipe(root, "by_tiny")
    exports = f"[reasoning.exports]\nformats = {json.dumps(EXPORTED)}"
    _write(root / "gristmill.toml", f'{exports}\n[reasoning.spans]\ntokenizer = "gpt2"')


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


DROPS: dict[str, Callable[[Path, int], None]] = {
    "macroxue": _two_macroxue,
    "synth": _two_synth,
    "chess": _two_chess,
    "reasoning": _two_reasoning,
    "puzzles": _two_puzzles,
    "tokenizers": _two_tokenizers,
}
"""By family: writes version 1 or 2 of its drops into a data root."""


def write_states(folder: Path, vocabularies: Path, assets: Sequence[str]) -> None:
    """Write the states of some assets into `folder`, and `targets.json`."""
    import dagster as dg

    from commands.graph import INBOXES, Graph, register
    from resources import Lake

    root = folder / "root"
    shutil.copytree(vocabularies / "drops", root / "drops")
    os.environ["GRISTMILL_DATA"] = str(root)
    targets: list[Target] = []
    for version, state in enumerate(STATES, 1):
        for write in DROPS.values():
            write(root, version)
        with dg.DagsterInstance.ephemeral() as instance:
            lake = Lake()
            waiting = [inbox for inbox in INBOXES if register(instance, lake, inbox)]
            assert not waiting or state == "first", waiting
            graph = Graph(instance, lake)
            for asset in graph.select([]):
                waiting = [inbox for inbox in waiting if register(instance, lake, inbox)]
                keys = graph.keys(asset, ())
                name = asset.to_user_string()
                assert keys, f"{name} has no partition: write a drop for it in {__name__}.DROPS"
                chosen = [keys[0], *(key for key in keys[1:] if key in (OWN, COLLECTION, STEPS))]
                _build_all(graph, asset, [key for key in keys if key not in chosen])
                wanted = chosen if name in assets and state in states_of(name) else []
                for target in (Target(state, name, key) for key in wanted):
                    shutil.copytree(root, folder / "states" / target.name, symlinks=True)
                    targets.append(target)
                _build_all(graph, asset, chosen)
    described = [[one.state, one.asset, one.partition] for one in targets]
    (folder / "targets.json").write_text(json.dumps(described))
    shutil.rmtree(root)


def _build_all(graph: Any, asset: Any, keys: Sequence[str | None]) -> None:
    for outcome in graph.materialize(asset, keys):
        assert outcome.status in ("built", "unchanged"), outcome


class RealBuilder:
    """Builds targets under the fault layer; several threads may ask at once."""

    def __init__(
        self,
        shim: Path,
        folder: Path,
        form: Mapping[str, str],
        more: Mapping[str, str],
        servers: int = 2,
    ) -> None:
        self._folder = folder
        self.targets = [Target(*one) for one in json.loads((folder / "targets.json").read_text())]
        self._servers = [
            _Server(shim, folder / f"server-{number}", form, more) for number in range(servers)
        ]
        self._free: queue.Queue[_Server] = queue.Queue()
        for server in self._servers:
            self._free.put(server)

    def close(self) -> None:
        for server in self._servers:
            server.close()

    @contextmanager
    def _server(self, target: Target) -> Iterator[_Server]:
        server = self._free.get()
        try:
            server.restore(self._folder / "states" / target.name)
            yield server
        finally:
            self._free.put(server)

    def trace(self, target: Target) -> tuple[list[Call], dict[str, bytes]]:
        """The calls of an undisturbed build that change the disk, and what it publishes."""
        with self._server(target) as server:
            status = server.build(target, {"KILLPOINT_TRACE": str(server.trace), **_parts(target)})[
                1
            ]
            assert status == 0, server.log.read_text()
            assert "rebuilt" in server.log.read_text()
            calls = [Call(*line.split("\t")) for line in server.trace.read_text().splitlines()]
            assert garbage(server.root) == []
            return calls, published(server.root)

    def disturb(self, fault: Fault, undisturbed: dict[str, bytes]) -> str:
        """Disturb a build and check all that must hold then; returns old, new or missed."""
        target = fault.target
        with self._server(target) as server:
            before = published(server.root)
            process, status = server.build(
                target,
                {
                    "KILLPOINT_PLACE": fault.place,
                    "KILLPOINT_NTH": str(fault.nth),
                    "KILLPOINT_HOW": fault.how,
                    **_parts(target),
                },
            )
            log = server.log.read_text()
            assert not wait_for_end(process), f"{fault}: processes outlive the build"
            if fault.how in ("before", "torn"):
                if status == 0 and server.met() < fault.nth:
                    return "missed"
                assert status == -signal.SIGKILL, f"{fault}: was not killed: {log}"
            else:
                assert status in (0, 1), f"{fault}: {log}"
            found = published(server.root)
            assert found in (before, undisturbed), f"{fault}: a mix: {_difference(found, before)}"
            _check_whole(fault, server.root)
            status = server.build(target, {})[1]
            assert status == 0, f"{fault}: the next build: {server.log.read_text()}"
            after = published(server.root)
            assert after == undisturbed, (
                f"{fault}: the next build: {_difference(after, undisturbed)}"
            )
            _check_whole(fault, server.root)
            assert garbage(server.root) == [], f"{fault}: left behind"
            return "old" if found == before != undisturbed else "new"


def _parts(target: Target) -> dict[str, str]:
    """Makes half of the builds keep all parts, where short ones keep few."""
    keeps = budget.dice(f"parts {target.name}").random() < 0.5
    return {parts.VARIABLE: "0"} if keeps else {}


class _Server(Server):
    """One process of `serve_real` with a data root of its own, always at the same place."""

    def __init__(
        self, shim: Path, folder: Path, form: Mapping[str, str], more: Mapping[str, str]
    ) -> None:
        super().__init__(shim, "serve_real", **form, OMP_NUM_THREADS="1")
        self._more = dict(more)
        folder.mkdir()
        self.root, self.log, self.trace = folder / "root", folder / "log", folder / "trace"
        self._shared = folder / "shared"

    def restore(self, state: Path) -> None:
        """Put the data root into a state."""
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(state, self.root, symlinks=True)

    def build(self, target: Target, environment: dict[str, str]) -> tuple[int, int]:
        """Build the target: the process id, and the exit status."""
        self._shared.write_bytes(bytes(16))
        self.log.write_bytes(b"")
        self.trace.write_bytes(b"")
        armed = {"KILLPOINT_ROOT": str(self.root), "KILLPOINT_SHARED": str(self._shared)}
        request = {
            "root": str(self.root),
            "asset": target.asset,
            "partition": target.partition,
            # An asset whose inputs cannot change is built once more.
            "rebuild": target.state == "next" and bool(environment),
            "log": str(self.log),
            "environment": {**armed, **self._more, **environment} if environment else {},
        }
        return self.ask(request)

    def met(self) -> int:
        """How often the last build came to its place."""
        return int.from_bytes(self._shared.read_bytes()[8:], "little")


def published(root: Path) -> dict[str, bytes]:
    """Every published file below a data root, drops apart.

    A record counts by its data version. A file that may hold the time (it is no payload, or counts
    by a digest of its contents) counts by its name: `verify` compares it with its record.
    """
    found, unlike = {}, set()
    # In the link form a published folder is a link.
    below = [Path(at, name) for at, _, names in os.walk(root, followlinks=True) for name in names]
    for path in sorted(below):
        name = path.relative_to(root).as_posix()
        if not path.is_file() or f"{WORK}/" in name or name.startswith("drops/"):
            continue
        shared = path.parent.name == provenance.SHARED_RECORDS
        if path.suffix == ".json" and (path.name == provenance.RECORD or shared):
            record = provenance.read_record(path)
            found[name] = f"{record.asset} {record.data_version}".encode()
            folder = path.parent.parent if shared else path.parent
            unlike |= {
                folder / one.path
                for one in record.outputs
                if not one.payload or one.content_sha256 is not None
            }
        else:
            found[name] = path.read_bytes()
    for path in unlike:
        found[path.relative_to(root).as_posix()] = b""
    return found


def _difference(one: dict[str, bytes], other: dict[str, bytes]) -> list[str]:
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))[:20]


def _check_whole(fault: Fault, root: Path) -> None:
    """Verify the artifact if it stands; the others have the bytes that they had."""
    built = find_artifacts.artifacts_of(root, fault.target.asset)
    for folder in dict.fromkeys(item.folder for item in built):
        # What it was made from may have been built again since. The laws hold for the bytes of
        # the undisturbed build, which `publish` has asked about them.
        found = provenance.verify(folder, data_root=root, check_inputs=False, check_laws=False)
        assert found == [], f"{fault}: verify: {found}"
    key = versions.key_of(root)
    for path in (root / WORK / HISTORY).rglob(f"*/{'[0-9a-f]' * 64}"):
        assert versions.read(root, path).record.data_version == path.name
        if (rows := path / ROWS).exists():
            scan(rows, key).collect()


def faults_at_every_place(target: Target, calls: Sequence[Call]) -> Iterator[Fault]:
    """Kills before the first and the last call of each place, torn writes, and failing calls."""
    for place, count in Counter(call.place for call in calls).items():
        call = place.split()[1]
        for nth in sorted({1, count}):
            yield Fault(target, place, nth, "before")
            if call == "write":
                yield Fault(target, place, nth, "torn")
        yield Fault(target, place, 1, str(errno.EIO))
        if call in ("write", "create", "mkdir", "link"):
            yield Fault(target, place, count, str(errno.ENOSPC))


if __name__ == "__main__":
    write_states(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3:])
