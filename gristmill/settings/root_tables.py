"""The tables of `gristmill.toml` that decide no output: run, mirror, inbox, placing, alerts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal
from urllib.parse import SplitResult, urlsplit

from gristmill.settings.fields import Checked, Count, Ge, Gt, Help, Le, Positive, Unit
from gristmill.settings.tables import Table

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
