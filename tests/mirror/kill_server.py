"""Kills pushes and pulls at their n-th step, in forked children, and looks at what is left.

Run as a program, with a folder and the kills as words: `push:3` kills a push at step 3, counted
from 1. It prints a line for each kill: the word, how the child ended, and which version is there.
The program itself never uses obstore, whose threads do not live through a fork.
"""

import os
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gristmill import provenance
from gristmill.mirror import pull, push, store, versions
from gristmill.mirror.store import Store
from gristmill.publish import atomic_fs
from tests.mirror.roots import built, files
from tests.publish.tiny import garbage

STEPS: list[tuple[Any, str]] = [
    *((Store, name) for name in ("write", "flush", "pieces", "holds", "keys")),
    (os, "utime"),
    *((atomic_fs, name) for name in ("exchange", "place", "flush_tree", "remove_tree")),
    *((Path, name) for name in ("rename", "unlink")),
]
"""What a push or a pull does; each call is a step, and is killed before, in or after it."""


def kill_at(number: int) -> None:
    """Kill this process at the call of this number, in the way that its number says."""
    lock, count = threading.Lock(), [0]

    def counted(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def step(*given: Any, **more: Any) -> Any:
            if name == "utime" and "ns" not in more:  # a touch, whose calls depend on other threads
                return original(*given, **more)
            with lock:
                count[0] += 1
                mine = count[0]
            if mine != number:
                return original(*given, **more)
            try:
                if name == "write" and given[0].folder is not None:
                    # As the library leaves a file of which it wrote only the beginning.
                    path = given[0].folder / f"{given[1]}#1"
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(b"half")
                if number % 2:
                    original(*given, **more)
            finally:  # also after a call that raises
                os.kill(os.getpid(), signal.SIGKILL)

        setattr(owner, name, step)

    for owner, name in STEPS:
        counted(owner, name)


def in_child(work: Callable[[], object]) -> str:
    """Do it in a forked child. Returns `done`, `killed` or `failed`."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except BaseException:  # noqa: BLE001  the child must end here
            traceback.print_exc()
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return "killed" if os.WTERMSIG(status) == signal.SIGKILL else "failed"
    return "done" if os.WEXITSTATUS(status) == 0 else "failed"


def push_new(folder: Path) -> None:
    """Push the data root `new`."""
    done = push(folder / "new", str(folder / "m"), parallel=2)
    assert not any(each.error for each in done), done


def pull_to(folder: Path, to: str, name: str = "", sha256: str = "") -> None:
    """Pull into a data root."""
    names = [name] if name else []
    done = pull(folder / to, str(folder / "m"), names, sha256=sha256, parallel=2)
    assert not any(each.error for each in done), done


def build(folder: Path) -> None:
    """The data roots `old` and `new`, and the mirror and the data root `b` with the old version."""
    for name, seed in (("old", 1), ("new", 2)):
        built(folder / name, "family/tiny", seed)
        built(folder / name, "family/shared", seed, partition="p1", shared=True)
        built(folder / name, "family/shared", 7, partition="p2", shared=True)
    assert in_child(lambda: push(folder / "old", str(folder / "m"))) == "done"
    assert in_child(lambda: pull_to(folder, "b")) == "done"


def held(folder: Path) -> str:
    """Pull each version of the mirror into an empty data root; every one must be whole."""

    def pull_all() -> None:
        for entry, listed in versions.listed(Store(str(folder / "m"))).items():
            for number, version in enumerate(listed, 1):
                pull_to(folder, f"fresh{number}", entry.name, version.sha256)

    assert in_child(pull_all) == "done", "a version of the mirror is not whole"
    names = sorted(path.name for path in folder.glob("fresh*"))
    for name in names:
        assert provenance.verify(folder / name, check_laws=False) == [], name
    return names[-1]


def killed_push(folder: Path, number: int) -> str:
    """Kill a push, look at every version, push again and pull."""
    ended = in_child(lambda: (kill_at(number), push_new(folder)))
    left = held(folder)
    assert in_child(lambda: push_new(folder)) == "done"
    assert in_child(lambda: pull_to(folder, "b")) == "done"
    check_new(folder)
    return f"{ended} {left}"


def killed_pull(folder: Path, number: int) -> str:
    """Kill a pull, look at what stands, and pull again."""
    assert in_child(lambda: push_new(folder)) == "done"
    old, new = files(folder / "b"), files(folder / "new")
    ended = in_child(lambda: (kill_at(number), pull_to(folder, "b")))
    assert provenance.verify(folder / "b", check_inputs=False, check_laws=False) == []
    left = set()
    for artifact in ("family/tiny", "family/shared"):
        there, before, after = (
            {path: data for path, data in each.items() if path.startswith(artifact)}
            for each in (files(folder / "b"), old, new)
        )
        after |= {path: old[path] for path in after if "p2" in path}  # as it was pulled before
        assert there in (before, after), f"{artifact} is neither the old nor the new one"
        left.add("old" if there == before else "new")
    assert in_child(lambda: pull_to(folder, "b")) == "done"
    check_new(folder)
    return f"{ended} {'+'.join(sorted(left))}"


def check_new(folder: Path) -> None:
    """The data root `b` is whole and new, and nothing is left beside it."""
    old, new = files(folder / "old"), files(folder / "new")
    expected = new | {path: data for path, data in old.items() if "p2" in path}
    assert files(folder / "b") == expected
    assert garbage(folder / "b") == []


def main() -> None:
    """Build once, then do each kill on a copy."""
    base, *words = sys.argv[1:]
    store.PIECE = store.PIECE = 64  # type: ignore[misc]
    template = Path(base, "template")
    build(template)
    for word in words:
        how, _, number = word.partition(":")
        folder = Path(base, word.replace(":", "_"))
        shutil.copytree(template, folder, symlinks=True)
        found = (killed_push if how == "push" else killed_pull)(folder, int(number))
        sys.stdout.write(f"{word} {found}\n")
        sys.stdout.flush()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
