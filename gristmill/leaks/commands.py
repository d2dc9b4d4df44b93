"""The command `leaks`, and the lines by which `look` and `drop` say what they hold."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from gristmill.cli import data_root_option
from gristmill.contract import GristmillError
from gristmill.printable import command, printable
from gristmill.run import amounts
from gristmill.run.progress import shown_on_stderr
from gristmill.settings.fields import nearest

if TYPE_CHECKING:
    from gristmill.leaks.findings import Finding, Leak

_SHOWN: Final = 10
_MOST_SETS: Final = 2
_EXAMPLE: Final = 80
_QUICK: Final = 64 << 20
"""Bytes of files that `look` and `drop` read for this."""


@click.command()
@click.argument("target", metavar="ARTIFACT | DROP | PATH")
@click.option("--against", "names", multiple=True, metavar="NAME", help="This set; repeatable.")
@click.option("--most", type=click.IntRange(0), default=_SHOWN, show_default=True, help="Shown.")
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Processes.")
@click.option("--json", "as_json", is_flag=True, help="Print an object with all leaks.")
@data_root_option
def leaks(
    target: str, names: Sequence[str], most: int, workers: int, as_json: bool, data_root: Path
) -> None:
    """Say which questions of evaluation sets stand in a text, the worst first; 1 if any does.

    The text is an artifact or a drop of DATA_ROOT by its name, as gsm8k__train or reasoning/gsm8k,
    or any file or folder. Sets are the splits test and validation that are built, and the folders
    of drops/evals. What is found is kept, so that a file is read once. docs/leaks.md says what
    cannot be found.
    """
    from gristmill.leaks.findings import audit, worst
    from gristmill.leaks.texts import parts_of, sets_of

    parts, sets = parts_of(data_root, target), sets_of(data_root)
    known = [each.name for each in sets]
    for name in names:
        if name not in known:
            close = nearest(name, known)
            hint = f" Did you mean {close!r}?" if close else ""
            raise click.UsageError(f"--against {printable(name)}: no such set.{hint}")
    if not sets:
        raise GristmillError(
            f"{data_root}: there is no evaluation set: build a split test or validation, or put a "
            "list of questions into drops/evals/NAME/"
        )
    chosen = [each for each in sets if not names or each.name in names]
    with shown_on_stderr() as progress:
        findings = audit(data_root, parts, chosen, workers, progress)
    if as_json:
        found = [_as_json(each) for each in worst(data_root, findings)]
        counts = [_counts(each) for each in findings if each.leaked]
        click.echo(json.dumps({"found": counts, "leaks": found}, indent=1))
    else:
        for line in _lines(data_root, findings, most):
            click.echo(printable(line))
    if any(each.leaked for each in findings):
        raise SystemExit(1)


def _counts(finding: Finding) -> dict[str, Any]:
    part = finding.part
    of = {"place": part.place, "file": part.name, "rows": finding.rows}
    return {"set": finding.set.name, **of, "leaked": finding.leaked}


def _as_json(leak: Leak) -> dict[str, Any]:
    text, asked = leak.cut()
    of = {"set": leak.set, "share": round(leak.share, 4)}
    places = {"text": leak.text._asdict(), "question": leak.question._asdict()}
    return {**of, **places, "shown": text, "asked": asked}


def _lines(root: Path, findings: Sequence[Finding], most: int) -> Iterator[str]:
    from gristmill.leaks.findings import worst

    for each in sorted(findings, key=lambda each: -each.leaked):
        if each.leaked:
            stand = _stand(each.leaked, each.rows, each.set.name)
            yield f"{each.part.place} {each.part.name}: {stand}"
    for leak in worst(root, findings, most):
        shown, asked = leak.cut()
        (_, file, row, column), question = leak.text, leak.question
        yield f"{leak.share:5.0%}  {file} row {row:,} {column}: {shown}"
        yield f"       {leak.set} row {question.row:,} {question.column}: {asked}"
    total = sum(each.numbers.shape[1] for each in findings)
    if total > most:
        yield f"and {total - most:,} more: --most {total} shows all"
    if not total:
        names = dict.fromkeys(each.set.name for each in findings)
        yield f"no question of {', '.join(names) or 'another set'} was found"


def _stand(leaked: int, rows: int, name: str) -> str:
    return f"{leaked:,} of {rows:,} rows are questions of {name}"


def lines(root: Path, path: Path, *, is_all: bool = False) -> Iterator[str]:
    """Yield what files hold of the evaluation sets of a data root, for `look` and `drop`.

    path: any file or folder. is_all: whether large files are read, too; default False.

    No line where the data root has no set, or where the files hold nothing of one.
    """
    from gristmill.leaks.findings import audit, worst
    from gristmill.leaks.texts import has_sets, parts_of, sets_of

    with suppress(OSError):
        if not has_sets(root):
            return
    try:
        parts = parts_of(root, path.absolute())
    except GristmillError:
        return  # no text
    size = sum(each.file.stat().st_size for each in parts)
    ask = command(f"leaks --data-root {shlex.quote(str(root))}", str(path))
    if size > _QUICK and not is_all:
        yield f"evaluation questions were not looked for in {amounts.size(size)}: `{ask}`"
        return
    try:
        findings = [each for each in audit(root, parts, sets_of(root)) if each.leaked]
    except (GristmillError, OSError) as error:  # the root of others may be for reading alone
        yield f"evaluation questions were not looked for: {error}"
        return
    by_set = groupby(sorted(findings, key=lambda each: each.set.name), lambda each: each.set)
    found = [(one, list(some)) for one, some in by_set]
    found.sort(key=lambda each: -sum(some.leaked for some in each[1]))
    for one, some in found[:_MOST_SETS]:
        leaked, rows = sum(each.leaked for each in some), sum(each.rows for each in some)
        leak = next(worst(root, some, 1))
        where = f"row {leak.text.row:,} of {leak.text.file} is row {leak.question.row:,} there"
        text = leak.cut(_EXAMPLE)[0]
        yield f"{_stand(leaked, rows, one.name)}, e.g. {where}: {text} (`{ask}`)"
    if len(found) > _MOST_SETS:
        yield f"and questions of {len(found) - _MOST_SETS:,} more sets"
