"""sentence-transformers' scores of rankings, and its sparse vectors. See `__main__.py`.

python tools/goldens/of_retrieval.py make FOLDER
"""

import os
import sys
from typing import Any

import arrays
import numpy as np
import torch
from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator
from sentence_transformers.sparse_encoder.modules import SpladePooling

QUERIES, PASSAGES, DEPTH = 40, 150, 100
CUTS = [1, 10, 100]


def make(folder: str) -> None:
    arrays.save(os.path.join(folder, "retrieval.npz"), ["sentence-transformers", "torch"], {**scores(), **splade()})


def scores() -> dict[str, Any]:
    """`ranked` [queries, depth], the passages in order; `relevant` [queries, passages]; and a mean for each measure."""
    random = np.random.default_rng(0)
    ranked = np.stack([random.permutation(PASSAGES)[:DEPTH] for _ in range(QUERIES)])
    relevant = random.random((QUERIES, PASSAGES)) < random.choice([0.01, 0.1, 0.5], (QUERIES, 1))
    relevant[:, 0] |= ~relevant.any(axis=1)
    evaluator = InformationRetrievalEvaluator(
        queries={str(query): "" for query in range(QUERIES)},
        corpus={str(passage): "" for passage in range(PASSAGES)},
        relevant_docs={str(query): set(map(str, np.flatnonzero(row))) for query, row in enumerate(relevant)},
        precision_recall_at_k=CUTS,
    )
    found = evaluator.compute_metrics(
        [[{"corpus_id": str(passage), "score": -rank} for rank, passage in enumerate(row)] for row in ranked]
    )
    measures = {
        "ndcg_at_10": found["ndcg@k"][10],
        "mrr_at_10": found["mrr@k"][10],
        "map_at_100": found["map@k"][100],
        **{f"recall_at_{cut}": found["recall@k"][cut] for cut in CUTS},
    }
    named = {f"scores/{name}": np.float64(value) for name, value in measures.items()}
    return {"ranked": ranked, "relevant": relevant, **named}


def splade() -> dict[str, Any]:
    """`logits` [batch, seq, vocab], `mask` [batch, seq] and their `weights` [batch, vocab]."""
    random = np.random.default_rng(1)
    logits = random.normal(size=(3, 5, 20)).astype("float32")
    mask = np.arange(5) < np.array([[5], [3], [1]])
    features = {"token_embeddings": torch.tensor(logits), "attention_mask": torch.tensor(mask.astype("int64"))}
    pooled = SpladePooling("max")(features)["sentence_embedding"]
    return {"logits": logits, "mask": mask, "weights": pooled.numpy()}


if __name__ == "__main__":
    {"make": make}[sys.argv[1]](*sys.argv[2:])
