"""The embeval.yaml that ``embeval init`` writes. Tests load and run it, so it can't fall behind."""

TEMPLATE = """\
# What to evaluate. Run it with: embeval run
# Every key, with its description: embeval schema config

models:
  - demo                          # all-MiniLM-L6-v2, comes with the extra "demo"
  - hashing                       # a baseline without a model: any real model should beat it
  # - sentence-transformers/all-mpnet-base-v2      # a model of the Hugging Face hub
  # - ./my-model                                   # a folder, relative to this file
  # - name: ./my-e5                                # the same with settings
  #   prompts: {query: "query: ", document: "passage: "}
  #   truncate_dim: 256

tasks:
  - demo-docs                     # retrieval: questions about the manual of an invented product
  - demo-pairs                    # sts: sentence pairs with gold scores
  # Your own golden set, a folder with corpus.jsonl, queries.jsonl and qrels/test.tsv (BEIR):
  # - {name: support-kb, type: retrieval, data: golden/support-kb}
  # Your own sentence pairs, as jsonl, csv, tsv or parquet:
  # - {name: our-pairs, type: sts, data: pairs/test.jsonl}
  # Tasks and benchmarks of mteb by name ('embeval tasks list --mteb'):
  # - {mteb: STSBenchmark}
  # - {mteb: "MTEB(eng, v2)", types: [STS, Retrieval]}

results: results                  # where results are stored; finished ones are not run again

# mirror: mirror                  # where the data of mteb's tasks is read from, without the network
# bm25: true                      # BM25 is evaluated as well: what a model has to beat
# runtime:
#   device: cpu                   # auto, cpu, cuda, cuda:1, mps
#   batch_tokens: 2048            # padded tokens per batch
# statistics:
#   resamples: 10000              # bootstrap resamples behind each confidence interval
#   seed: 0

# gate:                           # what a new model has to hold, for: embeval gate CANDIDATE
#   baseline: demo                # a model, a path of results, or tag:NAME ('embeval results tag')
#   rules:
#     - {metric: demo-docs/ndcg_at_10, no_regression: 0.05}    # shown to lose less than that
#     - {metric: demo-docs/ndcg_at_10, min: 0.5}
#     - {metric: demo-pairs/cosine_spearman, no_regression: 2%}
"""
