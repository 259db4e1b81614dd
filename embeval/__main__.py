"""``python -m embeval``."""

from embeval.cli.main import main

main()
