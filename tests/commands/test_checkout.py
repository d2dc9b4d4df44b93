"""Where a command runs, and which data root it takes."""

from __future__ import annotations

import os
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from commands import checkout
from commands.checkout import CheckoutCommand


@click.command(cls=CheckoutCommand)
@click.pass_obj
def show(started_in: Path) -> None:
    click.echo(f"{started_in}|{Path.cwd()}|{os.environ.get('GRISTMILL_DATA')}")


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A folder to type the command in, and a checkout; the variable GRISTMILL_DATA is unset."""
    user, repository = tmp_path / "user", tmp_path / "checkout"
    user.mkdir()
    repository.mkdir()
    monkeypatch.chdir(user)
    monkeypatch.setattr(checkout, "CHECKOUT", repository)
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


@pytest.mark.usefixtures("folders")
def test_the_option_replaces_the_variable():
    assert shown("--data-root", "/mine", GRISTMILL_DATA="other")[-1] == "/mine"


def test_the_variable_is_relative_to_where_the_command_was_typed(folders):
    user, _ = folders
    assert shown(GRISTMILL_DATA="other")[-1] == str(user / "other")
