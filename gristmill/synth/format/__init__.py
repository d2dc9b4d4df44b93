"""What SYNTH artifacts are on disk. These modules import core packages and each other only."""
