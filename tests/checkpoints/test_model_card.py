"""Every model folder has a README.md whose header the hub's own library reads."""

import os

import pytest
from huggingface_hub import ModelCard as HubCard
from huggingface_hub.repocard import metadata_load
from tiny import VOCABULARY, random_model, tiny_config

from keras_bert.checkpoints.conversion import convert_folder
from keras_bert.checkpoints.model_card import ModelCard, Score, Scores
from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.checkpoints.model_writing import describe_folder, write_model_folder
from keras_bert.config.heads import SINGLE_LABEL, ClassificationConfig, FeatureTaggingConfig
from keras_bert.task_kinds import kind_of_head

CARD = ModelCard(
    title="sst2",
    made="Fine-tuned on films: twice.",
    base="google-bert/bert-base-uncased",
    command="python run.py finetune --task sst2 --init hf:google-bert/bert-base-uncased",
    language="en",
    measured=[
        Scores("GLUE, sst2", "nyu-mll/glue", "sst2", "dev", "872 examples", [Score("accuracy", 0.92345678, 0.51)]),
        Scores("own: texts", None, None, "test", "7 examples", [Score("matthews", float("nan")), Score("f1", 0.5)]),
    ],
    measured_how="By nobody else.",
    use="python run.py predict --model . --input texts.txt --output answers.jsonl",
)


@pytest.fixture(scope="module")
def classifier():
    head = ClassificationConfig(("bad: not | good", "good"), SINGLE_LABEL)
    return kind_of_head(head).make_model(tiny_config(), head), head


def read(folder):
    """(header, text) of a folder's card, as the hub's library reads it."""
    path = os.path.join(folder, "README.md")
    return metadata_load(path), HubCard.load(path).text


def test_what_was_measured_is_in_the_header_and_in_the_text(tmp_path, classifier):
    model, head = classifier
    folder = str(tmp_path / "model")
    write_model_folder(folder, model, VOCABULARY, lower_case=True, head=head, card=CARD)
    header, text = read(folder)
    assert header["base_model"] == "google-bert/bert-base-uncased" and header["language"] == "en"
    assert header["library_name"] == "transformers" and header["pipeline_tag"] == "text-classification"
    assert header["datasets"] == ["nyu-mll/glue"] and "license" not in header
    parsed = HubCard.load(os.path.join(folder, "README.md")).data
    assert parsed.model_name == "sst2"
    found = {(result.dataset_name, result.metric_type): result.metric_value for result in parsed.eval_results}
    assert found == {("GLUE, sst2", "accuracy"): 0.923457, ("own: texts", "f1"): 0.5}
    assert CARD.command in text and "| GLUE, sst2 | dev | 872 examples | accuracy | 0.9235 | 0.51 |" in text
    assert r"bad: not \| good, good" in text and "BertForSequenceClassification.from_pretrained(name)" in text
    assert f"{model.count_params():,}" in text and CARD.use in text


def test_a_folder_of_which_nothing_is_said_has_a_card_all_the_same(tmp_path):
    folder = str(tmp_path / "model")
    write_model_folder(folder, random_model(), VOCABULARY, lower_case=True)
    header, text = read(folder)
    assert header == {"library_name": "transformers", "tags": ["bert", "keras-bert"], "pipeline_tag": "fill-mask"}
    assert "## Scores" not in text and "| Vocabulary | 60 pieces |" in text


def test_what_transformers_does_not_open_is_not_said_to(tmp_path):
    folder = str(tmp_path / "tagger")
    head = FeatureTaggingConfig(("O", "B-X"), "last", 4)
    write_model_folder(
        folder, kind_of_head(head).make_model(tiny_config(), head), VOCABULARY, lower_case=True, head=head
    )
    header, text = read(folder)
    assert "library_name" not in header and header["pipeline_tag"] == "token-classification"
    assert "transformers" not in text and "`BertFeatureTagger`" in text


def test_converting_keeps_the_card_that_is_there_and_else_says_where_it_is_from(tmp_path):
    first, google, back, again = (str(tmp_path / name) for name in ("first", "google", "back", "again"))
    write_model_folder(first, random_model(), VOCABULARY, lower_case=True, card=CARD)
    convert_folder(open_model_folder(first), "huggingface", again, VOCABULARY)
    assert read(again) == read(first)
    convert_folder(open_model_folder(first), "google", google, VOCABULARY)
    header, text = read(google)
    assert "library_name" not in header and "transformers" not in text and "converted without loss" in text
    convert_folder(open_model_folder(google, lower_case=True), "huggingface", back, VOCABULARY)
    header, text = read(back)
    assert "base_model" not in header and "The weights of `google`, converted without loss." in text


def test_another_card_leaves_all_else(tmp_path, classifier):
    model, head = classifier
    one, other = str(tmp_path / "one"), str(tmp_path / "other")
    write_model_folder(one, model, VOCABULARY, lower_case=True, head=head, card=CARD)
    write_model_folder(other, model, VOCABULARY, lower_case=True, head=head)
    describe_folder(other, CARD)
    assert read(other) == read(one) and sorted(os.listdir(one)) == sorted(os.listdir(other))
