"""What the signatures answer, against the models' own functions; and the encoder on real tokens alone."""

import itertools
import re
import threading

import keras
import numpy as np
import pytest
import tensorflow as tf
from graph_ops import all_operations
from hostile_texts import HOSTILE, random_hostile
from rows_of_texts import sequence_rows
from scipy.special import expit, softmax
from served import (
    ALBERT,
    CAUSAL,
    KINDS,
    OF_WHOLE_TEXTS,
    ROBERTA,
    VOCABULARY,
    columns_of,
    ops_of_graphs,
    outside,
    write_served,
)
from shortened import shortened
from text_pairs import write_tiny_bart
from tiny import random_weights, without_dropout

import keras_bert
from keras_bert.config.finetuning import InputConfig
from keras_bert.core.errors import UserError
from keras_bert.data.batches.length_batches import LengthBatches
from keras_bert.export import network
from keras_bert.export.network import encode
from keras_bert.export.serving_function import serving_function
from keras_bert.inference.texts import encoder_inputs
from keras_bert.models.bert.encoder import BertEncoder

TEXTS = ["The cat sat.", "", "cat " * 60, "中 the [MASK]", "x" * 300]
TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}


@pytest.mark.parametrize("reading", shortened([(), (("max_length", 8),), (("max_length", 8), ("long", "head_tail"))]))
def test_classes(served, reading):
    """The same in Python as from the export, also where the model reads fewer tokens than it has positions."""
    bert, function = served("single", reading=reading)
    answers, expected = function(TEXTS), bert.predict(TEXTS)
    for row, answer in enumerate(expected):
        assert answers["label"][row].decode() == answer.label
        assert [label.decode() for label in answers["labels"][row]] == list(answer.probabilities)
        np.testing.assert_allclose(answers["probabilities"][row], list(answer.probabilities.values()), **TOLERANCE)
    np.testing.assert_allclose(softmax(answers["logits"], axis=-1), answers["probabilities"], **TOLERANCE)


def test_pairs(served):
    bert, function = served("pair")
    pairs = list(zip(TEXTS, reversed(TEXTS)))
    assert function.columns == ("text_a", "text_b")
    expected = [list(answer.probabilities.values()) for answer in bert.predict(pairs)]
    np.testing.assert_allclose(function(*zip(*pairs))["probabilities"], expected, **TOLERANCE)


def test_several_labels(served):
    bert, function = served("multi")
    answers = function(TEXTS)
    expected = [list(answer.values()) for answer in bert.predict(TEXTS)]
    np.testing.assert_allclose(answers["probabilities"], expected, **TOLERANCE)
    np.testing.assert_allclose(expit(answers["logits"]), expected, **TOLERANCE)


def test_a_number(served):
    bert, function = served("regression")
    np.testing.assert_allclose(function(TEXTS)["score"], bert.predict(TEXTS), **TOLERANCE)


def test_masks_are_filled_as_by_fill(served):
    bert, function = served("masked_lm", top_k=3)
    texts = ["the [MASK] sat", "[MASK][MASK].", "the cat [MASK]"]
    answers = function([*texts, "no mask", ""])
    assert answers["masks"].tolist() == [1, 2, 1, 0, 0] and answers["pieces"].shape == (5, 2, 3)
    for row, filling in enumerate(bert.fill(texts, 3)):
        for mask, candidates in enumerate(filling.candidates):
            assert [piece.decode() for piece in answers["pieces"][row, mask]] == [piece for piece, _ in candidates]
            np.testing.assert_allclose(answers["scores"][row, mask], [share for _, share in candidates], **TOLERANCE)
    assert set(answers["pieces"][3:].ravel()) == {b""} and not answers["scores"][3:].any()
    assert function(["no mask"])["pieces"].shape == (1, 0, 3)


def test_masks_that_are_cut_off_are_not_counted(served):
    _, function = served("masked_lm", top_k=3)
    assert function(["[MASK] " * 100, "cat [MASK]"])["masks"].tolist() == [38, 1]


