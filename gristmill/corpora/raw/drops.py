"""Which files of a drop hold records of which split, and which files of a hub become a drop.

Source: `docs/formats/reasoning.md#drops`, `docs/formats/reasoning.md#pinned-downloads`.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Final

from gristmill.contract import BadInput
from gristmill.corpora.corpus import CORPORA, Corpus
from gristmill.inbox import hub
from gristmill.inbox.hub import HubError, Reached, RemoteFile, Source
from gristmill.inbox.listing import Account, copied_from, named_few
from gristmill.inbox.marks import FORGOTTEN, SUMS, not_samples
from gristmill.printable import printable
from gristmill.run.progress import SILENT, Progress
from gristmill.settings.tables import FILE
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, equal_pair, refuse_equal
from gristmill.untrusted.walk import visible_files

# Behind its number a part may have a hash of its own.
_PART: Final = re.compile(
    r"^(.*?)[-_.]?(\d{1,6})-of-(\d{1,6})(?!\d)(?:-[0-9a-f]{16}(?![0-9a-f]))?(.*)$", re.IGNORECASE
)


def name_notes(names: Sequence[str]) -> Iterator[str]:
    """Yield what is unusual in the names of one split's files; nothing of it stops a build.

    A whole beside its parts, and a copy that a browser or a desktop made, hold records twice.
    Parts that are not there hold records that nothing reads; a person may mean it so.
    """
    parts: dict[tuple[str, int, str], list[int]] = defaultdict(list)
    for name in names:
        if match := _PART.match(name):
            parts[match[1], int(match[3]), match[4]].append(int(match[2]))
        elif (first := copied_from(name, names)) is not None:
            copy = f"{printable(name)} is named as a copy of {printable(first)}"
            yield f"{copy}: records may count twice"
    for (begin, count, end), found in parts.items():
        shown = printable(f"{begin}-*-of-{count:05}{end}")
        if (whole := begin + end) in names:
            yield f"{printable(whole)} is beside its parts {shown}: records may count twice"
        if len(found) > (own := len({*found})):
            yield f"{shown}: parts of one number have other hashes: records may count twice"
        # Some tools count from 0, others from 1.
        if own < count:
            yield f"{own:,} of the {count:,} files {shown} are there: the rest is not read"


CORPUS: Final = "corpus.toml"
"""The file of a drop that says what its corpus is."""
_EXAMPLE: Final = 'question = "problem" and answer = "solution"'
AUDITS: Final = "audits"
"""A folder of the inbox that is no drop."""
FORMATS: Final = ("jsonl", "ndjson", "json", "parquet", "csv", "tsv")
"""Endings of files that hold records."""
PACKED: Final = ("gz", "zst", "bz2", "xz")
"""Endings of compressed files, after that of the format; Parquet has its own compression."""
SPLIT_WORDS: Final = {
    **dict.fromkeys(("train", "training", "trainset"), "train"),
    **dict.fromkeys(("validation", "valid", "val", "dev", "development"), "validation"),
    **dict.fromkeys(("valset", "devset"), "validation"),
    **dict.fromkeys(("test", "testing", "testset"), "test"),
}
"""The split that a word of a file name names."""
UNCLEAR: Final = {"eval", "evals", "evalset", "evaluation", "holdout", "heldout", "held"}
"""Words that say that records are not for training, but not which split they are."""
_OTHER_FILES: Final = (
    *("dataset_dict.json", "dataset_info.json", "dataset_infos.json", "state.json"),
)
"""Files of known tools that hold no records."""
_NO_DATA: Final = "no data file"
LEFT: Final = "`leave` names it"
"""Why the account of a drop leaves a file out that its recipe names."""
_WORD: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_ENDINGS: Final = re.compile(
    rf"\.(?:{'|'.join(FORMATS)})(?:\.(?:{'|'.join(PACKED)}))?$", re.IGNORECASE
)


def kind(name: str) -> tuple[str, str] | None:
    """Format and compression of a data file, None for another file.

    name: of the file; upper and lower case are equal in its endings.

    Returns one of `FORMATS`, and one of `PACKED` or "".
    """
    if name.startswith(".") or name.lower() in _OTHER_FILES:
        return None
    stem, _, ending = name.lower().rpartition(".")
    packed = ""
    if ending in PACKED:
        packed = ending
        stem, _, ending = stem.rpartition(".")
    if not stem or ending not in FORMATS or (packed and ending == "parquet"):
        return None
    return ending, packed


def stem(name: str) -> str:
    """The name of a data file without its endings; its folders stay."""
    return _ENDINGS.sub("", name)


def words(name: str) -> list[str]:
    """The words of a file name, its folders included, in lower case, without its endings.

    name: `ClozeDev.json` gives cloze and dev, `test-00000-of-00001.parquet` gives test, 00000,
        of and 00001, `gsm8k.test.jsonl.gz` gives gsm, 8, k and test.
    """
    return [word.lower() for word in _WORD.findall(stem(name))]


def named_splits(name: str, corpus: Corpus) -> list[str]:
    """The splits that a file name names, each once."""
    known = {**SPLIT_WORDS, **corpus.words}
    return list(dict.fromkeys(known[word] for word in words(name) if word in known))


def corpus_of(drop: Path, links: LinkRule = REFUSE_LINKS, name: str = "") -> Corpus:
    """The corpus of a drop: that of its `corpus.toml`, else the built-in one of its name.

    name: of the drop; default: that of the folder.

    Raises BadInput for a file that is wrong, and for an unknown name without one.
    """
    name = name or drop.name
    if os.path.lexists(drop / CORPUS):
        from gristmill.corpora.raw.corpus_file import read_corpus_file

        return read_corpus_file(drop / CORPUS, name, links)
    if name not in CORPORA:
        rule = (
            f"is no built-in corpus ({', '.join(CORPORA)}): write a file {CORPUS} into it with "
            f'schema = 1, name = "{printable(name)}" and the columns, as {_EXAMPLE}'
        )
        raise BadInput(drop, rule)
    return CORPORA[name]


def account(drop: Path, links: LinkRule = REFUSE_LINKS) -> Account:
    """What becomes of each file of a drop.

    links: what happens to files that are links; default: they are refused.

    Raises BadInput for a drop that is refused: the folder has no corpus's name or no data file, a
    file is no regular one, the names or folders of the data files say no one split, they are of
    two configurations, or two files of one split have the same bytes.
    """
    corpus = corpus_of(drop, links)
    cure = ""
    if corpus.public_path is not None and not corpus.is_built_in:
        cure = f", or fetch {corpus.public_path}: `gristmill fetch reasoning {corpus.name}`"
    found = account_of(drop, corpus, links, cure=cure)
    if corpus.is_built_in or corpus.name not in CORPORA:
        return found
    note = f"{CORPUS} is read in place of the built-in corpus {corpus.name}"
    return replace(found, notes=[note, *found.notes])


def account_of(
    drop: Path, corpus: Corpus, links: LinkRule, endings: Sequence[str] = (), cure: str = ""
) -> Account:
    """The account of a drop whose corpus is known; errors as `account`.

    endings: of further files that belong to the drop and hold no records; default none.
    """
    found = _account(drop, corpus, links, endings)
    if not any(found.taken.values()) and LEFT in found.left_out.values():
        rule = f"{CORPUS} leaves out every data file: name in `files` what is to be read"
        raise BadInput(drop, rule)
    if not any(found.taken.values()):
        formats = ", ".join(f".{ending}" for ending in FORMATS)
        rule = (
            f"holds no data file: put files with an ending {formats} into it, plain or packed as "
            f"{', '.join(f'.{ending}' for ending in PACKED)}{cure}"
        )
        raise BadInput(drop, rule)
    return found


def _account(drop: Path, corpus: Corpus, links: LinkRule, endings: Sequence[str] = ()) -> Account:
    sizes, left_out = {}, {}
    for name, size in visible_files(drop, links, (SUMS, FILE, CORPUS, FORGOTTEN)).items():
        if name.endswith(tuple(endings)):
            continue
        if kind(name.rpartition("/")[2]) is None:
            left_out[name] = _NO_DATA
        else:
            sizes[name] = size
        if matches(name, corpus.leave):
            left_out[name] = LEFT
    left_out |= not_samples(drop, sizes)
    taken = assigned([name for name in sizes if name not in left_out], corpus, drop)
    for names in taken.values():
        refuse_equal(drop, {name: sizes[name] for name in names}, links)
    notes = [note for names in taken.values() for note in name_notes(names)]
    every = {name: sizes[name] for names in taken.values() for name in names}
    if len(taken) > 1 and (pair := equal_pair(drop, every, links)):
        first, second = map(printable, pair)
        notes.append(f"{second} has the bytes of {first}: two splits have the same records")
    if not corpus.is_built_in and corpus.licence.training_allowed is None:
        rule = 'nobody has said that training is allowed: write licence = { id = "...", train = '
        notes = [*notes, f"the terms are unknown, {rule}true }} into {CORPUS}"]
    return Account(taken, left_out, notes)


def splits(drop: Path, corpus: Corpus, links: LinkRule = REFUSE_LINKS) -> dict[str, list[Path]]:
    """The data files of a drop by split, in the order of the corpus; files sorted by name.

    drop: the folder. corpus: whose records it holds. links: as for `account`.

    None where the drop has no data file. Errors as `account`.
    """
    taken = _account(drop, corpus, links).taken
    return {split: [drop / name for name in names] for split, names in taken.items()}


def assigned(names: Iterable[str], corpus: Corpus, drop: Path = Path()) -> dict[str, list[str]]:
    """Data files by split, by their names and folders alone.

    A file whose name and folders name no split belongs to the first split of the corpus, if no
    other file names a split. Raises BadInput as `account`.
    """
    names = list(names)
    if corpus.files:
        return _by_globs(names, corpus, drop)
    if corpus.split is not None:
        return dict.fromkeys(corpus.splits, names)
    _check_folders(names, corpus, drop)
    found: dict[str, list[str]] = {split: [] for split in corpus.splits}
    nameless: list[str] = []
    named: str | None = None
    by_stem: dict[str, str] = {}
    for name in names:
        other = by_stem.setdefault(stem(name), name)
        if other != name:
            rule = f"has the name of {other} but for the ending: its records would count twice"
            raise BadInput(drop / name, f"{rule}: take one out, or rename it if the records differ")
        split = _split_of(name, corpus, drop)
        if split is None:
            nameless.append(name)
            continue
        named = name
        found[split].append(name)
    if nameless and named is not None:
        rule = (
            f"its name names no split, while {named} does: rename it so that it has one of "
            f"{', '.join(corpus.splits)}"
        )
        raise BadInput(drop / nameless[0], rule)
    found[corpus.splits[0]] += nameless
    for names in found.values():
        _check_configurations(names, corpus, drop)
    return {split: names for split, names in found.items() if names}


def _by_globs(names: Sequence[str], corpus: Corpus, drop: Path) -> dict[str, list[str]]:
    """Data files by the globs of the corpus; each must be in one split."""
    found: dict[str, list[str]] = {split: [] for split in corpus.splits}
    for name in names:
        splits = [split for split, globs in corpus.files.items() if matches(name, globs)]
        if len(splits) != 1:
            what = f"is in the splits {' and '.join(splits)}" if splits else "is in no split"
            rule = f"{what} of `files` in {CORPUS}: name it there in one, or in `leave`"
            raise BadInput(drop / name, rule)
        found[splits[0]].append(name)
    return {split: names for split, names in found.items() if names}


def matches(name: str, globs: Iterable[str]) -> bool:
    """Whether a glob takes a file: by its name, or by its path where the glob has a folder."""
    path, last = name.lower(), name.lower().rpartition("/")[2]
    return any(fnmatchcase(path if "/" in glob else last, glob.lower()) for glob in globs)


def _split_of(name: str, corpus: Corpus, drop: Path) -> str | None:
    """The split that a data file names, None where it names none."""
    names = named_splits(name, corpus)
    if not names:
        if unclear := UNCLEAR.intersection(words(name)):
            rule = f"its name has {min(unclear)}, which says no split: rename it so that it has"
            raise BadInput(drop / name, f"{rule} one of {', '.join(corpus.splits)}")
        return None
    if len(names) > 1:
        rule = f"its name names the splits {' and '.join(names)}: rename it so that it has one"
        raise BadInput(drop / name, rule)
    if names[0] not in corpus.splits:
        known = ", ".join(corpus.splits)
        rule = f"its name names the split {names[0]}; {corpus.name} has {known}"
        raise BadInput(drop / name, f"{rule}: rename it or take it out")
    return names[0]


def _check_folders(names: Sequence[str], corpus: Corpus, drop: Path) -> None:
    """Raise BadInput unless the data files are in one folder, or in one for each split."""
    folders = sorted({PurePosixPath(name).parent for name in names})
    if len(folders) < 2 or (
        len({folder.parent for folder in folders}) == 1
        and all(len(named_splits(folder.name, corpus)) == 1 for folder in folders)
    ):
        return
    inner = [f"{folder}/" for folder in folders if folder.name]
    shown = printable(named_few(inner))
    if len(inner) < len(folders):
        rule = (
            f"holds data files in itself and in the subfolders {shown}, which are not read beside "
            "them: put all data files into one folder, or into one for each split, as train/ and "
            "test/; take those out that are not to be read, or hide their folder (.name/)"
        )
        raise BadInput(drop, rule)
    one = subset_folder(names, corpus.public_subset) or inner[0]
    rule = (
        f"holds data files in the subfolders {shown}, which may be configurations of one dataset "
        f"with the same records: bring one of them, as `gristmill drop .../{printable(one)} "
        f"--family reasoning --name {corpus.name} --replace`, or put all data files into one folder"
    )
    raise BadInput(drop, rule)


def subset_folder(names: Iterable[str], subset: str | None) -> str:
    """The folder of a repository that is taken alone, ending in `/`; empty where none is.

    subset: the configuration that a corpus is taken from; None for no one.

    It is that of the configuration, else `data/`.
    """
    names = list(names)
    for folder in (subset, "data" if subset in (None, "default") else None):
        if folder is not None and any(name.startswith(f"{folder}/") for name in names):
            return f"{folder}/"
    return ""


def _check_configurations(names: Sequence[str], corpus: Corpus, drop: Path) -> None:
    """Raise BadInput where names of one split are of two configurations with the same questions."""
    if corpus.apart is None:
        return
    (kind, mark), *_ = corpus.apart.items()
    bound = "(?<![a-z]){}(?![a-z])" if kind == "word" else "{}"
    pattern = re.compile(bound.format(re.escape(mark)), re.IGNORECASE)
    others = [name for name in names if pattern.search(name)]
    if others and len(others) < len(names):
        first = next(name for name in names if name not in others)
        rule = (
            f"is another configuration of {corpus.name} than {first}, with the same questions, "
            "which would count twice: take the files of one of them out"
        )
        raise BadInput(drop / others[0], rule)


def split_files(
    drop: Path, corpus: Corpus, split: str, links: LinkRule = REFUSE_LINKS
) -> list[Path]:
    """The data files of one split, sorted by name; none where the drop lacks it.

    Arguments and errors as for `splits`; ValueError for a split that the corpus does not have.
    """
    if split not in corpus.splits:
        raise ValueError(f"{corpus.name} has no split {split!r}: {', '.join(corpus.splits)}")
    return splits(drop, corpus, links).get(split, [])


def splits_of(drop: Path, links: LinkRule = REFUSE_LINKS) -> list[str]:
    """The splits that a drop has, in the order of its corpus.

    drop: a folder with the name of a corpus. Errors as `corpus_of` and `account`.
    """
    return list(splits(drop, corpus_of(drop, links), links))


MIRROR: Final = "mirror"
PUBLIC: Final = "public"
SEED: Final = "seed"
"""Kinds of places, in the order in which one is chosen."""
_MIRROR: Final = re.compile(
    r"(?:(?P<endpoint>https?://[^\s@]+?)/)?(?P<repo>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?"
)
_MAIN: Final = "main"
_CONVERTED: Final = "refs/convert/parquet"
"""The branch in which a hub keeps Parquet files of a repository that has a loading script."""
_PARTIAL: Final = "partial-"
"""Begins the folder of a split that was too large to be converted whole."""


@dataclass(frozen=True)
class Place:
    """A repository that may hold a corpus.

    subset: folder of the repository that holds the files, None for no one folder.
    revision: branch, tag or commit; default "main".
    endpoint: address of its hub; None (default) for the usual one.
    """

    kind: str
    repo: str
    subset: str | None = None
    revision: str = _MAIN
    endpoint: str | None = None


def places(corpus: Corpus, mirror: str | None = None) -> list[Place]:
    """The places of a corpus in the order in which one is chosen: mirror, public, seed.

    mirror: `[address/]owner/name[@revision]`; None (default) for none.

    Raises ValueError for a mirror of another form, and for a corpus that names no repository.
    """
    found = []
    if mirror is not None:
        match = _MIRROR.fullmatch(mirror)
        if match is None:
            raise ValueError(
                f"{corpus.name} = {mirror!r}: a mirror is owner/name, with the address of its hub "
                "before it and @revision behind it if needed"
            )
        place = Place(MIRROR, match["repo"], corpus.public_subset, endpoint=match["endpoint"])
        found.append(replace(place, revision=match["revision"] or place.revision))
    if corpus.public_path is not None:
        found.append(Place(PUBLIC, corpus.public_path, corpus.public_subset, corpus.revision))
    if corpus.is_built_in:
        found.append(Place(SEED, corpus.hf_path, corpus.subset))
    if not found:
        raise ValueError(
            f'{corpus.name}: write source = {{ repo = "owner/name" }} into its {CORPUS}'
        )
    return found


def reached(
    corpus: Corpus, place: Place, endpoint: str | None = None, token: str | bool = False
) -> Reached:
    """Look at a place: its commit, and the files that a drop would get.

    endpoint: address of the hub where the place names none; None (default) for the usual one.
    token: for repositories that need one; it is sent to no other hub that a place names.

    Raises HubError if the hub does not answer, has no such repository, or if the repository has
    no data file, or one that belongs to no split of the corpus.
    """
    sent = token if place.endpoint is None else False
    where = place.endpoint or endpoint
    source = Source(place.repo, hub.commit_of(place.repo, place.revision, where, sent), where, sent)
    listed = _data_files(source)
    if not listed and place.revision == _MAIN:
        source = _converted(source)
        listed = _data_files(source)
    at = f"{place.repo} at {source.revision}"
    wanted, left_out = _wanted(listed, corpus, place)
    taken, others = _of_one_format(wanted)
    left_out |= others
    folder = subset_folder([file.path for file in listed], place.subset)
    # The globs of a file of its own may name folders, so these stay.
    names = [
        file.path.removeprefix(folder).replace("/", "-") if corpus.is_built_in else file.path
        for file in taken
    ]
    if not names:
        raise HubError(f"{at}: holds no data file{' that is wanted' if listed else ''}")
    if partial := [file.path for file in taken if f"/{_PARTIAL}" in f"/{file.path}"]:
        raise HubError(f"{at}: {partial[0]}: the hub converted only a part: name a whole mirror")
    if len(set(names)) < len(names):
        raise HubError(f"{at}: two files would have one name in the drop")
    if unsafe := [name for name in names if not _is_name(name)]:
        raise HubError(f"{at}: {unsafe[0]!r} is no name of a file")
    try:
        assigned(sorted(names), corpus)
    except BadInput as error:
        raise HubError(f"{at}: {error}") from error
    return Reached(source, dict(sorted(zip(names, taken, strict=True))), left_out)


def _wanted(
    listed: Sequence[RemoteFile], corpus: Corpus, place: Place
) -> tuple[list[RemoteFile], dict[str, str]]:
    """The files that a corpus wants of a repository, and why the others are left out."""
    folder = subset_folder([file.path for file in listed], place.subset)
    left_out = {}
    for file in listed:
        if corpus.paths and not matches(file.path, corpus.paths):
            left_out[file.path] = "`source.paths` does not name it"
        elif matches(file.path, corpus.leave):
            left_out[file.path] = "`leave` names it"
        elif not file.path.startswith(folder) and (
            place.subset or not (corpus.paths or corpus.files)
        ):
            left_out[file.path] = f"another configuration than {folder}"
    return [file for file in listed if file.path not in left_out], left_out


def _is_name(name: str) -> bool:
    """Whether a path of a hub is that of a file in a drop, and of none beside it or hidden."""
    parts = name.split("/")
    return "\0" not in name and all(part and not part.startswith(".") for part in parts)


def _data_files(source: Source) -> list[RemoteFile]:
    return hub.listed(source, lambda path: kind(PurePosixPath(path).name) is not None)


def _converted(source: Source) -> Source:
    """The source at the branch of Parquet files that the hub makes of a repository."""
    try:
        commit = hub.commit_of(source.repo_id, _CONVERTED, source.endpoint, source.token)
    except HubError as error:
        why = " ".join(str(error).split())
        raise HubError(
            f"{source.repo_id} at {source.revision}: holds no data file, and {_CONVERTED}, where "
            f"the hub puts Parquet files, cannot be reached ({why}): copy the files into the "
            "drop by hand, or name a mirror in [reasoning.sources] of gristmill.toml"
        ) from error
    return replace(source, revision=commit)


def _of_one_format(files: Sequence[RemoteFile]) -> tuple[list[RemoteFile], dict[str, str]]:
    """The files that are taken, and why the others are not: they hold the same records."""
    best: dict[str, RemoteFile] = {}
    for file in sorted(files, key=lambda file: (_rank(file.name), file.path)):
        best.setdefault(stem(file.path), file)
    taken = list(best.values())
    left_out = {
        file.path: f"{best[stem(file.path)].name} holds the same in another format"
        for file in files
        if file not in taken
    }
    return taken, left_out


def _rank(name: str) -> tuple[bool, bool, int]:
    """Of files that differ in their endings alone the first is fetched: plain ones, and tables."""
    ending, packed = kind(name) or ("", "")
    return packed != "", "json" in ending, FORMATS.index(ending)


def fetch(drop: Path, place: Reached, *, progress: Progress = SILENT) -> list[RemoteFile]:
    """Download the files of a place into a drop.

    Raises HubError as `gristmill.inbox.hub.fetch_drop`, and where the drop holds other data files:
    their records would be counted twice.
    """
    try:
        present = visible_files(drop, besides=(FORGOTTEN,))
    except BadInput as error:
        raise HubError(str(error)) from error
    others = [name for name in present if kind(Path(name).name) and name not in place.files]
    if others:
        raise HubError(
            f"{drop}: holds {others[0]}, which {place.source.repo_id} does not have: take it out "
            "first"
        )
    return hub.fetch_drop(drop, place, progress)
