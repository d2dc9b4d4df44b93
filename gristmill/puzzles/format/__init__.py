"""What a puzzle dataset is on disk: the contract of the original `PuzzleDataset`."""
