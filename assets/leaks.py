"""The check `clean` of texts: whether one holds a question of an evaluation set.

What was found is kept by the library, so that the check reads no text that it has seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

import dagster as dg

from assets.checking.rules import Looked, Rule, Scope
from assets.checking.verdicts import kept
from gristmill import provenance
from gristmill.contract import GristmillError, Violation
from gristmill.printable import command
from gristmill.publish.build import Build
from gristmill.publish.publish import is_current
from gristmill.run.progress import current_progress
from gristmill.settings.tables import LEAKS
from resources import Lake, NotBuilt

if TYPE_CHECKING:
    from gristmill.leaks.texts import Part

CLEAN: Final = "clean"
AUDITS: Final = dg.AssetKey(["audits", "leaks"])


def _clean(scope: Scope) -> Looked:
    from gristmill.leaks.texts import of_artifact

    standing = [item for item in scope.standing if item.data_version]
    parts = {
        item.subject: [
            *of_artifact(item.artifact, provenance.read_record(item.artifact.record_path))
        ]
        for item in standing
    }
    found = [
        (subject, Violation(CLEAN, subject, line)) for subject, line in _found(scope.lake, parts)
    ]
    return Looked({item.subject: item.data_version for item in standing}, found)


def _found(lake: Lake, parts: Mapping[str, Sequence[Part]]) -> Iterator[tuple[str, str]]:
    """Yields each text that holds questions, with a line on them."""
    from gristmill.leaks.commands import of_sets
    from gristmill.leaks.findings import audit
    from gristmill.leaks.texts import sets_of

    sets = sets_of(lake.root)
    every = chain.from_iterable(parts.values()) if sets else ()
    findings = audit(lake.root, every, sets, progress=current_progress())
    for subject, own in parts.items():
        for line in of_sets(lake.root, [each for each in findings if each.part in own]):
            yield subject, line


def refuse_held(lake: Lake, build: Build, *, rebuild: bool) -> None:
    """Raises NotBuilt where an input holds a question, that is an error, and there is work."""
    from gristmill.leaks.texts import ASSETS, parts_of

    held = {f"{each.asset} {each.partition}": each for each in build.inputs if each.asset in ASSETS}
    if not held or build.asset == AUDITS.to_user_string():
        return
    if _severity(lake) is dg.AssetCheckSeverity.ERROR and (rebuild or not is_current(build)):
        for name, line in _found(lake, {name: parts_of(lake.root, name) for name in held}):
            subject = held[name].partition or ""
            raise NotBuilt(f"{name}: {CLEAN}: {line}: {_cure(name, subject, ())}")


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
    follows=(AUDITS,),
)


def said(lake: Lake, asset: str) -> Iterator[tuple[str, str]]:
    """Yields each partition of an asset that holds questions, with what the check said of it."""
    with kept(lake.root, lambda _: None) as file:
        short = file.do(lambda verdicts: verdicts.problems(asset, CLEAN))
    for verdict in short:
        if verdict.problem:
            problem = verdict.problem.removeprefix(f"{verdict.subject}: {CLEAN}: ")
            yield verdict.subject, f"{problem}: {verdict.cure}"
