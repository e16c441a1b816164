"""Measures how well a model's vectors find the paragraph that answers a question of SQuAD, beside BM25.

    python tools/measure_retrieval.py dev-v1.1.json squad_dev --model MODEL

Writes the questions and the distinct paragraphs of a SQuAD file into a folder in BEIR's form, which
`run.py retrieve --data squad_dev` takes, and searches there: by words, and by the vectors, whole, cut and at fewer
bits. Each text is embedded once.
"""

import argparse
import bisect
import gzip
import itertools
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence

import numpy as np
import scipy.sparse

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from keras_bert.core.runtime import import_tensorflow  # noqa: E402

import_tensorflow()

import keras_bert  # noqa: E402
from keras_bert.config.inference import RetrievalConfig  # noqa: E402
from keras_bert.data.tables.retrieval_files import RetrievalSet, read_retrieval_set  # noqa: E402
from keras_bert.inference.ranking import retrieval_scores  # noqa: E402
from keras_bert.inference.retrieval import evaluate_retrieval  # noqa: E402
from keras_bert.inference.search import dot_products, nearest  # noqa: E402
from keras_bert.inference.text_embedding import EmbeddedTexts, Embedder  # noqa: E402

ROWS = [{}, {"precision": "float16"}, {"precision": "int8"}, {"precision": "binary"}, {"size": 192}]
SENTENCE_END = re.compile(r"[.!?][\"')\]]*\s+(?=[A-Z\"'(\[])")
SHOWN = ("ndcg_at_10", "mrr_at_10", "recall_at_1", "recall_at_10", "recall_at_100")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("squad", help="a SQuAD file of JSON; may be .gz")
    parser.add_argument("folder", help="the folder in BEIR's form to write")
    parser.add_argument("--model", help="without one, only BM25 is measured")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="keep every Nth paragraph and its questions")
    parser.add_argument("--sentences", action="store_true", help="passages are sentences, not paragraphs")
    arguments = parser.parse_args()
    write_folder(arguments.squad, arguments.folder, arguments.every, arguments.sentences)
    asked = read_retrieval_set(arguments.folder)
    show("BM25", bm25_scores(asked))
    if not arguments.model:
        return
    embedder = OnceEmbedder(keras_bert.load(arguments.model).embedder())
    for row in ROWS:
        name = ", ".join(f"{key} {value}" for key, value in row.items()) or "float32"
        show(name, evaluate_retrieval(embedder, asked, RetrievalConfig(**row)).scores)


def write_folder(source: str, folder: str, every: int = 1, sentences: bool = False) -> None:
    """Writes a SQuAD file in BEIR's form. A question's relevant passage is its own paragraph or, with `sentences`, the
    sentence in which its first answer begins. Questions without an answer, as in SQuAD 2.0, are left out."""
    opened = gzip.open if source.endswith(".gz") else open
    with opened(source, "rt", encoding="utf-8") as stream:
        paragraphs = [paragraph for article in json.load(stream)["data"] for paragraph in article["paragraphs"]]
    ids: dict[str, str] = {}
    os.makedirs(os.path.join(folder, "qrels"), exist_ok=True)
    paths = [os.path.join(folder, *name) for name in (["corpus.jsonl"], ["queries.jsonl"], ["qrels", "test.tsv"])]
    with open(paths[0], "w") as passages, open(paths[1], "w") as queries, open(paths[2], "w") as grades:
        grades.write("query-id\tcorpus-id\tscore\n")
        for paragraph in paragraphs[::every]:
            context = paragraph["context"]
            ends = [found.end() for found in SENTENCE_END.finditer(context)] if sentences else []
            edges = [0, *ends, len(context)]
            texts = [context[begin:end].strip() for begin, end in itertools.pairwise(edges)]
            for text in texts:
                if text not in ids:
                    ids[text] = f"p{len(ids)}"
                    passages.write(json.dumps({"_id": ids[text], "title": "", "text": text}) + "\n")
            for question in (question for question in paragraph["qas"] if question["answers"]):
                text = texts[bisect.bisect_right(ends, question["answers"][0]["answer_start"])]
                queries.write(json.dumps({"_id": question["id"], "text": question["question"]}) + "\n")
                grades.write(f"{question['id']}\t{ids[text]}\t1\n")


class OnceEmbedder(Embedder):
    """Embeds each text once, however often it is asked for."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder, self._known = embedder, {}

    def __call__(self, texts: Sequence[str]) -> EmbeddedTexts:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, self._embedder(new).vectors, strict=True))
        vectors = np.stack([self._known[text] for text in texts])
        return EmbeddedTexts(vectors, np.zeros(len(texts), bool), np.zeros(0, int), np.zeros(0, int))


def bm25_scores(asked: RetrievalSet) -> dict[str, float]:
    """The scores of what BM25 finds."""
    ids = list(asked.passages)
    judged = []
    for grades, row in zip((asked.grades[query] for query in asked.queries), bm25_found(asked, 100), strict=True):
        judged.append(([grades.get(ids[place], 0.0) for place in row], list(grades.values())))
    return retrieval_scores(judged, 100)


def bm25_found(asked: RetrievalSet, top_k: int, k1: float = 1.2, b: float = 0.75) -> np.ndarray:
    """The places of each query's best passages, int [queries, top_k], by BM25 (Robertson and Zaragoza 2009) on
    lower-cased words, without stemming or stop words."""
    texts = [text for _, text in asked.passages.items()]
    places: dict[str, int] = {}
    counts = [Counter(re.findall(r"\w+", text.lower())) for text in texts]
    words = word_matrix([{word: places.setdefault(word, len(places)) for word in row} for row in counts], counts)
    lengths = np.asarray(words.sum(axis=1)).ravel()
    holders = np.bincount(words.indices, minlength=len(places))
    idf = np.log1p((len(texts) - holders + 0.5) / (holders + 0.5))
    norm = k1 * (1 - b + b * lengths / lengths.mean())
    rows = np.repeat(np.arange(len(texts)), np.diff(words.indptr))
    words.data = idf[words.indices] * words.data * (k1 + 1) / (words.data + norm[rows])
    asking = [
        Counter(word for word in re.findall(r"\w+", text.lower()) if word in places) for text in asked.queries.values()
    ]
    queries = word_matrix([{word: places[word] for word in row} for row in asking], asking, len(places))
    return nearest(queries, [words], top_k, dot_products)[0]


def word_matrix(
    places: Sequence[dict[str, int]], counts: Sequence[Counter], width: int | None = None
) -> scipy.sparse.csr_array:
    """The counts of words, float64 [texts, words], sparse."""
    indices = np.array([place for row in places for place in row.values()], "int64")
    data = np.array([count[word] for row, count in zip(places, counts, strict=True) for word in row], "float64")
    indptr = np.cumsum([0, *map(len, places)])
    return scipy.sparse.csr_array((data, indices, indptr), (len(places), width or int(indices.max()) + 1))


def show(name: str, scores: dict[str, float]) -> None:
    """Prints a row of the table, in per cent, and the CPU seconds so far."""
    values = " | ".join(f"{100 * scores[measure]:.1f}" for measure in SHOWN)
    print(f"| {name} | {values} | after {time.process_time():.0f} CPU seconds", flush=True)


if __name__ == "__main__":
    main()
