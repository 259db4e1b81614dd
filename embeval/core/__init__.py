"""Values that everything else passes around: specs, embeddings, runs and judgments, records, results, signatures.

Nothing here loads a model, reads evaluation data or writes a file. What two neighbours need of each other stands in
``protocols``.
"""
