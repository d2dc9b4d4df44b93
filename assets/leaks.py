"""The check `clean` of texts: whether one holds a question of an evaluation set.

What was found is kept by the library, so that the check reads no text that it has seen.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

import dagster as dg

from assets.checking.rules import Looked, Rule, Scope
from assets.checking.verdicts import kept
from gristmill import provenance
from gristmill.contract import GristmillError, Violation
from gristmill.printable import command
from gristmill.run.progress import current_progress
from gristmill.settings.tables import LEAKS
from resources import Lake

CLEAN: Final = "clean"


def _clean(scope: Scope) -> Looked:
    from gristmill.leaks.commands import of_sets
    from gristmill.leaks.findings import audit
    from gristmill.leaks.texts import of_artifact, sets_of

    root = scope.lake.root
    standing = [item for item in scope.standing if item.data_version]
    parts = {
        item.subject: [
            *of_artifact(item.artifact, provenance.read_record(item.artifact.record_path))
        ]
        for item in standing
    }
    sets = sets_of(root)
    every = chain.from_iterable(parts.values()) if sets else ()
    findings = audit(root, every, sets, progress=current_progress())
    found = [
        (subject, Violation(CLEAN, subject, line))
        for subject, own in parts.items()
        for line in of_sets(root, [each for each in findings if each.part in own])
    ]
    return Looked({item.subject: item.data_version for item in standing}, found)


def _cure(_asset: str, subject: str, _found: Sequence[Violation]) -> str:
    return f"`{command('leaks', subject)}` shows them with both texts, the worst first"


def _severity(lake: Lake) -> dg.AssetCheckSeverity:
    try:
        is_error = lake.settings(LEAKS.name).get("block", False)
    except GristmillError:
        is_error = True  # nobody knows what a wrong file asks for
    return dg.AssetCheckSeverity.ERROR if is_error else dg.AssetCheckSeverity.WARN


RULE: Final = Rule(
    CLEAN,
    "No row holds a question of an evaluation set. This check warns; where gristmill.toml has "
    "`block = true` in `[leaks]`, it is an error, and what is made from the text is not built. "
    "docs/leaks.md says what it cannot find.",
    _clean,
    _cure,
    dg.AssetCheckSeverity.WARN,
    blocking=True,
    severity_of=_severity,
    follows=(dg.AssetKey(["audits", "leaks"]),),
)


def said(lake: Lake, asset: str) -> Iterator[tuple[str, str]]:
    """Yields each partition of an asset that holds questions, with what the check said of it."""
    with kept(lake.root, lambda _: None) as file:
        short = file.do(lambda verdicts: verdicts.problems(asset, CLEAN))
    for verdict in short:
        if verdict.problem:
            problem = verdict.problem.removeprefix(f"{verdict.subject}: {CLEAN}: ")
            yield verdict.subject, f"{problem}: {verdict.cure}"
