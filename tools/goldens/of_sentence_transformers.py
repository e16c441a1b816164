<<<<<<< HEAD
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

    The texts of a pair are its two and a hard negative; two pairs have the same score.
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
=======
"""Vectors and scores by sentence-transformers. See `__main__.py`.

python tools/goldens/of_sentence_transformers.py make MODEL FOLDER  writes a folder for each of POOLINGS around the
                                                                    transformers folder MODEL, with its vectors
python tools/goldens/of_sentence_transformers.py open JOBS          opens a folder for each of the jobs in a JSON file

A job is {"folder", "kind": a class of sentence-transformers or "AutoModel", "texts": a list, "to": the .npz to write}.
"""

import json
import os
import sys

import arrays
import numpy as np
import transformers
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

PACKAGES = ("torch", "transformers", "sentence-transformers")
TEXTS = ("the cat", "a dog, a cat.", "", "the " * 30, "Zebras eat the grass .")
# {name: (pooling, whether vectors are scaled to length 1)}
POOLINGS = {
    "mean": ("mean", False),
    "mean_normalized": ("mean", True),
    "cls": ("cls", False),
    "max_normalized": ("max", True),
}
MAX_LENGTH = 9


def make(model: str, folder: str) -> None:
    """Writes a folder for each of POOLINGS, and in it `texts` and their `vectors` in vectors.npz."""
    for name, (pooling, is_normalized) in POOLINGS.items():
        path, encoder = os.path.join(folder, name), Transformer(model, max_seq_length=MAX_LENGTH)
        modules = [encoder, Pooling(encoder.get_embedding_dimension(), pooling_mode=pooling)]
        made = SentenceTransformer(modules=[*modules, Normalize()] if is_normalized else modules, device="cpu")
        made.save_pretrained(path)
        vectors = SentenceTransformer(path, device="cpu").encode(list(TEXTS))
        arrays.save(os.path.join(path, "vectors.npz"), PACKAGES, {"texts": np.array(TEXTS), "vectors": vectors})


def open_all(jobs: str) -> None:
    """Writes, for each job, the `found` vectors or scores; of an AutoModel the names that it lacks as `missing`."""
    with open(jobs, encoding="utf-8") as stream:
        for job in json.load(stream):
            arrays.save(job["to"], PACKAGES, opened(job["folder"], job["kind"], job["texts"]))


def opened(folder: str, kind: str, texts: list) -> dict[str, np.ndarray]:
    if kind == "AutoModel":
        _, info = transformers.AutoModel.from_pretrained(folder, output_loading_info=True)
        return {name: np.array(sorted(map(str, info[f"{name}_keys"]))) for name in ("missing", "unexpected")}
    if kind == "CrossEncoder":
        return {"found": CrossEncoder(folder, device="cpu").predict([tuple(pair) for pair in texts])}
    model = SentenceTransformer(folder, device="cpu")
    return {"found": model.encode(texts), "similarity": np.array(model.similarity_fn_name)}


if __name__ == "__main__":
    {"make": make, "open": open_all}[sys.argv[1]](*sys.argv[2:])
>>>>>>> bf0b23e (Read and write folders for sentence-transformers)
