"""Why the account of a family refuses a drop."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gristmill.contract import BadInput


def refusal(account: Callable[..., Any], drop: Path, *links: Any) -> str | None:
    """The reason that an account gives; None where it takes the drop."""
    try:
        account(drop, *links)
    except BadInput as error:
        return str(error)
    return None
