"""Laws of the SYNTH artifacts: rules that their contents must obey."""
