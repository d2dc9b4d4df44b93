"""What is renamed into place is on disk before, and its name is on disk after."""

import errno
import os
import re
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from gristmill.publish import atomic_fs
from tests.paths import ran
from tests.publish.killing import Call
from tests.publish.scenarios import SCENARIOS
from tests.requirements import cannot_run

COMMITTED = {
    "nested fresh": "family/tiny/runtime/cache",
    "nested replace": "family/tiny/runtime/cache",
}


class Disk:
    """Files and folders with changes that no fsync has covered yet."""

    def __init__(self) -> None:
        self.dirty: set[str] = set()

    def see(self, call: Call) -> None:
        folder = str(Path(call.path).parent)
        if call.name in ("write", "truncate"):
            self.dirty.add(call.path)
        elif call.name == "create":
            self.dirty |= {call.path, folder}
        elif call.name == "fsync":
            self.dirty.discard(call.path)
        elif call.name == "link":
            self.dirty.add(folder)
            if call.source in self.dirty:
                self.dirty.add(call.path)
        elif call.name == "rename":
            self._move(call.source, call.path)
            self.dirty |= {folder, str(Path(call.source).parent)}
        elif call.name == "exchange":
            self._swap(call.source, call.path)
            self.dirty |= {folder, str(Path(call.source).parent)}
        else:
            assert call.name in ("mkdir", "unlink", "rmdir"), call
            self.dirty.add(folder)
            if call.name == "mkdir":
                self.dirty.add(call.path)

    def below(self, folder: str) -> set[str]:
        return {path for path in self.dirty if path == folder or path.startswith(folder + "/")}

    def _move(self, source: str, target: str) -> None:
        moved = self.below(source)
        self.dirty -= moved
        self.dirty |= {target + path[len(source) :] for path in moved}

    def _swap(self, left: str, right: str) -> None:
        self._move(left, "\0")
        self._move(right, left)
        self._move("\0", right)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_all_is_flushed_before_the_commit_and_its_name_after(killer, scenario):
    folder = COMMITTED.get(scenario, "family/tiny")
    disk, commits, unflushed_source = Disk(), 0, ""
    for call in killer.trace(scenario, 2):
        if call.name in ("rename", "exchange") and call.path == folder:
            commits += 1
            assert disk.below(call.source) == set()
            # A name in a folder that may itself be lost is no name.
            above = [str(path) for path in Path(folder).parents]
            disk.see(call)
            unflushed = [path for path in above if path in disk.dirty]
            unflushed_source = str(Path(call.source).parent)
        else:
            disk.see(call)
            # Nor is the old version gone from where it was before that folder is on the disk.
            if call.name == "fsync" and call.path == unflushed_source:
                unflushed_source = ""
    assert commits == 1
    assert unflushed_source == ""
    assert str(Path(folder).parent) in unflushed
    assert [path for path in above if path in disk.dirty] == []
    assert disk.below(folder) == set()


def test_the_law_sees_a_missing_flush():
    disk = Disk()
    for name, path, source in [
        ("mkdir", "staging", ""),
        ("create", "staging/a", ""),
        ("write", "staging/a", ""),
        ("fsync", "staging", ""),
        ("rename", "b", "staging"),
    ]:
        disk.see(Call("", "main", name, path, source))
    assert disk.below("b") == {"b/a"}
    assert "." in disk.dirty


