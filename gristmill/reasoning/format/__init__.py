"""What the artifacts are on disk: names, rows, tensors."""
