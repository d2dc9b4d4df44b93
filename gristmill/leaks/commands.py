"""The command `leaks`, and the lines by which `look` and `drop` say what they hold."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from gristmill.cli import data_root_option
from gristmill.contract import GristmillError, os_reason
from gristmill.printable import command, printable
from gristmill.run import amounts
from gristmill.run.progress import shown_on_stderr
from gristmill.settings.fields import nearest

if TYPE_CHECKING:
    from gristmill.leaks.findings import Finding, Place
    from gristmill.leaks.texts import EvaluationSet

_SHOWN: Final = 10
_MOST_SETS: Final = 2
_EXAMPLE: Final = 80
_QUICK: Final = 64 << 20
"""Bytes of files that `look` and `drop` read for this."""
_PACKED: Final = 8
"""Bytes of text that a byte of a packed file counts as."""


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
    of drops/evals. Of a dataset of puzzles, training is compared with the test splits of the others
    of its kind, as NAME__test, up to symmetry. What is found in texts is kept, so that a file is
    read once. docs/leaks.md says what cannot be found.
    """
    with _in_words():
        said, is_leak = _answer(data_root, target, names, most, workers, as_json)
    click.echo(said)
    if is_leak:
        raise SystemExit(1)


@contextmanager
def _in_words() -> Iterator[None]:
    """Raise what is wrong with a file, or with its name, as GristmillError."""
    try:
        yield
    except GristmillError:
        raise
    except OSError as error:
        raise GristmillError(f"{error.filename or 'a file'}: {os_reason(error)}") from error
    except UnicodeError as error:
        raise GristmillError(f"a name of a file is no UTF-8: {error}") from error


def _answer(
    root: Path, target: str, names: Sequence[str], most: int, workers: int, as_json: bool
) -> tuple[str, bool]:
    """What is said of a text, and whether it holds a question."""
    from gristmill.inbox.listing import named_few
    from gristmill.leaks.findings import audit, worst
    from gristmill.leaks.texts import NoText, no_sets, no_sets_built, parts_of, set_names, sets_of

    try:
        parts = parts_of(root, target)
    except NoText:
        if (said_of := _puzzles(root.absolute(), target, names, most, as_json)) is not None:
            return said_of
        raise
    known = set_names(root)
    beside = [
        f"drops/evals/{name} is no set: put it into a folder, as drops/evals/NAME/{name}"
        for name in no_sets(root)
    ]
    for name in names:
        if name not in known:
            close = nearest(name, known)
            hint = f" Did you mean {close!r}?" if close else ""
            raise click.UsageError(f"--against {printable(name)}: no such set.{hint}")
    if not known:
        rule = "build a split test or validation, or put a list of questions into drops/evals/NAME/"
        if built := no_sets_built(root):
            cure = 'a recipe says which file is one, as files = { test = "heldout.jsonl" }'
            rule = f"built are {named_few(built)}, none is test or validation: {cure}; or {rule}"
        raise GristmillError("; ".join([f"{root}: there is no evaluation set: {rule}", *beside]))
    with shown_on_stderr() as progress:
        findings = audit(root, parts, sets_of(root, names), workers, progress)
    is_leak = any(each.leaked or each.changed_rows for each in findings)
    if not as_json:
        said = [*_lines(root, findings, most), *beside]
        return "\n".join(map(printable, said)), is_leak
    counts = [
        {"set": each.set.name, **each.counts}
        for each in findings
        if each.leaked or each.changed_rows or each.unread
    ]
    found = [
        {"set": leak.set, "share": round(leak.share, 4), "changed": leak.changed}
        | {"text": leak.text._asdict(), "question": leak.question._asdict()}
        | dict(zip(("shown", "asked"), leak.cut(), strict=True))
        for leak in worst(root, findings)
    ]
    answer = {"found": counts, "leaks": found, "notes": [*_notes(findings), *beside]}
    return json.dumps(answer, indent=1), is_leak


def _puzzles(
    root: Path, target: str, names: Sequence[str], most: int, as_json: bool
) -> tuple[str, bool] | None:
    """The same of a dataset of puzzles; None where the target is none."""
    from gristmill.families import kind_of_asset
    from gristmill.provenance.find_artifacts import artifacts, readable

    for item, record, _ in readable(artifacts(root)):
        kind, title = kind_of_asset(record.asset), f"{record.asset} {record.partition}"
        places = (str(item.folder), record.artifact, record.partition, title)
        if kind is None or kind.tests_seen is None or target.rstrip("/") not in places:
            continue
        every = [*kind.tests_seen(root, item.folder, names)]
        for name in {*names} - {each.name for each in every}:
            rule = f"no other dataset of {record.asset} that it could share examples with"
            raise click.UsageError(f"--against {printable(name)}: {rule} has this test split")
        found = [each for each in every if each.places]
        if as_json:
            counts = [
                {"set": each.name, "place": title, "rows": each.trained}
                | {"leaked": len(each.places), "places": each.places}
                for each in found
            ]
            return json.dumps({"found": counts, "leaks": [], "notes": []}, indent=1), bool(found)
        said = [f"{title}: {each.line}" for each in found]
        for each in found:
            shown = each.places[:most]
            said += [f"  {a} row {b:,} is {each.name} {c} row {d:,}" for a, b, c, d in shown]
            if (more := len(each.places) - most) > 0:
                said.append(f"and {more:,} more: --most {len(each.places)} shows all")
        known = ", ".join(each.name for each in every) or "another dataset"
        return "\n".join(said or [f"no test example of {known} was found"]), bool(found)
    return None


