"""sentence-transformers' results: the losses of sentence vectors. See `__main__.py`.

python tools/goldens/of_sentence_transformers.py make FOLDER
"""

import os
import sys
from collections.abc import Callable
from typing import Any

import arrays
import numpy as np
import torch
from sentence_transformers.sentence_transformer import losses

SIZES = [8, 5, 2]
MARGIN = 0.2


class FixedVectors(torch.nn.Module):
    """A model whose vectors are its inputs."""

    def forward(self, features: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"sentence_embedding": features["vectors"]}

    def get_embedding_dimension(self) -> int:
        return SIZES[0]


def make(folder: str) -> None:
    """Writes sentence_vectors.npz: vectors [texts, pairs, 8], scores [pairs], and each loss, also at `SIZES`.

    Each pair has its two texts and a hard negative; two pairs have the same score.
    """
    rng = np.random.default_rng(0)
    vectors = rng.normal(0, 3, (3, 6, SIZES[0])).astype("float32")
    scores = np.array([0.1, 0.8, 0.4, 0.4, 1.0, 0.0], "float32")
    found: dict[str, Any] = {"vectors": vectors, "scores": scores, "sizes": SIZES, "margin": MARGIN}
    model, labels = FixedVectors(), torch.tensor(scores)
    cosine, directions = losses.TripletDistanceMetric.COSINE, ("query_to_doc", "doc_to_query")
    for name, texts, loss in (
        (
            "in-batch",
            3,
            losses.MultipleNegativesRankingLoss(model, directions=directions, partition_mode="per_direction"),
        ),
        ("cosine", 2, losses.CosineSimilarityLoss(model)),
        ("cosent", 2, losses.CoSENTLoss(model)),
        ("triplet", 3, losses.TripletLoss(model, cosine, MARGIN)),
    ):
        for key, shown in ((name, loss), (f"matryoshka/{name}", losses.MatryoshkaLoss(model, loss, SIZES))):
            found[key], found[f"gradients/{key}"] = _computed(shown, vectors[:texts], labels)
    arrays.save(os.path.join(folder, "sentence_vectors.npz"), ["torch", "sentence-transformers"], found)


def _computed(
    loss: Callable[..., torch.Tensor], vectors: np.ndarray, labels: torch.Tensor
) -> tuple[np.ndarray, np.ndarray]:
    """The loss of vectors [texts, pairs, hidden], and its gradients."""
    given = torch.tensor(vectors, requires_grad=True)
    value = loss([{"vectors": text} for text in given], labels)
    value.backward()
    assert given.grad is not None
    return value.detach().numpy(), given.grad.numpy()


if __name__ == "__main__":
    {"make": make}[sys.argv[1]](*sys.argv[2:])
