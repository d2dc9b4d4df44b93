"""The tables of `gristmill.toml`: which there are, who may have them, and checking a file.

A file of the data root has any table; the file of a drop has the tables of its inbox. What each
field may hold is in `fields`; which tables a family has is in its catalog. Here, too: settings that
a command gives to one asset, as `--set seq_len=1024`, and the order in which values are looked up.
Source: docs/configuration.md.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, time
from functools import lru_cache
from pathlib import Path
from time import time_ns
from typing import Annotated, Any, Final, Literal, TypeVar
from urllib.parse import SplitResult, urlsplit

from gristmill.contract import BadInput
from gristmill.printable import cut, printable
from gristmill.settings.fields import (
    NO_EFFECT,
    Checked,
    Count,
    FieldRule,
    Ge,
    Gt,
    Help,
    Le,
    Positive,
    Unit,
    did_you_mean,
    equal,
    fields_with,
    nearest,
    rules_of,
    shown,
)
from gristmill.untrusted.files import CLOCK_TICK_NS, REFUSE_LINKS, LinkRule
from gristmill.untrusted.toml import read_toml

FILE: Final = "gristmill.toml"
_MOST_NAME: Final = 60
_Path = tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """One table of `gristmill.toml`.

    name: as in `macroxue/pack`, which is the table `[macroxue.pack]`.
    config: config dataclass whose fields are the keys.
    inboxes: names of the inboxes whose drops may have the table in a file of their own; default
        none: the table is read from the data root's file only.
    root: dataclass of further keys that only the data root's file may have; default None.
    not_set: fields that no file sets, with the reason, as `the names are those in members`.
    defaults: values of the asset that replace the defaults of the config; default none.
    """

    name: str
    config: type[Any]
    inboxes: Sequence[str] = ()
    root: type[Any] | None = None
    not_set: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)

    @property
    def header(self) -> str:
        """The table as a file writes it: `[macroxue.pack]`."""
        return f"[{self.name.replace('/', '.')}]"

    def rules(self, in_root: bool = True) -> dict[str, FieldRule]:
        """Returns the rules of the keys, by name.

        in_root: whether the file is the data root's; default True.
        """
        known = {**rules_of(self.config)}
        if in_root and self.root is not None:
            known |= rules_of(self.root)
        return {
            name: replace(rule, default=self.defaults.get(name, rule.default))
            for name, rule in known.items()
            if name not in self.not_set
        }

    def checked(self, file: Path | str, values: object, in_root: bool = True) -> dict[str, Any]:
        """Returns the values of the table as the config holds them.

        file: the file that the values are from, or the option of a command.
        values: the table as it was read.
        in_root: whether the file is the data root's; default True.

        Raises BadInput, naming file, table and key, for a value that is no table, an unknown
        key, and a value that its field cannot hold.
        """
        if not isinstance(values, dict):
            raise BadInput(file, f"{self.header} must be a table, not {shown(values)}")
        rules = self.rules(in_root)
        for name, value in values.items():
            if name not in rules:
                raise BadInput(file, self._unknown_key(name, rules))
            if reason := rules[name].refusal(value):
                raise BadInput(file, f"{self.header} {name} = {shown(value)}: {reason}")
        return {name: rules[name].normal(value) for name, value in values.items()}

    def changes(self, given: Mapping[str, Any], recorded: Mapping[str, Any]) -> Iterator[str]:
        """Yields what the next build takes in place of what a record has, one text for each key.

        given: what files give now.
        recorded: the config of the record. Keys that it lacks or that change no output are left
            out.
        """
        skipped = fields_with(self.config, NO_EFFECT)
        for name, rule in self.rules(in_root=False).items():
            now = given.get(name, rule.default)
            if name in recorded and name not in skipped and not equal(recorded[name], now):
                yield f"{name} is now {shown(now)}, was {shown(recorded[name])}"

    def _unknown_key(self, name: str, rules: Mapping[str, FieldRule]) -> str:
        where = f"{self.header} {_named(name)}"
        if name in self.not_set:
            return f"{where}: is not allowed: {self.not_set[name]}"
        if name in self.rules():
            return f"{where}: is read from the data root's {FILE} only: move it there"
        return f"{where}: unknown key{did_you_mean(name, rules)}; the keys are {', '.join(rules)}"


class Settings(dict[str, Any]):
    """The checked values of one table, by key, and the file that they are from."""

    def __init__(self, values: Mapping[str, Any], file: Path) -> None:
        super().__init__(values)
        self.file = file


def read_root(file: Path, table: Table, known: Mapping[str, Table]) -> dict[str, Any]:
    """Returns one table of the data root's file; an empty one where the file does not have it.

    Tables of other families are not looked into, so that one family's mistake stops no other.
    Raises BadInput for a file that is not TOML, an unknown table beside this one or at the top, and
    as `Table.checked`.
    """
    found: dict[str, Any] = {}
    # The file of the data root is a person's own, and may be a link.
    real = Path(os.path.realpath(file))
    for other, values in _tables(file, _content(real), known, within=table):
        if other is table:
            found = table.checked(file, values)
    return found


def _content(file: Path) -> Mapping[str, Any]:
    """The data root's file; a command asks for its tables thousands of times."""
    found = file.stat()
    # Within one tick of the kernel's clock a file may change twice and have the same times.
    if time_ns() - found.st_ctime_ns < CLOCK_TICK_NS:
        return read_toml(file, root=file.parent)
    return _kept(file, found.st_dev, found.st_ino, found.st_size, found.st_ctime_ns)


