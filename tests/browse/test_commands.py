"""`gristmill browse`: what it refuses, and that it answers at the address that it says."""

import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from click.testing import CliRunner

from gristmill.cli import main
from tests.free_port import HOST, free_port


def test_a_port_that_is_taken_is_refused(tmp_path):
    with socket.create_server((HOST, free_port())) as server:
        port = server.getsockname()[1]
        done = CliRunner().invoke(main, ["browse", str(tmp_path), "--port", str(port)])
    assert done.exit_code != 0
    assert f"port {port}" in done.output and "--port" in done.output
    assert "open http" not in done.output


def test_a_folder_that_is_none_is_refused(tmp_path):
    done = CliRunner().invoke(main, ["browse", str(tmp_path / "none")])
    assert done.exit_code == 2
    assert "does not exist" in done.output


def test_a_library_that_is_missing_is_named_with_its_extra(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "gristmill.browse.web.app", raising=False)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    done = CliRunner().invoke(main, ["browse", str(tmp_path)])
    assert done.exit_code == 1
    assert "pip install 'gristmill[browse]'" in done.output
    assert "jinja2" in done.output


def test_it_answers_at_the_address_that_it_says(tmp_path):
    port = free_port()
    command = [sys.executable, "-m", "gristmill.cli", "browse", str(tmp_path)]
    with subprocess.Popen(
        [*command, "--port", str(port)], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        try:
            assert line == f"open http://{HOST}:{port}/browse/\n"
            with urllib.request.urlopen(f"{line.split()[1]}static/style.css", timeout=60) as page:
                assert b"color-scheme" in page.read()
            with pytest.raises(urllib.error.HTTPError) as refused:  # there is no artifact
                urllib.request.urlopen(line.split()[1], timeout=60)
            assert "This cannot be shown" in refused.value.read().decode()
        finally:
            server.terminate()
