"""The commands of training: what a mix gives, and which samples were in a step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gristmill.cli import data_root_option
from gristmill.printable import printable

if TYPE_CHECKING:
    from gristmill.loading.loader import Loader
    from gristmill.loading.source import Source

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_mix = click.option("--mix", "mix_file", type=_FILE, required=True, help="The mix file of the run.")
_step = click.option("--step", type=click.IntRange(0), required=True, help="The step, from 0.")


def loader_of(
    state: Path,
    mix_file: Path,
    data_root: Path,
    rank: int = 0,
    world: int = 1,
    pulled: Path | None = None,
) -> Loader:
    """The loader of a state; says which samples are gone."""
    from gristmill.loading.loader import Loader
    from gristmill.loading.mix_file import read_plan, read_state
    from gristmill.loading.state import batch_of

    if rank >= world:
        raise click.UsageError(f"--rank {rank} of --world {world}: ranks count from 0")
    found = read_state(state)
    plan, past = read_plan(found, mix_file, data_root, pulled)
    for each in past:
        which = ", ".join(each.identity.versions)
        line = f"{each.identity.artifact}: version {which} was replaced; its samples are gone"
        click.echo(printable(line), err=True)
    made = Loader(plan, batch_of(found), rank=rank, world=world, uneven=True, form="numpy")
    made.load_state_dict(found)
    return made


@click.command()
@click.argument("file", type=_FILE)
@data_root_option
def mix(file: Path, data_root: Path) -> None:
    """Say how many samples, tokens and epochs each source of a mix file gives.

    The same data by two paths is refused. Nothing is written.
    """
    from gristmill.loading.mix_file import read_mix

    plan = read_mix(file, data_root)
    for each in plan.facts():
        tokens = "" if each["tokens"] is None else f", {each['tokens']:,} tokens"
        line = f"{each['source']}: {each['samples']:,} samples{tokens}, {each['epochs']:.2f} epochs"
        of = "the run's tokens" if plan.tokens is not None else "the run"
        click.echo(printable(f"{line}, {each['share']:.2%} of {of}"))
    click.echo(f"{plan.length:,} samples in the run")


@click.command()
@click.argument("state", type=_FILE)
@_mix
@_step
@click.option("--rank", type=click.IntRange(0), default=0, help="Only the samples of this rank.")
@click.option("--world", type=click.IntRange(1), default=1, help="The number of ranks; default 1.")
@click.option("--show", "is_shown", is_flag=True, help="Also print each sample and its raw text.")
@data_root_option
def batch(
    state: Path, mix_file: Path, step: int, rank: int, world: int, is_shown: bool, data_root: Path
) -> None:
    """Say which samples were in a step of a run, and where each came from.

    STATE is a file with the state of the loader, at any later or earlier step. For each sample its
    source, its number, and the way to the raw file and its bytes. With --show also the raw text of
    these bytes, and the sample as `gristmill show` prints it, as tokens coloured by mask and span.
    """
    from gristmill.provenance.trace_inputs import raw_text

    loader = loader_of(state, mix_file, data_root, rank, world)
    names = _names(loader)
    for source, number in _numbers(loader, step):
        click.echo(printable(f"{names[source]}: sample {number}"))
        for trace in loader.plan.sources[source].origin(number):
            facts = trace.facts()
            for name, value in facts.items():
                click.echo(printable(f"  {name}: {value}"))
            for line in ((is_shown and raw_text(data_root, facts)) or "").splitlines():
                click.echo(f"  | {printable(line)}")
        if is_shown:
            _show(loader.plan.sources[source], number)


def _show(source: Source, number: int) -> None:
    """Print a sample as `gristmill show` does."""
    from rich.console import Console

    from gristmill.browse.shown import show

    console = Console(highlight=False, markup=False, emoji=False)
    shown = getattr(source, "shown", None)
    for request in shown(number) if shown else ():
        for each in show(request):
            console.print(each, soft_wrap=True)


@click.command()
@click.argument("state", type=_FILE)
@_mix
@_step
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The new file.")
@click.option("--mirror", default="", metavar="URL", help="Where versions are that were replaced.")
@data_root_option
def replay(state: Path, mix_file: Path, step: int, out: Path, mirror: str, data_root: Path) -> None:
    """Write the arrays of a step of a run to a file of NumPy (.npz), as they were.

    A version that was built again since is taken from the mirror for the time; the default is that
    of [mirror] push. Nothing is published here.
    """
    import tempfile

    import numpy as np

    from gristmill.contract import GristmillError
    from gristmill.loading.mix_file import read_plan, read_state
    from gristmill.mirror import transfers
    from gristmill.publish.doctor import settings_of

    _, past = read_plan(read_state(state), mix_file, data_root)
    url = mirror or (settings_of(data_root)[1].push if past else "")
    needs = (each for rows in past if url for each in rows.needs)
    with tempfile.TemporaryDirectory(prefix="gristmill-replay-") as folder:
        pulled = Path(folder)
        for name, version in dict.fromkeys((e.entry.name, e.record.data_version) for e in needs):
            for done in transfers.pull(pulled, url, [name], version=version):
                if done.error:
                    raise GristmillError(f"{url}: {done}")
        found = loader_of(state, mix_file, data_root, pulled=pulled)
        _numbers(found, step)
        arrays = found[step]
    try:
        file = out.open("xb")
    except OSError as error:
        reason = f"--out {out}: {error.strerror}: name a new file"
        raise click.UsageError(printable(reason)) from error
    with file:
        np.savez(file, **arrays)
    click.echo(printable(f"{out}: step {step}"))


@click.command()
@click.argument("state", type=_FILE)
@click.argument("source")
@click.argument("number", type=click.IntRange(0))
@_mix
@data_root_option
def seen(state: Path, source: str, number: int, mix_file: Path, data_root: Path) -> None:
    """Say which steps up to STATE gave sample NUMBER of SOURCE; samples count from 0.

    SOURCE is named as `gristmill batch` prints it.
    """
    from gristmill.loading.plan import step_of

    loader = loader_of(state, mix_file, data_root)
    names = _names(loader)
    if source not in names:
        listed = " or ".join(f'"{name}"' for name in names)
        raise click.UsageError(f"{printable(source)} is no source: it is {listed}")
    try:
        positions = loader.plan.seen(names.index(source), number, loader.position)
    except IndexError as error:
        raise click.UsageError(f"{printable(source)}: {error}") from error
    for position in positions:
        click.echo(f"step {step_of(loader.changes, position)}, position {position}")
    if not positions:
        click.echo(f"no step of the first {loader.step:,} gave it")


@click.command()
@click.argument("state", type=_FILE)
def consumed(state: Path) -> None:
    """Say how many samples of each source a run had given at STATE, and how many epochs.

    It needs the state alone.
    """
    from gristmill.loading.mix_file import read_state
    from gristmill.loading.state import consumed as counts

    for each in counts(read_state(state)):
        epochs = each.drawn / max(each.samples, 1)
        click.echo(printable(f"{each.artifact}: {each.drawn:,} samples, {epochs:.2f} epochs"))


def _names(loader: Loader) -> list[str]:
    from gristmill.loading.source import names_of

    return names_of([each.identity for each in loader.plan.sources])


def _numbers(loader: Loader, step: int) -> list[tuple[int, int]]:
    """The samples of a step. Raises UsageError for a step outside the run."""
    try:
        return loader.numbers(step)
    except IndexError as error:
        raise click.UsageError(str(error)) from error
