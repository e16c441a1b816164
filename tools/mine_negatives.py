"""Writes training files for vectors and rerankers from a folder in BEIR's form, with hard negatives that BM25 finds.

    python tools/mine_negatives.py squad_train triples.jsonl pairs.jsonl --negatives 1

triples.jsonl, for `finetune --task pairs-contrastive`, has rows of query, passage and negative: the best passages that
share words with the query and are not judged relevant. pairs.jsonl, for `finetune --task rerank`, has the same passages
as rows of query, passage and label, 1 or 0.
"""

import argparse
import itertools
import json
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from measure_retrieval import bm25_found  # noqa: E402

from keras_bert.data.tables.retrieval_files import read_retrieval_set  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", help="the folder in BEIR's form")
    parser.add_argument("triples", help="the file of triples to write")
    parser.add_argument("pairs", help="the file of labelled pairs to write")
    parser.add_argument("--negatives", type=int, default=1, metavar="N", help="hard negatives of each query")
    parser.add_argument("--queries", type=int, metavar="N", help="draw this many queries")
    arguments = parser.parse_args()
    asked = read_retrieval_set(arguments.folder)
    passages = list(asked.passages.items())
    texts = dict(passages)
    # Most queries have one relevant passage, few have twenty.
    searched = list(zip(asked.queries.items(), bm25_found(asked, arguments.negatives + 20), strict=True))
    random.Random(1).shuffle(searched)
    with open(arguments.triples, "w") as triples, open(arguments.pairs, "w") as pairs:
        for (query_id, query), places in searched[: arguments.queries]:
            relevant = {passage for passage, grade in asked.grades[query_id].items() if grade > 0}
            negatives = [text for passage, text in (passages[place] for place in places) if passage not in relevant]
            negatives = negatives[: arguments.negatives]
            positives = [texts[passage] for passage in sorted(relevant)]
            for passage, label in [(text, 1) for text in positives] + [(text, 0) for text in negatives]:
                pairs.write(json.dumps({"query": query, "passage": passage, "label": label}) + "\n")
            for passage, negative in itertools.product(positives, negatives):
                triples.write(json.dumps({"query": query, "passage": passage, "negative": negative}) + "\n")


if __name__ == "__main__":
    main()
