"""Results to and from the forms that others read: mteb's result files, and the metadata of model cards."""
