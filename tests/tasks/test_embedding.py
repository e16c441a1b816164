"""From texts to vectors: the right ones, in the order of the texts, whatever the batch and the window."""

import gzip
import io
import zipfile

import numpy as np
import pytest
from tiny import without_dropout, write_random

import keras_bert
from keras_bert import quantize_vectors
from keras_bert.core.errors import UserError
from keras_bert.data.tables.rows import Row
from keras_bert.inference import quantization
from keras_bert.inference.text_embedding import TextEmbedder
from keras_bert.models.bert.encoder import BertEncoder
from keras_bert.tasks import embedding
from keras_bert.tasks.embedding import embed_file
from keras_bert.tasks.vector_files import read_ranges
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary

WORDS = ["the", "cat", "sat", "on", "mat", ".", "##s", "é", "中"]
# Short and long in turn, an empty one, one of spaces, one cut at 24 positions, characters of several bytes.
TEXTS = [
    "The cat sat.",
    "",
    "cats",
    "the " * 40,
    "  ",
    "中 the Élan 中cats",
    "mat on the mat . the cat sat",
    "cats zzz",
]
POOLINGS = ["mean", "cls", "max", "last4", "tokens"]


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *WORDS])
    encoder = BertEncoder(without_dropout(vocab_size=len(vocabulary), num_hidden_layers=4))
    path = tmp_path_factory.mktemp("model") / "model"
    return keras_bert.load(write_random(path, encoder, vocabulary, lower_case=False))


@pytest.fixture(scope="module")
def embedders(bert):
    """`embedders[pooling]`, made once because each compiles. Batches of 30 tokens have several sizes and lengths."""
    return {pooling: bert.embedder(pooling, batch_tokens=30) for pooling in POOLINGS}


@pytest.fixture(scope="module")
def expected(bert):
    """`expected[pooling]`: a vector per text, by the encoder itself on each text alone, as in `PooledEncoder`."""
    vocabulary = bert.tokenizer.vocabulary
    rows = {pooling: [] for pooling in POOLINGS}
    for text in TEXTS:
        pieces = bert.tokenizer([text]).to_list()[0][: bert.config.max_position_embeddings - 2]
        ids = np.array([[vocabulary.cls_id, *pieces, vocabulary.sep_id]], "int32")
        outputs = bert.encoder({"input_word_ids": ids, "input_mask": ids * 0 + 1, "input_type_ids": ids * 0})
        layers = [layer.numpy()[0] for layer in outputs["hidden_states"]]
        rows["mean"].append(layers[-1].mean(axis=0))
        rows["cls"].append(layers[-1][0])
        rows["max"].append(layers[-1].max(axis=0))
        rows["last4"].append(np.concatenate([layer.mean(axis=0) for layer in layers[1:]]))
        rows["tokens"].append(layers[-1][1:-1])
    return rows


def write_lines(path, texts):
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_the_vectors_are_those_of_each_text_alone(embedders, expected, pooling):
    """Padding, other texts in the batch and the order of the batches must change nothing."""
    embedded = embedders[pooling](TEXTS)
    assert embedded.vectors.dtype == "float32" and embedded.is_cut.tolist() == [text == TEXTS[3] for text in TEXTS]
    vectors = embedded.by_text() if pooling == "tokens" else embedded.vectors
    for vector, right in zip(vectors, expected[pooling], strict=True):
        np.testing.assert_allclose(vector, right, atol=1e-5)


@pytest.mark.parametrize("batch_tokens", [1, 10_000])
def test_no_batch_size_changes_them(bert, expected, batch_tokens):
    """One text at a time, and all at once."""
    embedded = bert.embedder(batch_tokens=batch_tokens)(TEXTS)
    np.testing.assert_allclose(embedded.vectors, expected["mean"], atol=1e-5)


def test_encode_gives_the_same(bert, expected):
    np.testing.assert_allclose(bert.encode(TEXTS), expected["mean"], atol=1e-5)
    for vector, right in zip(bert.encode(TEXTS, "tokens"), expected["tokens"], strict=True):
        np.testing.assert_allclose(vector, right, atol=1e-5)


def test_no_texts_are_no_rows(bert):
    assert bert.encode([]).shape == (0, bert.config.hidden_size)
    assert bert.encode([], "tokens") == []


def test_new_weights_give_new_vectors(bert):
    """The compiled function must read the encoder's weights, not those of its first call."""
    before = bert.encode(["cats"])
    table = bert.encoder.embeddings.position_embeddings
    kept = table.numpy()
    table.assign(kept + np.linspace(0, 1, kept.shape[1], dtype="float32"))
    assert np.abs(bert.encode(["cats"]) - before).max() > 1e-3
    table.assign(kept)


