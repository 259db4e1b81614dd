"""Stored results side by side, as far as they may stand side by side. Needs no model library."""
