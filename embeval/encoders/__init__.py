"""From a model spec to embeddings: finding and naming a model, prompts, batching, guards, and a backend per library."""