def test_lengths_do_not_each_compile_anew(bert, monkeypatch):
    traces = []
    call = BertEncoder.call
    monkeypatch.setattr(BertEncoder, "call", lambda *given, **named: traces.append(1) or call(*given, **named))
    embedder = TextEmbedder(bert.encoder, bert.tokenizer, batch_tokens=40)
    embedder(["the " * length for length in range(20)])
    assert 0 < len(traces) <= 4


@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_file_over_many_windows_is_as_in_one(embedders, pooling, tmp_path, monkeypatch):
    texts = TEXTS * 3
    source = write_lines(tmp_path / "texts.txt", texts)
    expected = embedders[pooling](texts)
    monkeypatch.setattr("keras_bert.data.windows._MOST", 5)
    done = embed_file(embedders[pooling], source, tmp_path / "out.npz")
    assert (done.texts, done.cut, done.first_cut) == (24, 3, f"{source} line 4")
    with np.load(tmp_path / "out.npz", allow_pickle=False) as written:
        assert written["embeddings"].dtype == "float32" and written["embeddings"].shape == done.shape
        np.testing.assert_allclose(written["embeddings"], expected.vectors, atol=1e-5)
        if pooling != "tokens":
            assert written.files == ["embeddings"]
            return
        assert written["rows"].dtype == "int64" and written["rows"].tolist() == expected.row_splits.tolist()
        for name in ("pieces", "starts", "ends"):
            assert written[name].dtype == "int32" and written[name].tolist() == getattr(expected, name).tolist()


@pytest.mark.parametrize("pooling", ["mean", "tokens"])
@pytest.mark.parametrize("precision", ["float16", "int8", "binary"])
def test_smaller_vectors_over_many_windows_are_as_in_one(embedders, pooling, precision, tmp_path, monkeypatch):
    """The ranges of int8 cover all windows, and the blocks of waiting rows are smaller than here."""
    source = write_lines(tmp_path / "texts.txt", TEXTS * 3)
    embed_file(embedders[pooling], source, tmp_path / "floats.npz")
    monkeypatch.setattr("keras_bert.data.windows._MOST", 5)
    monkeypatch.setattr(quantization, "_COPIED_AT_ONCE", 200)
    done = embed_file(embedders[pooling], source, tmp_path / "out.npz", precision=precision)
    expected = quantize_vectors(np.load(tmp_path / "floats.npz")["embeddings"], precision)
    with np.load(tmp_path / "out.npz", allow_pickle=False) as written:
        found = written["embeddings"]
        assert found.dtype == expected.vectors.dtype == done.dtype and found.shape == done.shape
        # The batches differ, so floats may differ by 1e-6.
        if precision == "binary":
            assert np.mean(np.unpackbits(found ^ expected.vectors)) < 0.01
        else:
            np.testing.assert_allclose(found, expected.vectors, atol=1)
        assert ("ranges" in written.files) == (precision == "int8")
        if precision == "int8":
            np.testing.assert_allclose(written["ranges"], expected.ranges, atol=1e-5)


def test_int8_of_no_pieces_is_refused(embedders, tmp_path):
    source = write_lines(tmp_path / "texts.txt", ["", ""])
    with pytest.raises(UserError, match="--precision int8: needs a vector at least"):
        embed_file(embedders["tokens"], source, tmp_path / "out.npz", precision="int8")
    assert not (tmp_path / "out.npz").exists()


def test_offsets_are_slices_of_the_line(bert, embedders, tmp_path):
    """In code points of the line as it stands, after characters of several bytes and spaces."""
    source = write_lines(tmp_path / "texts.txt", TEXTS)
    embed_file(embedders["tokens"], source, tmp_path / "out.npz")
    written = np.load(tmp_path / "out.npz", allow_pickle=False)
    tokens = bert.tokenizer.vocabulary.tokens
    slices = []
    for text, first, last in zip(TEXTS, written["rows"][:-1], written["rows"][1:], strict=True):
        for piece, start, end in zip(
            *(written[name][first:last] for name in ("pieces", "starts", "ends")), strict=True
        ):
            slices.append(text[start:end])
            assert tokens[piece] in ("[UNK]", slices[-1], f"##{slices[-1]}")
    assert slices[:4] == ["The", "cat", "sat", "."] and "中" in slices and "s" in slices
    assert len(written["embeddings"]) == len(slices) == written["rows"][-1]
    assert written["rows"][2] - written["rows"][1] == 0


