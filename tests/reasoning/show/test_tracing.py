"""`gristmill trace` of token shards: by the id of an example, or by a row of a shard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gristmill.families import Misuse, Request
from gristmill.reasoning.format import names
from gristmill.reasoning.show.tracing import traced_token


def facts(built: Path, sample: str, **options: Any) -> dict[str, object]:
    """What the first step of a trace says, which is about a token."""
    request = Request(built / names.TOKENIZED, sample, options)
    return dict(next(iter(traced_token(request))).facts())


@pytest.mark.parametrize("token", [None, 0, 3])
def test_a_token_is_traced_by_its_number_and_the_first_one_without(
    built: Path, token: int | None
) -> None:
    found = facts(built, "gsm8k_test_000000", token=token)
    assert found == facts(built, "0", token=token)
    assert (found == facts(built, "0")) == (not token)


def test_a_shard_that_is_no_number_is_a_misuse(built: Path) -> None:
    assert facts(built, "0", shard="0") == facts(built, "0")
    with pytest.raises(Misuse, match="--shard 0x1: must be the number of a shard"):
        facts(built, "0", shard="0x1")
