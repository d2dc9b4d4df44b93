"""Programs that people train with, and that each of them opens what Gristmill publishes."""
