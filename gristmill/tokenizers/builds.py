"""Tokenizers: what they are built from, how, and where they go."""

from __future__ import annotations

import shlex

from gristmill import families
from gristmill.asset import Asset, Wanted
from gristmill.contract import GristmillError, Summary
from gristmill.data_root import DataRoot
from gristmill.provenance import raw_inputs
from gristmill.publish.build import Attempt, Build
from gristmill.settings.tables import PLACING, PlacingSettings
from gristmill.untrusted.files import has_file
from gristmill.vocabularies.pinned import (
    INBOX,
    PLACE,
    Vocabulary,
    drop_folder,
    place,
    read_declared,
)


def placed_build(wanted: Wanted) -> Build:
    """Returns the build of a placed tokenizer. Raises as `DataRoot.ready_drop`."""
    from gristmill.vocabularies.placing import place_tokenizer

    root, name = wanted.root, wanted.partition
    drop, accounted = root.ready_drop(INBOX, name)
    links = root.link_rule()
    declared = read_declared(drop, links)
    limits = PlacingSettings(**root.settings(PLACING.name))
    files = [drop / each for each in accounted.taken[""]]

    def make(attempt: Attempt) -> Summary:
        return place_tokenizer(drop, declared, attempt.out, links, attempt.progress, limits)

    inputs = root.raw_inputs(PLACE, files, "tokenizers/raw", name)
    space = 2 * sum(each.bytes or 0 for each in inputs)
    return wanted.build(PLACE, declared, inputs, make, shared=name, space=space, account=accounted)


def pinned_build(vocabulary: Vocabulary, wanted: Wanted) -> Build:
    """Returns the build of a pinned vocabulary. Raises GristmillError where its file is missing."""
    root = wanted.root
    folder, links = drop_folder(root.root), root.link_rule()
    source = folder / vocabulary.file
    if not has_file(source, root=folder, links=links):
        raise GristmillError(
            f"{source}: missing: run `gristmill tokenizers --data-root "
            f"{shlex.quote(str(root.root))}` to download it"
        )

    def make(attempt: Attempt) -> Summary:
        return place(vocabulary, source, attempt.out)

    inputs = raw_inputs.raw_inputs(
        root.root, [source], wanted.asset.asset, None, known={}, links=links
    )
    space = sum(each.bytes or 0 for each in inputs)
    return wanted.build(PLACE, vocabulary, inputs, make, shared=vocabulary.name, space=space)


def is_asked(vocabulary: Vocabulary, root: DataRoot, _partition: str) -> bool:
    """Whether its file is there, or a drop of a family that is built with it."""
    if has_file(drop_folder(root.root) / vocabulary.file, root=root.root, links=root.link_rule()):
        return True
    key = f"tokenizers/{vocabulary.name}"
    users = [
        each
        for each in families.catalogs()
        if any(isinstance(kind, Asset) and key in kind.inputs for kind in each.kinds)
    ]
    return any(
        folder.is_dir() and any(folder.iterdir())
        for each in users
        for folder in map(root.inbox, each.drops())
    )
