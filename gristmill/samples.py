"""The sample drops of all families: written, marked, removed with what was built from them."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from gristmill.contract import GristmillError, Trace
from gristmill.dispatch import kinds_at, recorded_assets
from gristmill.families import (
    Catalog,
    Misuse,
    Option,
    Request,
    catalogs,
    kind_of_asset,
    options,
    options_of,
)
from gristmill.inbox.marks import (
    DONE,
    INCOMPLETE,
    SAMPLE,
    SUMS,
    contents,
    is_newest,
    mark_of,
    own_of,
    stats_beside,
    sums_in,
    sums_of,
    written_sums,
)
from gristmill.layout import refuse_missing_root
from gristmill.printable import printable
from gristmill.provenance.find_artifacts import artifacts_in, readable
from gristmill.publish.remove import Made, made_from, remove_published
from gristmill.run.progress import current_progress

NOTE: Final = ".samples.json"
"""The note, in `drops/`: sample drop -> file -> sha256, of all that were there."""
Writer = Callable[[Path], object]
Sums = Mapping[str, str]


def write_samples(data_root: Path, again: bool = False) -> list[Path]:
    """Write the sample drops of every family under `<data_root>/drops`; return their paths.

    A drop that exists is left as it is, and none is written whose place another drop has. A new one
    appears whole: it is written into a hidden folder next to its place and renamed.
    """
    drops, note, taken = data_root / "drops", _read(data_root), taken_places(data_root)
    writers = _writers()
    with current_progress().stage("write samples", "drops", len(writers)) as stage:
        for name, write in writers.items():
            stage.advance(1)
            path = drops / name
            if path in taken or (name in note and (path.exists() or not again)):
                continue
            if not path.exists():
                _write_whole(path, write)
            note[name] = dict(sums_of(path))
            _keep(data_root, note)
    return [drops / name for name in writers if (drops / name).exists()]


def removed_places(data_root: Path) -> list[Path]:
    """Returns the sample drops that are not written, since a person removed them."""
    places = (data_root / "drops" / name for name in _read(data_root) if name in _writers())
    taken = taken_places(data_root)
    return [path for path in places if not path.exists() and path not in taken]


def taken_places(data_root: Path) -> dict[Path, Path]:
    """Returns the sample drops that are not written, each with the drop that has its place."""
    found: dict[Path, Path] = {}
    for each in catalogs():
        others: dict[str, Path] = {}
        for path in _entries(data_root, each):
            if _name(data_root, path) not in each.samples:
                others.setdefault(each.place_of(path), path)
        for drop in each.samples:
            path = data_root / "drops" / drop
            if each.place_of(path) in others and not path.exists():
                found[path] = others[each.place_of(path)]
    return found


@dataclass(frozen=True)
class Removal:
    """What goes with the samples of a data root, and what stays.

    built: artifacts that were built from samples alone; each comes after all that it is made from.
    mixed: artifacts that were built from samples and from real data; they stay.
    """

    drops: Mapping[Path, str]
    files: Sequence[Path]
    built: Sequence[Made]
    mixed: Sequence[Made]
    note: Mapping[str, Sums]


def removal(data_root: Path) -> Removal:
    """Returns what `remove_samples` would remove.

    Raises GristmillError where the data root is not there, BadInput for a mark that cannot be read.
    """
    refuse_missing_root(data_root)
    note = _read(data_root)
    drops, files, known = dict[Path, str](), list[Path](), {**note}
    for family, path in ((one, path) for one in catalogs() for path in _entries(data_root, one)):
        name = _name(data_root, path)
        sums = sums_of(path)
        if not sums:
            # Whoever took the mark away says that these files are real.
            listed = note.get(name, {})
            known[name] = {of: listed[of] for of in listed.keys() - own_of(path, listed)}
            continue
        known[name] = {**note.get(name, {}), **sums}
        own = own_of(path, sums)
        if own and own == contents(path):
            drops[path] = _key(family, path)
        else:
            files += [_file(path, file) for file in sorted(own)]
    raw = {
        (_relative(data_root, _file(data_root / "drops" / name, file)), sha256)
        for name, sums in known.items()
        for file, sha256 in sums.items()
    }
    built, mixed = made_from(data_root.absolute(), raw)
    # What was never written does not come, either.
    written = {name: known.get(name, {}) for name in {*_writers(), *note}}
    return Removal(drops, files, built, mixed, written | {n: s for n, s in known.items() if s})


def remove_samples(data_root: Path, found: Removal) -> None:
    """Remove samples and what was built from them alone. No sample comes back unasked.

    A file that has other bytes by now stays. Raises locks.Busy where a builder is at work on an
    artifact; the call can be repeated.
    """
    _keep(data_root, found.note)
    for name, sums in found.note.items():
        path = data_root / "drops" / name
        if path in found.drops:
            _remove_sample(path, sums)
        elif sums_of(path) or any(_file(path, file) in found.files for file in sums):
            _remove_own(path, sums)
    for made in reversed(found.built):
        remove_published(data_root.absolute(), made.entry)


def _remove_sample(drop: Path, sums: Sums) -> None:
    """Remove a drop that is a sample; a file that comes meanwhile stays, in its folder."""
    if not drop.is_dir():
        _remove_own(drop, sums)
        for name in stats_beside(drop):
            drop.with_name(name).unlink(missing_ok=True)
        return
    (drop / INCOMPLETE).touch()
    _remove_own(drop, sums)
    for mark in (DONE, SUMS, INCOMPLETE):
        (drop / mark).unlink(missing_ok=True)
    with suppress(OSError):
        drop.rmdir()


def _remove_own(drop: Path, sums: Sums) -> None:
    """Remove the sample's own files, its mark, and the folders that are empty then."""
    files = [_file(drop, name) for name in own_of(drop, sums)]
    folders = {above for file in files for above in file.parents if drop in above.parents}
    for file in (*files, mark_of(drop)):
        file.unlink(missing_ok=True)
    for folder in sorted(folders, key=lambda each: -len(each.parts)):
        with suppress(OSError):
            folder.rmdir()
    done, left = drop / DONE, [drop / name for name in contents(drop)]
    if left and done.exists() and not is_newest(done, left):
        done.unlink()  # it was the sample's, and would say that the real files are complete


