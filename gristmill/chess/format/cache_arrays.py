"""The four arrays of a splice cache (docs/formats/chess.md#cache-arrays)."""

from __future__ import annotations

# For each sample: index into the paths file, always 0.
PATH_IDS = "path_ids.u32.bin"
# Byte offset of the game's row in the JSONL file.
OFFSETS = "offsets.u64.bin"
# Index of the last move of the context.
SPLICE_INDICES = "splice_indices.u32.bin"
# Phase id of the position after the context.
SAMPLE_PHASES = "sample_phase_ids.u8.bin"

# Number of the game among the rows of the split; no manifest names it, and readers do without it.
SAMPLE_GAMES = "sample_games.u32.bin"

# File name to dtype, in the order of the manifest.
LAYOUT = {
    PATH_IDS: "<u4",
    OFFSETS: "<u8",
    SPLICE_INDICES: "<u4",
    SAMPLE_PHASES: "|u1",
}
