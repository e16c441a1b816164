"""Vectors and scores by sentence-transformers. See `__main__.py`.

python tools/goldens/of_sentence_transformers_folders.py make MODEL FOLDER
    writes a folder for each of POOLINGS around the transformers folder MODEL, with its vectors
python tools/goldens/of_sentence_transformers_folders.py open JOBS
    opens a folder for each of the jobs in a JSON file

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