def _key(family: Catalog, drop: Path) -> str:
    """The partition of a drop, as `gristmill retire` takes it."""
    if drop.is_dir():
        return drop.name
    place = family.place_of(drop)
    return drop.stem if place == str(drop) else place


def _file(drop: Path, name: str) -> Path:
    return drop if drop.name == name and not drop.is_dir() else drop / name


def _name(data_root: Path, drop: Path) -> str:
    return _relative(data_root / "drops", drop)


def _relative(folder: Path, path: Path) -> str:
    return path.relative_to(folder).as_posix()


def _entries(data_root: Path, family: Catalog) -> Iterator[Path]:
    """What is in the inboxes of a family, without hidden entries and marks of samples."""
    for inbox in family.drops():
        for path in sorted((data_root / "drops" / inbox).glob("[!.]*")):
            if not path.name.endswith(SAMPLE):
                yield path


def _writers() -> dict[str, Writer]:
    return {name: write for each in catalogs() for name, write in each.samples.items()}


def _write_whole(drop: Path, write: Writer) -> None:
    drop.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=drop.parent, prefix=f".{drop.name}."))
    try:
        made = scratch / drop.name
        write(made)
        mark = written_sums(sums_in(made))
        (made / SAMPLE if made.is_dir() else mark_of(drop)).write_bytes(mark)
        made.rename(drop)
    finally:
        shutil.rmtree(scratch)


def _read(data_root: Path) -> dict[str, Sums]:
    """The note. Raises GristmillError where it is none."""
    file = data_root / "drops" / NOTE
    try:
        note = json.loads(file.read_bytes())
        return {str(name): {str(of): str(sums[of]) for of in sums} for name, sums in note.items()}
    except FileNotFoundError:
        return {}
    except (AttributeError, TypeError, ValueError) as error:
        rule = "does not say which samples there were: remove it, and samples are written again"
        raise GristmillError(f"{file}: {rule}") from error


def _keep(data_root: Path, note: Mapping[str, Sums]) -> None:
    file = data_root / "drops" / NOTE
    octets = (json.dumps(note, indent=1, sort_keys=True) + "\n").encode()
    if file.exists() and file.read_bytes() == octets:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    hidden = file.with_suffix(".writing")
    hidden.write_bytes(octets)
    hidden.replace(file)


_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


