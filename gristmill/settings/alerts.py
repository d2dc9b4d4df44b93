"""The table `[alerts]`: where failed runs are reported.

The address of a webhook is a secret: no error shows it. Source: docs/deployment.md#alerts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import SplitResult, urlsplit

from gristmill.settings.fields import Checked
from gristmill.settings.kinds import Help
from gristmill.settings.tables import Table

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class AlertSettings(Checked):
    """Where the sensor `alerts` sends what it has to say of failed runs.

    Raises ValueError, naming the field, for a value that is no address or no name.
    """

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
"""A table that belongs to no family."""
