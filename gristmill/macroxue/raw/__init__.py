"""What arrives: raw drops of game logs and pool files, found, unpacked and parsed."""