@lru_cache(maxsize=16)
def _kept(file: Path, *_stamp: int) -> Mapping[str, Any]:
    return read_toml(file, root=file.parent)


def read_drop(
    file: Path, inbox: str, known: Mapping[str, Table], links: LinkRule = REFUSE_LINKS
) -> dict[str, dict[str, Any]]:
    """Returns the tables of a drop's file, by name. All of them are checked.

    Raises BadInput for a file that is not TOML or no regular file, a table that is unknown or is
    not read from a drop of this inbox, and as `Table.checked`.
    """
    content = read_toml(file, root=file.parent.parent, links=links)
    found = {}
    here = {name: table for name, table in known.items() if inbox in table.inboxes}
    for table, values in _tables(file, content, known, here=here.values()):
        if table.name not in here:
            raise BadInput(
                file,
                f"{table.header} is not read from a drop in drops/{inbox}/, but from the data "
                f"root's {FILE}: move the table there",
            )
        found[table.name] = table.checked(file, values, in_root=False)
    return found


def drop_refusal(
    drop: Path, known: Mapping[str, Table], links: LinkRule = REFUSE_LINKS
) -> str | None:
    """Returns why the settings of a drop are refused; None if they are right or there are none."""
    file = drop / FILE
    if not os.path.lexists(file):
        return None
    try:
        read_drop(file, drop.parent.name, known, links)
    except BadInput as error:
        return str(error)
    return None


def _tables(
    file: Path,
    content: Mapping[str, Any],
    known: Mapping[str, Table],
    within: Table | None = None,
    here: Collection[Table] | None = None,
) -> Iterator[tuple[Table, object]]:
    """The known tables of a file. Raises BadInput for a name that leads to none."""
    paths = {tuple(name.split("/")): table for name, table in known.items()}
    groups = {path[:depth] for path in paths for depth in range(len(path))}
    wanted = tuple(within.name.split("/")) if within is not None else None
    waiting: list[tuple[_Path, Mapping[str, Any]]] = [((), content)]
    while waiting:
        group, names = waiting.pop()
        for name, value in names.items():
            path = (*group, name)
            if path in paths:
                inner = _inner_tables(path, value, paths)
                if inner and isinstance(value, dict):
                    waiting.append((path, {key: value[key] for key in inner}))
                    value = {key: value[key] for key in value if key not in inner}  # noqa: PLW2901
                yield paths[path], value
            elif path not in groups:
                listed = known.values() if here is None else here
                raise BadInput(file, _unknown_table(path, value, listed))
            elif wanted is not None and wanted[: len(path)] != path:
                continue
            elif isinstance(value, dict):
                waiting.append((path, value))
            else:
                raise BadInput(file, f"[{name}] must hold tables, not {shown(value)}")


