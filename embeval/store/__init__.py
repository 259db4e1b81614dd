"""Results and their items on disk, whole or not at all."""
