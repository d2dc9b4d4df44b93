"""What must hold of the artifacts."""