def test_what_is_held_at_a_time_is_bounded(embedders, tmp_path, monkeypatch):
    """The file is read no further than the window, so memory does not grow with its size."""
    held = []
    embedder = embedders["mean"]
    monkeypatch.setattr(embedding, "_WINDOW_CHARACTERS", 100)
    monkeypatch.setattr(embedding, "read_texts", lambda *_, **__: (Row(n, ("the cat",)) for n in range(200)))
    embed_file(lambda window: held.append(len(window)) or embedder(window), "-", tmp_path / "out.npz")
    assert max(held) == 15 and sum(held) == 200


def test_compressed_files_and_standard_input(embedders, tmp_path, monkeypatch):
    content = b"The cat\r\ncats\n\nmat"  # No line end after the last.
    (tmp_path / "texts.gz").write_bytes(gzip.compress(content))
    expected = embedders["mean"](["The cat", "cats", "", "mat"]).vectors
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    for source in (str(tmp_path / "texts.gz"), "-"):
        embed_file(embedders["mean"], source, tmp_path / "out.npz")
        np.testing.assert_allclose(np.load(tmp_path / "out.npz")["embeddings"], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "texts: needs at least one text. Received: none"),
        (b"the cat\n" * 6 + b"caf\xe9 \n", r"texts line 7: not UTF-8 \(.*: byte 0xe9\)"),
        (b"the\0cat\n", "texts line 1: binary, not text"),
        (gzip.compress(b"the cat\n" * 1000, mtime=0)[:-9], "texts line [0-9]*: cannot be read"),
        (b"cat\n" + b"x" * 1_000_001, "texts line 2: needs a text of at most 1,000,000 characters"),
    ],
)
def test_what_is_no_text_is_refused_by_name_and_nothing_is_written(embedders, tmp_path, content, message):
    (tmp_path / "texts").write_bytes(content)
    with pytest.raises(UserError, match=message):
        embed_file(embedders["mean"], str(tmp_path / "texts"), tmp_path / "out.npz")
    assert not (tmp_path / "out.npz").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pooling": "sum"}, "needs one of mean, cls, max, last4, sparse, tokens. Received: 'sum'"),
        ({"max_length": 25}, "needs 3 to 24 tokens"),
        ({"max_length": 2}, "needs 3 to 24 tokens"),
    ],
)
def test_what_the_model_cannot_do_is_refused(bert, arguments, message):
    with pytest.raises(UserError, match=message):
        bert.embedder(**arguments)


def test_vectors_that_are_not_finite_are_refused_and_nothing_is_written(bert, embedders, tmp_path):
    """A NaN also spoils the ranges of int8, and with them every vector of the file."""
    table = bert.encoder.embeddings.position_embeddings
    kept = table.numpy()
    table.assign(kept * np.nan)
    with pytest.raises(UserError, match="needs finite numbers. Received: 8 of 8 vectors with others"):
        embed_file(embedders["mean"], write_lines(tmp_path / "texts", TEXTS), tmp_path / "out.npz", precision="int8")
    table.assign(kept)
    assert not (tmp_path / "out.npz").exists()


def test_head_and_tail_keep_their_offsets(bert):
    """Otherwise vectors of a text's end would be shown at pieces from its middle."""
    embedder = TextEmbedder(bert.encoder, bert.tokenizer, "tokens", 10, long="head_tail")
    text = "the cat sat on mat . 中 the cats sat . mat"
    embedded = embedder(["the cat", text])
    found = [text[start:end] for start, end in zip(embedded.starts[2:], embedded.ends[2:])]
    assert found == ["the", "cat", "the", "cat", "s", "sat", ".", "mat"]
    assert embedded.is_cut.tolist() == [False, True]


def test_max_length_counts_cls_and_sep(bert):
    np.testing.assert_allclose(
        bert.embedder(max_length=4)(["the cat sat"]).vectors, bert.encode(["the cat"]), atol=1e-5
    )


def test_a_damaged_file_of_ranges_is_named(tmp_path):
    """NumPy raises different exceptions for a garbled header and for missing bytes."""
    content = io.BytesIO()
    np.save(content, np.zeros((2, 4), "float32"))
    path = tmp_path / "ranges.npz"
    for damaged in (content.getvalue()[:50], content.getvalue().replace(b":", b"(", 1)):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("ranges.npy", damaged)
        with pytest.raises(UserError, match="ranges.npz: needs an .npz .* Give the file of the documents"):
            read_ranges(str(path))
