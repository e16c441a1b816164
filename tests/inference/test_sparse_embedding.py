"""Sparse vectors: SPLADE's weights from the logits compared with NumPy, the file, and what is refused."""

import os

import numpy as np
import pytest
import scipy.sparse
from command_line import give
from finetuning import write_tiny_bert
from goldens import Golden, load_arrays
from served import write_served

import keras_bert
from keras_bert.inference.quantization import largest_values
from keras_bert.inference.sparse_embedding import SparseEncoder, piece_weights

TEXTS = ["w1 w2 w3", "", "w4", "w5 " * 50, "w6 w7 w8 w9 w10 w11"]


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return keras_bert.load(write_tiny_bert(tmp_path_factory.mktemp("sparse") / "bert"))


@pytest.fixture(scope="module")
def expected(bert):
    """float32 [texts, vocab], each text alone, without padding."""
    rows = []
    for text in TEXTS:
        pieces = [bert.tokenizer([text]).to_list()[0][: bert.config.max_position_embeddings - 2]]
        logits = bert.model(keras_bert.encoder_inputs(pieces, bert.tokenizer.vocabulary))["mlm_logits"][0].numpy()
        rows.append(np.log(1 + np.maximum(logits, 0)).max(axis=0))
    return np.stack(rows)


@pytest.mark.parity
def test_the_weights_are_of_the_logits_of_transformers(goldens):
    """Those at padding do not count."""
    golden = Golden(goldens, "pretraining")
    logits = np.where(golden.real[..., None], golden.outputs["mlm_logits"], 0)
    found = SparseEncoder(keras_bert.load(golden.path).model)(golden.encoder_batch).numpy()
    assert not golden.real.all()
    np.testing.assert_allclose(found, np.log1p(np.maximum(logits, 0)).max(axis=1), atol=1e-5)


@pytest.mark.parity
def test_the_weights_are_those_of_sentence_transformers(goldens):
    arrays = load_arrays(os.path.join(goldens, "retrieval.npz"))
    np.testing.assert_allclose(piece_weights(arrays["logits"], arrays["mask"]), arrays["weights"], atol=1e-6)


@pytest.mark.parametrize("batch_tokens", [1, 12, 4096])
def test_the_vectors_are_those_of_each_text_alone(bert, expected, batch_tokens):
    embedded = bert.embedder("sparse", batch_tokens=batch_tokens)(TEXTS)
    assert isinstance(embedded.vectors, scipy.sparse.csr_array) and embedded.vectors.dtype == "float32"
    np.testing.assert_allclose(embedded.vectors.toarray(), expected, atol=1e-5)
    assert embedded.is_cut.tolist() == [False, False, False, True, False]
    assert 0 < embedded.vectors.nnz < expected.size


def test_encode_gives_the_same(bert, expected):
    np.testing.assert_allclose(bert.encode(TEXTS, "sparse").toarray(), expected, atol=1e-5)
    assert bert.encode([], "sparse").shape == (0, bert.config.vocab_size)


def test_a_size_keeps_the_largest_values():
    """Of equal values the first is kept, and rows with fewer stay as they are."""
    dense = np.array([[0, 3, 1, 3, 2], [0, 0, 0, 0, 0], [0, 5, 0, 0, 4], [1, 1, 1, 1, 1]], "float32")
    found = largest_values(scipy.sparse.csr_array(dense), 2)
    assert found.toarray().tolist() == [[0, 3, 0, 3, 0], [0, 0, 0, 0, 0], [0, 5, 0, 0, 4], [1, 1, 0, 0, 0]]
    assert found.nnz == 6 and found.has_sorted_indices
    for form in (scipy.sparse.csr_array, scipy.sparse.csc_array, scipy.sparse.coo_matrix):
        small = keras_bert.quantize_vectors(form(dense), size=1).vectors
        assert small.toarray().tolist() == [[0, 3, 0, 0, 0], [0, 0, 0, 0, 0], [0, 5, 0, 0, 0], [1, 0, 0, 0, 0]]


@pytest.mark.parametrize("size", [None, 4])
def test_scipy_opens_the_file(bert, expected, tmp_path, monkeypatch, size):
    """Over several windows."""
    monkeypatch.setattr("keras_bert.data.windows._MOST", 2)
    (tmp_path / "texts.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    output, options = tmp_path / "out.npz", ["--size", size] if size else []
    told = give("embed", "--model", bert.path, "--input", tmp_path / "texts.txt", "--output", output, *options,
                "--pooling", "sparse").output  # fmt: skip
    assert f'scipy.sparse.load_npz("{output}"), float32 [5, 60]' in told
    found = scipy.sparse.load_npz(output)
    assert found.format == "csr" and found.shape == (5, 60)
    if size is None:
        np.testing.assert_allclose(found.toarray(), expected, atol=1e-5)
        return
    assert np.diff(found.indptr).tolist() == [4] * 5
    np.testing.assert_allclose(np.sort(found.toarray())[:, -4:], np.sort(expected)[:, -4:], atol=1e-5)


def test_a_search_compares_their_products(bert):
    passages = ["w1 w2", "w3", "w4 w5 w6", "w7 " * 9]
    found = bert.evaluate_retrieval(TEXTS[:1], passages, [[2]], pooling="sparse", top_k=10, size=30)
    vectors = [
        keras_bert.quantize_vectors(bert.encode(texts, "sparse"), size=30).vectors for texts in (TEXTS[:1], passages)
    ]
    products = (vectors[0].toarray() @ vectors[1].toarray().T)[0]
    assert [place for place, _ in found.ranking[0]] == np.argsort(-products).tolist()
    np.testing.assert_allclose([score for _, score in found.ranking[0]], np.sort(products)[::-1], rtol=1e-5)


def test_what_cannot_be_had_is_one_line(bert, tmp_path):
    (tmp_path / "texts.txt").write_text("w1\n")
    encoder, causal = write_served(tmp_path / "encoder", "encoder"), write_served(tmp_path / "causal", "causal")
    for model, options, message in (
        (encoder, [], "needs a masked LM head to make sparse vectors, and holds the encoder alone"),
        (causal, [], "Pooling sparse: needs a model that predicts masked tokens. Received: one of next tokens."),
        (bert.path, ["--precision", "int8"], "precision: needs float32 for sparse vectors. Received: int8"),
        (bert.path, ["--index", tmp_path / "i"], "--index: needs one dense vector for each text"),
        (bert.path, ["--size", 61], "size: needs 1 to 60"),
    ):
        words = ["embed", "--model", model, "--input", tmp_path / "texts.txt", "--output", tmp_path / "out.npz"]
        assert message in give(*words, "--pooling", "sparse", *options, status=2).output
    assert not (tmp_path / "out.npz").exists()
    with pytest.raises(keras_bert.UserError, match=r"Received: an encoder. Use load\(MODEL\).embedder\('sparse'\)"):
        keras_bert.TextEmbedder(bert.encoder, bert.tokenizer, "sparse")
