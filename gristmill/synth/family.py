"""SYNTH: which laws, views, traces and sample drops belong to which asset."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gristmill.contract import Trace, Violation
from gristmill.families import Catalog, Column, Kind, Law, Option, Request, Subject
from gristmill.inbox import DropKind
from gristmill.inbox.account import Account
from gristmill.inbox.kind import IsThere
from gristmill.settings.tables import Table
from gristmill.synth import code
from gristmill.synth.config import HarmonyConfig, KDConfig, RawSettings, SourceSettings
from gristmill.untrusted.files import LinkRule

if TYPE_CHECKING:
    from rich.console import RenderableType


def _facts(asset: str, folder: Path) -> Iterable[str]:
    from gristmill.synth.show.facts import facts

    return facts(asset, folder)


def _columns(asset: str) -> Sequence[Column]:
    from gristmill.synth.show.columns import columns

    return columns(asset)


def _harmony_laws(subject: Subject) -> Iterable[Violation]:
    from gristmill.synth.laws.harmony import harmony_laws

    subject.leaves("manifest.json", "synth/harmony_manifest")
    return harmony_laws(subject.folder, subject.partition)


def _harmony_manifest_laws(subject: Subject) -> Iterable[Violation]:
    from gristmill.synth.laws.harmony_manifest import harmony_manifest_laws

    return harmony_manifest_laws(subject.folder, subject.partition)


def _kd_shard_laws(subject: Subject) -> Iterable[Violation]:
    from gristmill.synth.laws.kd_shard import kd_shard_laws

    missing = subject.missing({"trace": "trace, split by synth_id"})
    subject.leaves("manifest.json", "synth/kd_manifest")
    return kd_shard_laws(subject.folder, subject.partition, has_traces=not missing)


def _kd_manifest_laws(subject: Subject) -> Iterable[Violation]:
    from gristmill.synth.laws.kd_manifest import kd_manifest_laws

    return kd_manifest_laws(subject.folder, subject.partition)


def _show_row(request: Request) -> Iterable[RenderableType]:
    from gristmill.synth.show.terminal import row_text

    yield row_text(request.path, _shard(request), request.number, _vocabulary(request.path))


def _show_document(request: Request) -> Iterable[RenderableType]:
    from gristmill.synth.show.terminal import document_text

    number, split = _shard(request), request.options.get("split") or "train"
    vocabulary = _vocabulary(request.path)
    yield document_text(request.path, number, split, request.number, vocabulary)


def _trace_row(request: Request) -> Iterable[Trace]:
    from gristmill.synth.read.origins import row_origins

    return row_origins(request.path, _shard(request), request.number)


def _trace_document(request: Request) -> Iterable[Trace]:
    from gristmill.synth.read.origins import document_origins

    split = request.options.get("split") or "train"
    return document_origins(request.path, _shard(request), split, request.number)


def _trace_manifest(request: Request) -> Iterable[Trace]:
    from gristmill.provenance.trace_inputs import inputs_of

    return inputs_of(request.path, _MANIFEST, request.sample)


def _shard(request: Request) -> str:
    return str(request.options.get("shard") or _FIRST_SHARD)


def _vocabulary(path: Path) -> Path:
    """Return the vocabulary in the data root above an artifact. Raises what `find` raises."""
    from gristmill.vocabularies.find import find
    from gristmill.vocabularies.pinned import O200K

    above = path.absolute().parents
    root = next((folder for folder in above if (folder / "tokenizer").is_dir()), above[0])
    return find(O200K, root)


def _asset_of(folder: Path) -> str | None:
    from gristmill.synth.format.kind_of import kind_of

    kind = kind_of(folder)
    if kind is None and any(folder.glob("*/shard_*_tokens.idx")):
        kind = "megatron"  # of another program, which writes no trace
    return {"megatron": "synth/kd_shards", "harmony": "synth/harmony", None: None}[kind]


def _write_conversations(path: Path) -> None:
    from gristmill.synth.samples import write_drop

    write_drop(path)
    # The default fraction of so few conversations would leave no valid ones.
    (path / "gristmill.toml").write_text("[synth.kd_shards]\nvalid_fraction = 0.1\n")


_FIRST_SHARD = "00"
_MANIFEST = "manifest"
_INBOXES = ("synth", "synth_harmony")
_NOT_SET = {"vocabulary": "the datasets take the published vocabulary"}
SMOKE_TABLE = Table(
    "synth_smoke/kd_shards",
    KDConfig,
    _INBOXES,
    not_set=_NOT_SET,
    defaults={"valid_fraction": 0.1, "max_rows": 250},
)


def _account(inbox: str, drop: Path, links: LinkRule) -> Account:
    from gristmill.synth.builders.drop_in_use import account

    return account(inbox)(drop, links)


def _needs(drop: Path, root: Path, is_there: IsThere) -> None:
    from gristmill.synth.builders.drop_in_use import needs

    needs(drop, root, is_there)


CATALOG = Catalog(
    columns=_columns,
    facts=_facts,
    kinds=[
        Kind(
            "synth/harmony",
            [Law("harmony", _harmony_laws)],
            _show_row,
            _trace_row,
            code=code.HARMONY,
        ),
        Kind(
            "synth/harmony_manifest",
            [Law("harmony_manifest", _harmony_manifest_laws)],
            trace=_trace_manifest,
            code=code.HARMONY_MANIFEST,
            partitions=False,
        ),
        *(
            kind
            for prefix in ("synth", "synth_smoke")
            for kind in (
                Kind(
                    f"{prefix}/kd_shards",
                    [Law("kd_shards", _kd_shard_laws)],
                    _show_document,
                    _trace_document,
                    code=code.KD_SHARDS,
                ),
                Kind(
                    f"{prefix}/kd_manifest",
                    [Law("kd_manifest", _kd_manifest_laws, needs_record=True)],
                    trace=_trace_manifest,
                    code=code.KD_MANIFEST,
                    partitions=False,
                ),
            )
        ),
    ],
    asset_of=_asset_of,
    options=[
        Option("shard", str, "SYNTH: the number of the shard.", _FIRST_SHARD),
        Option("split", str, "The split; train by default.", choices=("train", "valid")),
    ],
    inboxes={inbox: DropKind(partial(_account, inbox), needs=_needs) for inbox in _INBOXES},
    samples={"synth/samples": _write_conversations},
    # There is one dataset. A file beside the drops, as a README, is none.
    place_of=lambda path: str(path) if path.is_file() else "synth",
    settings=[
        Table("synth/raw", RawSettings, _INBOXES),
        Table("synth/harmony", HarmonyConfig, _INBOXES, root=SourceSettings),
        Table("synth/kd_shards", KDConfig, _INBOXES, not_set=_NOT_SET),
        SMOKE_TABLE,
    ],
)
