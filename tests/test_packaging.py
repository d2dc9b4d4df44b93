"""What pip installs: the library alone from a wheel, everything from an editable checkout."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from bench.servers import copy_checkout, plain_environment
from gristmill.macroxue.samples import write_drop
from gristmill.vocabularies.pinned import drop_folder
from requirements.install import install, trim, variables
from tests.paths import CHECKOUT, ran

PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
# Their builds differ from one version to the next, or come for one Python alone; gigatoken is
# proven for one version alone.
EXACT = ("torch", "atheris", "gigatoken")
# Nobody on one machine needs these: `make test` does not install them.
BEYOND_ONE_MACHINE = ("ray", "postgres", "engines")
# The mission names these; each stays declared.
NAMED = [
    *("dagster", "dagster-webserver", "numpy", "pyarrow", "polars", "tiktoken", "openai-harmony"),
    "megatron-core",
]


def name_of(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def declared() -> dict[str, str]:
    """Requirements of the project and its extras by name."""
    extras = PROJECT["optional-dependencies"].values()
    lines = [*PROJECT["dependencies"], *(line for extra in extras for line in extra)]
    return {name_of(line): line for line in lines}


def pins(file: str) -> dict[str, str]:
    """Versions by name, of constraints.txt or of a file of requirements/."""
    lines = re.findall(r"^([^\s#-]\S*)==(\S+)", (CHECKOUT / file).read_text(), re.MULTILINE)
    return {name_of(name): version for name, version in lines}


def test_every_requirement_is_a_range_that_the_pinned_version_satisfies():
    from packaging.requirements import Requirement

    pinned = pins("constraints.txt")
    for name, line in declared().items():
        requirement = Requirement(line)
        assert requirement.specifier.contains(pinned[name]), line
        assert ("==" in line) == (name in EXACT), line


def test_all_pins_but_torch_have_hashes_and_hold_what_the_extras_declare():
    constraints = pins("constraints.txt")
    run, test = pins("requirements/run.txt"), pins("requirements/test.txt")
    environment = pins("requirements/environment.txt")
    assert environment.keys() == {"pip", "setuptools"}
    engines = pins("requirements/engines.txt")
    assert environment.items() <= run.items() <= test.items() <= engines.items()
    assert run.items() <= pins("requirements/image.txt").items() <= engines.items()
    assert engines.items() <= constraints.items()
    assert constraints.keys() - engines.keys() == {"torch"}
    for file in sorted((CHECKOUT / "requirements").glob("*.txt")):
        lines = file.read_text().replace("\\\n", " ").splitlines()
        for line in lines:
            assert line.startswith("#") or "--hash=sha256:" in line, (file.name, line)
        assert "://" not in file.read_text()
    extras = PROJECT["optional-dependencies"]
    declared_to_run = [*PROJECT["dependencies"], *extras["pipeline"], *extras["chess"]]
    run = pins("requirements/run.txt").keys()
    assert {name_of(line) for line in declared_to_run} <= run
    assert not run & {"megatron-core", "mypy", "pytest"}
    beyond = {name_of(line) for extra in BEYOND_ONE_MACHINE for line in extras[extra]}
    test = pins("requirements/test.txt").keys()
    assert declared().keys() - {"torch"} - beyond <= test
    assert not test & beyond
    assert beyond <= pins("requirements/engines.txt").keys()
    accelerators = ("nvidia-", "cuda-", "triton")
    assert not [name for name in pins("constraints.txt") if name.startswith(accelerators)]


def test_torch_is_in_the_lock_and_not_in_the_base_install_and_the_mission_is_declared():
    lock = tomllib.loads((CHECKOUT / "requirements/uv.toml").read_text())
    (torch,) = lock["dependency-metadata"]
    assert f"{torch['name']}=={torch['version']}" == declared()["torch"]
    assert set(NAMED) <= declared().keys()
    base = {name_of(line) for line in PROJECT["dependencies"]}
    assert not base & {"dagster", "dagster-webserver", "torch", "megatron-core", "chess"}


# --- the installer -----------------------------------------------------------


def test_uv_takes_packages_from_where_pip_takes_them():
    listed = """