def test_a_left_to_right_model_answers_with_what_may_follow(served):
    """It used to be silently exported as an encoder. Asked again and again, it generates what `generate` does; of a
    long text the end counts, and a client's tokens are continued after the last one."""
    bert, function = served(CAUSAL)
    assert function.columns == ("text",)
    (expected,) = bert.generate(["The cat"], max_tokens=3)
    ids = [2, *bert.tokenizer(["The cat"]).to_list()[0]]
    for piece in expected.pieces:
        rows = np.array([[*ids, 0, 0], [*ids[:2], *[0] * len(ids)]], "int32")
        answers = function.answer("tokens", rows, np.int32(rows > 0), np.zeros_like(rows))
        assert answers["pieces"][0, 0].decode() == piece and answers["pieces"].shape == (2, 5)
        ids.append(int(answers["ids"][0, 0]))
    answers = function(["", "The cat", "the " * 9 + "cat " * 38, "cat " * 38])
    assert answers["pieces"][1, 0].decode() == expected.pieces[0]
    assert (np.diff(answers["scores"]) <= 0).all() and (answers["scores"].sum(axis=1) <= 1).all()
    np.testing.assert_allclose(answers["scores"][2], answers["scores"][3], **TOLERANCE)


def test_a_text_in_place_of_a_list_and_other_inputs_are_refused(served):
    """A text used to end in a traceback of TensorFlow's, as a batch without a dimension."""
    _, function = served("pair")
    for given, kinds in ((["a cat", "sat"], "str, str"), ([["a cat"]], "list"), ([], "none")):
        with pytest.raises(ValueError, match=f"needs a list for each of text_a, text_b. Received: {kinds}."):
            function(*given)
    with pytest.raises(ValueError, match="signature: needs one of serving_default, tokens. Received: 'words'"):
        function.answer("words", [["a", "cat"]])
    for texts, received in ((5, "5"), ([None, "a"], "[None, 'a']"), ([["a"]], "[['a']]"), ({"a": 1}, "{'a': 1}")):
        with pytest.raises(ValueError, match=re.escape(f"text_a: needs a list of strings. Received: {received}.")):
            function(texts, ["sat"])
    with pytest.raises(ValueError, match="input_word_ids: needs a list of lists of integers. Received: .2, 5, 3.."):
        function.answer("tokens", *[[2, 5, 3]] * 3)


def test_a_path_and_candidates_below_one_are_refused(served):
    """They used to end in an AttributeError, an error of TopKV2's, or answers without a piece."""
    bert, _ = served("single")
    with pytest.raises(ValueError, match="bert: needs a LoadedModel. Received: 'BertFor"):
        serving_function(bert.model)
    for name, count in (("top_k", 0), ("n_best", -1)):
        with pytest.raises(ValueError, match=f"{name}: needs a value above 0. Received: {count}."):
            serving_function(bert, **{name: count})


@pytest.mark.parametrize(
    ("ids", "received"),
    [
        ([[2**40 + 5]], f"{2**40 + 5} to {2**40 + 5}"),
        (np.array([[2**32 + 5, 1]]), f"1 to {2**32 + 5}"),
        (np.array([[1.7]]), "float64"),
        ([["a"]], "str32"),
    ],
)
def test_ids_that_are_no_int32_are_refused(served, ids, received):
    """TensorFlow would wrap them into the vocabulary, or truncate their fractions."""
    _, function = served("single")
    with pytest.raises(ValueError, match=f"input_word_ids: needs integers from {-(2**31)} to .* Received: {received}."):
        function.answer("tokens", ids, np.ones_like(ids, int), np.zeros_like(ids, int))


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_weights_that_are_not_numbers_are_refused(tmp_path, number):
    """A model that was trained in this process would otherwise be served with NaN beside a label."""
    bert = keras_bert.load(write_served(tmp_path / "model", "single"))
    kernel = bert.encoder.blocks[0].attention.query.kernel
    kernel.assign(np.where(np.eye(16), number, kernel))
    with pytest.raises(UserError, match="query/kernel needs finite numbers. Received: 16 of 256"):
        serving_function(bert)


def test_vectors(served):
    bert, function = served("encoder")
    answers = function(TEXTS)
    np.testing.assert_allclose(answers["mean_embedding"], bert.encode(TEXTS), **TOLERANCE)
    states = bert.encode(TEXTS, "tokens")
    for row, expected in enumerate(states):
        np.testing.assert_allclose(answers["sequence_output"][row, 1 : 1 + len(expected)], expected, **TOLERANCE)
        assert answers["input_mask"][row].sum() == len(expected) + 2
    inputs = {**{name: answers[name] for name in ("input_word_ids", "input_mask")}}
    inputs["input_type_ids"] = inputs["input_mask"] * 0
    np.testing.assert_allclose(answers["pooled_output"], bert.model(inputs)["pooled_output"], **TOLERANCE)


