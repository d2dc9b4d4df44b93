"""How SYNTH artifacts are read: by a training job, and back from a document to its row."""
