"""Tests: unit/ mirrors the package, support/ is shared."""