def test_vectors_of_a_model_with_a_head(served):
    bert, function = served("masked_lm", encoder_only=True)
    np.testing.assert_allclose(function(TEXTS)["mean_embedding"], bert.encode(TEXTS), **TOLERANCE)


@pytest.mark.parametrize("long", shortened(["windows", "truncate", "head_tail"]))
def test_vectors_are_of_what_the_model_reads(served, long):
    """Otherwise an index of `embed`'s vectors would find little for a query that a server has embedded."""
    bert, function = served("single", reading=(("max_length", 10), ("long", long)), encoder_only=True)
    text = "the cat sat on a 中 mat, sat the cat"
    vectors = function([text, *TEXTS])["mean_embedding"]
    np.testing.assert_allclose(bert.encode([text, *TEXTS]), vectors, **TOLERANCE)
    read = bert.tokenizer.vocabulary.tokens
    found = [read[piece] for piece in bert.embedder()([text]).pieces]
    ends = ["##t", ",", "sat", "the", "cat"] if long == "head_tail" else ["sat", "o", "##n", "a", "中", "m"]
    assert found[:2] == ["the", "cat"] and found[-len(ends) :] == ends and len(found) == 8


@pytest.mark.parametrize("kind", OF_WHOLE_TEXTS)
def test_tokens_give_what_their_text_gives(served, kind):
    bert, function = served(kind)
    inputs = encoder_inputs(bert.tokenizer(["the cat", "sat"]).to_list(), VOCABULARY)
    if kind == "masked_lm":
        inputs["input_word_ids"][0, 1] = VOCABULARY.mask_id
    texts = ["[MASK] cat", "sat"] if kind == "masked_lm" else ["the cat", "sat"]
    columns = [texts]
    if kind == "pair":  # The second text is empty: one more [SEP], of the second segment.
        columns = [texts, ["", ""]]
        inputs = {name: np.pad(column, [(0, 0), (0, 1)]) for name, column in inputs.items()}
        for row, end in enumerate((4, 3)):
            inputs["input_word_ids"][row, end] = VOCABULARY.sep_id
            inputs["input_mask"][row, end] = inputs["input_type_ids"][row, end] = 1
    by_text = function(*columns)
    for name, output in function.answer("tokens", *inputs.values()).items():
        if output.dtype.kind == "f":
            np.testing.assert_allclose(output, by_text[name], **TOLERANCE, err_msg=name)
        else:
            assert output.tolist() == by_text[name].tolist()


SHORT = {"crf": 2_000, "segment": 2_000}  # These take a step of a loop for every word.


