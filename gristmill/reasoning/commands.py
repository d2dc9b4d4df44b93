"""`gristmill audit`, `stage` and `unstage`. Source: `docs/formats/reasoning.md#audits`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from gristmill.cli import data_root_option
from gristmill.contract import GristmillError
from gristmill.corpora.corpus import CORPORA
from gristmill.printable import printable
from gristmill.reasoning.format import names
from gristmill.reasoning.format.published import splits_in
from gristmill.reasoning.read import alignment
from gristmill.reasoning.read.alignment import Audit, Example, draw, example, week_of
from gristmill.reasoning.read.trace import place_of

_ANSWERS: Final = {"r": alignment.RIGHT, "w": alignment.WRONG, "s": None}


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
@click.option("--verdict", type=click.Choice(alignment.VERDICTS), help="The verdict for --example.")
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
    normalized, tokenized = data_root / names.NORMALIZED, data_root / names.TOKENIZED
    return example(normalized, tokenized, data_root / names.ALIGNMENT, example_id)


def _asked(found: Example) -> str:
    """Show an example and ask for a verdict; returns r, w, s or q."""
    from rich.console import Console

    from gristmill.browse.shown import coloured
    from gristmill.reasoning.show import pieces

    row, console = found.row, Console(highlight=False)
    click.echo(printable(f"{row.example_id} · confidence {row.confidence:g} · {row.notes}"))
    console.print(coloured([*pieces(row, found.rendered.text)]), soft_wrap=True)
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
    alignment.append(path, Audit(found.row.example_id, found.text_sha256, verdict, by, at, notes))
    click.echo(printable(f"{found.row.example_id}: {verdict}, in {path}"))


__all__ = ["audit", "stage", "unstage"]

_TO = click.option(
    "--to",
    default="/tmp",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The local disk; the job gets a folder of its name there.",
)


@click.command()
@click.argument("job")
@click.option(
    "--rank",
    "ranks",
    multiple=True,
    required=True,
    type=click.IntRange(min=0),
    help="A rank of this node; may be repeated.",
)
@click.option(
    "--world-size", required=True, type=click.IntRange(min=1), help="Ranks of the whole job."
)
@click.option("--corpus", "corpora", multiple=True, help="Only this corpus; may be repeated.")
@click.option("--split", "splits", multiple=True, help="Only this split; may be repeated.")
@click.option("--index", is_flag=True, help="Also the index, which the reader selects by.")
@click.option("--steps", is_flag=True, help="Also index and alignment, for step_id.")
@click.option(
    "--from",
    "shards",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Another folder of shards: a token dataset, or one outside of a data root.",
)
@data_root_option
@_TO
def stage(
    job: str,
    ranks: tuple[int, ...],
    world_size: int,
    corpora: tuple[str, ...],
    splits: tuple[str, ...],
    index: bool,
    steps: bool,
    shards: Path | None,
    data_root: Path,
    to: Path,
) -> None:
    """Copy the token shards of this node's ranks to a local disk.

    JOB names the folder; a reader opens its folder `shards`. Every file is hashed while it is
    copied. What is there already and right is used again, so the command may be repeated after
    a kill. `gristmill unstage` removes what this command put there.
    """
    from gristmill.reasoning.format.published import STAGED_SHARDS as SHARDS
    from gristmill.reasoning.read.stage import stage as copy
    from gristmill.run.progress import shown_on_stderr

    with shown_on_stderr() as progress:
        staged = copy(
            shards or data_root / names.TOKENIZED,
            _folder(to, job),
            ranks=ranks,
            world_size=world_size,
            job=job,
            corpora=corpora,
            splits=splits,
            index=index,
            # A token dataset has its own alignments beside its shards.
            alignment=(shards or data_root / names.ALIGNMENT) if steps else None,
            progress=progress,
        )
    size = sum(entry.bytes for entry in staged.entries.values())
    click.echo(
        printable(f"{_folder(to, job) / SHARDS}: {len(staged.entries)} files, {size:,} bytes,")
        + f" ranks {', '.join(map(str, staged.ranks))} of {staged.world_size}"
    )


@click.command()
@click.argument("job")
@_TO
def unstage(job: str, to: Path) -> None:
    """Remove what `gristmill stage` put into the folder of JOB.

    Nothing else is removed.

    Files that were changed since stay and are listed; the status is 1 then.
    """
    from gristmill.reasoning.read.stage import unstage as remove

    changed = remove(_folder(to, job))
    for path in changed:
        click.echo(printable(f"{_folder(to, job) / path}: was changed, it stays"))
    if changed:
        raise SystemExit(1)
    click.echo(printable(f"{_folder(to, job)}: removed"))


def _folder(to: Path, job: str) -> Path:
    """The folder of a job. Raises BadParameter for a name that is no folder's name."""
    if not job or job in (".", "..") or "/" in job or "\0" in job:
        raise click.BadParameter(f"{job!r} cannot be the name of a folder", param_hint="JOB")
    return to / job