global.index-url='https://one.example/simple'
global.extra-index-url='https://two.example/simple\\nfile:///packages'
global.find-links='/a /b'
global.no-color='true'
install.index-url='https://three.example/simple'
:env:.find-links='/c'
freeze.cert='/other.pem'
"""
    found = variables(listed, {"UV_INDEX": "mine"})
    assert found == {
        "UV_DEFAULT_INDEX": "https://three.example/simple",
        "UV_FIND_LINKS": "/c",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }
    both = variables(listed.replace("/c", "/c /d"), {})
    assert both["UV_INDEX"] == "https://two.example/simple file:///packages"
    assert both["UV_FIND_LINKS"] == "/c,/d"
    assert variables("", {}).keys() == {"UV_INDEX_STRATEGY"}


@pytest.mark.parametrize(("status", "installs"), [(0, "uv"), (2, "pip"), (None, "pip")])
def test_pip_installs_where_uv_is_not_to_be_had_or_fails(status, installs, tmp_path, monkeypatch):
    uv = tmp_path / "uv"
    if status is not None:
        uv.touch()
    called: list[list[str]] = []

    def run(words: list[object], **_: object) -> subprocess.CompletedProcess[str]:
        called.append([str(word) for word in words])
        failed = status if words[0] == uv else 0
        return subprocess.CompletedProcess([], failed or 0, stdout="", stderr="")

    monkeypatch.setattr(subprocess, "run", run)
    assert install(uv, ["a.txt", "b.txt"]) == 0
    programs = ["uv" if words[0] == str(uv) else words[2] for words in called]
    assert programs[-1] == installs
    assert programs.count("uv") == (status is not None)
    for words in called:
        if "config" not in words:
            assert {"install", "--require-hashes", "--no-deps", "a.txt", "b.txt"} <= set(words)


def test_what_no_program_opens_leaves_the_environment(tmp_path):
    kept = {"pyarrow/libarrow_python.so.2600", "pyarrow/libarrow.so.2600", "numpy/testing/a.py"}
    gone = {"pyarrow/libarrow_flight.so.2600", "numpy/lib/tests/data/a.py", "numba/tests/a.py"}
    for name in kept | gone:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    trim(tmp_path)
    assert {name for name in kept | gone if (tmp_path / name).exists()} == kept


@pytest.mark.parametrize(
    ("place", "replaced"), [(CHECKOUT, False), (CHECKOUT / "other", True), (None, True)]
)
def test_the_makefile_installs_again_where_the_checkout_was_replaced(place, replaced, tmp_path):
    for name in ("Makefile", "pyproject.toml"):
        (tmp_path / name).write_bytes((CHECKOUT / name).read_bytes())
    packages = tmp_path / ".venv/lib/python3.11/site-packages"
    packages.mkdir(parents=True)
    if place is not None:
        own = str(tmp_path / place.relative_to(CHECKOUT))
        (packages / "__editable__.gristmill-1.pth").write_text(f"{own}\n")
    (tmp_path / "requirements").mkdir()
    for name in ("environment.txt", "run.txt", "lock.txt"):
        (tmp_path / "requirements" / name).touch()
    (tmp_path / ".venv/bin").mkdir()
    (tmp_path / ".venv/bin/python").touch()
    (tmp_path / ".venv/installed-run").touch()
    words = ["make", "--question", ".venv/installed-run"]
    done = ran(words, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (int(replaced), "")


# --- fresh environments ------------------------------------------------------


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("packaging") / "checkout"
    copy_checkout(copy)
    page = copy / "gristmill/browse/web/site/formats/page.html"  # as `make docs` leaves it
    page.parent.mkdir(parents=True)
    page.write_text("a page")
    return copy


@pytest.fixture(scope="module")
def wheel(checkout: Path) -> Path:
    words = ["wheel", "-q", "--no-deps", "-w", str(checkout.parent), str(checkout)]
    subprocess.run([sys.executable, "-m", "pip", *words], check=True)
    (built,) = checkout.parent.glob("gristmill-*.whl")
    return built


class Environment:
    """A fresh venv with the base dependencies, linked from the environment of the tests."""

    def __init__(self, folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        self._bin = folder / "bin"
        (packages,) = folder.glob("lib/python*/site-packages")
        for path in linked(PROJECT["dependencies"]):
            if not (packages / path.name).exists():
                (packages / path.name).symlink_to(path)

    def run(self, program: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """A program of the environment, from a folder that holds no package of ours."""
        return ran([self._bin / program, *words], cwd=self._bin.parent, env=plain_environment())

    def python(self, code: str) -> str:
        done = self.run("python", "-c", code)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def install(self, *words: str | Path) -> None:
        done = self.run("python", "-m", "pip", "install", "-q", "--no-deps", *words)
        assert done.returncode == 0, done.stderr


def linked(requirements: list[str]) -> set[Path]:
    """What the installed requirements, and theirs, put into site-packages."""
    found: set[Path] = set()
    todo, seen = [name_of(line) for line in requirements], set()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # for another platform
        todo += [name_of(line) for line in distribution.requires or () if "extra ==" not in line]
        for file in distribution.files or ():
            if file.parts[0] not in ("..", "__pycache__"):
                found.add(Path(str(distribution.locate_file(file.parts[0]))))
    return found


@pytest.fixture(scope="module")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel beside its base dependencies."""
    made = Environment(tmp_path_factory.mktemp("base") / "venv")
    made.install(wheel)
    return made


