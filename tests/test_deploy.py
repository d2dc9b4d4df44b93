"""The files of `deploy/`: what they name is there, and only the login listens beyond loopback."""

import re
import shlex
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from gristmill.cli import GROUPS
from tests.paths import CHECKOUT, ran
from tests.requirements import cannot_run
from tests.test_packaging import name_of, pins

DEPLOY = CHECKOUT / "deploy"
OURS = {"gristmill", "dagster-webserver"}
YAML = ("deploy/compose.yaml", "deploy/dagster.yaml", "dagster.yaml", "workspace.yaml")
LINTERS = {
    "Dockerfile": ("hadolint", "deploy/Dockerfile"),
    "compose": (
        *("check-jsonschema", "--builtin-schema", "vendor.compose-spec"),
        "deploy/compose.yaml",
    ),
    "YAML": ("yamllint", "--strict", "-c", "deploy/yamllint.yaml", *YAML),
}


def compose() -> dict[str, Any]:
    services: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    return services


def instructions() -> list[tuple[str, str]]:
    """Word and rest of each instruction of the Dockerfile, continued lines joined."""
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines]


def commands() -> list[list[str]]:
    """The command of each service of ours, of the image and of the unit."""
    found = [made["command"] for made in compose().values() if "command" in made]
    found += [yaml.safe_load(rest) for word, rest in instructions() if word == "CMD"]
    unit = (DEPLOY / "gristmill.service").read_text()
    found += [shlex.split(line) for line in re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)]
    return found


def test_the_instance_differs_in_its_storage_alone_whose_address_names_the_driver() -> None:
    ours = yaml.safe_load((DEPLOY / "dagster.yaml").read_text())
    embedded = yaml.safe_load((CHECKOUT / "dagster.yaml").read_text())
    assert ours.pop("storage") == {"postgres": {"postgres_url": {"env": "PGURL"}}}
    assert embedded.pop("storage") == {"sqlite": {"base_dir": ".dagster/storage"}}
    assert ours == embedded
    addresses = [
        value
        for service in compose().values()
        for name, value in service.get("environment", {}).items()
        if name == "PGURL"
    ]
    assert len(addresses) == 2
    assert all(address.startswith("postgresql+psycopg2://") for address in addresses)


def test_the_image_copies_what_is_there_has_every_module_and_runs_as_a_user() -> None:
    copied = [rest.split()[:-1] for word, rest in instructions() if word == "COPY"]
    ignored = (CHECKOUT / ".dockerignore").read_text().splitlines()
    assert copied and ignored[0] == "*"
    for name in (name for names in copied for name in names):
        assert (CHECKOUT / name).exists(), name
        assert f"!{name.rstrip('/')}" in ignored, name
    copied = {name for word, rest in instructions() if word == "COPY" for name in rest.split()}
    modules = {f"{path.parent.name}/" for path in CHECKOUT.glob("*/__init__.py")}
    files = {path.name for path in CHECKOUT.glob("*.py")}
    assert (modules - {"tests/", "bench/", "examples/"}) | files <= copied
    users = [rest for word, rest in instructions() if word == "USER"]
    # A number: a host may not know the name, and hadolint asks for it.
    assert users and int(users[-1]) > 0


def test_the_image_has_the_extras_of_the_pages_and_commands_of_ours() -> None:
    page = (CHECKOUT / "docs/deployment.md").read_text()
    said = re.search(r"The image has the extras ([^.:]*)[.:]", page)
    assert said
    extras = set(re.findall(r"`(\w+)`", said[1]))
    used = {"mirror"} if "[mirror]" in page or "gristmill push" in page else set()
    for named in re.findall(r'"\.\[([\w,]+)\]"', page):
        used |= set(named.split(","))
    assert {"pipeline", "mirror", "postgres"} <= used <= extras
    installed = [rest for word, rest in instructions() if word == "RUN" and "-r " in rest]
    assert re.findall(r"-r (\S+)", installed[0])[-1] == "requirements/image.txt"
    declared = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    lines = [line for extra in extras for line in declared["optional-dependencies"][extra]]
    packages = {name_of(line) for line in [*lines, *declared["dependencies"]]}
    assert packages <= pins("requirements/image.txt").keys()
    found = commands()
    assert len(found) == 4
    for program, *words in found:
        assert Path(program).name in OURS
        if Path(program).name == "gristmill":
            assert any(words[0] in lines for lines in GROUPS.values())


@pytest.mark.engines
@pytest.mark.parametrize("what", LINTERS)
def test_the_files_are_linted(what: str) -> None:
    program, *words = LINTERS[what]
    linter = Path(sys.executable).with_name(program)
    if not linter.exists():
        cannot_run("linters", f"there is no {program}")
    done = ran([linter, *words])
    assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_listens_beyond_loopback_and_the_other_web_server_only_reads() -> None:
    for name, service in compose().items():
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:"), (name, port)
    web = [words for words in commands() if "dagster-webserver" in words]
    assert web
    for words in web:
        assert words[words.index("-h") + 1] == "127.0.0.1"
        assert "--read-only" in words


def test_the_unit_is_one_for_systemd(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze")
    text = (DEPLOY / "gristmill.service").read_text()
    # The program of the unit is not installed here.
    text = re.sub(r"^(ExecStart)=\S+", r"\1=/bin/true", text, flags=re.MULTILINE)
    unit = tmp_path / "gristmill.service"
    unit.write_text(text.replace("file:///srv/gristmill/docs/deployment.md", "man:true(1)"))
    done = ran(["systemd-analyze", "verify", "--man=no", str(unit)])
    about = [line for line in done.stderr.splitlines() if "gristmill.service" in line]
    assert done.returncode == 0 and about == [], done.stderr
