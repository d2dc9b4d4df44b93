"""The command `gristmill audit`: a person looks at the steps of examples and gives verdicts.

See also `read/audit_sample.py`: which examples; `format/audits.py`: what is written.
Source: `docs/formats/reasoning.md#audits`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from gristmill.contract import GristmillError
from gristmill.printable import printable
from gristmill.reasoning.format import audits, names
from gristmill.reasoning.format.audits import Audit
from gristmill.reasoning.format.corpora import CORPORA
from gristmill.reasoning.format.published import splits_in
from gristmill.reasoning.read.alignment import Example, example, place_of
from gristmill.reasoning.read.audit_sample import draw, week_of

_ANSWERS: Final = {"r": audits.RIGHT, "w": audits.WRONG, "s": None}


@click.command()
@click.option(
    "--data-root",
    envvar="GRISTMILL_DATA",
    default="data",
    show_default=True,
    show_envvar=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where drops and artifacts live.",
)
@click.option(
    "--corpus",
    multiple=True,
    help="Only this corpus; any number.",
)
@click.option("--week", help="ISO week that seeds the sample, as 2026-W47. Default: this week.")
@click.option(
    "--count", type=click.IntRange(1), default=5, show_default=True, help="Examples of a corpus."
)
@click.option("--list", "listed", is_flag=True, help="Only print the sample, a line an example.")
@click.option("--example", "chosen", help="Record a verdict for this example without questions.")
@click.option("--verdict", type=click.Choice(audits.VERDICTS), help="The verdict for --example.")
@click.option("--by", default="", help="Who gives the verdicts.")
@click.option("--notes", default="", help="A note that the audit of --example keeps.")
def audit(
    data_root: Path,
    corpus: tuple[str, ...],
    week: str | None,
    count: int,
    listed: bool,
    chosen: str | None,
    verdict: str | None,
    by: str,
    notes: str,
) -> None:
    """Look at the steps of reasoning examples, and record verdicts.

    Without --example the sample of the week is shown, the least sure examples first, each with its
    steps in colours, and a verdict is asked for: right, wrong, skip or quit. Verdicts are appended
    to drops/reasoning/audits/; the next build of reasoning/alignment takes them in.
    """
    if (chosen is None) != (verdict is None):
        raise click.UsageError("--example and --verdict belong together")
    if chosen is not None and verdict is not None:
        _record(data_root, _example(data_root, chosen), verdict, by, notes)
        return
    recorded = 0
    aligned = splits_in(data_root / names.ALIGNMENT, "{split}.align.jsonl")
    known = list(dict.fromkeys(key.split("__")[0] for key in aligned))
    if unknown := sorted({*corpus} - {*known, *CORPORA}):
        raise click.UsageError(f"--corpus {unknown[0]}: aligned are {', '.join(known) or 'none'}")
    corpora = [name for name in known if not corpus or name in corpus]
    for found in _sample(data_root, corpora, week or week_of(datetime.now(UTC).date()), count):
        if listed:
            row = found.row
            click.echo(printable(f"{row.example_id}  {row.confidence:g}  {row.notes}"))
            continue
        answer = _asked(found)
        if answer == "q":
            break
        if (given := _ANSWERS[answer]) is not None:
            note = click.prompt("note", default="", show_default=False)
            _record(data_root, found, given, by, note)
            recorded += 1
    if recorded:
        click.echo("gristmill materialize reasoning/alignment takes the verdicts in")


def _sample(data_root: Path, corpora: list[str], week: str, count: int) -> Iterator[Example]:
    """Yield the examples of the sample, corpus by corpus."""
    tokenized, alignment = data_root / names.TOKENIZED, data_root / names.ALIGNMENT
    folder = audits_path(data_root, "any").parent
    nothing = True
    for corpus in corpora:
        for drawn in draw(tokenized, alignment, folder, corpus, week, count):
            nothing = False
            yield _example(data_root, drawn.row.example_id)
    if nothing:
        raise GristmillError(
            f"{alignment}: no aligned example without an audit: build reasoning/alignment, or "
            "choose another corpus"
        )


def audits_path(data_root: Path, partition: str) -> Path:
    """The file of the audits of a partition below a data root."""
    return data_root / "drops" / "reasoning" / names.audits(partition)


def _example(data_root: Path, example_id: str) -> Example:
    return example(
        data_root / names.NORMALIZED,
        data_root / names.TOKENIZED,
        data_root / names.ALIGNMENT,
        example_id,
    )


def _asked(found: Example) -> str:
    """Show an example and ask for a verdict; returns r, w, s or q."""
    from rich.console import Console

    from gristmill.reasoning.show import spans

    Console(highlight=False).print(spans.terminal(found.row, found.record), soft_wrap=True)
    answer: str = click.prompt(
        "[r]ight, [w]rong, [s]kip, [q]uit",
        type=click.Choice([*_ANSWERS, "q"]),
        show_choices=False,
    )
    return answer


def _record(data_root: Path, found: Example, verdict: str, by: str, notes: str) -> None:
    corpus, split, _ = place_of(found.row.example_id)
    path = audits_path(data_root, f"{corpus}__{split}")
    at = datetime.now(UTC).isoformat(timespec="seconds")
    audits.append(path, Audit(found.row.example_id, found.text_sha256, verdict, by, at, notes))
    click.echo(printable(f"{found.row.example_id}: {verdict}, in {path}"))
