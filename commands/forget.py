"""`gristmill forget`: take rows out of a drop, and out of all that was made from them."""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, nullcontext, redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from commands import outcomes as table
from commands.checkout import CHECKOUT, CheckoutCommand, called, open_instance, say, shown
from commands.instance import dagster_home, state_folder
from commands.outcomes import Call, Outcome
from gristmill.contract import GristmillError
from gristmill.layout import root_of
from gristmill.run.progress import Progress, shown_on_stderr

if TYPE_CHECKING:
    from dagster import DagsterInstance, DagsterRun

    from gristmill.takedowns.plan import Plan
    from gristmill.takedowns.search import Search

_FILE: Final = click.Path(exists=True, dir_okay=False, resolve_path=True, path_type=Path)


@click.command(
    cls=CheckoutCommand,
    interrupted="a takedown that began continues with `gristmill forget --continue`",
)
@click.argument("drop", required=False)
@click.option("--rows", type=_FILE, help="Rows that this file names, FILE:ROW or an id a line.")
@click.option("--text", type=_FILE, help="Rows that are one of the texts of this file.")
@click.option("--where", metavar="KEY=VALUE", help="Rows whose column KEY has this value.")
@click.option("--containing", is_flag=True, help="Also rows that hold such a text, of any drop.")
@click.option("--erase", is_flag=True, help="Rewrite the raw files without the rows, too.")
@click.option("--reason", default="asked", show_default=True, help="What the report says.")
@click.option("--state", "states", type=_FILE, multiple=True, help="A loader's state; repeatable.")
@click.option("--mix", type=_FILE, help="The mix file of the states.")
@click.option("--yes", is_flag=True, help="Do it; without it nothing is changed.")
@click.option("--continue", "continues", is_flag=True, help="Continue a takedown that was killed.")
@click.option("--json", "as_json", is_flag=True, help="Print the plan or the report as JSON.")
def forget(drop: str | None, yes: bool, continues: bool, as_json: bool, **words: Any) -> None:
    """Take rows out of DROP, as reasoning/gsm8k, and prove that their text is gone.

    Without --yes it lists all that holds the text, and what would be built again. With it, no build
    takes the rows any more; what was made from them is built again, every file is searched, and a
    report says what was removed and what was not reached. Status 1 if a text stands somewhere yet.
    """
    from gristmill.takedowns.plan import alone, under_way

    root, named = root_of(CHECKOUT), [words[each] for each in ("rows", "text", "where")]
    if continues == bool(drop) or (drop and sum(map(bool, named)) != 1):
        raise click.UsageError("give a drop and one of --rows, --text, --where; or --continue")
    if bool(words["states"]) != bool(words["mix"]):
        raise click.UsageError("--state goes with --mix")
    with alone(root), shown_on_stderr() as progress:
        plan = under_way(root)
        if (plan is None) == continues:
            what = f"a takedown of {plan.drop}" if plan else "no takedown"
            rule = f"`{called('forget --continue')}` continues one"
            raise GristmillError(f"{root}: {what} is under way: {rule}")
        if plan is None:
            plan = _planned(root, str(drop), words, yes, as_json, progress)
        if plan is not None:
            _carry_out(root, plan, as_json, progress)


def _planned(
    root: Path, drop: str, words: dict[str, Any], yes: bool, as_json: bool, progress: Progress
) -> Plan | None:
    """The plan of the words of a call; None where it is to be shown alone."""
    from gristmill.takedowns import report, work
    from gristmill.takedowns.search import Search

    target, shared = work.target_of(root, drop), 0
    if words["text"]:
        units, texts = work.by_text(target, work.texts_in(words["text"]))
    elif words["rows"]:
        units = work.by_rows(target, words["rows"])
    else:
        units = work.by_column(target, words["where"])
    units = work.with_equal(target, units) if units else units
    if not words["text"]:
        texts, shared = work.own_texts(target, units)
    plan = work.planned(target, units, texts, words | {"shared": shared}, progress)
    if words["states"]:
        plan.steps += report.steps(root, plan, words["states"], words["mix"], progress)
    if yes and plan.rows:
        plan.keep(root)
        return plan
    with open_instance() as instance:
        search = Search(plan.texts)
        for run, assets in _runs(instance, plan, search) if plan.texts else ():
            where = {"place": f"run {run.run_id}", "file": assets}
            plan.holds.append({**where, "row": 0, "column": ""})
    report.look_in_mirror(root, plan)
    hint = ": --yes does it" if plan.rows else ""
    _say(root, plan, as_json, f"nothing was changed{hint}")
    if not plan.rows:
        raise SystemExit(1)
    return None


