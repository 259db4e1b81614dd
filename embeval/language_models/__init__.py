"""Language models: the same encoders and decoders with the head that gives probabilities of tokens.

``loading`` loads a model that was located as an encoder; one file of ``backends`` each runs it.
"""
