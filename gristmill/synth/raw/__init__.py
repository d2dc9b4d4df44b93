"""What arrives: raw SYNTH files in a drop, and their download from a dataset hub."""
