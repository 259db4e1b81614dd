"""The release gate: a policy, what it says of a candidate, and reports for people and for CI.

Fails closed: whatever is missing or broken is an error, never a pass.
"""
