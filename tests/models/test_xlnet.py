"""XLNet: relative positions, two streams and a memory, and rows that end in <sep> <cls>.

That it computes what transformers does of rows padded on the left, and is written as transformers writes it, is in
test_transformers_folders.py.
"""

import json
import os

import keras
import numpy as np
import pytest
import tensorflow as tf
from coming_back import assert_a_keras_file_keeps
from finetuning import WORDS, finetune_config, reviews, write_columns, write_reviews
from goldens import COMMITTED, ENCODER_INPUTS, Golden, read_tensors, under

import keras_bert
from keras_bert.checkpoints.writing import convert_folder
from keras_bert.config.training import OptimizerConfig
from keras_bert.core.errors import UserError
from keras_bert.data.batches.length_batches import LengthBatches
from keras_bert.export.saved_model import write_version
from keras_bert.export.serving_function import serving_function
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.sizes import encoder_parts, head_parts, total
from keras_bert.tasks.finetuning.runs import FinetuningRuns
from keras_bert.tasks.sequence_rows import SequenceRows
from keras_bert.text.sentencepiece_vocabulary import unigram_model
from keras_bert.text.xlnet_vocabulary import XlnetVocabulary
from keras_bert.training.optimizer import make_optimizer

TEXTS = ["The cat, hé.", " the\tcat", ""]
SEP, CLS, PAD = 4, 3, 5
SPECIAL = ("<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>")
FIELDS = {"model_type": "xlnet", "vocab_size": 72, "d_model": 8, "n_layer": 1, "n_head": 2, "d_inner": 16}


def folder(name):
    return os.path.join(COMMITTED, name)


@pytest.fixture(scope="module")
def loaded():
    return keras_bert.load(folder("xlnet"))


