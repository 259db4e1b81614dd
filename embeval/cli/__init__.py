"""The command line: one thin file per verb. Nothing heavy is imported at the top of any of them."""
