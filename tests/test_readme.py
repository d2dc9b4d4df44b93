"""README is typed in a fresh clone, line by line, in the environment that `make run` makes."""

import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from bench.servers import copy_checkout, plain_environment
from gristmill.run.kernels import CACHE_DIR, cache_folder
from gristmill.synth.samples import write_drop
from tests.free_port import free_port
from tests.pages import blocks, typed
from tests.paths import CHECKOUT, REAL_DATA, ran
from tests.requirements import cannot_run
from tests.sample_root import SampleRoot

README = CHECKOUT / "README.md"
TASKS = 12
"""Tasks of each half of ARC: each has a thousand augmentations."""


def test_a_fragment_of_readme_says_why_it_is_not_typed():
    fragments = [block for block in blocks(README) if block.why]
    begins = [" ".join(block.code.split()[:2]) for block in fragments]
    assert begins == ["pip install", "make ui", "pip install"]


def test_a_block_that_fails_is_named_with_its_line(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "one\n\n```sh\nx=1\n```\n[fragment]: # (asks)\n\n```sh\nexit 3\n```\n"
        "\n```python\nprint(7)\n```\n```sh\ntest $x = 2\necho no\n```\n"
    )
    done = ran(["bash", "-c", typed(blocks(page))])
    assert (done.returncode, done.stdout) == (1, "7\n")
    assert done.stderr == "failed in page.md:15: test $x = 2\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The files of a person, under the names that README has."""
    if not REAL_DATA.is_dir():
        cannot_run("real-data", f"there is no {REAL_DATA}")
    home = tmp_path / "home"
    shutil.copytree(REAL_DATA / "macroxue/d6_v1", home / "games")
    shutil.copytree(REAL_DATA / "reasoning/gsm8k", home / "gsm8k")
    rows = [{"problem": f"What is {n} squared?", "solution": f"{n} times {n}."} for n in range(9)]
    (home / "my_math").mkdir()
    (home / "my_math/train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_drop(home / "synth", files=4, seed=2, done=False)
    games = REAL_DATA / "chess/pgn/lichess_elite_2013-09_first10.pgn"
    shutil.copy(games, home / "lichess_elite_2024-03.pgn")
    for half in ("training", "evaluation"):
        (home / "ARC-AGI/data" / half).mkdir(parents=True)
        for task in sorted((REAL_DATA / "puzzles/arc" / half).glob("*.json"))[:TASKS]:
            shutil.copy(task, home / "ARC-AGI/data" / half)
    return home


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """What a person clones: the files of the checkout in a commit."""
    source = tmp_path / "REPOSITORY"
    copy_checkout(source)
    name = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in (("init", "-q"), ("add", "-A"), (*name, "commit", "-q", "-m", "all")):
        subprocess.run(["git", *words], cwd=source, check=True)
    return source


def _type(
    script: str, folder: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    done = ran(["bash", "-c", script], cwd=folder, env=environment)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done


def _answer(port: int) -> str:
    """What a server says of itself, once it is up."""
    for _ in range(240):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/server_info", timeout=30) as page:
                return str(page.read().decode())
        except OSError:
            time.sleep(0.5)
    raise AssertionError(f"nothing answers on port {port}")


@pytest.mark.slow
@pytest.mark.real
def test_readme_works_as_it_is_typed_in_a_fresh_clone(home, repository, tmp_path):
    caches = {
        name: os.environ.get(name, str(Path.home() / ".cache" / folder))
        for name, folder in (("UV_CACHE_DIR", "uv"), ("PIP_CACHE_DIR", "pip"))
    }
    environment = {
        **plain_environment(),
        **caches,
        "HOME": str(home),
        CACHE_DIR: str(cache_folder() or ""),  # to compile all kernels takes 90 seconds
    }
    _type(typed(blocks(README)), repository.parent, environment)

    clone = tmp_path / "gristmill"
    records = SampleRoot(clone / "data", home).records()
    built = {(record.asset, record.partition) for _, record in records}
    assert built >= {
        ("macroxue/values", "games"),
        ("chess/splice_cache", "2024-03"),
        ("synth/kd_shards", "03"),
        ("reasoning/alignment", "gsm8k__test"),
        ("puzzles/arc", "arc-1-aug-20"),
    }
    manifest = json.loads((clone / "data/reasoning/tokenized/gpt2/manifest.json").read_text())
    tokens = sum(each["text_tokens"] for each in manifest if each["dataset"] == "gsm8k")
    aligned = [
        json.loads(line)["step_labels"]
        for file in (clone / "data/reasoning/alignment/gsm8k").glob("*.align.jsonl")
        for line in file.read_text().splitlines()
    ]
    said = f"{len(aligned):,} records become {tokens:,} tokens and {sum(map(len, aligned)):,} steps"
    assert said in README.read_text()

    # A copy of the library in the place of the checkout, as of an install without -e.
    replaced = ".venv/bin/python -m pip install -q --no-deps --no-build-isolation ."
    _type(f"{replaced} && make setup && .venv/bin/gristmill build --help", clone, environment)

    port = free_port()
    ui = subprocess.Popen(
        ["make", "ui", f"PORT={port}"],
        cwd=clone,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        assert "dagster_webserver_version" in _answer(port)
    finally:
        os.killpg(ui.pid, signal.SIGTERM)
        ui.wait(timeout=120)
