"""`gristmill fetch`: download raw files of a corpus into a drop."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from commands.checkout import CheckoutCommand, called
from commands.terminal import say, shown
from gristmill.corpora.corpus import CORPORA, Corpus
from gristmill.corpora.raw import drops as reasoning
from gristmill.corpora.raw.drops import CORPUS, corpus_of
from gristmill.inbox.hub import HubError, Reached, Source, fetch_drop
from gristmill.puzzles.raw import hub as puzzles
from gristmill.run.progress import reporter
from gristmill.run.shown_progress import shown_on_stderr
from gristmill.synth.raw import files as synth_files
from gristmill.synth.raw import hub as synth
from gristmill.untrusted.files import LinkRule
from resources import Lake

_FETCH: Final[Mapping[str, Callable[..., Any]]] = {
    "puzzles": fetch_drop,
    "reasoning": reasoning.fetch,
    "synth": synth.fetch,
}
_SOURCES: Final = "reasoning/sources"
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
def fetch(
    family: str, corpora: tuple[str, ...], check: bool, endpoint: str | None, **chosen: Any
) -> None:
    """Download the raw files of FAMILY from its hub into drops, which the sensor builds.

    FAMILY reasoning has seven CORPORA, and those whose drop has a corpus.toml with a `source`;
    FAMILY puzzles has two: sudoku-extreme and maze-30x30-hard-1k. All that are built in are
    fetched if none is named. A fetch that was interrupted continues
    with the files that are not there. HF_TOKEN is sent if it is set.
    """
    given = {name: value for name, value in chosen.items() if value is not None}
    hub = {"endpoint": endpoint, "token": os.environ.get("HF_TOKEN") or False}
    try:
        with shown_on_stderr():
            if family == "reasoning":
                found = _corpora(corpora, given)
                mirrors = _mirrors(list(found), given)
                if check:
                    _say_reached(found, mirrors, hub)
                    return
                places = _reasoning_places(found, mirrors, given.get("choice"), hub)
            elif family == "puzzles":
                places = _puzzles_places(corpora, given, hub)
            elif corpora or check or "choice" in given:
                raise ValueError(
                    f"{family} is one corpus: name no other, without --check and --from"
                )
            else:
                places = _synth_place(given, hub)
            _fetch_places(family, places, check)
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


def _synth_place(given: Mapping[str, Any], hub: Mapping[str, Any]) -> _Places:
    repo, revision = synth_files.DATASET, synth_files.REVISION
    source = Source(given.get("repo", repo), given.get("revision", revision), **hub)
    count = given.get("files", synth_files.FILES)
    return {synth.drop_name(source): partial(synth.reached, source, count)}


def _puzzles_places(
    names: Sequence[str], given: Mapping[str, Any], hub: Mapping[str, Any]
) -> _Places:
    if unknown := [name for name in names if name not in puzzles.SOURCES]:
        raise ValueError(
            f"{unknown[0]!r} cannot be fetched: choose of {', '.join(puzzles.SOURCES)}; copy or "
            "clone ARC tasks and other puzzles into drops/puzzles/ by hand"
        )
    if wrong := [name for name in ("files", "choice") if name in given]:
        option = {"files": "--files", "choice": "--from"}[wrong[0]]
        raise ValueError(f"{option} is not for puzzles: each source has one repository")
    chosen = dict.fromkeys(names or puzzles.SOURCES)
    if len(chosen) != 1 and ("repo" in given or "revision" in given):
        raise ValueError("--repo and --revision are for one source: name it, too")
    revision = given.get("revision", "main")
    return {
        name: partial(puzzles.reached, given.get("repo", puzzles.SOURCES[name]), revision, **hub)
        for name in chosen
    }


def _corpora(names: Sequence[str], given: Mapping[str, Any]) -> dict[str, Corpus]:
    if "files" in given:
        raise ValueError("--files is for synth: corpora of reasoning are fetched whole")
    lake = Lake()
    inbox, links = lake.inbox("reasoning"), lake.link_rule()
    return {name: _corpus(inbox / name, links) for name in dict.fromkeys(names or CORPORA)}


def _corpus(drop: Path, links: LinkRule) -> Corpus:
    """The corpus to fetch: that of a drop's own file, else a built-in one."""
    if drop.name in CORPORA or os.path.lexists(drop / CORPUS):
        return corpus_of(drop, links)
    raise ValueError(
        f"{drop.name!r} is no known corpus: choose of {', '.join(CORPORA)}, or write "
        f'{drop}/{CORPUS} with source = {{ repo = "owner/name" }}'
    )


def _mirrors(names: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """By name of corpus, the mirrors of the settings, or the one of the options."""
    if "repo" not in given and "revision" not in given:
        return dict(Lake().settings(_SOURCES))
    if len(names) != 1 or "repo" not in given:
        raise ValueError("--repo and --revision are for one corpus: name it, and both of them")
    return {names[0]: "@".join(filter(None, (given["repo"], given.get("revision"))))}


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
