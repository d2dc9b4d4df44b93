"""Why a partition failed: the reason, and what to do by the class of the error."""

from pathlib import Path

import dagster as dg
import pytest

from assets.failures import Problem, Target, problem_of
from gristmill.contract import BadInput, GristmillError, Violation
from gristmill.inbox.hub import HubError
from gristmill.publish.build import LawsBroken
from gristmill.run.locks import Busy

PACK = Target("macroxue/pack", "d6_v1", from_drop=True)
POOL = Target("macroxue/pool", "p1", from_drop=True)
MONTH = Target("chess/pgn", "2013-01")

BAD = BadInput("games/1.jsonl", "no board", 3)


@pytest.mark.parametrize(
    ("error", "target", "cure"),
    [
        (
            BAD,
            PACK,
            "correct the file and build again; to build without the part that breaks the rule, "
            'set `on_error = "quarantine"` in the table `[macroxue.pack]` of gristmill.toml; '
            "to give the drop up, remove it and run `gristmill retire d6_v1`",
        ),
        (
            BAD,
            POOL,
            "correct the file and build again; to give the drop up, remove it and run "
            "`gristmill retire p1`",
        ),
        (BAD, MONTH, "correct the file and build again"),
        (BadInput("d/gristmill.toml", "x"), PACK, "correct this file, then build again"),
        (PermissionError(13, "Permission denied", "a"), PACK, "let the user who builds read and"),
        (Busy("d6 is already being built"), PACK, "wait until that build ends"),
        (Busy("d6 is already being built"), PACK, "`gristmill prune`"),
        (
            LawsBroken("d6", [Violation("score", "row 1", "7")]),
            PACK,
            'set `game_laws = "warn"` in the table `[macroxue.pack]`',
        ),
        (LawsBroken("p", [Violation("score", "row 1", "7")]), MONTH, "report these lines"),
        (HubError("timed out"), MONTH, "build again later"),
        (ZeroDivisionError("x"), MONTH, "report it with the stack trace"),
    ],
)
def test_what_to_do_follows_from_the_error_and_the_asset(
    error: Exception, target: Target, cure: str
) -> None:
    problem = problem_of(error, target)
    assert cure in problem.cure
    if isinstance(error, BadInput):
        assert cure == problem.cure
    assert problem.error == type(error).__name__
    assert problem.text == f"{problem.reason}\nWhat to do: {problem.cure}"


def test_an_error_that_says_what_to_do_gets_no_further_line() -> None:
    problem = problem_of(GristmillError("no space: make room\nand again"), PACK)
    assert problem == Problem("no space: make room\nand again", "GristmillError")
    assert problem.text == problem.reason
    assert problem.first_line == "no space: make room"


def test_a_key_that_no_drop_can_have_is_not_offered_to_retire() -> None:
    target = Target("macroxue/pool", "a`; rm -r x", from_drop=True)
    assert problem_of(BAD, target).cure == "correct the file and build again"


def test_a_key_that_begins_with_a_dash_is_retired_as_a_value() -> None:
    target = Target("macroxue/pool", "-x", from_drop=True)
    assert problem_of(BAD, target).cure.endswith("run `gristmill retire -- -x`")


def test_only_an_unexpected_error_has_a_stack_trace() -> None:
    assert problem_of(BAD, PACK).trace == ""
    try:
        raise ValueError("x\x1b[31m" + "y" * 5000)
    except ValueError as error:
        problem = problem_of(error, PACK)
    assert problem.reason.startswith("ValueError: x\N{REPLACEMENT CHARACTER}[31myyy")
    assert len(problem.reason) < 2100
    assert "\x1b" not in problem.trace
    assert problem.trace.rstrip().endswith("yyy")


def test_an_error_of_the_disk_has_a_cure_and_no_stack_trace() -> None:
    problem = problem_of(OSError(5, "Input/output error", "drops/x/a.pgn"), PACK)
    assert problem.trace == "" and problem.reason.startswith(
        "drops/x/a.pgn: Input/output error: the disk or the network failed (see `dmesg`): mend it"
    )


def test_an_event_shows_the_reason_as_text_and_not_as_markdown() -> None:
    problem = problem_of(BadInput("a<b>.jsonl", "# no *board*"), POOL)
    event = problem.observation(dg.AssetKey(["macroxue", "pool"]), "p1", Path("/data"))
    assert event.description is not None
    assert event.description.startswith("failed: a&lt;b&gt;.jsonl")
    assert "\\*board\\*" in event.description
    assert event.description.endswith("run `gristmill retire p1`")
    assert event.partition == "p1"
    assert event.metadata["reason"].value == "a<b>.jsonl: # no *board*"


def test_a_failure_is_final_and_names_the_class_of_the_error() -> None:
    failure = problem_of(BAD, PACK).failure()
    assert not failure.allow_retries
    assert failure.description is not None
    assert failure.description.startswith("games/1.jsonl:3: no board\nWhat to do: correct")
    assert failure.metadata["error"].value == "BadInput"
    assert "cure" not in problem_of(GristmillError("x"), PACK).failure().metadata


def test_pages_show_paths_relative_to_the_data_root(tmp_path: Path) -> None:
    problem = Problem(f"{tmp_path}/drops/a: x, not {tmp_path}2/b", "BadInput", f"see {tmp_path}/c")
    shown = problem.below(tmp_path)
    assert shown.reason == f"drops/a: x, not {tmp_path}2/b"
    assert shown.cure == "see c"
    assert problem.reason.startswith(str(tmp_path))
    event = problem.observation(dg.AssetKey("a"), None, tmp_path)
    assert event.description is not None
    assert event.description.startswith("failed: drops/a: x, not ")
    assert event.description.endswith("/b\n\nWhat to do: see c")
    assert event.metadata["reason"].value == problem.reason
