"""What families can say of their artifacts."""
