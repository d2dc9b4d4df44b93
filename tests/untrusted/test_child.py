"""Functions in child processes: limits on memory and time, crashes, errors, use again."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from assets import worker
from gristmill.contract import BadInput
from gristmill.untrusted.child import ChildDied, ChildFailed, run, stream
from tests.paths import ran
from tests.untrusted import hostile

FILE = Path("drop/file.parquet")


def is_alive(pid: int) -> bool:
    return worker.identity(pid) is not None


def wait_for_death(pid: int) -> bool:
    for _ in range(1000):
        if not is_alive(pid):
            return True
        time.sleep(0.02)
    return False


def test_a_child_that_is_gone_is_replaced_and_closing_the_stream_ends_it():
    first = run(hostile.pid, file=FILE)
    os.kill(first, signal.SIGKILL)
    assert wait_for_death(first)
    assert run(hostile.pid, file=FILE) != first
    items = stream(hostile.wait, file=FILE)
    pid = next(items)
    assert is_alive(pid)
    items.close()
    assert not is_alive(pid)


def test_two_children_answer_side_by_side_and_items_arrive_in_order():
    one, other = stream(hostile.counted, 2, file=FILE), stream(hostile.counted, 2, file=FILE)
    pairs = list(zip(one, other, strict=True))
    assert len(pairs) == 4
    assert all(a == b for a, b in pairs)
    items = list(stream(hostile.counted, 3, file=FILE))
    assert items[1::2] == [{"number": 0}, {"number": 1}, {"number": 2}]
    assert items[0::2] == [bytes([number]) * 100_000 for number in range(3)]
    first = run(hostile.pid, file=FILE)
    assert first != os.getpid()
    with pytest.raises(BadInput, match="file:3: breaks a rule"):
        run(hostile.refuse, file=FILE)
    assert run(hostile.pid, file=FILE) == first


def test_a_child_reads_the_files_of_its_descriptors(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"contents")
    with file.open("rb") as opened:
        assert run(hostile.read_all, 100, file=file, descriptors=[opened.fileno()]) == b"contents"
    folder = Path(f"/proc/{run(hostile.pid, file=file)}/fd")
    open_files = len(list(folder.iterdir()))
    with file.open("rb") as opened:
        run(hostile.read_all, 100, file=file, descriptors=[opened.fileno()])
    run(hostile.pid, file=file)  # the descriptors are closed before the next answer
    assert len(list(folder.iterdir())) == open_files


def test_too_much_memory_names_the_file_and_the_limit_which_is_that_of_each_call():
    assert run(hostile.take_memory, 100 << 20, file=FILE, memory_bytes=200 << 20) == 100 << 20
    with pytest.raises(BadInput) as error:
        run(hostile.take_memory, 300 << 20, file=FILE, memory_bytes=200 << 20)
    assert error.value.file == str(FILE)
    assert error.value.rule == "takes more than 200 MiB of memory to read"
    memory, seconds, core = run(hostile.limits, file=FILE, memory_bytes=1 << 30, seconds=100)
    assert core == 0
    assert 1 << 30 < memory < (1 << 30) + (1 << 30)
    more, longer, _ = run(hostile.limits, file=FILE, memory_bytes=2 << 30, seconds=200)
    assert more - memory == 1 << 30
    assert 95 <= longer - seconds <= 105


def test_what_an_earlier_call_left_mapped_counts_for_no_later_one():
    """But a child that has much of it is not used again."""
    run(hostile.leave_mapped, 3 << 29, file=FILE)
    child = run(hostile.pid, file=FILE)
    assert run(hostile.take_memory, 1 << 29, file=FILE, memory_bytes=1 << 30) == 1 << 29
    run(hostile.leave_mapped, 1 << 30, file=FILE)
    assert wait_for_death(child)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "says", "asked"),
    [
        (BadInput, f"^{FILE}: takes more than 1 seconds to read", [hostile.take_time]),
        (ChildDied, r"was ended \(SIGKILL\): start again", [hostile.die, signal.SIGKILL]),
        (ChildDied, r"file.parquet: .* was ended \(status 7\)", [hostile.leave]),
        (ChildFailed, r"(?s)in fail.*KeyError: 'an error of ours'", [hostile.fail]),
    ],
)
def test_what_ends_a_child_is_said(error, says, asked):
    """Too much time names the file; a kill says nothing about it, and an error of ours has all."""
    with pytest.raises(error, match=says):
        run(*asked, file=FILE, seconds=1)


def test_a_child_that_waits_without_end_is_given_up(monkeypatch):
    monkeypatch.setattr("gristmill.untrusted.child._MORE_SECONDS", 1.0)
    items = stream(hostile.wait, file=FILE, seconds=0.1)
    pid = next(items)
    with pytest.raises(BadInput, match="takes more than 1 seconds to read"):
        next(items)
    assert not is_alive(pid)


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL"])
def test_a_crash_is_bad_input(name):
    with pytest.raises(BadInput, match=rf"crashes the library that reads it \({name}\): write it"):
        run(hostile.die, signal.Signals[name], file=FILE)


def test_a_child_ends_with_its_parent_even_while_it_works():
    code = (
        "import sys; from pathlib import Path; from gristmill.untrusted.child import stream\n"
        "from tests.untrusted import hostile\n"
        "items = stream(hostile.wait, file=Path('x')); print(next(items), flush=True)\n"
        "import time; time.sleep(1000)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_alive(pid)
        parent.kill()
    assert wait_for_death(pid)


def test_no_child_outlives_a_program_that_ends():
    code = (
        "from pathlib import Path; from gristmill.untrusted.child import run\n"
        "from tests.untrusted import hostile\n"
        "print(run(hostile.pid, file=Path('x')))"
    )
    done = ran([sys.executable, "-W", "error", "-c", code], check=True)
    assert not done.stderr
    assert not is_alive(int(done.stdout))
