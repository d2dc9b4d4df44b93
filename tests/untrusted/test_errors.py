"""What an error says about a drop."""

from __future__ import annotations

from gristmill.contract import BadInput
from gristmill.untrusted.errors import explained, unreadable


def test_errors_with_a_text_for_the_user_have_no_traceback() -> None:
    assert explained(BadInput("a.toml", "not TOML", 3)) == ("a.toml:3: not TOML", "")
    error = PermissionError(13, "Permission denied", "drops/x")
    assert explained(error) == ("drops/x: cannot be read: Permission denied", "")
    assert unreadable(error) == "drops/x: cannot be read: Permission denied"
    disk = OSError(5, "Input/output error", "drops/x")
    said = "drops/x: cannot be read: Input/output error: the disk or the network failed (see "
    assert unreadable(disk).startswith(said) and explained(disk) == (unreadable(disk), "")


def test_any_other_error_names_its_type_and_has_a_short_traceback() -> None:
    def deep(levels: int) -> None:
        if levels:
            deep(levels - 1)
        raise RecursionError("x" * 10_000)

    try:
        deep(100)
    except RecursionError as error:
        reason, trace = explained(error)
    assert reason == "cannot be read: RecursionError: " + "x" * 500
    assert trace.count("in deep") <= 20
    assert "in deep" in trace
    assert explained(OSError("no name")) == (
        "cannot be read: OSError: no name",
        "OSError: no name\n",
    )
