"""A kind of model and a tokenizer that the package has never heard of, registered by this file alone."""

import dataclasses
import hashlib
import json
import os

import keras
import numpy as np
import pytest
import tensorflow as tf
from prepared import prepare, shard_settings
from tiny import VOCABULARY, random_weights, tiny_config

import keras_bert
from keras_bert.checkpoints.writing import convert_folder, write_model_folder
from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.core.errors import UserError
from keras_bert.export.saved_model import write_version
from keras_bert.export.serving_function import serving_function
from keras_bert.inference.loading import load
from keras_bert.inputs.rows import PieceSpans, padded_rows
from keras_bert.layers.heads import Pooler
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.bert.encoder import BertEncoder
from keras_bert.models.bert.kind import Bert
from keras_bert.models.kind import GoogleFiles, register_model_kind, unregister_model_kind
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.models.tensor_names import POOLER, StoredName, TensorName
from keras_bert.tasks.classification.head import ClassificationConfig
from keras_bert.tasks.classification.network import BertForSequenceClassification
from keras_bert.tasks.finetuned_model import FinetunedModel
from keras_bert.tasks.finetuning.runs import FinetuningRuns
from keras_bert.tasks.pretraining.run import pretrain
from keras_bert.text.tokenizer_files import TokenizerSettings
from keras_bert.text.tokenizers import Tokenizer, string_batch
from keras_bert.text.vocabulary import RowPattern, Vocabulary, register_vocabulary, unregister_vocabulary
from keras_bert.training.run_folder import RunFolder


@dataclasses.dataclass
class ScaledConfig(BertConfig):
    model_type: str = "scaled"
    first_scale: float = 1.0


@keras.saving.register_keras_serializable(package="made_up")
class ScaledPooler(Pooler):
    """A pooler whose vectors have a learned scale."""

    def build(self, input_shape):
        super().build(input_shape)
        self.scale = self.add_weight(name="scale", shape=(1,), initializer="ones")

    def call(self, sequence_output):
        return super().call(sequence_output) * self.scale


@keras.saving.register_keras_serializable(package="made_up")
class ScaledEncoder(BertEncoder):
    def build(self, input_shape=None):
        super().build(input_shape)
        self.pooler.scale.assign([self.config.first_scale])

    def make_pooler(self):
        return ScaledPooler(self.config.hidden_size, dtype=self.dtype_policy, name="pooler")


class LetterVocabulary(Vocabulary):
    """Letters, with special tokens of other names, at other ids and in other places than BERT's."""

    title, file_name, plain_tokenizer = "a vocabulary of letters", "letters.txt", None
    tokenizer, tokenizer_settings = f"{__name__}:LetterTokenizer", ("lower_case",)

    def __init__(self, letters):
        self.tokens = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *letters]
        self.ids = {token: index for index, token in enumerate(self.tokens)}
        self.cls_id, self.pad_id, self.sep_id, self.unk_id, self.mask_id = range(5)
        self.num_pieces = len(self.tokens)
        self.is_continuation = np.zeros(len(self.tokens), bool)
        self.is_continued = np.zeros(len(self.tokens), bool)
        self.fingerprint = hashlib.sha256(self._file_bytes()).hexdigest()

    @property
    def row_pattern(self):
        return RowPattern((self.cls_id,), (self.sep_id, self.sep_id), (self.sep_id,))

    @classmethod
    def is_file(cls, path):
        return path.endswith(cls.file_name)

    @classmethod
    def read(cls, path):
        with open(path, encoding="utf-8") as stream:
            return cls(stream.read().split("\n")[5:-1])

    @classmethod
    def read_settings(cls, folder, config, lower_case):
        return TokenizerSettings(config["do_lower_case"] if lower_case is None else lower_case), []

    def tokenizer_config(self, settings, max_positions):
        return {"do_lower_case": settings.lower_case}


