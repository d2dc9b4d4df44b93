"""Public forms of reasoning_traces: MetaMathQA, and GSM8K_Backward.

Source: `docs/formats/reasoning.md#forms-of-reasoning_traces`.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from gristmill.reasoning.format.records import Record
from gristmill.reasoning.raw.flatten import chain, extra, text
from gristmill.reasoning.raw.shapes import PUBLIC, Form

BACKWARD: Final = "backward"
"""Name of the form of GSM8K_Backward."""
_ANSWER: Final = re.compile(r"^The answer is:", re.MULTILINE)


def divided(response: str) -> tuple[str | None, str]:
    """The chain of thought and the answer of a response.

    response: ends in a line `The answer is: X`. The last such line begins the answer, which is
        all the text after the colon; without such a line all of the response is the chain.
    """
    lines = deque(_ANSWER.finditer(response), maxlen=1)
    if not lines:
        return response, ""
    last = lines[0]
    return response[: last.start()].strip() or None, response[last.end() :].strip()


def _public(row: Mapping[str, Any]) -> Record:
    cot, answer = divided(text(row["response"]))
    return Record(text(row["query"]), answer, cot, (extra(row.get("type")),), shape=PUBLIC)


def _backward(row: Mapping[str, Any]) -> Record:
    cot, steps = chain(row["inv_question_pred_answer"])
    question, answer = text(row["question"]), text(row["answer"])
    return Record(question, answer, cot, (None,), steps, BACKWARD)


def _output(row: Mapping[str, Any]) -> Record:
    cot, _ = divided(text(row["output"]))
    question, answer = text(row["question"]), text(row["answer"])
    return Record(question, answer, cot, (None,), shape=BACKWARD)


FORMS: Final = (
    Form(PUBLIC, ("query", "response"), _public, without=("problem",), optional=("type",)),
    Form(
        BACKWARD,
        ("question", "answer", "inv_question_pred_answer"),
        _backward,
        without=("problem",),
    ),
    # The second half of the file has its chains of thought in the form of MetaMathQA.
    Form(BACKWARD, ("question", "answer", "output"), _output, without=("problem",)),
)
