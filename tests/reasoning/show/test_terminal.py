"""Records, tokens and reports in a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from gristmill.contract import BadInput
from gristmill.families import Misuse, Request
from gristmill.reasoning.format import names, reports
from gristmill.reasoning.show.terminal import report_shown, show_example, show_record, show_steps


def test_a_record_is_shown_with_its_values(built: Path) -> None:
    folder = built / names.NORMALIZED
    text = next(show_record(Request(folder, "gsm8k_test_000001"))).plain
    assert text.startswith("gsm8k_test_000001\nquestion: A <b> | `c`? 𝄞\n")
    assert "cot: Step 1: See.\nStep 2: Say.\n" in text
    assert next(show_record(Request(folder, "1"))).plain == text
    with pytest.raises(BadInput, match="has no record 5"):
        next(show_record(Request(folder, "5")))


@pytest.mark.parametrize("seq_len", [16])
def test_the_tokens_of_an_example_are_its_text_and_the_end(built: Path, seq_len: int) -> None:
    text = next(show_example(Request(built / names.TOKENIZED, "gsm8k_test_000000"))).plain
    title, _, shown = text.partition("\n")
    assert shown == ("Two and two?\n\nAnswer:\n2+2 = <<2+2=4>>4\n#### 4<|endoftext|>")
    assert str(_grounds(built)[-1].style) == "reverse"
    assert title == f"gsm8k_test_000000  {len(_grounds(built)) - 1} tokens"


def test_bytes_that_are_no_character_are_shown_in_hexadecimal(built: Path) -> None:
    text = next(show_example(Request(built / names.TOKENIZED, "gsm8k_test_000001"))).plain
    assert "A <b> | `c`?" in text
    assert "𝄞" not in text and "‹" in text


def test_a_record_without_tokens_is_named(built: Path) -> None:
    with pytest.raises(BadInput, match="no row gsm8k_test_000002"):
        next(show_example(Request(built / names.TOKENIZED, "gsm8k_test_000002")))


def _report(day: str) -> dict[str, Any]:
    split = dict.fromkeys(reports.COUNTS, 7) | dict.fromkeys(reports.SHARES, 0.5)
    return dict.fromkeys(reports.KEYS) | {
        "schema_version": reports.SCHEMA_VERSION,
        "date": day,
        "splits": {"gsm8k__test": split | dict.fromkeys(reports.HASHES)},
        "warnings": ["gsm8k__test: unusual\x1b[31m"],
        "totals": {},
        "drift": {"baseline": "2026-11-19", "changes": {}, "reference": {}},
        "gate": {"passed": False, "baseline": "2026-11-19", "breaches": ["too many"]},
    }


def _shown(folder: Path, sample: str) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        for each in report_shown(Request(folder, sample)):
            console.print(each)
    return capture.get()


def test_the_newest_report_is_shown_or_the_one_of_a_day(tmp_path: Path) -> None:
    for day in ("2026-11-20", "2026-11-21"):
        reports.path(tmp_path, day).write_bytes(reports.to_bytes(_report(day)))
    shown = _shown(tmp_path, "0")
    assert "2026-11-21" in shown and "2026-11-20" not in shown
    assert "breaches: too many\ngate: did not pass, compared with 2026-11-19" in shown
    assert "\x1b[31m" not in shown
    assert "2026-11-20" in _shown(tmp_path, "2026-11-20")
    with pytest.raises(Misuse, match="no report of 2026-11-19"):
        _shown(tmp_path, "2026-11-19")


def test_the_steps_of_an_example_are_shown_with_their_labels(built: Path) -> None:
    text = next(show_steps(Request(built / names.ALIGNMENT, "gsm8k_test_000001"))).plain
    assert " Step 1 Step 1: See." in text and "gsm8k_test_000001 · confidence 1" in text
    with pytest.raises(BadInput, match="no row gsm8k_test_000002"):
        next(show_steps(Request(built / names.ALIGNMENT, "2")))


def _grounds(built: Path) -> list[Any]:
    return next(show_example(Request(built / names.TOKENIZED, "gsm8k_test_000000"))).spans
