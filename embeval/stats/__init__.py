"""How sure a number is: seeded resampling, bootstrap intervals, and estimates over items and groups of them."""