@pytest.mark.slow
def test_pip_resolves_the_ranges_of_the_wheel_without_an_orchestrator_or_torch(wheel, tmp_path):
    report = tmp_path / "report.json"
    words = ["install", "--dry-run", "--ignore-installed", "--quiet", "--report", str(report)]
    subprocess.run([sys.executable, "-m", "pip", *words, str(wheel)], check=True)
    chosen = {
        name_of(item["metadata"]["name"]) for item in json.loads(report.read_text())["install"]
    }
    assert {"gristmill", *(name_of(line) for line in PROJECT["dependencies"])} <= chosen
    assert not chosen & {"dagster", "dagster-webserver", "torch", "megatron-core", "chess"}


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_the_wheel_and_what_it_needs_exist_for_later_pythons(version, wheel):
    words = ["install", "-q", "--dry-run", "--ignore-installed", "--only-binary", ":all:"]
    words += ["--python-version", version, "--target", str(wheel.parent / version)]
    words += ["--find-links", str(wheel.parent), PROJECT["name"]]
    subprocess.run([sys.executable, "-m", "pip", *words], check=True)


@pytest.mark.slow
def test_the_wheel_holds_the_library_alone(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = {Path(name) for name in archive.namelist()}
    version = PROJECT["version"]
    assert {name.parts[0] for name in names} == {"gristmill", f"gristmill-{version}.dist-info"}
    modules = {path.relative_to(CHECKOUT) for path in (CHECKOUT / "gristmill").rglob("*.py")}
    assert {name for name in names if name.suffix == ".py"} == modules
    assert Path("gristmill/browse/web/site/formats/page.html") in names


@pytest.mark.slow
def test_readers_import_without_dagster(base):
    code = (
        "from importlib.util import find_spec\n"
        "from gristmill.macroxue import StepDataset\n"
        "from gristmill.chess import GameSpliceDataset\n"
        "import gristmill.synth, gristmill.provenance\n"
        "print(*(name for name in ('dagster', 'torch', 'polars', 'assets') if find_spec(name)))"
    )
    assert base.python(code) == ""


@pytest.mark.slow
def test_every_module_that_the_base_install_needs_imports(base):
    """All but what builds from raw drops, serves pages or reads for torch."""
    code = (
        "import importlib, pathlib, gristmill\n"
        "root = pathlib.Path(gristmill.__file__).parent\n"
        "for path in sorted(root.rglob('*.py')):\n"
        "    name = '.'.join(path.relative_to(root.parent).with_suffix('').parts)\n"
        "    name = name.removesuffix('.__init__')\n"
        "    try:\n"
        "        importlib.import_module(name)\n"
        "    except ModuleNotFoundError as error:\n"
        "        print(name, error.name.partition('.')[0])"
    )
    missing = dict(line.split() for line in base.python(code).splitlines())
    assert missing.pop("gristmill.browse.web.app") == "jinja2"
    assert missing.pop("gristmill.browse.web.local_requests") == "starlette"
    assert missing.pop("gristmill.loading.workers") == "torch"
    assert set(missing.values()) <= {"huggingface_hub", "httpx2", "isal", "megatron", "torch"}
    packages = {name.split(".")[2] for name in missing}
    assert packages <= {"builders", "builds", "raw", "read"}, missing
    readers = {name for name in missing if ".read." in name}
    assert {missing[name] for name in readers} <= {"megatron", "torch"}, missing


@pytest.mark.slow
def test_the_command_looks_at_artifacts_without_dagster(base, checkout, tmp_path):
    write_drop(tmp_path / "drops/macroxue/one", seed=1, games=1, max_moves=20, depth=6)
    done = ran(
        [sys.executable, "operate.py", "materialize", "macroxue/pack"],
        cwd=checkout,
        env={**plain_environment(), "GRISTMILL_DATA": str(tmp_path)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    pack = tmp_path / "macroxue/packs/one"
    for words, expected in (
        (("--help",), "materialize"),
        (("ls", tmp_path), "current"),
        (("verify", tmp_path), "1 artifact is as its record says"),
        (("show", pack, "0"), "run 0"),
        (("trace", pack, "0"), "run_id: 0"),
    ):
        done = base.run("gristmill", *words)
        assert done.returncode == 0, done.stderr
        assert expected in done.stdout
    lines = base.run("gristmill", "--help").stdout.splitlines()
    assert not [line for line in lines if line.startswith(("  materialize ", "  ui ", "  drop "))]
    for command in ("materialize", "ui", "fetch", "prune", "retire"):
        done = base.run("gristmill", command)
        assert done.returncode == 1
        assert 'pip install -e ".[pipeline,chess]"' in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_a_file_of_a_person_becomes_a_dataset_in_any_folder(base, vocabulary_root, tmp_path):
    """The lines of README's first screen; the vocabularies are there, as after a first build."""
    root, file, out = tmp_path / "data", tmp_path / "my.jsonl", tmp_path / "out"
    shutil.copytree(drop_folder(vocabulary_root), drop_folder(root))
    rows = [{"question": f"What is {n} + {n}?", "answer": str(2 * n)} for n in range(20)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for words, expected in (
        (("look", file), "question = question, answer = answer"),
        (("build", file, "--data-root", root), "reasoning/gpt2_shards my__train: published"),
        (("ls", root), "current"),
        (("verify", root), "as their records say"),
        (("project", root / "reasoning/raw", out, "--to", "messages"), "train.jsonl  20 rows"),
        (("card", root / "reasoning/raw"), "built by Gristmill"),
    ):
        done = base.run("gristmill", *words)
        assert done.returncode == 0, (words, done.stderr)
        assert expected in done.stdout, words


@pytest.mark.slow
def test_an_editable_install_exposes_the_whole_checkout(checkout, tmp_path):
    environment = Environment(tmp_path / "venv")
    environment.install("-e", checkout)
    names = ["gristmill", "assets", "commands", "definitions", "resources", "sensors", "operate"]
    code = (
        "from importlib.util import find_spec\n"
        f"print(*(find_spec(name).origin for name in {names}), sep='\\n')"
    )
    for origin in environment.python(code).splitlines():
        assert Path(origin).is_relative_to(checkout)
    done = environment.run("gristmill", "materialize", "--all")
    assert done.returncode == 1
    assert "No module named 'dagster'" in done.stderr
