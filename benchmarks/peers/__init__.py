"""Peers that can't be installed beside embeval: each runs in an environment of its own, and is told by JSON."""