def _lines(root: Path, findings: Sequence[Finding], most: int) -> Iterator[str]:
    from gristmill.leaks.findings import worst

    for each in sorted(findings, key=lambda each: -each.leaked):
        if each.leaked:
            stand = _stand(each.leaked, each.rows, each.set.name)
            yield f"{each.part.place} {each.part.name}: {stand}"
    for leak in worst(root, findings, most):
        shown, asked = leak.cut()
        yield f"{leak.share:5.0%}  {_at(leak.text)}: {shown}"
        yield f"       {leak.set}: {_at(leak.question)}: {asked}"
    total = sum(each.numbers.shape[1] + each.changed.shape[1] for each in findings)
    if total > most:
        yield f"and {total - most:,} more: --most {total} shows all"
    yield from _notes(findings)
    if not total:
        names = dict.fromkeys(each.set.name for each in findings)
        where = " in the rows that could be read" if any(each.unread for each in findings) else ""
        yield f"no question of {', '.join(names) or 'another set'} was found{where}"


def _notes(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield which rows ask what others do, and what was not looked at, each once."""
    for each in findings:
        if each.changed_rows:
            where = f"{each.part.place} {each.part.name}"
            stand = _stand(each.changed_rows, each.rows, each.set.name)
            yield f"{where}: {stand} with other names or numbers"
    files = {each.part: each.unread for each in findings if each.unread}
    for part, unread in files.items():
        rows = "row" if unread == 1 else "rows"
        yield f"{unread:,} {rows} of {part.place} {part.name} could not be read"
    for place, *names in {(each.part.place, *each.skipped): 0 for each in findings}:
        if names:
            yield f"{place}: columns of bytes were not looked at: {', '.join(names)}"
    for each in {each.set.name: each for each in findings if each.short}.values():
        of = f"{each.short:,} of {each.questions:,} questions of {each.set.name}"
        yield f"{of} are too short to be looked for"


def _at(place: Place) -> str:
    return f"{place.place} {place.file} row {place.row:,} {place.column}".rstrip()


def _stand(leaked: int, rows: int, name: str) -> str:
    return f"{leaked:,} of {rows:,} rows are questions of {name}"


def lines(root: Path, path: Path, *, is_all: bool = False) -> list[str]:
    """What files hold of the evaluation sets of a data root, for `look` and `drop`.

    path: any file or folder. is_all: whether large files are read, too; default False. Files whose
        names say test or validation are no training text, unless a recipe says what each is.

    No line where the data root has no set, or where the files are no text, or hold nothing of one.
    What goes wrong is a line, since neither command is about leaks.
    """
    from gristmill.corpora.trial import splits_of
    from gristmill.leaks.findings import audit
    from gristmill.leaks.texts import NoText, form, parts_of, set_names, sets_of

    try:
        with _in_words():
            parts = parts_of(root, path.absolute()) if set_names(root) else []
            guessed = (each.name for each in parts if not (each.corpus and each.corpus.files))
            names = splits_of([*guessed])
            held_out = {*names.get("test", ()), *names.get("validation", ())}
            parts = [part for part in parts if part.name not in held_out]
            forms = [(each.file, form(each.file.name) or ("", "")) for each in parts]
            size = sum(file.stat().st_size * (_PACKED if pack else 1) for file, (_, pack) in forms)
            ask = command(f"leaks --data-root {shlex.quote(str(root))}", str(path))
            if size > _QUICK and not is_all:
                large = amounts.size(size)
                return [f"evaluation questions were not looked for in {large}: `{ask}`"]
            every = audit(root, parts, sets_of(root)) if parts else []
            noted = [each for each in every if each.unread or each.skipped or each.changed_rows]
            return [*of_sets(root, every, f" (`{ask}`)"), *_notes(noted)]
    except NoText:
        return []
    except GristmillError as error:
        return [f"evaluation questions could not be looked for: {error}"]


def of_sets(root: Path, findings: Sequence[Finding], ending: str = "") -> Iterator[str]:
    """Yield a line for each of the two sets of which some files hold most, with an example.

    findings: of all files of one text. ending: of these lines; default none.
    """
    from gristmill.leaks.findings import worst

    by_set: dict[EvaluationSet, list[Finding]] = {}
    for each in findings:
        by_set.setdefault(each.set, []).append(each)
    leaked = {one: sum(each.leaked for each in some) for one, some in by_set.items()}
    found = sorted((one for one in by_set if leaked[one]), key=lambda one: (-leaked[one], one.name))
    for one in found[:_MOST_SETS]:
        leak = next(worst(root, by_set[one], 1))
        stand = _stand(leaked[one], sum(each.rows for each in by_set[one]), one.name)
        where = f"{_at(leak.text)} is {_at(leak.question)}"
        yield f"{stand}, e.g. {where}: {leak.cut(_EXAMPLE)[0]}{ending}"
    if len(found) > _MOST_SETS:
        yield f"and questions of {len(found) - _MOST_SETS:,} more sets"