def flushed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of what is flushed from now on; `slow...` takes a while, `bad...` fails."""
    done: list[str] = []

    def flush(path: Path) -> None:
        if path.name.startswith("slow"):
            time.sleep(0.2 * int(path.name[-1]))
        if path.name.startswith("bad"):
            raise OSError(errno.EIO, path.name)
        done.append(path.name)

    monkeypatch.setattr(atomic_fs, "flush", flush)
    return done


@pytest.mark.parametrize("most", [1, 3, 1024])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 7])
def test_all_are_flushed_once(monkeypatch, count, most):
    done = flushed(monkeypatch)
    monkeypatch.setattr(atomic_fs, "_QUEUED", most)
    atomic_fs.flush_all([Path(f"p{number}") for number in range(count)])
    assert sorted(done) == [f"p{number}" for number in range(count)]


def test_the_first_flush_that_fails_is_raised_once_none_is_under_way(monkeypatch):
    done = flushed(monkeypatch)
    paths = [Path(name) for name in ("a", "slow1", "bad1", "bad2", "slow2", "b")]
    with pytest.raises(OSError, match="bad1"):
        atomic_fs.flush_all(paths)
    assert sorted(done) == ["a", "b", "slow1", "slow2"]


def test_what_comes_after_a_failure_is_not_begun(monkeypatch):
    done = flushed(monkeypatch)
    monkeypatch.setattr(atomic_fs, "_QUEUED", 2)
    with pytest.raises(OSError, match="bad"):
        atomic_fs.flush_all([Path(name) for name in ("a", "bad", "b", "c")])
    assert done == ["a"]


def test_a_fork_flushes_though_it_has_none_of_the_threads(tmp_path):
    names = [tmp_path / str(number) for number in range(3)]
    for name in names:
        name.touch()
    atomic_fs.flush_all(names)
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        atomic_fs.flush_all(names)
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_tree_is_flushed_whole(tmp_path, monkeypatch):
    (tmp_path / "top/in/deep").mkdir(parents=True)
    (tmp_path / "top/empty").mkdir()
    for name in ("a", "in/b", "in/deep/c"):
        (tmp_path / "top" / name).touch()
    done: list[Path] = []
    monkeypatch.setattr(atomic_fs, "flush", done.append)
    atomic_fs.flush_tree(tmp_path / "top")
    assert sorted(done) == sorted([tmp_path / "top", *(tmp_path / "top").rglob("*")])


def test_folders_are_flushed_up_to_the_root(tmp_path, monkeypatch):
    done: list[Path] = []
    monkeypatch.setattr(atomic_fs, "flush", done.append)
    atomic_fs.flush_upwards(tmp_path / "a/b", tmp_path, tmp_path / "other")
    assert sorted(done) == [tmp_path, tmp_path / "a", tmp_path / "a/b", tmp_path / "other"]
    done.clear()
    atomic_fs.flush_upwards(tmp_path, tmp_path)
    assert done == [tmp_path]


KINDS = {
    **dict.fromkeys(["write", "pwrite64", "writev", "pwritev", "pwritev2"], "write"),
    **dict.fromkeys(["sendfile", "copy_file_range"], "write"),
    **dict.fromkeys(["fsync", "fdatasync"], "fsync"),
    **dict.fromkeys(["ftruncate", "truncate", "fallocate"], "truncate"),
    **dict.fromkeys(["rename", "renameat", "renameat2"], "rename"),
    **dict.fromkeys(["link", "linkat"], "link"),
    **dict.fromkeys(["unlink", "unlinkat", "rmdir"], "unlink"),
    **dict.fromkeys(["mkdir", "mkdirat"], "mkdir"),
    **dict.fromkeys(["open", "openat", "creat"], "create"),
}
# The rest of what can change a file; none of it is interposed, none may occur.
OTHERS = ["splice", "tee", "symlink", "symlinkat", "mknod", "mknodat", "io_uring_setup", "msync"]

BUILDERS = {
    "tiny": """
        from pathlib import Path
        from gristmill.publish.publish import publish
        from tests.publish.tiny import TinyConfig, tiny_build
        import sys
        publish(tiny_build(Path(sys.argv[1]), config=TinyConfig(workers=2)))
    """,
    "pyarrow": """
        import sys
        import pyarrow, pyarrow.parquet
        table = pyarrow.table({"a": list(range(1000))})
        pyarrow.parquet.write_table(table, sys.argv[1] + "/rows.parquet")
    """,
    "polars": """
        import sys
        import polars
        polars.DataFrame({"a": list(range(1000))}).write_parquet(sys.argv[1] + "/rows.parquet")
    """,
}


@pytest.mark.slow
@pytest.mark.parametrize("builder", BUILDERS)
def test_no_call_escapes_the_layer(shim, tmp_path, builder):
    if shutil.which("strace") is None:
        cannot_run("strace", "strace is not installed: nothing to compare the layer with")
    root, shared, trace = tmp_path / "root", tmp_path / "shared", tmp_path / "trace"
    root.mkdir()
    shared.write_bytes(bytes(16))
    trace.touch()
    preload = [f"LD_PRELOAD={shim}", f"KILLPOINT_ROOT={root}", f"KILLPOINT_SHARED={shared}"]
    preload.append(f"KILLPOINT_TRACE={trace}")
    command = ["strace", "-f", "-y", "-o", str(tmp_path / "strace")]
    command += ["-e", "trace=" + ",".join(f"?{name}" for name in [*KINDS, *OTHERS])]
    for setting in preload:
        command += ["-E", setting]
    code = "\n".join(line.strip() for line in BUILDERS[builder].splitlines())
    done = ran([*command, sys.executable, "-c", code, str(root)])
    if "ptrace" in done.stderr and done.returncode != 0:
        cannot_run("strace", f"strace may not trace here: {done.stderr}")
    assert done.returncode == 0, done.stderr
    seen = _of_strace(tmp_path / "strace", root)
    kinds = {"exchange": "rename", "rmdir": "unlink"}
    counted = Counter(
        kinds.get(name, name)
        for name in (line.split("\t")[2] for line in trace.read_text().splitlines())
    )
    assert seen == counted
    assert seen["write"] > 0 and seen["create"] > 0


def _of_strace(log: Path, root: Path) -> Counter[str]:
    seen: Counter[str] = Counter()
    for line in log.read_text().splitlines():
        match = re.match(r"\d+ +(\w+)\((.*)", line)
        if match is None or "+++" in line:
            continue
        name, rest = match.groups()
        arguments = rest.rpartition(") = ")[0] or rest
        target = arguments.split(", ", 1)[0] if KINDS.get(name) in ("write", "fsync") else arguments
        if not re.search(re.escape(str(root)) + '[/">]', target):
            continue
        if KINDS.get(name) == "create" and not re.search(r"O_CREAT|O_TRUNC", arguments):
            continue
        seen[KINDS.get(name, name)] += 1
    return seen
