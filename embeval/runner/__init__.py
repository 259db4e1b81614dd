"""Models x tasks: what is finished, what can be recomputed from stored items, and what has to be run."""
