"""Placed tokenizers: what they are built from, how, and where they go."""

from __future__ import annotations

from gristmill.asset import Wanted
from gristmill.contract import Summary
from gristmill.publish.build import Attempt, Build
from gristmill.vocabularies.declared import read_declared
from gristmill.vocabularies.pinned import INBOX, PLACE


def placed_build(wanted: Wanted) -> Build:
    """Returns the build of a placed tokenizer. Raises as `DataRoot.ready_drop`."""
    from gristmill.vocabularies.placing import place_tokenizer

    root, name = wanted.root, wanted.partition
    drop, accounted = root.ready_drop(INBOX, name)
    links = root.link_rule()
    declared = read_declared(drop, links)
    files = [drop / each for each in accounted.taken[""]]

    def make(attempt: Attempt) -> Summary:
        return place_tokenizer(drop, declared, attempt.out, links, attempt.progress)

    inputs = root.raw_inputs(PLACE, files, "tokenizers/raw", name)
    space = 2 * sum(each.bytes or 0 for each in inputs)
    return wanted.build(PLACE, declared, inputs, make, shared=name, space=space, account=accounted)
