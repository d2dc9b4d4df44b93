"""What these commands share: the checkout, its Dagster instance, a data root, and the terminal."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import yaml
from click.core import ParameterSource
from rich.console import Console
from rich.markup import escape

from commands import instance as instance_files
from commands.instance import CHECKOUT as CHECKOUT
from commands.instance import CONFIG, HISTORIES, STATE
from gristmill.contract import BadInput, GristmillError
from gristmill.layout import refuse_missing_root, root_of
from gristmill.printable import is_utf8, plain, printable
from gristmill.run import interrupts, locks
from gristmill.run.progress import Progress

# To import Dagster takes longer than a command where nothing is to be done.
if TYPE_CHECKING:
    import dagster as dg
elif find_spec("dagster") is None:
    raise ModuleNotFoundError("No module named 'dagster'")

DATA = "GRISTMILL_DATA"
NO_WAIT = "Stop where another process builds the same partition; else wait for it."
"""Help of the option `--no-wait`."""
SET = (
    "A setting of the asset for this build alone, as seq_len=1024; repeatable. It comes before all "
    "files; gristmill.toml makes it stay. docs/configuration.md lists the fields."
)
"""Help of the option `--set`."""
_MOST_REASON = 300
# Whose errors Dagster lets pass while it reads its settings.
_OF_SETTINGS = ("yaml", "dagster_shared")
_LOCK = "opening.lock"
_PLACES = (*HISTORIES, "local_artifact_storage", "compute_logs")
_GIVEN = f"{__name__}.data_root"
_INTERRUPTED = "DagsterExecutionInterruptedError"
# By name, since the extra may not be installed.
_LOST = {("psycopg2", "OperationalError"), ("dagster_postgres", "DagsterPostgresException")}
# What the libraries of Dagster's storages say of a history that was begun by two at once, or whose
# begin was killed, or whose file is damaged.
_DATABASES = ("alembic", "sqlalchemy")
_BREAKS = ("more than one head", "no such table", "file is not a database", "image is malformed")
_UNWRITABLE = ("readonly database", "unable to open database file", "disk is full")


def settings_of(asset: str, words: Sequence[str]) -> dict[str, Any]:
    """Returns the settings that `--set` gives to an asset.

    Raises click.UsageError for a field that the asset does not have, or a value that it refuses.
    """
    from assets import choices

    try:
        return choices.given_values(asset, words)
    except BadInput as error:
        raise click.UsageError(str(error)) from error


class CheckoutCommand(click.Command):
    """A command that changes into the checkout, since dagster.yaml has paths relative to it.

    It adds an option `--data-root`, which replaces the variable GRISTMILL_DATA; both are
    relative to the folder in which the user typed the command. `context.obj` is that folder.

    needs_data_root: refuse a data root that is not there. False for a command that begins one, or
        that works without; default True.
    interrupted: what to say after Ctrl-C or SIGTERM, which end the command with status 130.
    """

    def __init__(
        self,
        *arguments: Any,
        needs_data_root: bool = True,
        interrupted: str = "what stood is untouched; run the same command again",
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self._needs_data_root, self._interrupted = needs_data_root, interrupted
        self.params.append(
            click.Option(
                ["--data-root"],
                envvar=DATA,
                show_envvar=True,
                type=click.Path(file_okay=False, path_type=Path),
                expose_value=False,
                callback=_use_data_root,
                help="Where drops and artifacts live.  [default: data/ in the checkout]",
            )
        )

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command in the checkout."""
        ctx.obj = Path.cwd()
        os.chdir(CHECKOUT)
        if self._needs_data_root:
            refuse_missing_root(root_of(CHECKOUT))
        try:
            with interrupts.watched():
                return super().invoke(ctx)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) or type(error).__name__ == _INTERRUPTED:
                click.echo(f"interrupted; {self._interrupted}", err=True)
                raise SystemExit(interrupts.STATUS) from None
            if isinstance(error, Exception):
                _explain(error)
            raise