@pytest.mark.parametrize("kind", KINDS)
def test_any_bytes_are_answered_and_leave_the_others_as_they_are(served, kind):
    """Serving puts requests of different clients into one batch."""
    _, function = served(kind)
    bad = [
        *HOSTILE,
        *random_hostile(100, seed=1),
        b"\xff" * 1000,
        b"x" * (2_000 if kind == "segment" else 1_000_000),
        b"[MASK]" * 1000,
    ]
    bad.append(
        b"a " * (500_000 if kind in OF_WHOLE_TEXTS else SHORT.get(kind, 20_000))
    )  # Where it is divided into windows, all of it is read.
    good = [b"The cat [MASK].", b"sat"]
    alone = function(*columns_of(function, good))
    answers = function(*columns_of(function, [good[0], *bad, good[1]]))
    answers = {name: np.concatenate([output[:1], output[-1:], output[1:-1]]) for name, output in answers.items()}
    for name, output in answers.items():
        assert len(output) == len(good) + len(bad)
        if output.dtype.kind == "f":
            assert np.isfinite(output).all(), name
            same = tuple(slice(size) for size in alone[name].shape)  # Rows are padded to the longest.
            np.testing.assert_allclose(output[same], alone[name], atol=1e-5, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_that_cannot_be_are_not_answered_and_leave_the_others_as_they_are(served, kind):
    _, function = served(kind)
    row = [VOCABULARY.cls_id, VOCABULARY.mask_id, VOCABULARY.ids["cat"], VOCABULARY.sep_id]

    def answers_to(*rows, types=None, seq=50):
        ids = np.zeros((len(rows), seq), "int32")
        for number, ids_of_row in enumerate(rows):
            ids[number, : len(ids_of_row)] = ids_of_row
        mask = (ids != 0).astype("int32")
        inputs = (ids, mask, mask * 0 if types is None else types)
        if kind == "choice":
            inputs = (np.stack([values] * 2, axis=1) for values in inputs)
        return function.answer("tokens", *inputs)

    alone = answers_to(row, seq=8)
    wrong_type = np.zeros((6, 50), "int32")
    wrong_type[4, 1] = 2
    answers = answers_to(row, [*row, 10**6], [*row, -5], [7] * 50, row, [], types=wrong_type)
    for name, output in answers.items():
        if output.dtype.kind == "f":
            same = tuple(slice(size) for size in alone[name].shape)
            np.testing.assert_allclose(output[same], alone[name], atol=1e-5, err_msg=name)
            assert np.isnan(output[1:5]).all() and np.isfinite(output[5]).all(), name
    assert all(len(output) == 0 for output in answers_to(seq=3).values())
    assert all(len(output) == 1 for output in answers_to([], seq=0).values())


@pytest.mark.parametrize("kind", KINDS)
def test_no_signature_touches_files_connections_or_python(served, kind):
    """SECURITY.md promises it; test_saved_model.py looks at written signatures too."""
    ops, _ = ops_of_graphs(served(kind)[1])
    assert "FastWordpieceTokenizeWithOffsets" in ops
    assert not outside(ops)


@pytest.mark.parametrize("kind", KINDS)
def test_requests_of_no_rows_words_choices_or_tokens_are_answered(served, kind):
    """REST's [[]] is one of them, and an error would fail all other requests in the same batch."""
    _, function = served(kind)
    answers = {}
    for signature, specs in function.inputs.items():
        for shape in itertools.product((0, 2), repeat=max(len(spec.shape) for spec in specs)):
            nothing = (np.full(shape[: len(spec.shape)], b"" if spec.dtype == tf.string else 0) for spec in specs)
            answers[signature, shape] = function.answer(signature, *nothing)
            for name, output in answers[signature, shape].items():
                assert len(output) == shape[0], (signature, shape, name)
    if kind == "choice":
        for asked in (("serving_default", (2, 0)), ("tokens", (2, 0, 2)), ("tokens", (2, 0, 0))):
            assert answers[asked]["choice"].tolist() == [0, 0]
            assert answers[asked]["logits"].shape == answers[asked]["probabilities"].shape == (2, 0)
    if kind in ("tagging", "features"):
        given = answers["words", (2, 0)]
        assert given["num_words"].tolist() == [0, 0]
        assert all(given[name].shape == (2, 0) for name in ("labels", "scores", "starts", "ends"))


@pytest.mark.parametrize("dtype", shortened(["bfloat16", "float16"]))
def test_half_stored_is_the_rounded_model_in_float32(served, dtype):
    bert, function = served("regression", dtype=dtype)
    exact = bert.predict(TEXTS)
    for variable in bert.model.trainable_variables:
        if len(variable.shape) > 1:
            variable.assign(tf.cast(tf.cast(variable.value, dtype), "float32"))
    received = function(TEXTS)["score"]
    np.testing.assert_allclose(received, bert.predict(TEXTS), **TOLERANCE)
    assert np.abs(received - exact).max() > 1e-4


def test_weights_are_stored_in_no_other_type(served):
    """int8, which LiteRT's exports have, used to round all weights to whole numbers, and answers came from those."""
    bert, _ = served("regression")
    with pytest.raises(UserError, match="dtype: needs one of float32, bfloat16, float16. Received: 'int8'"):
        serving_function(bert, dtype="int8")


@pytest.mark.parametrize("kind", shortened(["regression", CAUSAL, ALBERT, ROBERTA]))
def test_products_in_bfloat16_read_kernels_in_bfloat16(served, kind):
    """A kernel that is kept in float32, or rounded for each request, would cost more than its product saves.

    The model itself stays in float32.
    """
    bert, function = served(kind, compute="bfloat16")
    answers, expected = (one(TEXTS) for one in (function, served(kind)[1]))
    (name, *_) = (name for name, values in answers.items() if values.dtype == np.float32)
    difference = np.abs(np.nan_to_num(answers[name]) - np.nan_to_num(expected[name])).max()
    assert 0 < difference < 0.02 * np.nanmax(np.abs(expected[name]))

    signature = function.signatures["serving_default"]
    blocks = bert.model.encoder.blocks
    kernels = {id(layer.kernel): layer.kernel for block in blocks for layer in dense_of(block)}
    stored = [variable for variable in signature.variables if variable.dtype == tf.bfloat16]
    assert sorted(str(one.shape) for one in stored) == sorted(str(kernel.shape) for kernel in kernels.values())
    read = {id(variable.handle) for variable in signature.variables}
    assert not read & {id(kernel.value.handle) for kernel in kernels.values()}
    operations = list(all_operations(signature.graph))
    products = [op for op in operations if op.type in ("MatMul", "BatchMatMulV2")]
    halves = [op for op in products if op.inputs[0].dtype == tf.bfloat16]
    assert len(halves) == sum(len(dense_of(block)) + 2 for block in blocks)  # Two of attention.
    rounded = [op.inputs[0] for op in operations if op.type == "Cast"]
    assert {len(tensor.shape) for tensor in rounded if tensor.op.type == "ReadVariableOp"} == {1}  # Biases.
    assert {layer.dtype_policy.name for block in blocks for layer in dense_of(block)} == {"float32"}


def test_threads_that_ask_first_at_the_same_time(served, monkeypatch):
    """Each traced the model, whose layers have another type meanwhile: one failed, and the model stayed in bfloat16."""
    bert, function = served("regression", compute="bfloat16")
    expected = function(["the cat"])["score"]
    function, began, ended, answers = serving_function(bert, compute="bfloat16"), [], threading.Event(), []

    def held(*arguments, **options):
        if not began:
            began.append(threading.Thread(target=lambda: answers.append(function(["the cat"])["score"])))
            began[0].start()
            began[0].join(0.3)
        elif threading.current_thread() is began[0]:
            ended.wait(5.0)
        return encode(*arguments, **options)

    monkeypatch.setattr("keras_bert.export.network.encode", held)
    answers.append(function(["the cat"])["score"])
    ended.set()
    began[0].join()
    assert answers == [expected, expected]
    dense = [layer for block in bert.model.encoder.blocks for layer in dense_of(block)]
    assert {layer.dtype_policy.name for layer in dense} == {"float32"}


def dense_of(block):
    return [layer for layer in block._flatten_layers() if isinstance(layer, keras.layers.Dense)]


@pytest.mark.parametrize("options", [{"jit": True}, {"dtype": "float16"}, {"compute": "float16"}])
def test_products_in_bfloat16_are_refused_beside_what_they_cannot_do(served, options):
    bert, _ = served("regression")
    with pytest.raises(UserError, match="--compute.*: needs .* Received: .*"):
        serving_function(bert, **{"compute": "bfloat16", **options})


def test_nothing_is_compiled_for_a_decoder(tmp_path):
    """The option used to do nothing."""
    bert = keras_bert.load(write_tiny_bart(tmp_path / "bart"), task="seq2seq")
    with pytest.raises(UserError, match="--jit: needs a model without a decoder. Received: a BertForConditional"):
        serving_function(bert, jit=True)
    assert serving_function(bert, jit=True, encoder_only=True).columns == ("text",)


@pytest.mark.slow
def test_compiled_by_xla_it_answers_the_same(served):
    """One text, of a length that is not compiled, and several, which run without XLA."""
    _, function = served("single")
    _, compiled = served("single", jit=True)
    for texts in (TEXTS, TEXTS[:1], ["the cat sat " * 6]):
        np.testing.assert_allclose(compiled(texts)["logits"], function(texts)["logits"], rtol=1e-4, atol=1e-5)
    graph = compiled.signatures["serving_default"].graph.as_graph_def()
    assert {node.op for node in graph.node} & {"If", "StatelessIf"}
    assert any(function.attr["_XlaMustCompile"].b for function in graph.library.function)


@pytest.mark.parametrize("kind", shortened(["single", "pair"]))
@pytest.mark.parametrize(
    "reading", shortened([(("long", "head_tail"),), (("long", "windows"), ("stride", 8)), (("long", "windows"),)])
)
def test_long_texts_are_read_as_in_training(served, kind, reading):
    """As the rows of fine-tuning, whose outputs are averaged."""
    bert, function = served(kind, reading=(("max_length", 20), *reading))
    texts = [["the cat sat", "cat " * 17, "", "sat the " * 30, "the cat sat on the mat " * 5]]
    if kind == "pair":
        texts.append(["a cat", "the " * 40, "sat", "", "cat sat " * 9])
    settings = InputConfig(max_length=20, **dict(reading))
    rows, numbers = sequence_rows(texts, bert.tokenizer, settings)
    inputs = LengthBatches(rows, len(rows), 0, bert.tokenizer.vocabulary.pad_id, [20], shuffle=False)
    batch = next(iter(inputs.all_batches()))
    logits = bert.model(batch)["logits"].numpy()[np.argsort(batch["row_numbers"])]
    expected = np.stack([logits[numbers == number].mean(axis=0) for number in range(5)])
    np.testing.assert_allclose(function(*texts)["logits"], expected, **TOLERANCE)
    answers = bert.predict(list(zip(*texts)) if kind == "pair" else texts[0])
    received = [list(answer.probabilities.values()) for answer in answers]
    np.testing.assert_allclose(received, softmax(expected, axis=-1), **TOLERANCE)


@pytest.mark.parametrize("kind", ["single", "tagging", "crf", "features", "answering"])
def test_the_windows_of_a_request_are_computed_a_few_at_a_time(served, kind, monkeypatch):
    """They used to be computed at once, so a long text took gigabytes."""
    bert, function = served(kind, reading=(("max_length", 20), ("long", "windows")))
    columns = columns_of(function, ["the cat sat", "cat " * 30, "", "sat the " * 60])
    monkeypatch.setattr(network, "_ROWS_AT_ONCE", 3)
    most, run = [], network.Network.run

    def counted(self, of_model):
        result = run(self, of_model)
        if isinstance(result, tf.Tensor):  # A head's logits.
            most.append(result.shape[1:])
            with tf.control_dependencies([tf.debugging.assert_less_equal(tf.shape(result)[0], 3)]):
                result = tf.identity(result)
        return result

    monkeypatch.setattr(network.Network, "run", counted)
    answers, expected = serving_function(bert)(*columns), function(*columns)
    assert most
    for name, values in expected.items():
        if values.dtype == object:
            np.testing.assert_array_equal(answers[name], values)
        else:
            np.testing.assert_allclose(answers[name], values, **TOLERANCE)


@pytest.mark.parametrize(
    ("name", "value"), [("max_length", 41), ("max_length", "eight"), ("pair", 1), ("long", "tail"), ("stride", 0)]
)
def test_what_config_json_says_is_checked(served, name, value):
    with pytest.raises(UserError, match=f"config.json: keras_bert.{name}: needs"):
        served("single", reading=((name, value),))


@pytest.mark.parametrize("keeps_padding", [False, True])
@pytest.mark.parametrize(
    "changes",
    [
        {"hidden_act": "gelu"},
        {"hidden_act": "gelu_new"},
        {"hidden_act": "relu"},
        {"attention": "causal"},
        {"type_vocab_size": 1},
    ],
)
def test_it_is_the_encoder(keeps_padding, changes):
    """Padding at the end and inside, both segments, a full row and one of a single token."""
    encoder = BertEncoder(without_dropout(**changes))
    random_weights(encoder)
    rng = np.random.default_rng(0)
    mask = (np.arange(12) < np.array([[12], [5], [1], [8]])).astype("int32")
    mask[3, 4] = 0
    inputs = {
        "input_word_ids": rng.integers(0, 60, mask.shape).astype("int32"),
        "input_mask": mask,
        "input_type_ids": rng.integers(0, 2, mask.shape).astype("int32"),
    }
    expected, received = encoder(inputs), encode(encoder, inputs, keeps_padding)
    real = mask == 1
    tolerance = {"rtol": 1e-5, "atol": 1e-5}
    np.testing.assert_allclose(
        received["sequence_output"].numpy()[real], expected["sequence_output"].numpy()[real], **tolerance
    )
    assert not received["sequence_output"].numpy()[~real].any()
    np.testing.assert_allclose(received["pooled_output"], expected["pooled_output"], **tolerance)


def test_padding_is_not_computed():
    """A long text must not make the short ones beside it as costly: the largest matrices have a row per real token."""
    encoder = BertEncoder(without_dropout())
    mask = tf.constant((np.arange(20) < np.array([[20], [2], [2]])).astype("int32"))
    rows = []
    dense = encoder.blocks[0].intermediate

    def counting(states, call=dense.call):
        rows.append(int(states.shape[0]))
        return call(states)

    dense.call = counting
    encode(encoder, {"input_word_ids": mask, "input_mask": mask, "input_type_ids": mask * 0})
    assert rows == [24]
