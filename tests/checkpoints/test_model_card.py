"""Every model folder has a README.md whose header the hub's own library reads, and whose code answers."""

import json
import os
import re
import subprocess
import sys

import pytest
from huggingface_hub import ModelCard as HubCard
from huggingface_hub.repocard import metadata_load
from tiny import VOCABULARY, random_model, tiny_config

from keras_bert.checkpoints.model_card import ModelCard, Score, Scores
from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.checkpoints.writing import convert_folder, describe_folder, write_model_folder
from keras_bert.config.finetuning import MULTI_LABEL, REGRESSION, SINGLE_LABEL
from keras_bert.models.elmo.kind import ElmoConfig
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.tasks.classification.head import ClassificationConfig, NextSentenceConfig
from keras_bert.tasks.few_shot.task import FewShotConfig
from keras_bert.tasks.kind import kind_of_head, task_kinds
from keras_bert.tasks.multiple_choice.task import MultipleChoiceConfig
from keras_bert.tasks.question_answering.task import SpanExtractionConfig
from keras_bert.tasks.segmentation.task import SegmentationConfig
from keras_bert.tasks.sentence_vectors.task import SentenceVectorsConfig
from keras_bert.tasks.span_pairs.task import SpanPairConfig
from keras_bert.tasks.tagging.head import CrfTaggingConfig, FeatureTaggingConfig, TokenClassificationConfig

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
    """(header, text) of a folder's card, as the hub's library reads them."""
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
    assert r"bad: not \| good, good" in text and 'pipeline("text-classification", model=".")' in text
    assert f"{model.count_params():,}" in text and CARD.use in text


def test_the_command_may_name_a_file_that_is_not_named_in_utf_8(tmp_path):
    """A run ended in a traceback once it was trained, without its model."""
    card = ModelCard(command="python run.py finetune --train caf\udce9.csv")
    write_model_folder(tmp_path / "model", random_model(), VOCABULARY, lower_case=True, card=card)
    assert "--train caf\\udce9.csv" in read(tmp_path / "model")[1]


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


def test_names_of_labels_that_are_no_object_do_not_matter_without_a_head(tmp_path):
    """Nobody has read them before the card is written."""
    first, google = tmp_path / "first", tmp_path / "google"
    write_model_folder(first, random_model(), VOCABULARY, lower_case=True)
    config = first / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "id2label": ["no", "yes"]}))
    convert_folder(open_model_folder(first), "google", google, VOCABULARY)
    assert "| Labels |" not in read(str(google))[1]


def test_another_card_leaves_all_else(tmp_path, classifier):
    model, head = classifier
    one, other = str(tmp_path / "one"), str(tmp_path / "other")
    write_model_folder(one, model, VOCABULARY, lower_case=True, head=head, card=CARD)
    write_model_folder(other, model, VOCABULARY, lower_case=True, head=head)
    describe_folder(other, CARD)
    assert read(other) == read(one) and sorted(os.listdir(one)) == sorted(os.listdir(other))


WORDS = TokenClassificationConfig(("O", "B-PER", "I-PER"))
# {name: (head, what config.json says of the task, what the answer must be)}
HEADS = {
    "class": (ClassificationConfig(("bad", "good"), SINGLE_LABEL), {}, r"Classification\(label='(bad|good)'"),
    "class of a pair": (ClassificationConfig(("no", "yes"), SINGLE_LABEL), {"pair": True}, r"label='(no|yes)'"),
    "classes": (ClassificationConfig(("bad", "good"), MULTI_LABEL), {}, r"\[\{'bad': 0\.\d+, 'good': 0\.\d+\}\]"),
    "number": (ClassificationConfig(("score",), REGRESSION), {}, r"\[-?\d+\.\d+\]"),
    "next sentence": (NextSentenceConfig(), {}, r"label='(IsNext|NotNext)'"),
    "entities": (WORDS, {}, r"b'(O|[BI]-PER)'"),
    "parts of speech": (TokenClassificationConfig(("NOUN", "VERB")), {}, r"b'(NOUN|VERB)'"),
    "crf": (CrfTaggingConfig(("O", "B-PER")), {}, r"b'(O|B-PER)'"),
    "features": (FeatureTaggingConfig(("O", "B-X"), "last", 4), {}, r"b'(O|B-X)'"),
    "words": (SegmentationConfig(("B", "I")), {}, r"b't.*'"),
    "span": (SpanExtractionConfig(), {}, r"\[b'.+'\]"),
    "choice": (MultipleChoiceConfig(), {}, r"It had begun to rain\.|The soup was cold\."),
    "vectors": (SentenceVectorsConfig(("score",), REGRESSION), {}, r"\[\[.*\]\s+\[.*\]\]"),
    "two spans": (SpanPairConfig(("no", "yes")), {}, r"b'(no|yes)'"),
    "few-shot": (FewShotConfig(("bad", "good")), {}, r"Classification\(label='(bad|good)'"),
    "spans of two": (SpanPairConfig(("no", "yes"), reads_cls=False), {"pair": True}, r"b'(no|yes)'"),
}
WITHOUT_HEAD = {
    "masked": (tiny_config(), r"Paris is the .+ of France\."),
    "causal": (tiny_config(attention="causal", max_position_embeddings=64), "The city is"),
    "elmo": (ElmoConfig(vocab_size=60, hidden_size=16), r"\[\["),
}


