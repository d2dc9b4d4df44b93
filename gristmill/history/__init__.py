"""What is kept of an artifact's older versions, and what differs between versions."""