def _explain(error: Exception) -> None:
    """Raise what says in words what is wrong with the history of the instance."""
    said = [each for each in _causes(error) if (_package(each), type(each).__name__) in _LOST]
    if reason := (_line(said[-1]) if said else None):  # the innermost says most
        raise click.ClickException(
            f"the database server of the instance does not answer: {reason}. What was "
            "published stands. When the server is back, call `gristmill prune`, then this "
            "command again"
        ) from error
    if reason := _said_of_history(error, _UNWRITABLE):
        raise click.ClickException(
            f"the history of the instance cannot be written: {reason}. What was published "
            f"stands. Make room and let this user write in {_history_places()}, or set "
            "DAGSTER_HOME to a folder of your own"
        ) from error
    if reason := _said_of_history(error, _BREAKS):
        raise click.ClickException(
            f"the history of the instance is broken: {reason}. What was published stands. "
            f"End what uses the instance, remove {_history_places()}, and call "
            "`gristmill adopt --all`, then this command again"
        ) from error


def _use_data_root(context: click.Context, _: click.Parameter, data_root: Path | None) -> None:
    """Set the variable that `resources.Lake` reads, for this process and its children."""
    if data_root is not None and not context.resilient_parsing:
        if context.get_parameter_source("data_root") is ParameterSource.COMMANDLINE:
            context.meta[_GIVEN] = str(data_root)
        if not is_utf8(Path.cwd() / data_root):
            raise click.BadParameter(
                f"the path {printable(str(data_root))} is not UTF-8: rename the folder, or reach "
                "it through a link whose path is"
            )
        os.environ[DATA] = str(Path.cwd() / data_root)


def called(words: str) -> str:
    """Returns a command for a hint, as rich's markup, with the data root of this call."""
    context = click.get_current_context(silent=True)
    given = None if context is None else context.meta.get(_GIVEN)
    option = "" if given is None else f" --data-root {shlex.quote(plain(given))}"
    return escape(f"gristmill {words}{option}")


def _said_of_history(error: BaseException, texts: Sequence[str]) -> str | None:
    """What a storage says of its history with one of the texts; None for other errors."""
    for each in _causes(error):
        if _package(each) in _DATABASES and any(text in str(each) for text in texts):
            return _line(each).partition(" [SQL:")[0]
    return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and those that it followed from, the outermost first."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _package(error: BaseException) -> str:
    return type(error).__module__.partition(".")[0]


def _line(error: BaseException) -> str:
    return plain(" ".join(str(error).split()), _MOST_REASON)


def _history_places() -> str:
    """The folders of the history, as far as this project's files and Dagster's defaults say."""
    folder = instance_files.state_folder(CHECKOUT, instance_files.dagster_home())
    if folder.name == STATE:
        return f"the folder {folder / 'storage'}"
    return f"the folders history and schedules in {folder}"


def open_instance(*, begin: bool = True) -> dg.DagsterInstance:
    """Returns the instance of DAGSTER_HOME if it is set, else of the checkout, as `dagster dev`.

    begin: write a `dagster.yaml` into a DAGSTER_HOME that has none; default True.

    One process at a time opens it: of two that begin a history in SQLite, Dagster lets each write
    its own version. What `gristmill ui` starts finds the history that it has begun.

    Raises GristmillError for a DAGSTER_HOME that is none, a `dagster.yaml` that Dagster does not
    take, and a checkout that cannot be written.
    """
    import dagster as dg

    from assets import worker
    from commands import dagster_private

    home = instance_files.dagster_home()
    worker.tune_databases()
    dagster_private.keep_engines()
    try:
        with _alone(home):
            if home is not None:
                _check_home(home, begin)
            with _settings_named((home or CHECKOUT) / CONFIG):
                instance = (
                    dg.DagsterInstance.from_config(str(CHECKOUT))
                    if home is None
                    else dg.DagsterInstance.get()
                )
            instance_files.note_opened(CHECKOUT, home)
            return instance
    except OSError as error:
        if home is not None:
            raise
        raise GristmillError(
            f"{CHECKOUT}: the history of runs cannot be kept there ({error.strerror}): set "
            "DAGSTER_HOME to an empty folder of your own"
        ) from error


