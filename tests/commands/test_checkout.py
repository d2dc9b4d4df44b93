"""Where a command runs, and which data root it takes."""

from __future__ import annotations

import os
from pathlib import Path

import click
import dagster as dg
import pytest
from click.testing import CliRunner

from commands import checkout
from commands.checkout import CheckoutCommand
from gristmill.contract import GristmillError
from resources import lake


@click.command(cls=CheckoutCommand)
@click.pass_obj
def show(started_in: Path) -> None:
    click.echo(f"{started_in}|{Path.cwd()}|{os.environ.get('GRISTMILL_DATA')}")


@click.command(cls=CheckoutCommand, needs_data_root=False)
def begin() -> None:
    click.echo("begun")


@click.command(cls=CheckoutCommand, needs_data_root=False)
@click.argument("error")
def stop(error: str) -> None:
    raise {"key": KeyboardInterrupt, "run": dg.DagsterExecutionInterruptedError}[error]


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A folder to type the command in, and a checkout; the variable GRISTMILL_DATA is unset."""
    user, repository = tmp_path / "user", tmp_path / "checkout"
    for root in ("mine", "other"):
        (user / root).mkdir(parents=True)
    (repository / "data").mkdir(parents=True)
    monkeypatch.chdir(user)
    monkeypatch.setattr(checkout, "CHECKOUT", repository)
    monkeypatch.setattr(lake, "CHECKOUT", repository)
    # Set and deleted, so that the value that the command sets goes away after the test.
    monkeypatch.setenv("GRISTMILL_DATA", "")
    monkeypatch.delenv("GRISTMILL_DATA")
    return user, repository


def shown(*words: str, **environment: str) -> list[str]:
    done = CliRunner().invoke(show, words, env=environment)
    assert done.exit_code == 0, done.output
    return done.output.strip().split("|")


def test_a_command_runs_in_the_checkout_and_knows_where_it_was_typed(folders):
    user, repository = folders
    assert shown() == [str(user), str(repository), "None"]


def test_a_data_root_is_relative_to_where_the_command_was_typed(folders):
    user, _ = folders
    assert shown("--data-root", "mine")[-1] == str(user / "mine")


def test_the_option_replaces_the_variable(folders):
    user, _ = folders
    assert shown("--data-root", f"{user}/mine", GRISTMILL_DATA="other")[-1] == f"{user}/mine"


def test_the_variable_is_relative_to_where_the_command_was_typed(folders):
    user, _ = folders
    assert shown(GRISTMILL_DATA="other")[-1] == str(user / "other")


@pytest.mark.parametrize(
    ("words", "environment"), [(("--data-root", "typo"), {}), ((), {"GRISTMILL_DATA": "typo"})]
)
def test_a_data_root_that_is_not_there_is_refused_and_not_made(folders, words, environment):
    user, _ = folders
    done = CliRunner().invoke(show, words, env=environment)
    assert isinstance(done.exception, GristmillError)
    assert str(done.exception).startswith(f"{user}/typo: the data root is not there: ")
    assert done.output == ""
    begun = CliRunner().invoke(begin, words, env=environment)
    assert begun.output == "begun\n"
    assert not (user / "typo").exists()


def test_the_data_root_of_the_checkout_is_refused_if_it_is_not_there(folders):
    _, repository = folders
    (repository / "data").rmdir()
    done = CliRunner().invoke(show)
    assert f"{repository}/data: the data root is not there" in str(done.exception)
    assert list(repository.iterdir()) == []


@pytest.mark.usefixtures("folders")
@pytest.mark.parametrize("error", ["key", "run"])
def test_an_interrupt_is_one_line_and_has_a_status_of_its_own(error):
    done = CliRunner().invoke(stop, error)
    assert done.exit_code == 130
    assert done.output == ("interrupted; what stood is untouched; run the same command again\n")
