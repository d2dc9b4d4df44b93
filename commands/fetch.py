"""`gristmill fetch`: download raw files of a corpus into a drop."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from commands.checkout import CheckoutCommand, called, say, shown
from gristmill.corpora.corpus import CORPORA, Corpus
from gristmill.corpora.raw import drops as reasoning
from gristmill.corpora.raw.drops import CORPUS, corpus_of
from gristmill.inbox.hub import HubError, Reached, Source, fetch_drop
from gristmill.puzzles.raw import drops as puzzles
from gristmill.run.progress import reporter, shown_on_stderr
from gristmill.synth import raw as synth
from gristmill.takedowns.work import taken_out_again
from gristmill.untrusted.files import LinkRule
from resources import Lake

_FETCH: Final[Mapping[str, Callable[..., Any]]] = {
    "puzzles": fetch_drop,
    "reasoning": reasoning.fetch,
    "synth": synth.fetch,
}
_NOT_FOR: Final[Mapping[str, Mapping[str, str]]] = {
    "reasoning": {"files": "--files"},
    "puzzles": {"files": "--files", "choice": "--from"},
    "synth": {"choice": "--from", "check": "--check", "corpora": "the name of a corpus"},
}
"""The options that a family does not take, as a person writes them."""
_Places = Mapping[str, Callable[[], Reached]]
"""By the name of a drop, what looks at the place of its files."""


@click.command(cls=CheckoutCommand, needs_data_root=False)
@click.argument("family", type=click.Choice(sorted(_FETCH)))
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
def fetch(family: str, corpora: tuple[str, ...], endpoint: str | None, **chosen: Any) -> None:
    """Download the raw files of FAMILY from its hub into drops, which the sensor builds.

    FAMILY reasoning has seven CORPORA, and those whose drop has a corpus.toml with a `source`;
    FAMILY puzzles has two: sudoku-extreme and maze-30x30-hard-1k. All that are built in are
    fetched if none is named. A fetch that was interrupted continues
    with the files that are not there. HF_TOKEN is sent if it is set.
    """
    given = {name: value for name, value in chosen.items() if value not in (None, False)}
    hub: dict[str, Any] = {"endpoint": endpoint, "token": os.environ.get("HF_TOKEN") or False}
    names, is_check = list(dict.fromkeys(corpora)), "check" in given
    try:
        words = {**given, "corpora": names} if names else given
        if wrong := [word for option, word in _NOT_FOR[family].items() if option in words]:
            raise ValueError(f"{wrong[0]} is not for {family}")
        if family != "synth" and {"repo", "revision"} & given.keys():
            if len(names) != 1:
                raise ValueError("--repo and --revision are for one corpus: name it, too")
            if family == "reasoning" and "repo" not in given:
                raise ValueError("--revision is for one repository: name it by --repo, too")
        with shown_on_stderr():
            if family == "reasoning":
                inbox, links = Lake().inbox("reasoning"), Lake().link_rule()
                found = {name: _corpus(inbox / name, links) for name in names or CORPORA}
                mirrors = dict(Lake().settings("reasoning/sources"))
                if "repo" in given:
                    parts = (given["repo"], given.get("revision"))
                    mirrors = {names[0]: "@".join(filter(None, parts))}
                if is_check:
                    _say_reached(found, mirrors, hub)
                    return
                places = _reasoning_places(found, mirrors, given.get("choice"), hub)
            elif family == "puzzles":
                places = _puzzles_places(names, given, hub)
            else:
                repo, revision = synth.DATASET, synth.REVISION
                source = Source(given.get("repo", repo), given.get("revision", revision), **hub)
                count = given.get("files", synth.FILES)
                places = {synth.drop_name(source): partial(synth.reached, source, count)}
            _fetch_places(family, places, is_check)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _fetch_places(family: str, places: _Places, is_check: bool) -> None:
    """Fetch each drop from its place; exit with 1 where one cannot be reached."""
    failed, verb, inbox = [], "reached" if is_check else "fetched", Lake().inbox(family)
    for name, reached in places.items():
        try:
            place = reached()
            say(f"{name}: {shown(place.source.repo_id)} at {_amount(place)}")
            if place.left_out:
                say(f"{name}: {shown(place.account.lines[0])}")
            if not is_check:
                drop = inbox / name
                came = _FETCH[family](drop, place, progress=reporter(work=name))
                if again := taken_out_again(Lake().root, drop):
                    say(shown(again))
                size, kept = sum(file.bytes for file in came), len(place.files) - len(came)
                say(
                    f"{shown(str(drop))}: {len(came)} files downloaded ({size:,} bytes), "
                    f"{kept} kept; `{called('materialize --all')}` builds from it"
                )
        except HubError as error:
            failed.append(name)
            say(f"{name}: not {verb}: {shown(str(error))}")
    if failed:
        say(f"not {verb}: {', '.join(failed)}")
        raise SystemExit(1)


def _amount(place: Reached) -> str:
    return f"{place.source.revision[:8]}, {len(place.files)} files ({place.bytes:,} bytes)"


def _puzzles_places(
    names: Sequence[str], given: Mapping[str, Any], hub: Mapping[str, Any]
) -> _Places:
    if unknown := [name for name in names if name not in puzzles.SOURCES]:
        raise ValueError(
            f"{unknown[0]!r} cannot be fetched: choose of {', '.join(puzzles.SOURCES)}; copy or "
            "clone ARC tasks and other puzzles into drops/puzzles/ by hand"
        )
    revision = given.get("revision", "main")
    return {
        name: partial(puzzles.reached, given.get("repo", puzzles.SOURCES[name]), revision, **hub)
        for name in names or puzzles.SOURCES
    }


def _corpus(drop: Path, links: LinkRule) -> Corpus:
    """The corpus to fetch: that of a drop's own file, else a built-in one."""
    if drop.name in CORPORA or os.path.lexists(drop / CORPUS):
        return corpus_of(drop, links)
    raise ValueError(
        f"{drop.name!r} is no known corpus: choose of {', '.join(CORPORA)}, or write "
        f'{drop}/{CORPUS} with source = {{ repo = "owner/name" }}'
    )


def _reasoning_places(
    corpora: Mapping[str, Corpus],
    mirrors: Mapping[str, Any],
    choice: str | None,
    hub: Mapping[str, Any],
) -> _Places:
    places = {}
    for name, corpus in corpora.items():
        found = {place.kind: place for place in reasoning.places(corpus, mirrors.get(name))}
        kind = choice or next(iter(found))
        if kind not in found:
            raise ValueError(f"{name} has no {kind}: choose one of {', '.join(found)}")
        places[name] = partial(reasoning.reached, corpus, found[kind], **hub)
    return places


def _say_reached(
    corpora: Mapping[str, Corpus], mirrors: Mapping[str, Any], hub: Mapping[str, Any]
) -> None:
    """Print a line for each place; exit with 1 where a corpus has no place that can be reached."""
    missing = dict.fromkeys(corpora)
    for name, corpus in corpora.items():
        for place in reasoning.places(corpus, mirrors.get(name)):
            try:
                found = f"reached at {_amount(reasoning.reached(corpus, place, **hub))}"
                missing.pop(name, None)
            except HubError as error:
                found = f"not reached: {shown(str(error))}"
            say(f"{name}  {place.kind}  {shown(place.repo)}  {found}")
    if missing:
        say(f"no path of {', '.join(missing)} can be reached")
        raise SystemExit(1)
