"""A sensor's cursor: what a look wrote is read, and what a person typed counts as none."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from gristmill.inbox.state import Refusal, State, Waiting

FULL = State(
    waiting={"a": Waiting("s", 1), "b\udcff": Waiting("t", 2, 1)},
    settled={"c": "u"},
    refused={"d": "v"},
    resume="c",
    asked={"c": ("w", 2)},
    asked_from="c",
    built="x",
)


@pytest.mark.parametrize(
    "state", [State(), FULL, replace(FULL, built=""), replace(FULL, asked={}, asked_from="")]
)
def test_what_was_written_is_read(state: State) -> None:
    assert State.read(state.write()) == state
    assert State.read(None) == State() == State.read("")


def test_the_latest_date_of_python_is_read() -> None:
    waiting = State.read(_with("waiting", {"a": ["s", 253_402_300_799_999]})).waiting
    assert datetime.fromtimestamp(waiting["a"].since / 1000, UTC).year == 9999


def _with(name: str, value: object) -> str:
    return json.dumps(json.loads(FULL.write()) | {name: value})


@pytest.mark.parametrize(
    "cursor",
    [
        *("12345", "null", "[]", '"x"', "{", "yesterday", "[" * 100_000),
        _with("waiting", {"a": ["s"]}),
        _with("waiting", {"a": ["s", 1, 2, 3]}),
        _with("waiting", {"a": ["s", "1"]}),
        _with("waiting", {"a": ["s", 1, 2.5]}),
        _with("waiting", {"a": ["s", 253_402_300_800_000]}),
        _with("waiting", {"a": ["s", 1, -1]}),
        _with("waiting", {"a": [1, 1]}),
        _with("waiting", ["a"]),
        _with("settled", {"c": 1}),
        _with("settled", None),
        _with("refused", {"c": None}),
        _with("refused", 7),
        _with("resume", 7),
        _with("asked", {"c": ["w"]}),
        _with("asked", {"c": ["w", True]}),
        _with("asked", {"c": [0, 2]}),
        _with("asked_from", None),
        _with("built", {}),
    ],
)
def test_a_text_of_another_form_is_an_empty_state(cursor: str) -> None:
    assert State.read(cursor) == State()


def test_a_refusal_that_no_look_saw_has_neither_a_time_nor_a_trace() -> None:
    assert Refusal("d6", "no grain in it", True) == Refusal("d6", "no grain in it", True, "", 0)
