"""What the code of an older version leaves: `python old_world.py FOLDER VOCABULARIES`.

It is run with that code on PYTHONPATH, and writes what `SampleRoot` builds of the samples, a pool
whose members were deleted, a drop that fails, and a mirror.
"""

from __future__ import annotations

import sys
from pathlib import Path

from gristmill.macroxue.samples import write_drop
from tests.sample_root import SampleRoot

MEMBERS = ("member_1", "member_2")
POOL = "of_deleted"
BROKEN = "broken"


def _drop(data: Path, name: str, seed: int) -> Path:
    folder = data / "drops/macroxue" / name
    write_drop(folder, seed, games=2, max_moves=20, depth=6)
    (folder / ".done").touch()
    return folder


def build(folder: Path, vocabularies: Path) -> None:
    """Fill `folder` with `data`, `home` of the instance, and `mirror`."""
    root = SampleRoot.build(folder, vocabularies)
    for seed, name in enumerate(MEMBERS, 1):
        _drop(root.data, name, seed)
    pools = root.data / "drops/pools"
    pools.mkdir(exist_ok=True)
    (pools / f"{POOL}.toml").write_text(f"members = {list(MEMBERS)}\ndelete_members = true\n")
    root.command("materialize", "macroxue/pack", "macroxue/values", "macroxue/pool")
    assert not (root.data / "macroxue/packs" / MEMBERS[0]).exists()
    for steps in _drop(root.data, BROKEN, 9).glob("*.jsonl.gz"):
        steps.write_bytes(b"no gzip")
    try:
        root.command("materialize", "macroxue/pack", "--partition", BROKEN)
    except AssertionError as failed:
        assert f"failed macroxue/pack {BROKEN}" in str(failed), failed
    root.command("push", str(folder / "mirror"))


if __name__ == "__main__":
    build(Path(sys.argv[1]), Path(sys.argv[2]))
