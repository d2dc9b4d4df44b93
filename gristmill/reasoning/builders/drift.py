"""Drift of a report against its baseline: what changed by more than a tolerance.

Source: `docs/formats/reasoning.md#reports`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gristmill.reasoning.config import ReportConfig

_RELATIVE: Final = ("total_tokens", "avg_seq_len")
_POINTS: Final = {"pct_with_cot": 1.0, "alignment_coverage": 100.0}
"""Measured in percentage points: what a value is multiplied by."""

Splits = Mapping[str, Mapping[str, Any]]


def breaches(now: Splits, before: Splits, config: ReportConfig) -> list[str]:
    """What changed too much, a sentence each.

    now, before: splits of the report and of its baseline, by partition.
    config: the tolerances.

    A split of the baseline that is gone is a breach; one that is new is not.
    """
    found = []
    for name, old in before.items():
        new = now.get(name)
        if new is None:
            found.append(f"{name}: is in the baseline, and no longer published")
            continue
        found += [f"{name}: {breach}" for breach in _split(new, old, config)]
    return found


def changes(now: Splits, before: Splits) -> dict[str, dict[str, float | None]]:
    """Of each split of both the changes that drift is measured by: relative, or in points."""
    return {
        name: {
            **{key: _relative(now[name][key], old[key]) for key in _RELATIVE},
            **{key: _points(now[name][key], old[key], by) for key, by in _POINTS.items()},
        }
        for name, old in before.items()
        if name in now
    }


def _split(new: Mapping[str, Any], old: Mapping[str, Any], config: ReportConfig) -> Iterator[str]:
    same_raw = new["raw_sha256"] == old["raw_sha256"] is not None
    if same_raw and new["examples"] != old["examples"]:
        yield (
            f"examples {old['examples']:,} became {new['examples']:,}, though the normalised "
            "file is the same"
        )
    for key in _RELATIVE:
        change, most = _relative(new[key], old[key]), getattr(config, key)
        if _differs(new[key], old[key]) or (change is not None and abs(change) > most):
            yield f"{key} {_said(old[key])} became {_said(new[key])}: more than {most:.2%}"
    for key, by in _POINTS.items():
        points, most = _points(new[key], old[key], by), getattr(config, key)
        if _differs(new[key], old[key]) or (points is not None and abs(points) > most):
            yield f"{key} {_said(old[key])} became {_said(new[key])}: more than {most:g} points"


def _differs(new: float | None, old: float | None) -> bool:
    """Whether one of two numbers is missing, or the baseline is zero and the other is not."""
    return (new is None) != (old is None) or (old == 0 and new != 0)


def _relative(new: float | None, old: float | None) -> float | None:
    return None if new is None or not old else round(new / old - 1, 9)


def _points(new: float | None, old: float | None, by: float) -> float | None:
    return None if new is None or old is None else round((new - old) * by, 9)


def _said(value: float | None) -> str:
    return (
        "none" if value is None else f"{value:,.6g}" if isinstance(value, float) else f"{value:,}"
    )
