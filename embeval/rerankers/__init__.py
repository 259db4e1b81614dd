"""Cross-encoders: models that read a query and a document together and give one score.

``loading`` finds and loads one, ``rerank`` puts the best candidates of a ranking into the order of its scores.
"""