def _inner_tables(path: _Path, value: object, paths: Collection[_Path]) -> list[str]:
    """The names in a table that lead to tables of their own, as `macroxue` in `[inbox]`."""
    inner = {other[len(path)] for other in paths if other[: len(path)] == path != other}
    if not inner or not isinstance(value, dict):
        return []
    return [key for key in value if key in inner or isinstance(value[key], dict)]


def _unknown_table(path: _Path, value: object, here: Collection[Table]) -> str:
    headers = [table.name.replace("/", ".") for table in here]
    named = ", ".join(table.header for table in here)
    listed = f"the tables are {named}" if headers else "no table is read here"
    if not isinstance(value, dict):
        place = f"[{_named(*path[:-1])}] has" if len(path) > 1 else "outside of a table is"
        return f"{place} the unknown key {_named(path[-1])}; {listed}"
    # `[macroxu.pack]` is read as a table in a table: the whole name is nearest to a known one.
    inner = next(iter(value), "")
    whole = (*path, inner) if isinstance(value.get(inner), dict) else path
    # `[pack]` is like the end of `macroxue.pack`, and not like the whole of it.
    close = nearest(".".join(whole), headers) or next(
        (name for name in headers if nearest(".".join(whole), [name.rpartition(".")[2]])), None
    )
    near = "" if close is None else f": did you mean [{close}]?"
    return f"[{_named(*whole)}] is an unknown table{near}; {listed}"


def _named(*path: str) -> str:
    """The name of a key or a table; a part without a character that is seen is quoted."""
    shown = ".".join(name if name.strip() else f'"{name}"' for name in path)
    return cut(printable(shown), _MOST_NAME)


Config = TypeVar("Config")


def resolve(
    config: type[Config],
    settings: Settings,
    chosen: Mapping[str, Any],
    *,
    defaults: Mapping[str, Any] | None = None,
    filled_in: Mapping[str, Any] | None = None,
) -> Config:
    """Returns the builder's config: chosen values, else those of the settings, else the defaults.

    settings: values from `gristmill.toml`, by field. Keys that are no fields of `config` belong
        to the asset, and are left out.
    filled_in: values that the asset fills in itself; chosen ones come before them. Default none.

    Raises BadInput if the config refuses a value, naming the file if all values come from it.
    """
    rules = rules_of(config)
    given = {**settings, **(filled_in or {}), **chosen}
    values = {**(defaults or {}), **given}
    values = {name: rules[name].normal(value) for name, value in values.items() if name in rules}
    try:
        return config(**values)
    except (TypeError, ValueError) as error:
        listed = ", ".join(f"{name} = {shown(value)}" for name, value in given.items())
        place = settings.file if settings and not chosen else "configuration"
        raise BadInput(place, f"{error} (given: {listed})") from error


OPTION: Final = "--set"
"""The option, which errors name where those of a file name the file."""

_WORD: Final = re.compile(r"[^\s\"'\[\]{},#]*")


def given_values(table: Table, words: Sequence[str]) -> dict[str, Any]:
    """Returns the values of a table that are given on the command line, as the config holds them.

    words: each `field=value`. The value is written as in TOML; a text of one word, such as
        `packed46` or `2026-11-22`, needs no quotation marks.

    Raises BadInput for a word of another form, a field that is given twice, and as `Table.checked`.
    """
    values: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        name = name.strip()
        if not equals or not name:
            raise BadInput(OPTION, f"{shown(word)}: write it as field=value")
        if name in values:
            raise BadInput(OPTION, f"{name} is given twice: give it once")
        values[name] = _value(name, text.strip())
    return table.checked(OPTION, values, in_root=False)


def _value(name: str, text: str) -> Any:
    try:
        found = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        found = {}
    # No field holds a date: the day of a report is a text.
    if found.keys() == {"value"} and not isinstance(found["value"], date | time):
        return found["value"]
    if _WORD.fullmatch(text):
        return text
    raise BadInput(
        OPTION,
        f"{name}: {shown(text)} is no value of TOML: write a number, true, false, a word, "
        """or between ' and ' a text "a b" or a list ["a", "b"]""",
    )


