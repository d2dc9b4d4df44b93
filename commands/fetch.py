"""`gristmill fetch`: download raw files of a corpus into a drop."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import click
from rich.markup import escape

import definitions
from commands.checkout import CheckoutCommand, called
from commands.terminal import say, shown
from gristmill.inbox.hub import Fetched, HubError
from gristmill.puzzles.raw.hub import SOURCES
from gristmill.reasoning.format.corpora import CORPORA, Corpus
from gristmill.reasoning.raw.drops import CORPUS, corpus_of
from gristmill.run.progress import reporter
from gristmill.run.shown_progress import shown_on_stderr
from gristmill.untrusted.files import LinkRule
from resources import CorporaHub, Lake, PuzzlesHub, ReasoningHub

_HUBS = {inbox: hub for family in definitions.families() for inbox, hub in family.hubs.items()}
_SOURCES: Final = "reasoning/sources"


@click.command(cls=CheckoutCommand, needs_data_root=False)
@click.argument("family", type=click.Choice(sorted(_HUBS)))
@click.argument("corpora", nargs=-1)
@click.option(
    "--check", is_flag=True, help="Reasoning, puzzles: say what can be reached, fetch nothing."
)
@click.option(
    "--from",
    "choice",
    type=click.Choice(["mirror", "public", "seed"]),
    help="Reasoning: which path; the mirror of gristmill.toml or the public one by default.",
)
@click.option(
    "--files",
    type=click.IntRange(min=1),
    help="SYNTH: how many, from the first on; all by default.",
)
@click.option("--repo", help="The dataset's repository, if not the known one.")
@click.option("--revision", help="A commit's 40 digits, if not the pinned one.")
@click.option("--endpoint", help="Address of the hub, if not the public one.")
def fetch(family: str, corpora: tuple[str, ...], **chosen: Any) -> None:
    """Download the raw files of FAMILY from its hub into drops, which the sensor builds.

    FAMILY reasoning has seven CORPORA, and those whose drop has a corpus.toml with a `source`;
    FAMILY puzzles has two: sudoku-extreme and maze-30x30-hard-1k. All that are built in are
    fetched if none is named. A fetch that was interrupted continues
    where it stopped. HF_TOKEN is sent if it is set.
    """
    given = {name: value for name, value in chosen.items() if value is not None}
    is_check, hub = given.pop("check"), _HUBS[family]
    try:
        with shown_on_stderr():
            if isinstance(hub, ReasoningHub):
                _fetch_reasoning(hub, corpora, is_check, given)
            elif isinstance(hub, PuzzlesHub):
                _fetch_puzzles(hub, corpora, is_check, given)
            elif corpora or is_check or "choice" in given:
                raise ValueError(
                    f"{family} is one corpus: name no other, without --check and --from"
                )
            else:
                _fetch_one(hub, family, given)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _fetch_one(known: CorporaHub, family: str, given: dict[str, Any]) -> None:
    hub = CorporaHub(**{**known.model_dump(), **given})
    inbox = Lake().inbox(family)
    where = f"{escape(hub.repo)} at {escape(hub.revision[:8])}"
    say(f"{where}, {hub.files} files to {escape(str(inbox))}")
    _say_fetched(hub.fetch(inbox, reporter(work=family)), str(inbox / hub.drop))


def _fetch_puzzles(
    known: PuzzlesHub, corpora: Sequence[str], is_check: bool, given: dict[str, Any]
) -> None:
    if unknown := [name for name in corpora if name not in SOURCES]:
        raise ValueError(
            f"{unknown[0]!r} cannot be fetched: choose of {', '.join(SOURCES)}; copy or clone ARC "
            "tasks and other puzzles into drops/puzzles/ by hand"
        )
    if wrong := [name for name in ("files", "choice") if name in given]:
        option = {"files": "--files", "choice": "--from"}[wrong[0]]
        raise ValueError(f"{option} is not for puzzles: each source has one repository")
    names = list(dict.fromkeys(corpora)) or list(SOURCES)
    if len(names) != 1 and ("repo" in given or "revision" in given):
        raise ValueError("--repo and --revision are for one source: name it, too")
    hub = PuzzlesHub(**{**known.model_dump(), **{k: given[k] for k in given if k == "endpoint"}})
    revision = given.get("revision", "main")
    places = {name: partial(hub.reached, name, given.get("repo"), revision) for name in names}
    _fetch_places(hub, Lake().inbox("puzzles"), places, is_check)


def _fetch_places(
    hub: PuzzlesHub | ReasoningHub,
    inbox: Path,
    places: Mapping[str, Callable[[], Any]],
    is_check: bool = False,
) -> None:
    """Fetch each drop from its place; exit with 1 where one cannot be reached."""
    failed, verb = [], "reached" if is_check else "fetched"
    for name, reached in places.items():
        try:
            place = reached()
            say(
                f"{name}: {shown(place.source.repo_id)} at {place.source.revision[:8]}, "
                f"{len(place.files)} files ({place.bytes:,} bytes)"
            )
            if getattr(place, "left_out", None):
                say(f"{name}: {shown(place.account.lines[0])}")
            if not is_check:
                _say_fetched(hub.fetch(inbox, name, place, reporter(work=name)), str(inbox / name))
        except HubError as error:
            failed.append(name)
            say(f"{name}: not {verb}: {shown(str(error))}")
    if failed:
        say(f"not {verb}: {', '.join(failed)}")
        raise SystemExit(1)


def _fetch_reasoning(
    known: ReasoningHub, corpora: Sequence[str], is_check: bool, given: dict[str, Any]
) -> None:
    if "files" in given:
        raise ValueError("--files is for synth: corpora of reasoning are fetched whole")
    names = list(dict.fromkeys(corpora)) or list(CORPORA)
    lake = Lake()
    mirrors = dict(lake.settings(_SOURCES))
    if "repo" in given or "revision" in given:
        if len(names) != 1 or "repo" not in given:
            raise ValueError("--repo and --revision are for one corpus: name it, and both of them")
        mirrors = {names[0]: "@".join(filter(None, (given["repo"], given.get("revision"))))}
    hub = ReasoningHub(**{**known.model_dump(), **{k: given[k] for k in given if k == "endpoint"}})
    inbox = lake.inbox("reasoning")
    found = {name: _corpus(inbox / name, lake.link_rule()) for name in names}
    if is_check:
        _say_reached(hub, list(found.values()), mirrors)
        return
    places = {
        name: partial(hub.reached, corpus, mirrors.get(name), given.get("choice"))
        for name, corpus in found.items()
    }
    _fetch_places(hub, inbox, places)


def _corpus(drop: Path, links: LinkRule) -> Corpus:
    """The corpus to fetch: that of a drop's own file, else a built-in one."""
    if drop.name in CORPORA or os.path.lexists(drop / CORPUS):
        return corpus_of(drop, links)
    raise ValueError(
        f"{drop.name!r} is no known corpus: choose of {', '.join(CORPORA)}, or write "
        f'{drop}/{CORPUS} with source = {{ repo = "owner/name" }}'
    )


def _say_reached(hub: ReasoningHub, corpora: Sequence[Corpus], mirrors: dict[str, Any]) -> None:
    """Print a line for each place; exit with 1 where a corpus has no place that can be reached."""
    names = [corpus.name for corpus in corpora]
    missing = set(names)
    for name, place, found in hub.check(corpora, mirrors):
        if isinstance(found, str):
            said = f"not reached: {shown(found)}"
        else:
            missing.discard(name)
            commit = found.source.revision[:8]
            said = f"reached at {commit}, {len(found.files)} files ({found.bytes:,} bytes)"
        say(f"{name}  {place.kind}  {shown(place.repo)}  {said}")
    if missing:
        say(f"no path of {', '.join(name for name in names if name in missing)} can be reached")
        raise SystemExit(1)


def _say_fetched(fetched: Fetched, drop: str) -> None:
    kept = len(fetched.files) - fetched.downloaded
    say(
        f"{escape(drop)}: {fetched.downloaded} files downloaded "
        f"({fetched.bytes:,} bytes), {kept} kept; "
        f"`{called('materialize --all')}` builds from it"
    )
