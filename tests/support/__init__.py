"""What several test files share: doubles, tiny models, the command line as a subprocess."""