def _say(root: Path, plan: Plan, as_json: bool, last: str) -> None:
    from gristmill.takedowns.report import lines

    if as_json:
        click.echo(json.dumps(plan.report(root), indent=1))
    for line in () if as_json else (*lines(plan), last):
        say(shown(line))


def _carry_out(root: Path, plan: Plan, as_json: bool, progress: Progress) -> None:
    """Do what a plan has yet to do; ends with status 1 where a text stands somewhere yet."""
    from gristmill.takedowns import report, work
    from gristmill.takedowns.plan import ERASED, LEFT_OUT, NAMED, REBUILT
    from gristmill.takedowns.search import Search

    again = f"`{called('forget --continue')}`"
    if plan.state == NAMED:
        work.leave_out(root, plan)
    if plan.state == LEFT_OUT:
        work.erase_rows(root, plan)
    if plan.state == ERASED:
        if _build(root, plan, as_json):
            rule = "the rows are left out, but not all is built again: mend what the list names"
            raise GristmillError(f"{plan.drop}: {rule}, then {again}")
        plan.keep(root, REBUILT)
    search, plan.not_reached = Search(plan.texts), []
    if plan.texts:
        _prune(root, plan, search)
    work.scan(root, plan, search, progress)
    if plan.erased and (count := work.rows_left(root, plan)):
        plan.keep(root, LEFT_OUT)
        raise GristmillError(f"{plan.drop}: {count:,} rows are in raw files again: {again}")
    work.compare(root, plan)
    report.look_in_mirror(root, plan)
    _say(root, plan, as_json, f"report: {plan.end(root, report.lines(plan))}")
    if plan.stands_still or plan.stale:
        raise SystemExit(1)


def _build(root: Path, plan: Plan, is_quiet: bool) -> bool:
    """Build again what a plan names, and nothing else; returns whether that failed."""
    from commands.graph import Graph
    from commands.selection import answer_of
    from resources import Lake

    if not plan.affected:
        return False
    keys = defaultdict[str, list[str]](list)
    for each in plan.affected:
        keys[each["asset"]].append(each["partition"])
    with open_instance() as instance:
        graph = Graph(instance, Lake())
        order = graph.select(list(keys))
        parted = {each for each in order if graph.partitions(each) is not None}
    outcomes, started = list[Outcome](), time.monotonic()
    with redirect_stdout(sys.stderr) if is_quiet else nullcontext():
        for asset in order:
            some = sorted(keys[name := asset.to_user_string()])
            answer = answer_of(Call((name,), tuple(some) if asset in parted else ()))
            outcomes += (one for one in answer.outcomes if one.status != "unchanged")
        table.show(outcomes, time.monotonic() - started, root)
    return any(each.status == "failed" for each in outcomes)


def _runs(
    instance: DagsterInstance, plan: Plan, search: Search
) -> Iterator[tuple[DagsterRun, str]]:
    """Yield the runs of artifacts of a plan whose events hold a text, each with its assets."""
    import dagster as dg

    named = {each["asset"] for each in plan.affected}
    for run in [each.dagster_run for each in instance.get_run_records()]:
        assets = {each.to_user_string() for each in run.asset_selection or ()}
        logs = instance.all_logs(run.run_id) if assets & named else ()
        events = [dg.serialize_value(each) for each in logs]
        whole = search.raw.stream(each.encode() + b"\0" for each in events)
        if whole or any(map(search.pictured, events)):
            yield run, ", ".join(sorted(assets))


def _prune(root: Path, plan: Plan, search: Search) -> None:
    """Remove the runs of the instance whose events hold a text; a plan says which, and which not.

    What such a run had published is reported again by its record.
    """
    from commands.adopt import Reports
    from resources import Lake

    is_changed = False
    with open_instance() as instance:
        for run, assets in _runs(instance, plan, search):
            if run.is_finished:
                instance.delete_run(run.run_id)
                plan.removed.append(f"run {run.run_id} of {assets}")
                is_changed = True
            else:
                plan.not_reached.append(f"run {run.run_id}, under way: its events hold a text")
        if is_changed:
            work = Reports(instance, Lake())
            [*work.read()]
            for asset in work.graph.select(()):
                work.report(asset)
    plan.not_reached += _of_state(state_folder(CHECKOUT, dagster_home()), search)


def _of_state(folder: Path, search: Search) -> Iterator[str]:
    """Take texts out of free pages of the databases of an instance; yield what holds one yet."""
    found = {each.path for each in search.everywhere(folder, ())}
    for path in {each.with_name(each.name.removesuffix("-wal")) for each in found}:
        if path.suffix == ".db":
            with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as opened:
                opened.execute("VACUUM")
                opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    if found:
        search.unread.clear()
        found = {each.path for each in search.everywhere(folder, ())}
    for path in sorted(found):
        yield f"{path}: what the instance keeps holds a text: end what uses it, and remove the file"