@pytest.mark.parity
def test_both_streams_and_the_memory_of_permuted_rows(goldens):
    """Two rows of text, the second with the memory of the first; rows are padded on the left, as in transformers."""
    golden = Golden(goldens, "xlnet")
    stored = under("streams/", under("outputs/", golden.arrays))
    model = keras_bert.load(golden.path).model
    names = {**ENCODER_INPUTS, "perm_mask": "perm_mask", "target_mapping": "target_mapping"}
    inputs = {ours: stored[theirs] for theirs, ours in names.items()}
    first = model.encoder(inputs, return_mems=True)
    second = model.encoder({**inputs, "mems": first["mems"]})
    again = under("outputs/", stored)
    for mems, expected in ((first["mems"], stored), (second["mems"], again)):
        assert len(mems) == 2
        for index, memory in enumerate(mems):
            batch_first = expected[f"mems/{index}"].transpose(1, 0, 2)
            np.testing.assert_allclose(memory, batch_first, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(second["query_output"], again["query"], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(second["sequence_output"], again["content"], rtol=1e-5, atol=1e-5)
    logits = model.mlm_head(second["query_output"], model.encoder.embeddings.word_embeddings)
    np.testing.assert_allclose(logits, again["logits"], rtol=1e-4, atol=1e-4)


def test_padding_on_either_side_changes_nothing(loaded):
    inputs = loaded.preprocessor(length="longest")((TEXTS[:2], ["hé", "the cat the cat"]))
    states = loaded.encoder(inputs)["sequence_output"].numpy()
    lengths = inputs["input_mask"].numpy().sum(axis=1)
    shifts = inputs["input_mask"].shape[1] - lengths
    assert shifts.max() > 0
    left = {name: np.stack([*map(np.roll, value.numpy(), shifts)]) for name, value in inputs.items()}
    moved = loaded.encoder(left)["sequence_output"].numpy()
    for row, (shift, length) in enumerate(zip(shifts, lengths)):
        np.testing.assert_allclose(moved[row, shift:], states[row, :length], rtol=1e-5, atol=1e-5)


def test_a_prediction_does_not_see_its_token_in_the_query_stream(loaded):
    """Otherwise pretraining by permutations would learn to copy."""
    ids = np.array([[17, 20, 30, SEP, CLS]], "int32")
    order = np.array([2, 0, 1, 3, 4])  # The place of each token in the order of prediction.
    inputs = {
        "input_mask": ids * 0 + 1,
        "input_type_ids": np.array([[0, 0, 0, 0, 2]], "int32"),
        "perm_mask": (order[None, :] >= order[:, None])[None].astype("float32"),
        "target_mapping": np.eye(5, dtype="float32")[None, :1],
    }

    def outputs(first):
        changed = np.concatenate([[[first]], ids[:, 1:]], axis=1).astype("int32")
        found = loaded.encoder({**inputs, "input_word_ids": changed})
        return found["query_output"].numpy(), found["sequence_output"].numpy()

    (query, content), (other_query, other_content) = outputs(17), outputs(40)
    np.testing.assert_array_equal(query, other_query)
    assert np.abs(content[:, 0] - other_content[:, 0]).max() > 1e-3


@pytest.mark.parametrize("name", ["xlnet", "xlnet_classes", "xlnet_spans"])
def test_a_folder_is_converted_bit_for_bit(name, tmp_path):
    opened = keras_bert.open_model_folder(folder(name))
    assert not convert_folder(opened, "huggingface", str(tmp_path / "again"), opened.vocabulary)
    ours, theirs = read_tensors(str(tmp_path / "again")), read_tensors(folder(name))
    assert {tensor: value.tobytes() for tensor, value in ours.items()} == {
        tensor: value.tobytes() for tensor, value in theirs.items()
    }
    first, again = keras_bert.load(folder(name)), keras_bert.load(tmp_path / "again")
    assert isinstance(again.tokenizer.vocabulary, XlnetVocabulary) and again.config == first.config
    assert again.tokenizer(TEXTS).to_list() == first.tokenizer(TEXTS).to_list()
    np.testing.assert_array_equal(again.encode(TEXTS), first.encode(TEXTS))


def test_the_table_of_its_parts_counts_every_weight(loaded):
    head = loaded.config.vocab_size
    pooler = loaded.config.hidden_size**2 + loaded.config.hidden_size
    assert loaded.model.count_params() == total(encoder_parts(loaded.config)) - pooler + head
    assert total(head_parts(loaded.config)) == head
    base = keras_bert.XlnetConfig()
    assert total(encoder_parts(base)) - (768 * 768 + 768) == 116_718_336  # Of xlnet-base-cased in transformers.


def test_rows_end_in_sep_and_cls_of_a_segment_of_its_own(loaded):
    """In the preprocessor and in batches for training alike."""
    inputs = loaded.preprocessor(length="longest")((["the cat", "the"], ["hé", "cat cat"]))
    first, second = loaded.tokenizer(["the cat", "hé"]).to_list()
    width, pair = inputs["input_word_ids"].shape[1], [*first, SEP, *second, SEP, CLS]
    padding = width - len(pair)
    assert inputs["input_word_ids"][0].numpy().tolist() == pair + [PAD] * padding
    segments = [0] * (len(first) + 1) + [1] * (len(second) + 1) + [2]
    assert inputs["input_type_ids"][0].numpy().tolist() == segments + [0] * padding
    rows = SequenceRows(loaded.tokenizer, finetune_config("init").input)
    rows.add([["the cat"], ["hé"]])
    batch = next(iter(LengthBatches(rows.rows(), 1, 0, PAD, [16]).epoch(0)))
    assert batch["input_type_ids"][0].numpy().tolist() == segments + [0] * (16 - len(pair))
    single = loaded.preprocessor(length="longest")(["the cat"])
    assert single["input_type_ids"][0].numpy().tolist() == [0] * (len(first) + 1) + [2]


def test_cls_pooling_takes_the_last_token(loaded):
    vectors = loaded.encode(TEXTS[:1], "cls")
    inputs = loaded.preprocessor(length="longest")(TEXTS[:1])
    last = loaded.encoder(inputs)["sequence_output"][0, -1]
    np.testing.assert_allclose(vectors[0], last, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_served_compiled_it_answers_the_same():
    """XLA has rows of fixed lengths, padded beyond the text's own."""
    classifier = keras_bert.load(folder("xlnet_classes"))
    plain, compiled = (serving_function(classifier, jit=jit)(TEXTS[:1])["probabilities"] for jit in (False, True))
    np.testing.assert_allclose(compiled, plain, rtol=1e-5, atol=1e-6)


def test_half_precision_is_finite_with_padding(loaded):
    """float16 cannot hold the bias that hides padding in float32."""
    inputs = loaded.preprocessor(length="longest")(TEXTS)
    encoder = keras_bert.XlnetEncoder(loaded.config, dtype="mixed_float16")
    assert np.isfinite(encoder(inputs)["pooled_output"]).all()


@pytest.mark.slow
def test_spans_are_found_in_the_passage_alike_in_python_and_served():
    """Though no [CLS] comes before the question."""
    reader = keras_bert.load(folder("xlnet_spans"))
    question, context = "the cat", "The cat, hé the cat."
    (answer,) = reader.predict([(question, context)])
    served = serving_function(reader)([question], [context])
    assert served["answer"][0].decode() == answer.text
    assert (int(served["start"][0]), int(served["end"][0])) == (answer.start, answer.end)


def test_a_saved_keras_model_comes_back(loaded, tmp_path):
    inputs = loaded.preprocessor(length="longest")(TEXTS)
    assert_a_keras_file_keeps(loaded.model, inputs, tmp_path, "mlm_logits")


def test_the_biases_of_its_attention_are_not_decayed(loaded):
    """As in the published code, whose pattern is any name with "bias"."""
    optimizer = make_optimizer(OptimizerConfig(), 10)
    encoder = loaded.model.encoder
    optimizer.build(encoder.trainable_variables)
    decayed = {
        variable.path.rpartition("block_0/")[2]
        for variable, is_decayed in zip(encoder.trainable_variables, optimizer._decayed)
        if is_decayed and "block_0/" in variable.path
    }
    weights = {f"attention/{name}" for name in ("q", "k", "v", "o", "r", "seg_embed")}
    assert decayed == weights | {"intermediate/kernel", "output_dense/kernel"}


@pytest.mark.parametrize(
    "field, value", [("attn_type", "uni"), ("untie_r", False), ("bi_data", True), ("summary_type", "mean")]
)
def test_variants_are_refused_in_one_line(field, value, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**FIELDS, field: value}), "utf-8")
    with pytest.raises(UserError) as error:
        BertConfig.from_file(path)
    told = str(error.value)
    assert f"{field} {value!r} is not supported" in told and "\n" not in told


def test_the_heads_of_a_beam_search_are_refused_in_one_line(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**FIELDS, "architectures": ["XLNetForQuestionAnswering"]}), "utf-8")
    with pytest.raises(UserError, match="XLNetForQuestionAnsweringSimple.*beam search is not supported"):
        BertConfig.from_file(path)


