from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.reasoning.format import names, reports
from gristmill.reasoning.read.supervised import GateClosed, check_gate, refuse_drift
from tests.reasoning.format.test_reports import REPORT


def _write(folder: Path, date: str, *breaches: str) -> None:
    gate = {"passed": not breaches, "baseline": None, "breaches": list(breaches)}
    path = reports.path(folder, date)
    path.write_bytes(reports.to_bytes(REPORT | {"date": date, "gate": gate}))


def test_without_reports_the_gate_is_open(tmp_path: Path) -> None:
    check_gate(tmp_path)
    check_gate(tmp_path / "none")


def test_the_newest_report_counts(tmp_path: Path) -> None:
    _write(tmp_path, "2026-11-21", "a")
    with pytest.raises(GateClosed):
        check_gate(tmp_path)
    _write(tmp_path, "2026-11-22")
    check_gate(tmp_path)


def test_a_link_to_the_shards_has_the_gate_of_their_data_root(tmp_path: Path) -> None:
    shards = tmp_path / "data" / names.TOKENIZED
    shards.mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(shards)
    refuse_drift(link)
    folder = tmp_path / "data" / names.REPORTS
    folder.mkdir()
    _write(folder, "2026-11-22", "too much")
    for root in (shards, link):
        with pytest.raises(GateClosed):
            refuse_drift(root)


def test_a_closed_gate_names_report_breaches_and_what_to_do(tmp_path: Path) -> None:
    _write(tmp_path, "2026-11-22", *(f"breach {number}" for number in range(7)))
    with pytest.raises(GateClosed) as caught:
        check_gate(tmp_path)
    text = str(caught.value)
    assert "2026-11-22.json" in text and "breach 0; " in text and "breach 4; and 2 more" in text
    assert 'baseline = "2026-11-22" in [reasoning.qc_report]' in text


def test_a_report_that_cannot_be_read_does_not_open_the_gate(tmp_path: Path) -> None:
    (tmp_path / "2026-11-22.json").write_text("{}")
    with pytest.raises(BadInput):
        check_gate(tmp_path)
