"""The parsers of the reasoning family's alignments, audits and reports, and its rules of steps."""

from tests.fuzz.parser import JSON, Parsers, file, folder

PARSERS = Parsers()
_FORMAT = "gristmill.reasoning.format"
_RENDER = "gristmill.reasoning.render"


@PARSERS.add(
    "reasoning_audits",
    "gristmill.reasoning.read.alignment",
    words=(*JSON, b'"verdict": "right"', b'"wrong"', b'"text_sha256": "', b"\n"),
)
def audits(data: bytes) -> None:
    """A file of audits: the last verdict of an example and text counts."""
    from gristmill.reasoning.read import alignment as audits

    path = file("audits.jsonl", data)
    assert set(audits.latest(path)) == {audit.key for audit in audits.read(path)}


@PARSERS.add(
    "reasoning_alignment",
    f"{_FORMAT}.align",
    "gristmill.reasoning.laws.quality",
    words=(*JSON, b"gsm8k_test_", b"no-steps", b"; verified", b'"Step 1"', b"\n", b"0.89"),
)
def alignment(data: bytes) -> None:
    """An alignment: its laws end with what they found, and a row is written as it was read."""
    from gristmill.reasoning.format import align
    from gristmill.reasoning.laws.quality import alignment_laws

    with folder("aligned") as place:
        path = file("aligned/gsm8k/test.align.jsonl", data)
        list(alignment_laws(place, "gsm8k__test"))
        for number, row in enumerate(align.rows(path), 1):
            try:
                line = align.line(row)
            except UnicodeEncodeError:
                continue  # a lone surrogate, which no builder meets
            assert repr(align.parsed(line, path, number)) == repr(row)


@PARSERS.add(
    "reasoning_report",
    f"{_FORMAT}.reports",
    "gristmill.reasoning.laws.quality",
    most_bytes=8192,
    words=(*JSON, b'"gsm8k__test": {', b'"breaches": ["', b"2026-11-22", b"false"),
)
def report(data: bytes) -> None:
    """A daily report: its laws and the gate end with what they found."""
    from gristmill.reasoning.format import reports
    from gristmill.reasoning.laws.quality import report_laws
    from gristmill.reasoning.read.supervised import check_gate

    with folder("reports") as place:
        path = file("reports/2026-11-22.json", data)
        list(report_laws(place))
        assert reports.problem({"splits": {}}) is not None
        found = reports.read(path)
        reports.reference(found)
        check_gate(place)


@PARSERS.add(
    "reasoning_steps",
    *tuple(f"{_RENDER}.{name}" for name in ("steps", "regions")),
    words=(b"Step 1: ", b"\n2. ", b"\n#### ", b"<<1+1=2>>", b"\n\n", b". ", b"\0", b"Effect"),
)
def steps(data: bytes) -> None:
    """The texts of a record: its steps ascend within their block. Three texts, apart by NUL.

    The first byte chooses the corpus.
    """
    from gristmill.corpora.corpus import CORPORA
    from gristmill.reasoning.render.steps import is_label, steps_of
    from gristmill.reasoning.render.text import rendered

    corpus = list(CORPORA)[(data[:1] or b"0")[0] % len(CORPORA)]
    texts = [part.decode("utf-8", "replace") for part in data[1:].split(b"\0")]
    question, cot, answer, *listed = [*texts, "", "", ""]
    record = {"question": question, "cot": cot or None, "answer": answer, "cot_steps": listed}
    text = rendered(record)
    found = steps_of(record, text, corpus)
    assert all(map(is_label, found.labels)) and len(found.labels) == len(found.ranges)
    start = (text.cot or text.answer or (0, 0))[0]
    bounds = [start, *(place for pair in found.ranges for place in pair), len(text.text)]
    assert bounds == sorted(bounds)
    assert all(text.text[a:b].strip() == text.text[a:b] != "" for a, b in found.ranges)