def test_filling_is_refused_in_one_line(loaded):
    with pytest.raises(UserError, match="predicts permuted tokens. .* finetune --task NAME --init MODEL"):
        loaded.fill(["the [MASK]"])
    masked_lm = keras_bert.MaskedLM(loaded.preprocessor(max_length=8))
    with pytest.raises(UserError, match="model: needs one that predicts masked tokens. Received: permuted tokens"):
        masked_lm.model(loaded.model)


def test_fields_of_a_config_come_back(tmp_path):
    """Rows longer than 512 tokens and Google's second dropout have fields of their own."""
    config = keras_bert.XlnetConfig(72, 8, 1, 2, 16, hidden_dropout_prob=0.2, max_position_embeddings=900, clamp_len=7)
    config.to_file(tmp_path / "config.json")
    fields = json.loads((tmp_path / "config.json").read_text("utf-8"))
    assert (fields["dropout"], fields["dropatt"], fields["longest_row"]) == (0.2, 0.1, 900)
    assert BertConfig.from_file(tmp_path / "config.json") == config
    config.to_file(tmp_path / "config.yaml")
    assert BertConfig.from_file(tmp_path / "config.yaml") == config


@pytest.fixture(scope="module")
def init(tmp_path_factory):
    """A small XLNet that knows the words of the tasks."""
    pieces = [*((token, 0.0) for token in SPECIAL), *((f"▁{word}", -1.0) for word in WORDS)]
    vocabulary = XlnetVocabulary(unigram_model(pieces, b"", len(SPECIAL)))
    config = keras_bert.XlnetConfig(
        len(vocabulary), 16, 1, 2, 32, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, initializer_range=0.2
    )
    path = tmp_path_factory.mktemp("init") / "xlnet"
    keras.utils.set_random_seed(0)
    keras_bert.write_model_folder(
        path, keras_bert.XlnetEncoder(config, with_pooler=False), vocabulary, lower_case=False
    )
    return str(path)


@pytest.mark.slow
def test_it_learns_a_classification_and_is_served(init, tmp_path):
    """Trained, evaluated, written as transformers' class, and exported with its tokenizer."""
    for name, count in (("train", 120), ("dev", 24)):
        write_reviews(tmp_path / f"{name}.jsonl", count, len(name))
    data = {"data.train": str(tmp_path / "train.jsonl"), "data.dev": str(tmp_path / "dev.jsonl")}
    FinetuningRuns(finetune_config(init, "text", **data)).one(str(tmp_path / "run"))
    trained = keras_bert.load(tmp_path / "run")
    texts = [text for text, _ in reviews(40, 3)]
    labels = [label for _, label in reviews(40, 3)]
    answers = trained.predict(texts)
    assert np.mean([answer.label == label for answer, label in zip(answers, labels)]) > 0.9
    with open(tmp_path / "run" / "model" / "config.json", encoding="utf-8") as stream:
        assert json.load(stream)["architectures"] == ["XLNetForSequenceClassification"]
    write_version(str(tmp_path / "export"), serving_function(trained))
    served = tf.saved_model.load(str(tmp_path / "export" / "1")).signatures["serving_default"]
    received = served(text=tf.constant(texts[:3]))["probabilities"].numpy()
    expected = [[answer.probabilities[label] for label in trained.head.labels] for answer in answers[:3]]
    np.testing.assert_allclose(received, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_it_learns_to_tag(init, tmp_path):
    """Labels stand at the words' own tokens, though no [CLS] comes before them."""
    for name, count in (("train", 120), ("dev", 20)):
        write_columns(tmp_path / f"{name}.txt", count, len(name))
    data = {"data.train": str(tmp_path / "train.txt"), "data.dev": str(tmp_path / "dev.txt")}
    FinetuningRuns(finetune_config(init, "ner", **data)).one(str(tmp_path / "run"))
    trained = keras_bert.load(tmp_path / "run")
    (answer,) = trained.predict(["w1 w2 good w3"])
    assert [entity.text for entity in answer.entities] == ["good"]
