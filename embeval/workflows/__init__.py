"""What needs several of the folders below: words and files to specs, the demo, the checks of ``embeval doctor``."""