LOCAL: Final = "local"
RAY: Final = "ray"
STAMPS: Final = "stamps"
HASH: Final = "hash"


@dataclass(frozen=True)
class RunSettings(Checked):
    """What makes the parts of builds that have more than one worker, and how inputs are proved."""

    engine: Annotated[
        Literal["local", "ray"],
        Help(
            "What makes the parts of a build that has more than one worker: processes of "
            "this machine, or tasks of a Ray cluster. Needs the extra `ray`; see clusters.md."
        ),
    ] = LOCAL
    ray_address: Annotated[
        str, Help("Address of the Ray cluster; auto: the one that this machine is in.")
    ] = "auto"
    ray_cpus: Annotated[
        float, Gt(0), Le(4096), Unit("CPUs"), Help("CPUs that Ray sets aside for a part.")
    ] = 1.0
    ray_memory: Annotated[
        Count,
        Unit("bytes"),
        Help("Memory that Ray sets aside for a part; 0: Ray does not look at memory."),
    ] = 0
    ray_retries: Annotated[
        Count,
        Le(1000),
        Unit("attempts"),
        Help("How often a part is made again whose worker or node died."),
    ] = 3
    prove: Annotated[
        Literal["stamps", "hash"],
        Help(
            "How the inputs of a build are proved: by size and times, and by their hash "
            "where these cannot exclude a change; or by the hash of every file, which finds what a "
            "disk changed by itself. See publishing.md."
        ),
    ] = STAMPS


RUN: Final = Table("run", RunSettings)


@dataclass(frozen=True)
class MirrorSettings(Checked):
    """The mirror that builds push to."""

    push: Annotated[
        str,
        Help(
            "URL of the mirror that artifacts are pushed to once they are published, as "
            "for `gristmill push`; empty: nothing is pushed. A folder is absolute, or relative to "
            "the data root. Needs the extra `mirror`; see mirror.md."
        ),
    ] = ""
    assets: Annotated[
        tuple[str, ...],
        Help(
            "Assets whose artifacts are pushed, as `macroxue/pack`; empty: all that a run "
            "or a build publishes."
        ),
    ] = ()
    parallel: Annotated[Positive, Le(64), Unit("files"), Help("Files that are sent at once.")] = 8

    def takes(self, asset: str) -> bool:
        """Whether what builds of an asset publish is pushed."""
        return bool(self.push) and (not self.assets or asset in self.assets)


MIRROR: Final = Table("mirror", MirrorSettings)


@dataclass(frozen=True)
class LeaksSettings(Checked):
    """What becomes of questions of evaluation sets in training text."""

    block: Annotated[
        bool,
        Help(
            "Whether the check `clean` of a text that holds such a question is an error, and what "
            "is made from the text is not built; else it warns. See leaks.md."
        ),
    ] = False
    drop: Annotated[
        tuple[str, ...],
        Help(
            "Evaluation sets, as `gsm8k__test`: corpora and conversations leave out the rows of "
            "training that hold a question of one; see leaks.md. Default: no row is left out."
        ),
    ] = ()


LEAKS: Final = Table("leaks", LeaksSettings)


@dataclass(frozen=True)
class HistorySettings(Checked):
    """How much is kept of the versions that builds replace."""

    keep: Annotated[
        Count,
        Le(1000),
        Unit("versions"),
        Help(
            "Replaced versions of each artifact of which the record, and identity, hash and raw "
            "place of each row are kept; 0: none. See history.md."
        ),
    ] = 20


HISTORY_TABLE: Final = Table("history", HistorySettings)


_WEEK: Final = 604_800
_AS_IN_INBOX: Final = Help("As in [inbox], for this inbox alone; default: what [inbox] has.")


