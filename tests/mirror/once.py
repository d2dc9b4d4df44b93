"""Pushes or pulls once, as a program that may be killed: `once push write:12:after ROOT URL`.

It is killed after its twelfth call of `write`; `-` kills nothing. Half of what a call of `pwrite`
writes is written before the kill. At its end it prints, as JSON, how often each call was made and
which keys were written.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from gristmill import provenance
from gristmill.mirror import pull, push
from gristmill.mirror.fetch import Fetcher
from gristmill.mirror.store import Store
from gristmill.publish import atomic_fs

CALLS: dict[str, Any] = {
    **dict.fromkeys(("keys", "read", "size", "write", "create"), Store),
    **dict.fromkeys(("pwrite", "utime"), os),
    **dict.fromkeys(("exchange", "place", "flush_tree", "remove_tree"), atomic_fs),
    "object": Fetcher,
    "read_record": provenance,
    "rename": Path,
}
"""What a push or a pull calls, by name."""


def counted(step: str, written: set[str]) -> Counter[str]:
    """Count the calls from now on, and kill this process at the one that `step` says.

    written: gets the keys of objects.
    """
    wanted, _, rest = step.partition(":")
    number, _, when = rest.partition(":")
    lock, made = threading.Lock(), Counter[str]()

    def wrap(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def call(*given: Any, **more: Any) -> Any:
            if name == "utime" and "ns" not in more:  # a touch, whose calls depend on other threads
                return original(*given, **more)
            with lock:
                made[name] += 1
                if name == "write":
                    written.add(given[1])
                is_last = name == wanted and made[name] == int(number)
            if not is_last:
                return original(*given, **more)
            try:
                if when == "after":
                    original(*given, **more)
                elif name == "pwrite":
                    original(given[0], bytes(given[1])[: len(given[1]) // 2], given[2])
            finally:  # also after a call that raises
                os.kill(os.getpid(), signal.SIGKILL)

        setattr(owner, name, call)

    for name, owner in CALLS.items():
        wrap(owner, name)
    return made


def main() -> None:
    """Do what the words say; status 1 where an artifact failed."""
    how, step, root, url, *names = sys.argv[1:]
    written = set[str]()
    made = counted(step, written)
    work = push if how == "push" else pull
    done = work(Path(root), url, names)
    failed = [str(each) for each in done if each.error]
    sys.stderr.write("\n".join(failed))
    sys.stdout.write(json.dumps({"calls": made, "written": sorted(written)}))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
