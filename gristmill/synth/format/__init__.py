"""What SYNTH artifacts are on disk. Modules here import core packages and each other, nothing else."""
