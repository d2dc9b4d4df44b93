"""The inbox of the reasoning family: a folder for each corpus."""

from assets.inbox import Inbox
from assets.reasoning import assets, drops
from assets.reasoning.partitions import reasoning_splits

INBOXES = [
    Inbox(
        folder=drops.INBOX,
        raw_drop=assets.raw.key,
        partitions=reasoning_splits,
        targets=[assets.normalized, assets.gpt2_shards, assets.alignment],
        keys_of=drops.keys_of,
    ),
]
