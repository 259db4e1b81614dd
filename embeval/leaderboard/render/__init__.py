"""A built board in each of its forms: one file each, all of them from the ``Snapshot`` alone."""
