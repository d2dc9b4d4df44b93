"""`gristmill look`: what is in files, a line each, before anything is built."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import click

from gristmill import cli
from gristmill.cli import data_root_option
from gristmill.corpora.raw.drops import CORPUS
from gristmill.layout import DROPS
from gristmill.printable import command, cut, plain, printable

if TYPE_CHECKING:
    from gristmill.look.finding import Look

_MOST: Final = 40
_NAMED: Final = 3
_WIDE: Final = 32


def lines(
    found: Look, data_root: Path = Path("data"), *, is_written: bool = False, is_built: bool = False
) -> Iterator[str]:
    """The lines of a look; nothing in them is obeyed by a terminal.

    data_root: below which recipes of puzzles stand. is_written, is_built: whether the recipe is
    written, or dropped and built, so that no line says how; default False.
    """
    return map(plain, _lines(found, data_root, is_written or is_built, is_built))


def _lines(found: Look, data_root: Path, is_written: bool, is_built: bool) -> Iterator[str]:
    from gristmill.look.finding import OWN, recipe_place

    own = data_root / DROPS / found.proposal.inbox / found.name / CORPUS
    # The drop has the recipe of an earlier build.
    is_kept = is_built and not found.takers and bool(found.proposal.text) and own.exists()
    reading = found.reading
    size = sum(file.size for file in reading.files) + sum(reading.others.values())
    count = len(reading.files) + len(reading.others) + len(reading.refused)
    yield f"{reading.path}: {count:,} file{'' if count == 1 else 's'}, {size:,} bytes"
    # As tables they are not what another family reads.
    is_of_others = any(taker.inbox != OWN for taker in (*found.takers, *found.alone))
    yield from () if is_of_others else _splits(found)
    yield from _columns(found)
    for part in () if is_of_others or is_kept else found.parts:
        proofs = part.guess.proofs
        by = f", as values show ({'; '.join(proofs)})" if proofs else " by names"
        if part.guess.columns:
            yield printable(f"guess{by}: {part.guess}")
    licence, where = found.licence
    yield f"licence: {f'{licence}, says {where}' if licence else 'unknown'}"
    damage = ((file.name, rule) for file in reading.files for rule in file.damage)
    by_rule: dict[str, list[str]] = {}
    for name, rule in () if is_of_others else (*reading.refused.items(), *damage):
        by_rule.setdefault(rule, []).append(name)
    wrong = [f"{_named(names)}: {rule}" for rule, names in by_rule.items()]
    for line in [*wrong[:_MOST], *_columns_said(found, is_built), *found.notes, *found.hints]:
        yield f"note: {line}"
    if len(wrong) > _MOST:
        yield f"note: {len(wrong) - _MOST:,} more files or rows like these"
    has_drop = "drop" not in cli.absent()
    is_whole = not reading.refused and not any(file.is_broken for file in reading.files)
    for at, taker in enumerate(found.takers):
        state = "read as it is" if is_whole or not wrong else "read once it is mended"
        state = f"read once it has {taker.beside}" if taker.beside else state
        ways = [taker.command] * has_drop + [command("build", str(reading.path))] * (at == 0)
        how = "" if is_built or not ways else f": `{'` or `'.join(ways)}`"
        yield f"{state}: {'; '.join(taker.lines)}{how}"
        if taker.recipe:
            place = recipe_place(found, taker, data_root)
            if is_built and place.exists():
                yield f"recipe: {place}, which is used"
                continue
            yield f"recipe, a guess, for {place}:"
            yield from (f"  {line}" for line in taker.recipe.splitlines())
            if not is_written:
                yield f"to write it there: `{command('look --write', str(reading.path))}`"
    if is_kept:
        yield f"recipe of the drop: {own}, which is used"
    elif not found.takers:
        yield from _recipe(found, is_written, is_built)


def _columns_said(found: Look, is_built: bool) -> list[str]:
    """What becomes of the columns; a build says it by the drop, whose recipe may be another."""
    if is_built and (found.takers or found.alone or found.proposal.good):
        return []
    return [*(line for taker in found.takers for line in taker.columns), *found.columns]


def _splits(found: Look) -> Iterator[str]:
    by_name, others = {file.name: file for file in found.reading.files}, [*found.reading.others]
    for split, names in found.splits.items():
        files = [by_name[name] for name in names]
        opened = [file for file in files if file.is_read]
        rows, line = sum(file.rows for file in opened), f"  {split}: {_named(list(names))}"
        if not rows:
            yield f"{line}; no row could be read" if opened else line
            continue
        is_exact = len(opened) == len(files) and all(file.is_exact for file in files)
        if len(opened) < len(files):
            least = max(sum(file.size for file in opened), 1)
            rows = rows * sum(file.size for file in files) // least
        count = f"{rows:,} row{'' if rows == 1 else 's'}"
        about = f"about {count} (estimated: --all reads every row)"
        yield f"{line}; {count if is_exact else about}"
    if others:
        yield f"  no data file: {_named(others)}"


def _columns(found: Look) -> Iterator[str]:
    rows, columns = found.reading.columns.rows, [*found.reading.columns.by_name.values()]
    if rows:
        yield f"columns, of {rows:,} rows read"
    for column in columns[: _MOST if rows else 0]:
        kinds = " or ".join(kind for kind, _ in column.kinds.most_common(_NAMED)) or "empty"
        name, empty = printable(cut(column.name, _WIDE)), 1 - column.filled / rows
        example = " ".join(column.example.split())
        yield f"  {name:24} {kinds:16} {empty:5.0%} empty  {example}".rstrip()
    if rows and (more := len(columns) - _MOST) > 0:
        yield f"  and {more:,} more"


def _recipe(found: Look, is_written: bool, is_built: bool) -> Iterator[str]:
    from gristmill.corpora.account import TEXT

    made, place = found.proposal, found.reading.root
    build = command("build", str(found.reading.path))
    if found.alone:
        said = f"{found.alone[0].inbox} in a folder of its own: {'; '.join(found.alone[0].lines)}"
        yield f"read by {said}{'' if is_built else f': `{build}`'}"
        return
    if not made.text:
        if found.reading.columns.rows and not found.hints:
            # Why there is none, by the part with most rows.
            part = max(found.parts, key=lambda each: each.columns.rows)
            roles = (("question", part.guess.question), ("answer", part.guess.answer))
            known = [f"{role} may be {name}" for role, name in roles if name]
            lacked = " and ".join(role for role, name in roles if not name)
            texts = [name for name, each in part.columns.by_name.items() if each.kind == TEXT]
            rule = "; ".join([*known, f"no column is its {lacked} by name or values"])
            cure = f"; write question = and answer = with two of {_named(texts)}" if texts else ""
            yield f"no recipe: {rule}{cure}"
        is_damaged = any(file.is_broken for file in found.reading.files)
        for inbox, rule in () if is_damaged else found.refused.items():
            yield f"not read by {inbox}: {rule}"
        return
    yield f"recipe {CORPUS}, a guess: it reads {made.good:,} of {made.rows:,} rows tried"
    for counts, said in ((made.refused, "refused: "), (made.left_out, "left out, and counted: ")):
        yield from (f"  {count:,} {said}{rule}" for rule, count in counts.most_common(_NAMED))
    yield from (f"  {count:,} with {what}" for what, count in made.unread.most_common(_MOST))
    yield from ("", *made.text.splitlines(), "")
    if not is_written:
        write = command("look --write", str(found.reading.path))
        yield f"to write it to {found.reading.root / CORPUS}: `{write}`"
    named = f"drop --family {made.inbox} --name {found.name}"
    if not is_built:
        if found.reading.path.is_dir() and "drop" not in cli.absent():
            yield f"then, when it is right: `{command(named, str(place))}`"
        yield f"or build it as guessed: `{build}`"


def _named(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(map(printable, names[:_NAMED])) + (f" and {more:,} more" if more > 0 else "")


@click.command()
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--all", "is_all", is_flag=True, help="Read every row; else heads, tails, footers.")
@click.option("--write", "is_written", is_flag=True, help="Write the recipe where it is read.")
@data_root_option
def look(path: Path, is_all: bool, is_written: bool, data_root: Path) -> None:
    """Say what is in PATH, a folder or a file, before anything is built.

    Files and splits, columns with types, what the columns mean, damage, licence, and the recipe
    that it proposes or the family that reads the files as they are. It is a guess: look at it.
    Nothing is built; --write puts the recipe beside the files, and that of puzzles below DATA_ROOT.
    """
    from gristmill.leaks import commands as leaks
    from gristmill.look import finding

    found = finding.look(path, is_all=is_all)
    with TemporaryDirectory() as scratch:
        finding.alone(found, Path(scratch))
    for line in lines(found, data_root, is_written=is_written):
        click.echo(line)
    for line in leaks.lines(data_root, path, is_all=is_all):
        click.echo(plain(f"note: {line}"))
    if is_written:
        click.echo(plain(f"written: {finding.write(found, data_root)}"))