@contextmanager
def _settings_named(file: Path) -> Iterator[None]:
    """Name the `dagster.yaml` that Dagster does not take, and what it says of it."""
    try:
        yield
    except Exception as error:
        import dagster as dg

        # Text that is no YAML or no mapping, a class that is not there, a wrong field.
        said = list(getattr(error, "errors", ())) or [error]
        known = isinstance(error, dg.DagsterInvalidConfigError | UnicodeDecodeError)
        if not known and _package(error) not in _OF_SETTINGS:
            raise
        reason = plain(" ".join(str(getattr(said[0], "message", said[0])).split()), _MOST_REASON)
        raise GristmillError(f"{file}: Dagster does not take it: {reason}: mend it") from error


@contextmanager
def _alone(home: Path | None) -> Iterator[None]:
    """Hold the lock of opening an instance; in a folder that is read-only none begins."""
    path = instance_files.state_folder(CHECKOUT, home) / _LOCK
    progress = Progress(lambda report: click.echo(str(report), err=True))
    with ExitStack() as held:
        with suppress(locks.NotWritable):
            held.enter_context(locks.locked(path, "the instance", wait=True, progress=progress))
        yield


def _check_home(home: Path, begin: bool) -> None:
    """Refuse a DAGSTER_HOME whose history would be in another folder."""
    file = home / CONFIG
    if not file.exists():
        if begin and (CHECKOUT / CONFIG).is_file():
            _begin_home(file)
        return
    if file.resolve() == (CHECKOUT / CONFIG).resolve():
        return
    try:
        settings = yaml.safe_load(file.read_text())
    except (yaml.YAMLError, UnicodeDecodeError):
        return  # Dagster says what is wrong
    for name, folder in _history_folders(settings):
        if not Path(folder).is_absolute():
            raise GristmillError(
                f"{file}: {name}: base_dir: {printable(folder)} is relative to the checkout, which "
                f"has the history of its own instance there: write {home / folder}, or remove the "
                "file, and `gristmill ui` and `materialize` write one"
            )


def _history_folders(settings: Any) -> Iterator[tuple[str, str]]:
    """The entries of a dagster.yaml that say in which folder SQLite files are."""
    for name in HISTORIES if isinstance(settings, dict) else ():
        entry = settings.get(name)
        for place in ("sqlite", "config"):
            config = entry.get(place) if isinstance(entry, dict) else None
            folder = config.get("base_dir") if isinstance(config, dict) else None
            if isinstance(folder, str):
                yield name, folder


def _begin_home(file: Path) -> None:
    """Write the dagster.yaml of the checkout, but for its places: without these it is all here."""
    settings = yaml.safe_load((CHECKOUT / CONFIG).read_text()) or {}
    kept = {name: value for name, value in settings.items() if name not in _PLACES}
    try:
        handle, scratch = tempfile.mkstemp(dir=file.parent, prefix=f".{CONFIG}.")
    except OSError as error:
        raise GristmillError(f"DAGSTER_HOME={file.parent}: {error.strerror}") from error
    with os.fdopen(handle, "w") as written:
        written.write(f"# As {CHECKOUT / CONFIG}; the history is in this folder.\n")
        yaml.safe_dump(kept, written, sort_keys=False)
    Path(scratch).chmod(0o644)
    Path(scratch).rename(file)


# A file or a pipe has no width: there is room for a table, unless COLUMNS says otherwise.
_HAS_WIDTH = sys.stdout.isatty() or "COLUMNS" in os.environ
console = Console(width=None if _HAS_WIDTH else 160, highlight=False)


def say(line: str) -> None:
    """Print one line without breaking it.

    line: text with rich's markup; names and reasons in it, which may come from drops, go
        through `shown`.
    """
    console.print(line, soft_wrap=True)


def shown(text: str) -> str:
    """Returns text of any origin as rich's markup that shows it on one line.

    text: any string. Characters that a terminal would obey are replaced, and a long text is cut
        with a count.
    """
    return escape(plain(" ".join(text.split())))


def shown_lines(text: str) -> str:
    """Returns text of any origin as rich's markup that shows it on its own lines.

    Lines after the first are indented, so that none passes for a line of the command; what `shown`
    says holds for the rest.
    """
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return escape(plain("\n  ".join(filter(None, lines))))
