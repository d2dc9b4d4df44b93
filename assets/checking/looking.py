"""How a check looks at partitions, and keeps what it found. See also `rules.py`: for what."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from assets.checking import rules
from assets.checking.checked import Checked
from assets.checking.rules import Looked, Rule, Scope
from gristmill.contract import Violation, in_words
from gristmill.printable import plain


def seen_by(rule: Rule, scope: Scope) -> Looked | None:
    """Returns what a check sees in some partitions; None if it looks at nothing.

    rule: the check.
    scope: the partitions.

    A partition at which it cannot look has that as a finding: nothing else fails by it.
    """
    if rule.look is None:
        return None
    try:
        return rule.look(scope)
    except sqlite3.Error:
        raise  # of the kept verdicts, which `verdict_file.py` knows how to go on from
    except Exception as error:  # noqa: BLE001  one artifact must not end the checks of all others
        versions = {item.subject: item.data_version for item in scope.standing}
        if len(versions) > 1:
            alone = [seen_by(rule, replace(scope, keys=[subject])) for subject in versions]
            return Looked(versions, [one for each in alone if each for one in each.findings])
        said = in_words(error)
        reason = plain(f"{type(said).__name__}: {said}", rules.LONGEST_PROBLEM)
        problem = Violation("check", scope.below, f"cannot be looked at: {reason}")
        subjects = list(versions) or [f"{scope.below}/"]
        return Looked(versions, [(subject, problem) for subject in subjects])


def keep(rule: Rule, checked: Checked, scope: Scope, looked: Looked | None) -> None:
    """Keep what a check found.

    rule: the check.
    checked: its asset.
    scope: the partitions that it looked at.
    looked: what `seen_by` returned.
    """
    if looked is None:
        return
    reached = list(looked.verdicts(lambda subject, found: rule.cure(checked.name, subject, found)))
    if scope.whole and not rule.newest_only:
        scope.verdicts.replace(checked.name, rule.name, reached)
    else:
        scope.verdicts.keep(checked.name, rule.name, reached)
