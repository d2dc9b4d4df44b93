"""The family's own commands: `gristmill audit`, `gristmill stage` and `gristmill unstage`.

The catalog in `family.py` names them. See also `show/audit_command.py`.
"""

from __future__ import annotations

from pathlib import Path

import click

from gristmill.printable import printable
from gristmill.reasoning.show.audit_command import audit

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
    help="A folder of shards outside of a data root.",
)
@click.option(
    "--data-root",
    envvar="GRISTMILL_DATA",
    default="data",
    show_default=True,
    show_envvar=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the shards were published.",
)
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
    from gristmill.reasoning.format import names
    from gristmill.reasoning.format.staged import SHARDS
    from gristmill.reasoning.read.stage import stage as copy
    from gristmill.run.shown_progress import shown_on_stderr

    if steps and shards is not None:
        raise click.UsageError("--steps needs a data root: leave --from out")
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
            alignment=data_root / names.ALIGNMENT if steps else None,
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