def write_example(folder, name):
    """Writes a folder of that kind, of a model that can read the examples. Returns what it must answer."""
    if name in HEADS:
        head, task, answer = HEADS[name]
        model = kind_of_head(head).make_model(tiny_config(max_position_embeddings=64), head)
        write_model_folder(folder, model, VOCABULARY, lower_case=True, head=head, task=task)
    else:
        config, answer = WITHOUT_HEAD[name]
        write_model_folder(folder, BertForPreTraining(config), VOCABULARY, lower_case=True)
    return answer


def code(folder, where):
    """The block of Python of a section of a card."""
    with open(os.path.join(folder, "README.md"), encoding="utf-8") as stream:
        return re.search(rf"^## Use in {where}\n.*?^```python\n(.*?)^```", stream.read(), re.DOTALL | re.MULTILINE)[1]


QUICK = ("class", "class of a pair", "entities", "span", "masked")
EVERY = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in (*HEADS, *WITHOUT_HEAD)]


@pytest.mark.parametrize("name", EVERY)
def test_the_code_of_a_card_gives_the_answer_of_its_head(name, tmp_path, monkeypatch, capsys):
    """A reader who copies it would otherwise get vectors from a classifier, or an error."""
    answer = write_example(str(tmp_path), name)
    monkeypatch.chdir(tmp_path)
    exec(code(tmp_path, "keras_bert"), {})
    assert re.search(answer, capsys.readouterr().out)


def test_the_code_of_every_kind_is_tried():
    """Models with decoders are tried in test_seq2seq.py."""
    kinds = [kind for kind in task_kinds() if not kind.writes_texts]
    assert {type(head) for head, *_ in HEADS.values()} == {kind.head for kind in kinds}


# What transformers must print; for vectors, sentence-transformers.
OF_TRANSFORMERS = {
    "class": r"'label': '(bad|good)'",
    "class of a pair": r"'label': '(no|yes)'",
    "classes": r"'label': 'bad'.*'label': 'good'|'label': 'good'.*'label': 'bad'",
    "number": r"'score': -?\d+\.\d+",
    "next sentence": r"tensor\(\[\[0\.\d+",
    "entities": r"\[.*\]",
    "parts of speech": r"'entity': '(NOUN|VERB)'",
    "span": ".",
    "choice": HEADS["choice"][2],
    "masked": "'token_str': ",
    "causal": "'generated_text': 'The city is",
    "vectors": r"tensor\(\[\[1\.0",
}


@pytest.mark.live
def test_the_code_for_transformers_gives_the_same_kind_of_answer(tmp_path):
    """All of them in one process, which does not import TensorFlow."""
    program = ["import os"]
    for name in OF_TRANSFORMERS:
        folder = str(tmp_path / name)
        write_example(folder, name)
        where = "sentence-transformers" if name == "vectors" else "transformers"
        program += [f"os.chdir({folder!r})", code(folder, where), "print('----')"]
    ran = subprocess.run([sys.executable, "-c", "\n".join(program)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    for printed, expected in zip(ran.stdout.split("----"), OF_TRANSFORMERS.values()):
        assert re.search(expected, printed, re.DOTALL), expected
