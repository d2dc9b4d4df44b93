"""What both manifests share: file names, JSON form, and the config that all shards have."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from gristmill.contract import BadInput, FileNote, GristmillError, Violation
from gristmill.settings.fields import ADDED_LATER, NO_EFFECT, fields_with, rules_of
from gristmill.untrusted.files import LinkRule, opened
from gristmill.untrusted.json_text import check_nesting
from gristmill.untrusted.limits import Limits

MANIFEST: Final = "manifest.json"
METADATA: Final = "metadata.json"
GLOB: Final = "synth_harmony_shard_*.parquet"
_NO_CONTENT: Final = frozenset(
    {"created_unix_s", "git_sha", "dataset_dir", "manifest_path", "manifest_sha256", "model_path"}
)
HARMONY_SCHEMA: Final = "synth_harmony_v1"
"""`schema_version` of a Harmony manifest."""
LIMITS: Final = Limits(bytes=16 << 20, depth=64, digits=100)
"""Limits of both JSON files: `docs/formats/synth.md#import`."""


def write_json(path: Path, value: object) -> None:
    """Write JSON with indent 2, in ASCII, with keys in the given order and a final newline."""
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="ascii")


def content_note(value: object, roots: Sequence[str]) -> FileNote:
    """Return the note of a manifest: its data version is that of its contents.

    roots: folders as the manifest names them; only what follows them counts.

    Times, the git commit, places and the sha256 of another manifest, which has
    times, too, do not count.
    """
    text = json.dumps(_content(value, roots), sort_keys=True, separators=(",", ":"))
    return FileNote(content_sha256=hashlib.sha256(text.encode()).hexdigest())


def _content(value: object, roots: Sequence[str]) -> object:
    if isinstance(value, dict):
        return {key: _content(item, roots) for key, item in value.items() if key not in _NO_CONTENT}
    if isinstance(value, list):
        return [_content(item, roots) for item in value]
    if isinstance(value, str):
        return next((value[len(root) :] for root in roots if value.startswith(f"{root}/")), value)
    return value


def read_json(path: Path, links: LinkRule | None = None) -> tuple[bytes, dict[str, Any]]:
    """Return the bytes of a file and the JSON object that they are.

    links: what happens if it is a link, for a file of a drop; None (default) for another
        file: a link is followed.

    Raises BadInput if it cannot be read, is not a JSON object or breaks a limit.
    """
    try:
        with opened(path, links) as file:
            octets = file.read(LIMITS.bytes + 1)
        if len(octets) > LIMITS.bytes:
            raise BadInput(path, f"cannot be read: has more than {LIMITS.bytes:,} bytes")
        check_nesting(octets, path, LIMITS)
        value = json.loads(octets)
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(path, f"cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise BadInput(path, "is not a JSON object")
    return octets, value


def json_violations(path: Path, links: LinkRule | None = None) -> Iterator[Violation]:
    """Yield a violation if `read_json` refuses a file. The arguments are the same."""
    try:
        read_json(path, links)
    except BadInput as error:
        yield Violation("readable", path.name, error.rule)


def check_equal_configs(records: Sequence[Mapping[str, Any]], config: type[Any]) -> dict[str, Any]:
    """Return the config and code version that all records share.

    records: of each shard a mapping with `partition`, `config` and `code_version`.
    config: the class of the configs. Its fields that change no byte may differ; they are left
        out. A field that an older record does not have is at its default.

    Raises GristmillError if there are no records, or if two of them differ. It
    names both partitions and the keys.
    """
    if not records:
        raise GristmillError("no shard has a record yet: materialize the shards first")
    ignored = fields_with(config, NO_EFFECT)
    added = {name: rules_of(config)[name].default for name in fields_with(config, ADDED_LATER)}
    first, *others = [
        {key: value for key, value in (added | record["config"]).items() if key not in ignored}
        | {"code_version": record.get("code_version")}
        for record in records
    ]
    for record, other in zip(records[1:], others, strict=True):
        keys = sorted(first.keys() | other.keys())
        if different := [key for key in keys if first.get(key) != other.get(key)]:
            values = ", ".join(f"{k} {first.get(k)!r} and {other.get(k)!r}" for k in different)
            raise GristmillError(
                f"shards {records[0].get('partition')} and {record.get('partition')} were built "
                f"from unequal configs: {values}: build all of them with one config"
            )
    return first