class LetterTokenizer(Tokenizer):
    """A piece for each character of a text, blanks among them."""

    def __init__(self, vocabulary, lower_case):
        super().__init__()
        self.vocabulary, self.lower_case = vocabulary, lower_case
        with tf.init_scope():
            rows = tf.lookup.KeyValueTensorInitializer(vocabulary.tokens, tf.range(len(vocabulary)))
            self._rows = tf.lookup.StaticHashTable(rows, vocabulary.unk_id)
        self.resources = [self._rows]

    def tokenize(self, texts):
        texts = string_batch(texts)
        letters = tf.strings.unicode_split(tf.strings.lower(texts) if self.lower_case else texts, "UTF-8")
        return letters.with_flat_values(self._rows.lookup(letters.flat_values))

    def tokenize_with_offsets(self, texts):
        ids = self.tokenize(texts)
        starts = tf.cast(tf.ragged.range(ids.row_lengths()), tf.int32)
        return ids, starts, starts + 1


class Scaled(Bert):
    model_type, title, config = "scaled", "Scaled", ScaledConfig
    class_prefix, google_files = "Scaled", GoogleFiles("scaled_config.json", "scaled.ckpt")

    def make_encoder(self, config, with_pooler=True, **keras_options):
        return ScaledEncoder(config, with_pooler=with_pooler, **keras_options)

    def parts(self, config):
        scale = TensorName("encoder.pooler.scale", StoredName("bert.pooler.scale"), StoredName("bert/pooler/scale"))
        parts = super().parts(config)
        return {**parts, POOLER: [*parts[POOLER], scale]}


@pytest.fixture(autouse=True)
def kind():
    yield (made := register_model_kind(Scaled()))
    unregister_model_kind(made)


@pytest.fixture
def letters():
    register_vocabulary(LetterVocabulary)
    yield LetterVocabulary("abcdefghijklmnopqrstuvwxyz ")
    unregister_vocabulary(LetterVocabulary)


def config():
    return ScaledConfig(**dataclasses.asdict(tiny_config()), first_scale=3.0)


def test_it_is_written_and_opens_again_in_both_formats(tmp_path):
    model = BertForPreTraining(config())
    stored = random_weights(model)
    folder, google = str(tmp_path / "model"), str(tmp_path / "google")
    write_model_folder(folder, model, VOCABULARY, lower_case=True)
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as stream:
        fields = json.load(stream)
    assert fields["architectures"] == ["ScaledForPreTraining"] and fields["model_type"] == "scaled"
    opened = keras_bert.open_model_folder(folder)
    assert opened.config == config() and "first_scale" not in opened.other_fields

    assert convert_folder(opened, "google", google, VOCABULARY) == []
    assert os.path.exists(os.path.join(google, "scaled_config.json"))
    for path in (folder, google):
        again = load(path)
        assert isinstance(again.encoder, ScaledEncoder) and not again.report.made_new and not again.report.unused
        np.testing.assert_array_equal(again.encoder.pooler.scale, stored["bert.pooler.scale"])
        np.testing.assert_array_equal(again.encode(["w1 w2"]), load(folder).encode(["w1 w2"]))


def test_it_has_every_head_and_is_exported(tmp_path):
    model = BertForSequenceClassification(config(), 2)
    head, folder = ClassificationConfig(("no", "yes"), "single_label_classification"), str(tmp_path / "model")
    write_model_folder(folder, model, VOCABULARY, lower_case=True, head=head)
    loaded = load(folder)
    assert isinstance(loaded.model, BertForSequenceClassification) and loaded.head == head
    served = serving_function(loaded).signatures["serving_default"](text=tf.constant(["w1 w2"]))
    expected = loaded.predict(["w1 w2"])[0].probabilities
    np.testing.assert_allclose(served["probabilities"][0], [expected["no"], expected["yes"]], rtol=1e-5)
    again = keras.models.model_from_json(model.to_json())
    assert type(again.config) is ScaledConfig and again.config == model.config


