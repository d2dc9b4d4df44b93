"""The proof of inputs against reading them: what a build pays for knowing what it reads.

Run from the checkout: python -m bench.input_proof [--megabytes N]. One published artifact of
N MB is proved twice, as it was published (sizes and times decide) and as a copy (every file is
hashed), in turns with reading its bytes once. Prints CPU seconds and ratios. Exit status 1 where
the proof by times takes more than a hundredth of the proof by hash.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench import kit
from gristmill.contract import Summary
from gristmill.provenance import Input
from gristmill.publish.build import Attempt, Build
from gristmill.publish.input_proof import InputProof
from gristmill.publish.publish import publish
from gristmill.run.progress import SILENT

ROUNDS = 5
FILES = 8
MOST_OF_HASHING = 0.01


@dataclass(frozen=True)
class _Config:
    megabytes: int


def _source(root: Path, config: _Config) -> Input:
    def make(attempt: Attempt) -> Summary:
        attempt.out.mkdir()
        for number in range(FILES):
            octets = os.urandom(1 << 20) * (config.megabytes // FILES)
            (attempt.out / f"{number}.bin").write_bytes(octets)
        return Summary(files={})

    record = publish(_build(root, "source", config, [], make)).record
    return Input(asset="bench/source", data_version=record.data_version, path="bench/source")


def _build(
    root: Path, name: str, config: _Config, inputs: list[Input], make: Callable[..., Summary]
) -> Build:
    return Build(root, f"bench/{name}", f"bench/{name}", None, "1", config, inputs, make)


def _read(folder: Path) -> None:
    for path in sorted(folder.glob("*.bin")):
        with path.open("rb") as file:
            while file.read(1 << 20):
                pass


def proofs(given: kit.Given) -> None:
    config, root, copied = (
        _Config(given.megabytes),
        given.scratch / "root",
        given.scratch / "copied",
    )
    item = _source(root, config)
    time.sleep(0.1)  # a file is trusted only if it is older than its record
    shutil.copytree(root, copied)

    def prove(place: Path) -> None:
        InputProof(_build(place, "made", config, [item], lambda _: Summary({})), SILENT).before()

    works = (lambda: _read(root / "bench/source"), lambda: prove(root), lambda: prove(copied))
    reading, by_times, by_hash = map(min, kit.in_turns(*works, rounds=ROUNDS))
    print(f"reading: {reading:.4f} CPU seconds")
    print(f"proof by hash: {by_hash:.4f} CPU seconds, {by_hash / reading:.4f} of reading")
    what = f"proof by times: {by_times:.4f} CPU seconds, of the proof by hash"
    kit.bounded(what, by_times / by_hash, most=MOST_OF_HASHING)


if __name__ == "__main__":
    kit.main(__doc__, proofs, megabytes=1024)
