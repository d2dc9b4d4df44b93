"""The rules of each puzzle: encodings, symmetries, seeded draws, findings."""