@dataclass(frozen=True)
class InboxSettings(Checked):
    """How files of drops are opened, and when a drop has arrived."""

    follow_links: Annotated[
        bool, Help("Follow links in drops to files in `roots`; false refuses every link.")
    ] = False
    roots: Annotated[
        tuple[str, ...],
        Help("Folders that links in drops may lead into, or their paths below the data root."),
    ] = ()
    settle_seconds: Annotated[
        float,
        Ge(0),
        Le(_WEEK),
        Unit("seconds"),
        Help(
            "Seconds for which a drop without `.done` or `SHA256SUMS` must stay unchanged "
            "before its sensor takes it; 0: two looks, 15 seconds apart, are enough. What "
            "`gristmill materialize` takes does not wait."
        ),
    ] = 60.0
    require_done: Annotated[
        bool, Help("Take no drop without `.done` or `SHA256SUMS`, whatever its age.")
    ] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.follow_links and not self.roots:
            raise ValueError("follow_links needs roots: name the folders that links may point into")
        if not all(root.strip() for root in self.roots):
            raise ValueError("roots has an empty text: name a folder, or `.` for the data root")


@dataclass(frozen=True)
class OneInboxSettings(Checked):
    """When the drops of one inbox have arrived, where that differs from `[inbox]`."""

    settle_seconds: Annotated[float | None, Ge(0), Le(_WEEK), Unit("seconds"), _AS_IN_INBOX] = None
    require_done: Annotated[bool | None, _AS_IN_INBOX] = None


INBOX: Final = Table("inbox", InboxSettings)


def inbox_table(inbox: str) -> Table:
    """Returns the table of one inbox."""
    return Table(f"{INBOX.name}/{inbox}", OneInboxSettings)


@dataclass(frozen=True)
class PlacingSettings(Checked):
    """What the placing of one tokenizer may take."""

    seconds: Annotated[
        Positive, Le(86_400), Unit("CPU seconds"), Help("CPU time that placing one may take.")
    ] = 60
    memory_bytes: Annotated[
        int,
        Ge(1 << 26),
        Le(1 << 40),
        Unit("bytes"),
        Help("Memory that its library and gigatoken may take for it."),
    ] = 1 << 30


PLACING: Final = Table("tokenizers/placed", PlacingSettings)


_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class AlertSettings(Checked):
    """Where the sensor `alerts` sends what it has to say of failed runs."""

    webhook: Annotated[
        str, Help("Address, http or https, that failed runs are posted to as JSON.")
    ] = ""
    webhook_env: Annotated[
        str,
        Help(
            "Name of the environment variable of the service that holds that address, "
            "so that it is in no file of the data root."
        ),
    ] = ""
    ui: Annotated[str, Help("Address of the UI as people reach it, for links to runs.")] = (
        "http://127.0.0.1:3000"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.webhook_env and not _VARIABLE.fullmatch(self.webhook_env):
            raise ValueError("webhook_env: must be the name of an environment variable")
        for name in ("webhook", "ui"):
            value = getattr(self, name)
            if value and (reason := refusal(value)):
                raise ValueError(f"{name}: {reason}")

    def address(self, environment: Mapping[str, str]) -> str:
        """Returns the address of the webhook.

        Raises ValueError where neither or both of `webhook` and `webhook_env` are given, and where
        the variable, which the error names, holds no address.
        """
        if bool(self.webhook) == bool(self.webhook_env):
            raise ValueError("needs either webhook or webhook_env")
        if self.webhook:
            return self.webhook
        value = environment.get(self.webhook_env, "").strip()
        if not value:
            raise ValueError(f"webhook_env: the variable {self.webhook_env} is not set")
        if reason := refusal(value):
            raise ValueError(f"webhook_env: the variable {self.webhook_env} {reason}")
        return value


def refusal(address: str) -> str | None:
    """Returns why a text is no address of a web server, without the text; None if it is one."""
    must = "must be an address as https://HOST/PATH"
    if not address.isascii() or not address.isprintable() or " " in address:
        return f"{must}, in printable ASCII and without spaces"
    try:
        parts: SplitResult = urlsplit(address)
        _ = parts.port
    except ValueError:
        return must
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return must
    if parts.username is not None:
        return f"{must}, without a user and a password"
    return None


ALERTS: Final = Table("alerts", AlertSettings)
