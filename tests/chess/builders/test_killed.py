"""A validation that is killed continues from its finished parts, to the same bytes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gristmill.chess import ValidateConfig, validate
from gristmill.chess.samples import write_month
from gristmill.run.parts import PartStore
from tests.chess.builders.chain import digests
from tests.paths import CHECKOUT
from tests.publish.killing import wait_for_end

_SHARE = 1 << 14
_CHILD = """
import sys
import time
from pathlib import Path
from gristmill.chess import ValidateConfig, validate
from gristmill.run.parts import PartStore

def main():
    pgn, out, parts, share, workers = sys.argv[1:]
    plain = PartStore.data
    def waiting(self, name):
        if list(self.folder.glob("*.json")):
            time.sleep(600)  # so that the kill surely comes in the middle
        return plain(self, name)
    PartStore.data = waiting
    config = ValidateConfig(share_bytes=int(share), workers=int(workers))
    validate([Path(pgn)], Path(out), config, parts=PartStore(Path(parts)))

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_killed_validation_goes_on_from_its_finished_parts(tmp_path: Path, workers: int) -> None:
    pgn, script, folder = tmp_path / "x.pgn", tmp_path / "child.py", tmp_path / "parts"
    write_month(pgn, "2024-01", 400, 5)
    script.write_text(_CHILD)
    folder.mkdir()
    arguments = [pgn, tmp_path / "killed", folder, _SHARE, workers]
    child = subprocess.Popen(
        [sys.executable, str(script), *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        start_new_session=True,
    )
    try:
        until = time.monotonic() + 300
        while not list(folder.glob("*.json")):
            assert child.poll() is None, "ended before its first part was finished"
            assert time.monotonic() < until
            time.sleep(0.001)
    finally:
        child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    assert wait_for_end(child.pid) == []
    parts = PartStore(folder)
    ledgers = sorted(path.name.removesuffix(".json") for path in folder.glob("*.json"))
    assert 0 < len(ledgers) < pgn.stat().st_size // _SHARE
    assert all(parts.finished(name) is not None for name in ledgers)
    parts.remove_unfinished()
    kept = {name: parts.data(name).stat() for name in ledgers}
    config = ValidateConfig(share_bytes=_SHARE, workers=workers)
    resumed = validate([pgn], tmp_path / "resumed", config, parts=parts)
    for name, was in kept.items():
        now = parts.data(name).stat()
        assert (now.st_ino, now.st_mtime_ns) == (was.st_ino, was.st_mtime_ns)
    assert len(list(folder.glob("*.json"))) > len(ledgers)
    fresh = validate([pgn], tmp_path / "fresh", config)
    assert resumed == fresh
    assert digests(tmp_path / "resumed") == digests(tmp_path / "fresh")
