"""The inbox of the reasoning family: a folder for each corpus."""

from assets.inbox import Inbox
from assets.reasoning import assets, drops
from assets.reasoning.partitions import reasoning_splits
from gristmill.inbox import Shape
from gristmill.reasoning.raw.drops import AUDITS

INBOXES = [
    Inbox(
        folder=drops.INBOX,
        raw_drop=assets.raw.key,
        partitions=reasoning_splits,
        targets=[assets.normalized, assets.gpt2_shards, assets.alignment],
        refuse=drops.refusal,
        shape=Shape(reserved=(AUDITS,)),
        keys_of=drops.keys_of,
    ),
]
