"""Reads hostile files with each reader, in a process with a limit on its address space.

python -m tests.synth.read_bombs BYTES < PATHS: prints a line of JSON for each path, with
what each reader said: its text, and the kind of its error.
"""

import json
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from gristmill.contract import GristmillError
from gristmill.synth.builders.harmony import to_harmony
from gristmill.synth.builders.manifests import import_shard
from gristmill.synth.config import HarmonyConfig
from gristmill.synth.format.parquet import UntrustedParquet


def _rows(path: Path, _: Path) -> int:
    with UntrustedParquet(path, []) as file:
        return sum(len(batch) for batch in file.batches(512))


def _converted(path: Path, out: Path) -> int:
    return to_harmony([path], out, 0, HarmonyConfig(num_shards=1)).rows


def _imported(path: Path, out: Path) -> int:
    return import_shard(path.parent, out, "00").rows


READERS: dict[str, Callable[[Path, Path], int]] = {
    "read": _rows,
    "convert": _converted,
    "import": _imported,
}


def main(limit: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for line in sys.stdin:
        answers = {}
        for name, reader in READERS.items():
            out = Path(tempfile.mkdtemp(prefix="bomb-"))
            try:
                answer = [str(reader(Path(line.strip()), out / "out")), "rows"]
            except GristmillError as error:
                answer = [str(error), type(error).__name__]
            except Exception as error:  # noqa: BLE001  the kind of the error is the finding
                answer = [str(error)[:500], f"foreign {type(error).__name__}"]
            shutil.rmtree(out)
            answers[name] = answer
        sys.stdout.write(f"{json.dumps(answers)}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]))