def test_a_recipe_names_it_and_its_own_fields():
    sizes = {"model_type": "scaled", "vocab_size": 60}
    recipe = PretrainConfig.from_mapping({"model": sizes}, {"model.first_scale": 2.0})
    assert recipe.model == ScaledConfig(vocab_size=60, first_scale=2.0)
    with pytest.raises(UserError, match="model.first_scale: no such setting"):
        PretrainConfig.from_mapping({"model": {"vocab_size": 60}}, {"model.first_scale": 2.0})
    with pytest.raises(UserError, match="model_type 'gpt' is not supported; a BERT.* or a Scaled is needed"):
        PretrainConfig.from_mapping({"model": {"model_type": "gpt"}})


def test_names_are_taken_once():
    with pytest.raises(ValueError, match="scaled: already registered"):
        register_model_kind(Scaled())


def pairs(path, count, seed):
    """A table of pairs of texts, which are the same or not."""
    random = np.random.default_rng(seed)
    words = ["".join(random.choice(list("abcdef"), 3)) for _ in range(count)]
    rows = [
        (word, word if index % 2 else word[::-1] + "x", ("other", "same")[index % 2])
        for index, word in enumerate(words)
    ]
    path.write_text("".join(json.dumps(dict(zip("abl", row))) + "\n" for row in rows), encoding="utf-8")
    return str(path)


@pytest.mark.slow
def test_it_is_trained_with_its_own_tokenizer_from_raw_text_to_an_export(letters, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shards, run, tuned = "shards", "run", "tuned"
    texts = (f"the {end}d. a {end}." for end in "abcdefghijklmnop" * 8)
    prepare(texts, shards, shard_settings(letters, True, 0.3, shard_megabytes=0.001), workers=1)
    sizes = {"vocab_size": len(letters), "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    recipe = {
        "model": {"model_type": "scaled", **sizes, "intermediate_size": 16, "max_position_embeddings": 32},
        "data": {"files": [shards]},
        "phases": [{"sequence_length": 16, "batch_size": 4, "max_predictions_per_seq": 3}],
        "optimizer": {"warmup_steps": 1},
        "training": {"steps": 2, "log_every": 1, "evaluate_every": 2, "evaluation_examples": 8},
    }
    pretrain(PretrainConfig.from_mapping(recipe), RunFolder(run))

    recipe = {
        "task": "text",
        "init": run,
        "data": {
            "train": pairs(tmp_path / "train.jsonl", 40, 0),
            "dev": pairs(tmp_path / "dev.jsonl", 20, 1),
            "texts": ["a", "b"],
            "label": "l",
        },
        "input": {"max_length": 12},
        "training": {"batch_size": 8, "epochs": 1.0},
    }
    results = FinetuningRuns(FinetuneConfig.from_mapping(recipe)).one(tuned)
    bert = load(tuned)
    assert isinstance(bert.encoder, ScaledEncoder) and isinstance(bert.tokenizer, LetterTokenizer)
    assert not bert.report.made_new and bert.tokenizer.vocabulary.fingerprint == letters.fingerprint
    assert FinetunedModel(tuned).evaluate("dev")["accuracy"] == results["splits"]["dev"]["accuracy"]
    served = tf.saved_model.load(write_version("served", serving_function(bert))).signatures["serving_default"]
    found = served(text_a=tf.constant(["abc", "de"]), text_b=tf.constant(["abc", "f"]))["probabilities"]
    rows = padded_rows([PieceSpans.of(bert.tokenizer([*texts])) for texts in (["abc", "de"], ["abc", "f"])], letters)
    expected = [letters.ids[name] for name in ("<s>", "d", "e", "</s>", "</s>", "f", "</s>", "<pad>", "<pad>", "<pad>")]
    assert rows["input_word_ids"][1].numpy().tolist() == expected
    assert rows["input_type_ids"][1].numpy().tolist() == [0, 0, 0, 0, 0, 1, 1, 0, 0, 0]
    logits = bert.model(rows)["logits"]
    np.testing.assert_allclose(found, tf.nn.softmax(logits), rtol=1e-4)
