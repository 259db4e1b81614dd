"""A board from its definition and the stored results: gathered, measured, tested, and written."""
