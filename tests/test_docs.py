"""The blocks of the pages for users run as they stand, on artifacts of the samples."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click
import pytest

from gristmill.cli import main
from tests.macroxue.games import play
from tests.macroxue.step_drops import save, self_play
from tests.pages import Block, blocks
from tests.paths import CHECKOUT, ran
from tests.sample_root import SampleRoot
from tests.typed_page import commands

DOCS = CHECKOUT / "docs"
ELSEWHERE = {
    "adding-a-family.md": "tests/architecture/test_toy_family.py",
    "adding-a-puzzle.md": "tests/examples/test_lights_out.py",
    "recipes.md": "tests/architecture/test_recipes.py",
}
"""Pages whose code tests of their own write into files; those of first-hour/ have one, too."""
PAGES = {
    page.relative_to(DOCS).as_posix(): found
    for page in sorted([*DOCS.glob("*.md"), *DOCS.glob("formats/*.md")])
    if (found := blocks(page))
}
TYPED = [name for name in PAGES if name not in ELSEWHERE]
RUNNING = [name for name in TYPED if not all(block.why for block in PAGES[name])]


def _home(root: SampleRoot) -> None:
    """The files of a person whom the pages speak to, beside the data root."""
    data, home = root.data, root.data.parent
    drops = data / "drops"
    shutil.copytree(drops / "macroxue/sample_d6", home / "games")
    shutil.copy(drops / "chess/sample_2024-02.pgn", home / "lichess_elite_2024-03.pgn")
    shutil.copytree(drops / "reasoning/gsm8k", home / "gsm8k")
    save(home / "pool", self_play([play(3, 9), play(4, 9)], [7, 5])).joinpath("steps.toml").unlink()
    for folder in ("games", "gsm8k"):
        (home / folder / ".sample").unlink()
    own = shutil.ignore_patterns("provenance*")
    shutil.copytree(data / "synth_harmony", home / "my_harmony", ignore=own)
    # Of so few rows the default holds out none, and Megatron blends no empty shard.
    shutil.copy(drops / "synth/samples/gristmill.toml", home / "my_harmony")
    shutil.copytree(data / "puzzles/maze-sample", home / "mazes", ignore=own)
    shutil.copy(drops / "tokenizers/tiny/tiny.tiktoken", home / "my.tiktoken")
    (home / "my_chat").mkdir()
    for name in ("corpus.toml", "chat_template.jinja", "talks.jsonl"):
        text = (drops / "chat/talks" / name).read_text()
        (home / "my_chat" / name).write_text(text.replace('"talks"', '"my_chat"'))
    page = (DOCS / "tokenizers.md").read_text()
    (home / "maths.toml").write_text(page.partition("```toml\n")[2].partition("```")[0])
    (home / "my_math").mkdir()
    rows = [{"question": f"How many are {n} and 1?", "answer": f"{n + 1}"} for n in range(8)]
    (home / "my_math/train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.slow
@pytest.mark.parametrize("page", RUNNING)
def test_a_page_works_as_it_is_typed(page: str, sample_root: SampleRoot, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    typed = [asdict(block) for block in PAGES[page] if not block.why]
    root = sample_root.copy(tmp_path)
    _home(root)
    plain = {name: value for name, value in os.environ.items() if "GRISTMILL" not in name}
    here = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(CHECKOUT),
        "GRISTMILL_DATA": str(root.data),
        "DAGSTER_HOME": str(root.home),
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
    }
    done = ran(
        [sys.executable, "-m", "tests.typed_page"],
        cwd=tmp_path,
        env=plain | here,
        input=json.dumps(typed),
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


def _faults(block: Block) -> Iterator[str]:
    """What commands of Gristmill have wrong: their names, their options, the number of words."""
    for words in commands(block.code):
        for at, word in enumerate(words[:-1]):
            name = words[at + 1]
            if word != "gristmill" or (at and words[at - 1] not in ("exec", "&&")):
                continue
            with click.Context(main) as context:
                try:
                    command = main.resolve_command(context, [name])[1]
                    assert command is not None
                    parser = command.make_parser(click.Context(command))
                    _, left, _ = parser.parse_args(words[at + 2 :])
                    if left:
                        yield f"{block.name}: {' '.join(words)}: {left} is too much"
                except click.UsageError as error:
                    yield f"{block.name}: {' '.join(words)}: {error.format_message()}"


def test_every_command_of_the_pages_is_there_with_its_options() -> None:
    """Fragments are looked at, too: nothing runs them."""
    every = [*PAGES.values(), *map(blocks, DOCS.glob("first-hour/*.md"))]
    shell = [block for page in every for block in page if block.language == "sh"]
    assert [fault for block in shell for fault in _faults(block)] == []


def test_a_command_that_is_not_there_is_a_fault() -> None:
    wrong = """gristmill lss
gristmill ls --assets x   # a comment
exec gristmill ls one two
gristmill push one two \\
    three --parallel
gristmill push one two three
"""
    faults = [fault.partition(": ")[2] for fault in _faults(Block("p.md", 1, "sh", wrong, ""))]
    assert [fault.partition(":")[0] for fault in faults] == [
        *("gristmill lss", "gristmill ls --assets x", "exec gristmill ls one two"),
        "gristmill push one two three --parallel",
    ]
    assert faults[2].endswith(": ['two'] is too much")


def test_a_fragment_says_why_it_does_not_run_and_what_is_typed_elsewhere_has_its_test() -> None:
    fragments = [block for name in TYPED for block in PAGES[name] if block.why]
    assert all(len(block.why.split()) > 2 for block in fragments)
    assert len(fragments) * 2 <= sum(len(PAGES[name]) for name in TYPED)
    for page, test in ELSEWHERE.items():
        assert page in PAGES
        assert "PAGE" in (CHECKOUT / test).read_text(), test
