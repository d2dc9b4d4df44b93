"""The group `gristmill`: it lists every command, and imports Dagster only when one needs it."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import ModuleType

import click
import pytest
from click.testing import CliRunner

from gristmill import command_group, families
from gristmill.cli import main
from gristmill.command_group import ENTRY_POINTS, GROUPS, OWN
from gristmill.contract import GristmillError
from tests.paths import CHECKOUT

FAILURES = {
    "broken": OSError(5, "Input/output error", "drops/x"),
    "gone": FileNotFoundError(2, "No such file or directory", "drops/x"),
}
COMMANDS = {
    "Begin": ["samples", "tokenizers", "look", "drop", "fetch"],
    "Build": ["materialize", "ui", "build", "parts"],
    "Look": ["ls", "show", "browse", "trace", "audit"],
    "Check": ["verify", "doctor"],
    "Train": ["mix", "batch", "replay", "seen", "consumed"],
    "Share": ["push", "pull", "card", "project", "stage"],
    "Clean": ["remove", "retire", "prune", "adopt", "unstage"],
}


class Point:
    """An entry point, without an installed package."""

    def __init__(self, load: Callable[[], object]) -> None:
        self.load, self.value, self.module = load, "somewhere:command", "somewhere"


def missing(module: str) -> Callable[[], object]:
    def load() -> object:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    return load


def test_help_lists_every_command_without_importing_dagster() -> None:
    code = (
        "import sys\nfrom gristmill.cli import main\n"
        "try:\n    main(['--help'])\n"
        "except SystemExit as end:\n    print(end.code, 'dagster' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *lines, last = done.stdout.splitlines()
    assert last == "0 False"
    after = [line for line in lines[lines.index("Begin:") :] if line]
    found: dict[str, list[str]] = {}
    for line in after:
        if not line.startswith(" "):
            names = found.setdefault(line.removesuffix(":"), [])
        else:
            name, *words = line.split()
            names.append(name)
            assert words and words[-1].endswith(".")
    assert found == COMMANDS


_OF_RUNS = {"dagster", "sqlalchemy", "alembic", "torch", "rich"}
_OF_BUILDS = _OF_RUNS | {"numpy", "numba", "pyarrow", "polars"}


@pytest.mark.parametrize(
    ("words", "unused"),
    [
        (["--help"], _OF_BUILDS | {"pydantic"}),
        (["show", "--help"], _OF_BUILDS),
        (["trace", "--help"], _OF_BUILDS),
        (["browse", "--help"], _OF_BUILDS),
        (["look", "--help"], _OF_BUILDS | {"pydantic"}),
        (["mix", "--help"], _OF_BUILDS | {"pydantic"}),
        (["push", "--help"], _OF_BUILDS | {"pydantic"}),
        (["card", "--help"], _OF_BUILDS | {"pydantic"}),
        (["ls", "."], _OF_BUILDS),
        (["verify", "."], _OF_RUNS),
        (["doctor", "."], _OF_BUILDS),
    ],
)
def test_a_command_imports_what_it_needs_alone(
    words: list[str], unused: set[str], tmp_path: Path
) -> None:
    code = (
        "import sys\nfrom gristmill.cli import main\n"
        f"try:\n    main({words!r})\nexcept SystemExit:\n    pass\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=environment,
    )
    imported = set(done.stdout.splitlines()[-1].split())
    assert "gristmill" in imported
    assert imported & unused == set()


def test_garbage_is_collected_again_after_a_command_was_imported_or_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    collected: list[bool] = []

    def load() -> object:
        collected.append(gc.isenabled())
        raise ImportError("no")

    monkeypatch.setattr(command_group, "_entry_points", lambda: {"ui": Point(load)})
    assert isinstance(CliRunner().invoke(main, ["ui"]).exception, ImportError)
    assert collected == [False]
    assert gc.isenabled()
    assert CliRunner().invoke(main, ["show", "--help"]).exit_code == 0
    assert gc.isenabled()


def test_every_command_has_a_group_and_what_the_command_line_lacks_is_an_entry_point() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    points = project["entry-points"][ENTRY_POINTS]
    listed = [name for lines in GROUPS.values() for name in lines]
    assert len(set(listed)) == len(listed)
    assert set(listed) == {*main.commands, *OWN, *points}
    for name, module in OWN.items():
        assert command_group._load_own(name, module).name == name
    for name, value in points.items():
        command = metadata.EntryPoint(name, value, ENTRY_POINTS).load()
        assert isinstance(command, click.Command)
        assert command.name == name
        assert command.help


@pytest.mark.parametrize("module", ["commands", "dagster", ""])
def test_a_command_that_is_not_installed_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    points = {"materialize": Point(missing(module))} if module else {}
    monkeypatch.setattr(command_group, "_entry_points", lambda: points)
    done = CliRunner().invoke(main, ["materialize", "--all"])
    assert done.exit_code == 1
    assert done.output.count("\n") == 1
    assert 'pip install -e ".[pipeline,chess]"' in done.output
    assert not module or f"No module named '{module}'" in done.output


def test_a_command_of_another_package_is_called_from_its_entry_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @click.command("weigh-mill")
    def weigh() -> None:
        click.echo("the mill weighs 9")

    point = Point(lambda: weigh)
    monkeypatch.setattr(command_group, "_entry_points", lambda: {"weigh-mill": point})
    assert "weigh-mill" in CliRunner().invoke(main, ["--help"]).output
    assert CliRunner().invoke(main, ["weigh-mill"]).output == "the mill weighs 9\n"


def test_an_unknown_command_is_a_usage_error() -> None:
    done = CliRunner().invoke(main, ["materialise"])
    assert done.exit_code == 2
    assert "No such command 'materialise'. Did you mean 'materialize'?" in done.output
    done = CliRunner().invoke(main, ["qqq"])
    assert (done.exit_code, done.output.splitlines()[-1]) == (2, "Error: No such command 'qqq'.")


@pytest.mark.parametrize("command", ["ls", "doctor", "audit"])
def test_a_data_root_that_nobody_gave_and_that_is_not_there_is_asked_for(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, [command], env={"GRISTMILL_DATA": None})
    assert done.exit_code == 2
    said = " ".join(done.output.split())
    assert "Directory 'data' does not exist. Give the data root, or set GRISTMILL_DATA" in said
    assert "env var" not in said
    given = CliRunner().invoke(main, [command], env={"GRISTMILL_DATA": "gone"})
    assert "'gone' does not exist." in given.output
    assert "Give the data root" not in given.output


def own(monkeypatch: pytest.MonkeyPatch, **members: object) -> None:
    """Have a family with the command `weigh-drop`, whose module has these members."""
    module = ModuleType("a_family_commands")
    vars(module).update(members)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    line = "Weigh a drop."
    monkeypatch.setattr(
        families,
        "commands",
        lambda: {"weigh-drop": families.OwnCommand(module.__name__, "Look", line)},
    )


def test_a_command_of_a_family_is_listed_without_its_module_and_called_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @click.command("weigh-drop")
    @click.argument("drop")
    def weigh(drop: str) -> None:
        if drop == "none":
            raise GristmillError("there is no drop")
        if drop in FAILURES:
            raise FAILURES[drop]
        click.echo(f"{drop} weighs 3")

    own(monkeypatch)
    listed = CliRunner().invoke(main, ["--help"])
    assert "weigh-drop   Weigh a drop." in listed.output
    own(monkeypatch, weigh_drop=weigh)
    assert CliRunner().invoke(main, ["weigh-drop", "a"]).output == "a weighs 3\n"
    failed = CliRunner().invoke(main, ["weigh-drop", "none"])
    assert (failed.exit_code, failed.output) == (1, "Error: there is no drop\n")
    failed = CliRunner().invoke(main, ["weigh-drop", "broken"])
    assert failed.exit_code == 1 and failed.output.startswith(
        "Error: drops/x: Input/output error: the disk or the network failed (see `dmesg`): mend it"
    )
    assert CliRunner().invoke(main, ["weigh-drop", "gone"]).exception is FAILURES["gone"]


def test_a_command_that_a_catalog_names_and_its_module_lacks_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own(monkeypatch, weigh_drop=len)
    done = CliRunner().invoke(main, ["weigh-drop"])
    assert isinstance(done.exception, TypeError)
    assert "a_family_commands: weigh-drop" in str(done.exception)


def test_a_family_shadows_no_other_command_and_defines_what_its_catalog_names() -> None:
    context = click.Context(main)
    for name, (_, group, line) in families.commands().items():
        assert group in GROUPS
        assert name not in {*main.commands, *(late for lines in GROUPS.values() for late in lines)}
        _, command, _ = main.resolve_command(context, [name])
        assert command is not None
        assert (command.name, command.get_short_help_str(80)) == (name, line)


def completion(instruction: str, *words: str) -> str:
    """What the installed command prints for a shell."""
    done = subprocess.run(
        [Path(sys.executable).with_name("gristmill")],
        env={
            **os.environ,
            "_GRISTMILL_COMPLETE": instruction,
            "COMP_WORDS": " ".join(("gristmill", *words)),
            "COMP_CWORD": str(len(words)),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("bash", "complete -o nosort -F _gristmill_completion gristmill"),
        ("zsh", "compdef _gristmill_completion gristmill"),
        ("fish", "complete --no-files --command gristmill"),
    ],
)
def test_the_completion_script_of_a_shell_is_printed(shell: str, line: str) -> None:
    assert line in completion(f"{shell}_source")


def test_commands_and_their_options_are_completed() -> None:
    assert sorted(completion("bash_complete", "re").split()) == [
        "plain,remove",
        "plain,replay",
        "plain,retire",
    ]
    assert completion("bash_complete", "prune", "--p").split() == ["plain,--parts"]


def test_an_interrupt_of_any_command_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gristmill.vocabularies.fetch.fetch", stop)
    done = CliRunner().invoke(main, ["tokenizers"])
    assert (done.exit_code, done.output) == (130, "interrupted\n")
