"""The servers of docs/deployment.md: the login before the UI, run by nginx, and the mails."""

import base64
import json
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from tests.free_port import free_port
from tests.paths import CHECKOUT, ran
from tests.requirements import cannot_run

CONFIG = CHECKOUT / "deploy/nginx.conf"
SERVICES = yaml.safe_load((CHECKOUT / "deploy/compose.yaml").read_text())["services"]
_LOGIN = "/etc/nginx/login"
_SECONDS = 30


def test_the_login_is_before_the_reader_and_holds_no_secret():
    text = CONFIG.read_text()
    reader = SERVICES["reader"]["command"]
    assert re.findall(r"proxy_pass (.*);", text) == [f"http://127.0.0.1:{reader[-3]}"]
    assert "--read-only" in reader
    assert re.findall(r"listen (.*);", text) == ["443 ssl"]
    files = re.findall(r"(ssl_certificate|ssl_certificate_key|auth_basic_user_file) (.*);", text)
    assert len(files) == 3 and all(path.startswith(f"{_LOGIN}/") for _, path in files)
    mounts = [volume.rsplit(":", 2) for volume in SERVICES["proxy"]["volumes"]]
    assert [mode for *_, mode in mounts] == ["ro", "ro"]
    assert [inside for _, inside, _ in mounts] == ["/etc/nginx/nginx.conf", _LOGIN]
    assert mounts[0][0] == "./nginx.conf" and mounts[1][0].startswith("${GRISTMILL_LOGIN:?")


class _Reader(BaseHTTPRequestHandler):
    """Says which headers came."""

    def do_GET(self) -> None:
        names = ("Authorization", "Host", "Upgrade", "Connection")
        said = "\n".join(f"{name}: {self.headers.get(name)}" for name in names).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def _reader() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Reader)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def _run(*words: str | Path) -> str:
    done = ran(words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def _await(port: int) -> None:
    """Return once something listens at a port."""
    end = time.monotonic() + _SECONDS
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert time.monotonic() < end
        time.sleep(0.05)


def _login(folder: Path) -> None:
    """The files of GRISTMILL_LOGIN, made as docs/deployment.md says."""
    page = (CHECKOUT / "docs/deployment.md").read_text()
    found = re.search(r"```sh\n(mkdir -p /etc/gristmill/login\n.*?)```", page, re.DOTALL)
    assert found
    folder.mkdir()
    script = found[1].replace("/etc/gristmill/login", str(folder)).replace("HOST", "localhost")
    script = "\n".join(line for line in script.splitlines() if not line.startswith("chown"))
    _run("bash", "-euc", script.replace("openssl passwd -6", "openssl passwd -6 secret"))


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[int]:
    """The proxy before a reader that says what came; its port."""
    nginx = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin")
    if nginx is None:
        cannot_run("linters", "there is no nginx")
    _login(tmp_path / "login")
    port, config = free_port(), tmp_path / "nginx.conf"
    with _reader() as behind:
        text = CONFIG.read_text().replace(_LOGIN, str(tmp_path / "login"))
        text = text.replace("listen 443", f"listen 127.0.0.1:{port}")
        text = text.replace("127.0.0.1:3001", f"127.0.0.1:{behind}")
        config.write_text(text.replace("/run/nginx.pid", str(tmp_path / "pid")))
        # Workers of root would be of a user who cannot read the folder of the test.
        words = [nginx, "-e", "stderr", "-c", str(config), "-g", "daemon off; user root;"]
        _run(*words, "-t")
        process = subprocess.Popen(words)
        try:
            _await(port)
            yield port
        finally:
            process.terminate()
            process.wait()


def _get(port: int, folder: Path, user: str | None, **headers: str) -> tuple[int, str]:
    request = urllib.request.Request(f"https://localhost:{port}/graphql", headers=headers)
    if user is not None:
        request.add_header("Authorization", f"Basic {base64.b64encode(user.encode()).decode()}")
    trust = ssl.create_default_context(cafile=folder / "login/certificate.pem")
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trust)
    )
    try:
        with opener.open(request, timeout=_SECONDS) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""


@pytest.mark.engines
def test_who_has_no_login_gets_nothing_and_who_has_one_gets_the_reader(proxy, tmp_path):
    for user in (None, "reader:wrong", "other:secret", "reader:"):
        assert _get(proxy, tmp_path, user) == (401, "")
    status, said = _get(proxy, tmp_path, "reader:secret")
    assert status == 200
    # The password goes no further.
    assert said.splitlines()[:3] == ["Authorization: None", "Host: localhost", "Upgrade: None"]
    _, said = _get(proxy, tmp_path, "reader:secret", Upgrade="websocket")
    assert said.splitlines()[2:] == ["Upgrade: websocket", "Connection: upgrade"]


def test_the_documented_script_mails_the_text_of_an_alert(tmp_path):
    page = (CHECKOUT / "docs/deployment.md").read_text()
    found = re.search(r"^python3 - <<'END'\n(import json.*?)^END$", page, re.DOTALL | re.MULTILINE)
    assert found
    sendmail, port = tmp_path / "sendmail", free_port()
    sendmail.write_text(f"#!/bin/sh\ntest ! -e {tmp_path}/broken && cat > {tmp_path}/mail\n")
    sendmail.chmod(0o755)
    program = found[1].replace("/usr/sbin/sendmail", str(sendmail)).replace("9800", str(port))
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
    try:
        _await(port)
        body = json.dumps({"text": "2 runs failed: é"}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{port}/", data=body)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        assert opener.open(request, timeout=_SECONDS).status == 204
        assert (tmp_path / "mail").read_text().endswith("\n\n2 runs failed: é")
        (tmp_path / "broken").touch()
        with pytest.raises(urllib.error.HTTPError, match="502"):
            opener.open(request, timeout=_SECONDS)
    finally:
        process.kill()  # SIGTERM is ignored where a shell started this in the background
        process.wait()
