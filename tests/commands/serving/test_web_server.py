"""The program of the web server."""

import runpy
import sys

import dagster_webserver.app
import pytest

from assets import worker
from commands.serving import web_server
from gristmill.browse.web.local_requests import LocalRequests


def test_the_program_serves_docs_refuses_other_sites_and_keeps_databases_small(monkeypatch, capsys):
    installed = []
    monkeypatch.setattr(worker, "tune_databases", lambda: installed.append(True))
    server = dagster_webserver.app.DagsterWebserver  # type: ignore[attr-defined]
    monkeypatch.setattr(dagster_webserver.app, "DagsterWebserver", server)
    monkeypatch.setattr(sys, "argv", ["web_server", "--version"])
    monkeypatch.delitem(sys.modules, web_server.__name__)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("commands.serving.web_server", run_name="__main__")
    assert ended.value.code == 0
    assert "version" in capsys.readouterr().out
    assert installed == [True]
    used = dagster_webserver.app.DagsterWebserver  # type: ignore[attr-defined]
    assert issubclass(used, server) and used is not server
    made = used.__new__(used)
    assert str(made.build_middleware()[0].cls) == str(LocalRequests)
