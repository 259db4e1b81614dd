"""Cross-encoders: a query and a document scored together."""
