"""Telling a run whose process lives from one whose process is gone."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path

import pytest

from assets import worker
from tests.e2e.live_instance import until


def test_a_living_process_is_known_by_its_signature():
    signature = worker.identity(os.getpid())
    assert signature is not None
    assert worker.is_alive(signature)
    assert signature == worker.identity(os.getpid())


def test_a_process_that_ended_is_not_alive_even_before_its_parent_took_note():
    with subprocess.Popen(["sleep", "60"]) as process:
        signature = worker.identity(process.pid)
        assert signature is not None
        assert worker.is_alive(signature)
        process.kill()
        until("the process ended", lambda: not worker.is_alive(signature))
        assert Path(f"/proc/{process.pid}").exists()  # a zombie, since nobody waited for it
    assert not worker.is_alive(signature)


def test_another_process_with_the_same_id_or_after_another_boot_is_not_the_same():
    boot, process, started = str(worker.identity(os.getpid())).split(":")
    assert not worker.is_alive(f"{boot}:{process}:{int(started) - 1}")
    assert not worker.is_alive(f"00000000:{process}:{started}")


@pytest.mark.parametrize("name", ["a) b (c", "x) Z 1"])
def test_a_command_name_with_parentheses_does_not_confuse(name, tmp_path):
    (tmp_path / name).symlink_to("/bin/sleep")
    with subprocess.Popen([tmp_path / name, "60"]) as process:
        try:
            comm = Path(f"/proc/{process.pid}/comm")
            until("the name is there", lambda: comm.read_text().strip() == name)
            signature = worker.identity(process.pid)
            assert signature is not None
            assert int(signature.split(":")[2]) > 0
            assert worker.is_alive(signature)
        finally:
            process.kill()


def test_a_code_server_answers_while_its_socket_is_listened_to(tmp_path):
    path = str(tmp_path / "server.sock")
    tag = json.dumps({"host": "localhost", "socket": path})
    assert not worker.answers(tag)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        assert worker.answers(tag)
    # What a kill leaves: the file of the socket, and nobody behind it.
    assert Path(path).exists()
    assert not worker.answers(tag)


def test_a_code_server_on_a_port_answers_while_it_listens():
    with socket.create_server(("127.0.0.1", 0)) as server:
        tag = json.dumps({"host": "127.0.0.1", "port": server.getsockname()[1]})
        assert worker.answers(tag)
    assert not worker.answers(tag)