class _FamilyOptions(click.Command):
    """A command that also takes the options of all families."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The command's own parameters, then those of the families, then `--help`."""
        own = super().get_params(ctx)
        families = (_click_option(option) for option in options(str(self.name)))
        return [*own[:-1], *families, own[-1]]

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a Misuse ends it with status 2."""
        try:
            return super().invoke(ctx)
        except Misuse as error:
            raise click.UsageError(str(error)) from error


def _click_option(option: Option) -> click.Option:
    kind: Any = option.type
    if option.choices:
        kind = click.Choice(option.choices)
    elif option.least is not None:
        kind = click.IntRange(min=option.least)
    return click.Option(
        [f"--{option.name}"],
        type=kind,
        default=option.default,
        show_default=option.default is not None,
        help=option.help,
    )


def _request(asset: str, path: Path, sample: str, chosen: Mapping[str, Any]) -> Request:
    """The request for an artifact's family. Raises Misuse for an option that it does not take."""
    known = options_of(asset, str(click.get_current_context().command.name))
    for name in _typed(chosen):
        if name not in known:
            raise Misuse(f"--{name} does not apply to artifacts of {asset}")
        if known[name].choices and chosen[name] not in known[name].choices:
            allowed = ", ".join(known[name].choices)
            raise Misuse(f"--{name} {chosen[name]}: artifacts of {asset} take one of {allowed}")
    return Request(path, sample, {name: chosen[name] for name in known})


@click.command(cls=_FamilyOptions)
@click.argument("path", type=_FOLDER)
@click.argument("sample", default="")
@click.option("--table", help="A table of the artifact, by its name; by default the first one.")
def show(path: Path, sample: str, table: str | None, **chosen: Any) -> None:
    """Show row SAMPLE of the artifact at PATH: columns, a board or tokens in colours, origin.

    SAMPLE is a number from 0, an id, or COLUMN=VALUE, which is the first row that fits; or the name
    of a table or partition. Options choose a table of the artifact, or a row. What a row is depends
    on the asset: a step on a board, a conversation, a game. The page of each family in docs/ says
    so.
    """
    from rich.console import Console

    from gristmill.browse import shown

    typed = {"table": table, **chosen}
    request = Request(path, sample, {name: typed[name] for name in _typed(typed)})
    console = Console(highlight=False, markup=False, emoji=False)
    for each in shown.show(request):
        console.print(each, soft_wrap=True)


@click.command(cls=_FamilyOptions)
@click.argument("path", type=_FOLDER)
@click.argument("sample", default="0")
def trace(path: Path, sample: str, **chosen: Any) -> None:
    """Say where SAMPLE of the artifact at PATH came from; samples count from 0.

    The answer goes back to the raw file: its path in the data root, its sha256, the row, the bytes.
    What a sample is depends on the asset: a run, a row, a document, a game by row or by id. For an
    artifact without samples, such as a manifest or a vocabulary, the answer lists its inputs;
    SAMPLE is then a partition of the folder, as `manifest`, or a file in it. Status 1 for a SAMPLE
    that is not there.
    """
    printed = False
    for each in _traced(path, sample, chosen):
        printed = True
        for name, value in each.facts().items():
            click.echo(f"{name}: {printable(str(value))}")
    if not printed:
        raise GristmillError(f"{path} has no sample {sample}")


def _traced(path: Path, sample: str, chosen: Mapping[str, Any]) -> Iterable[Trace]:
    from gristmill.provenance.trace_inputs import inputs_of

    assets = recorded_assets(path)
    records = (record for _, record, _ in readable(artifacts_in(path)))
    own = assets.get(sample) or next(
        (each.asset for each in records if any(sample == file.path for file in each.outputs)), None
    )
    names = [own] if own else [*assets.values()]
    kinds = [kind_of_asset(name) for name in names] if names else kinds_at(path)
    for kind in kinds:
        if kind is not None and kind.trace is not None:
            return list(kind.trace(_request(kind.asset, path, sample, chosen)))
    for option in _typed(chosen):
        asset = ", ".join(dict.fromkeys(names)) or "this kind"
        raise Misuse(f"--{option} does not apply: artifacts of {asset} have no samples")
    return inputs_of(path, sample=sample)


def _typed(chosen: Iterable[str]) -> list[str]:
    """The options that a person typed."""
    source = click.get_current_context().get_parameter_source
    return [name for name in chosen if source(name) is ParameterSource.COMMANDLINE]
