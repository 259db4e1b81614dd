"""The board.yaml that ``embeval leaderboard init`` writes. Tests load and build it, so it can't fall behind."""

TEMPLATE = """\
# A leaderboard of stored results. Build its pages with: embeval leaderboard build
# Every key, with its description: embeval schema board

# title: Models for our support search     # else the name of the folder
# description: What a reader should know before the numbers.

results: [../../results]          # folders of results, as 'embeval run' writes them; paths start at this file
# imported: [published]           # published results in mteb's layout, shown beside one's own and marked
# tags: [prod, candidate]         # only what these tags pin ('embeval results tag')
# models: ["all-MiniLM*", bm25]   # only these, as they are called on the board; * stands for any part

# tasks:                          # only these, in this order; else all, each by its main score
#   - STS12
#   - "mteb:*"                    # * stands for any part
#   - {task: support-kb, metric: recall_at_10, group: Ours, weight: 2, heading: Support}
#   - {task: "mteb:MassiveIntentClassification", split: test, subset: de}

rank_by: mean_task                # mean_task, mean_type (mean over groups of tasks) or borda
# gaps: rank                      # also ranks models that lack a task, marked; else they have no rank
# level: 0.95                     # confidence of rank intervals

# reference: all-MiniLM-L6-v2     # the model that the others are held against, as it is called on the board
# production: prod                # the model in use: a tag or a model
# gate: ../../embeval.yaml        # the policy that decides whether others may replace it
# rag_k: 10                       # how many documents the RAG system passes on
# usd_per_hour: 0.8               # what an hour of the machine costs

# older: true                     # also results on data that is not the latest
# items: 10                       # items lost and gained against the reference, of each model and task
# texts: true                     # with their texts: a page may travel further than the data may
# data: ../../data                # folder that holds the data of catalogue tasks, where these texts are read from
# reports: true                   # with a comparison of each model with the reference
# outputs: [html, readme, svg, csv, json, parquet]
"""
