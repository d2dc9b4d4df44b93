"""Reading chess artifacts: rows in batches, samples, the training dataset, and tracing."""
