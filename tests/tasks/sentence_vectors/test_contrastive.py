"""Sentence vectors by in-batch negatives: the loss against NumPy, and a run from pairs to an export."""

import json
import os
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from command_line import output_of
from finetuning import write_tiny_bert
from glue_folder import write_glue
from huggingface_hub import metadata_load
from rows_of_texts import sequence_rows
from scipy.special import log_softmax
from scipy.stats import spearmanr
from served import write_served

import keras_bert
from keras_bert.checkpoints.sentence_transformers import POOLING_CONFIG, vector_files
from keras_bert.checkpoints.writing import convert_folder
from keras_bert.config.finetuning import FinetuneConfig, InputConfig, TaskDataConfig
from keras_bert.core.errors import UserError
from keras_bert.export.serving_function import serving_function
from keras_bert.layers.pooling import mean_vectors
from keras_bert.tasks.classification.answers import plain_answers, submission_lines
from keras_bert.tasks.finetuned_model import FinetunedModel, finetune_config
from keras_bert.tasks.finetuning.runs import FinetuningRuns
from keras_bert.tasks.problem import open_problem
from keras_bert.tasks.sentence_vectors.network import BertForSentenceVectors, ContrastiveObjective
from keras_bert.tasks.sentence_vectors.task import SentenceVectorsConfig, judging_table
from keras_bert.tasks.task import INPUT


def test_the_loss_is_the_cross_entropy_of_the_partner_in_both_directions():
    """A pair of weight 0 serves as a negative but has no loss; a copy of a text is no negative of its partner."""
    rng = np.random.default_rng(0)
    anchors, positives = rng.normal(size=(2, 5, 8)).astype("float32")
    ids = rng.integers(1, 50, (5, 2, 4)).astype("int32")
    ids[3, 1] = ids[1, 1]  # The second text of pair 3 is also that of pair 1.
    weights = np.array([1, 1, 0, 1, 1], "float32")
    similarities = anchors @ positives.T
    to_second, to_first = similarities.copy(), similarities.T.copy()
    to_second[3, 1] = to_second[1, 3] = -np.inf
    losses = [-np.diag(log_softmax(each, axis=1)) for each in (to_second, to_first)]
    hits = [each.argmax(axis=1) == np.arange(5) for each in (to_second, to_first)]
    batch = {"input_word_ids": ids, "example_weights": weights}
    sums = ContrastiveObjective().sums({"anchors": anchors, "positives": positives}, batch)
    np.testing.assert_allclose(sums["loss"]["loss"], np.mean(losses, axis=0) @ weights, rtol=1e-5)
    np.testing.assert_allclose(sums["accuracy"]["accuracy"], np.mean(hits, axis=0) @ weights, rtol=1e-6)
    assert float(ContrastiveObjective().counts(batch)["loss"]) == 4


def test_hard_negatives_are_candidates_for_every_first_text_and_for_no_second_one():
    """As in sentence-transformers: `[positives; negatives]` in one direction, the first texts alone in the other."""
    rng = np.random.default_rng(1)
    anchors, positives = rng.normal(size=(2, 4, 8)).astype("float32")
    negatives = rng.normal(size=(4, 2, 8)).astype("float32")
    ids = rng.integers(1, 50, (4, 4, 3)).astype("int32")
    ids[2, 3] = ids[0, 1]  # The second negative of pair 2 is the partner of pair 0.
    to_second = anchors @ np.concatenate([positives, negatives.reshape(8, 8)]).T
    to_second[0, 4 + 2 * 2 + 1] = -np.inf
    losses = [-np.diag(log_softmax(each, axis=1)) for each in (to_second, positives @ anchors.T)]
    outputs = {"anchors": anchors, "positives": positives, "negatives": negatives}
    sums = ContrastiveObjective().sums(outputs, {"input_word_ids": ids, "example_weights": np.ones(4, "float32")})
    np.testing.assert_allclose(sums["loss"]["loss"], np.mean(losses, axis=0).sum(), rtol=1e-5)


def topic(rng, number):
    """A text about one of ten topics, each with four words of its own, among words that belong to none."""
    own = [f"w{4 * number + place}" for place in rng.permutation(4)[:2]]
    return " ".join(rng.permutation([*own, *(f"w{40 + other}" for other in rng.integers(0, 9, 3))]))


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Pairs of one topic to train on, without scores; pairs of one topic and of two to evaluate on, with scores."""
    folder, rng = tmp_path_factory.mktemp("pairs"), np.random.default_rng(0)
    train = [(topic(rng, number % 10), topic(rng, number % 10)) for number in range(400)]
    dev = [(number % 10, (number % 10 + number % 2 * (1 + number % 7)) % 10) for number in range(80)]
    with open(folder / "train.jsonl", "w") as stream:
        stream.writelines(json.dumps({"first": first, "second": second}) + "\n" for first, second in train)
    with open(folder / "dev.jsonl", "w") as stream:
        for one, other in dev:
            row = {"first": topic(rng, one), "second": topic(rng, other), "score": 5.0 * (one == other)}
            stream.write(json.dumps(row) + "\n")
    return folder


@pytest.fixture(scope="module")
def run(tables, tmp_path_factory):
    """(the run folder, its results, the untrained model's folder)."""
    folder = tmp_path_factory.mktemp("run")
    init = write_tiny_bert(folder / "bert")
    config = FinetuneConfig.from_mapping(
        {
            "task": "pairs-contrastive",
            "init": init,
            "data": {
                "train": str(tables / "train.jsonl"),
                "dev": str(tables / "dev.jsonl"),
                "texts": ["first", "second"],
            },
            "optimizer": {"learning_rate": 1e-2},
            "input": {"max_length": 16},
            "training": {"batch_size": 20, "epochs": 6.0},
        }
    )
    return str(folder / "run"), FinetuningRuns(config).one(str(folder / "run")), init


@pytest.mark.slow
def test_a_run_takes_columns_of_hard_negatives(run, tables, tmp_path):
    """The third column is read and counts; the pairs to evaluate on need only the first two."""
    with open(tables / "train.jsonl") as stream:
        rows = [json.loads(line) for line in stream][:40]
    losses = []
    for hard in ("w1 w2", "w40 w41"):
        path = tmp_path / "triples.jsonl"
        path.write_text("".join(json.dumps({**row, "hard": f"{hard} {row['second']}"}) + "\n" for row in rows))
        config = FinetuneConfig.from_mapping(
            {
                "task": "pairs-contrastive",
                "init": run[2],
                "data": {"train": str(path), "dev": str(tables / "dev.jsonl"), "texts": ["first", "second", "hard"]},
                "input": {"max_length": 16},
                "training": {"batch_size": 20, "epochs": 1.0},
            }
        )
        folder = str(tmp_path / hard.replace(" ", "-"))
        assert "spearman" in FinetuningRuns(config).one(folder)["splits"]["dev"]
        losses.append(FinetunedModel(folder).evaluate.answers("train")[1]["loss"])
    assert losses[0] != losses[1]
    assert keras_bert.load(folder).folder.reading.pair is False


def pairs(tables):
    with open(tables / "dev.jsonl") as stream:
        return [json.loads(line) for line in stream]


def correlation(bert, rows):
    """Spearman's correlation of the cosines of `encode` with the scores."""
    first, second = (bert.encode([row[name] for row in rows]) for name in ("first", "second"))
    norms = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return spearmanr((first * second).sum(axis=1) / norms, [row["score"] for row in rows]).statistic


@pytest.mark.slow
def test_vectors_become_useful_and_are_judged_by_their_cosines(run, tables):
    """Judged by the vectors of `embed`, which need nothing of the head; the score is Spearman's of their cosines."""
    folder, results, init = run
    rows, bert = pairs(tables), keras_bert.load(folder)
    before, after = correlation(keras_bert.load(init), rows), correlation(bert, rows)
    assert after > 0.6 and after > before + 0.2
    assert results["splits"]["dev"]["spearman"] == pytest.approx(after, abs=1e-3)
    assert isinstance(bert.model, BertForSentenceVectors) and not bert.report.made_new
    assert float(bert.model.similarity.log_scale.numpy()[0]) != pytest.approx(np.log(20.0), abs=1e-4)
    assert FinetunedModel(folder).evaluate("dev")["spearman"] == pytest.approx(after, abs=1e-3)


def test_the_export_gives_vectors_of_length_one(run, tables):
    bert = keras_bert.load(run[0])
    function = serving_function(bert)
    texts = [row["first"] for row in pairs(tables)[:8]]
    vectors = function(texts)["vectors"]
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(vectors, bert.encode(texts), atol=1e-5)


def test_a_run_is_written_for_sentence_transformers_too(run):
    """The written length is that of training, or longer texts would have other vectors there."""
    folder = os.path.join(run[0], "model")
    with open(os.path.join(folder, "sentence_bert_config.json")) as stream:
        assert json.load(stream) == {"max_seq_length": 16, "do_lower_case": False}
    with open(os.path.join(folder, "modules.json")) as stream:
        assert [module["path"] for module in json.load(stream)] == ["", "1_Pooling", "2_Normalize"]
    header, text = metadata_load(os.path.join(folder, "README.md")), open(os.path.join(folder, "README.md")).read()
    assert header["library_name"] == "sentence-transformers" and header["pipeline_tag"] == "sentence-similarity"
    assert "## Use in sentence-transformers" in text and 'SentenceTransformer(".")' in text
    opened = keras_bert.open_model_folder(folder)
    convert_folder(opened, "huggingface", f"{run[0]}-copy", opened.vocabulary)
    assert sorted(os.listdir(folder)) == sorted(os.listdir(f"{run[0]}-copy"))


def test_a_model_whose_vectors_are_no_means_is_refused(run, tables, tmp_path):
    """Training would judge and export it by means, for which it was not made."""
    init = shutil.copytree(run[2], tmp_path / "bert")
    for name, content in {**vector_files(16, 16), POOLING_CONFIG: {"pooling_mode": "cls"}}.items():
        (init / name).parent.mkdir(exist_ok=True)
        (init / name).write_text(json.dumps(content))
    data = {"train": str(tables / "train.jsonl"), "dev": str(tables / "dev.jsonl"), "texts": ["first", "second"]}
    config = FinetuneConfig.from_mapping(
        {"task": "pairs-contrastive", "init": str(init), "input": {"max_length": 16}, "data": data}
    )
    with pytest.raises(UserError, match="which pairs-contrastive trains. Received: the pooling cls."):
        FinetuningRuns(config)


def test_predict_answers_pairs_with_their_cosines(run, tables, tmp_path):
    bert, rows = keras_bert.load(run[0]), pairs(tables)[:5]
    (tmp_path / "pairs.txt").write_text("".join(f"{row['first']}\t{row['second']}\n" for row in rows))
    output_of("predict", "--model", run[0], "--input", tmp_path / "pairs.txt", "--output", tmp_path / "a.jsonl")
    answers = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    first, second = (serving_function(bert)([row[name] for row in rows])["vectors"] for name in ("first", "second"))
    np.testing.assert_allclose([answer["score"] for answer in answers], (first * second).sum(axis=1), atol=1e-4)


def test_bad_data_is_refused(run, tables):
    base = {"task": "pairs-contrastive", "init": run[2], "input": {"max_length": 16}}
    own = {"train": str(tables / "train.jsonl"), "dev": str(tables / "dev.jsonl")}
    for data, message in (
        (own, "needs the names of two columns"),
        (
            {**own, "train": own["dev"], "texts": ["first", "second"], "label": "score", "positive": 6.0},
            "needs at least one positive pair",
        ),
    ):
        config = FinetuneConfig.from_mapping({**base, "data": data})
        with pytest.raises(UserError, match=message):
            FinetuningRuns(config).one(str(tables / "refused"))


@pytest.mark.parametrize(
    "chosen", [{"texts": ["first", "second"]}, {"label": "score"}, {"format": "csv"}, {"columns": ["first", "second"]}]
)
def test_columns_without_a_table_of_ones_own_are_refused(chosen):
    """Otherwise the columns would be ignored: a run would train and be judged on STS-B's own."""
    config = FinetuneConfig.from_mapping({"task": "pairs-contrastive", "data": {"folder": "glue", **chosen}})
    with pytest.raises(UserError, match="need a table of your own, --train or --dev, .* Received: none"):
        open_problem(config, None)


def test_columns_to_score_a_trained_model_by_need_a_table_too(tmp_path):
    """Otherwise STS-B's would be read instead."""
    path = write_served(tmp_path / "model", "single", SentenceVectorsConfig(("score",)), task="pairs-contrastive")
    write_glue(tmp_path / "glue")
    model = FinetunedModel(path, {"folder": str(tmp_path / "glue"), "texts": ["first", "second"]})
    with pytest.raises(UserError, match="--text, --label, --format: need a table of your own, as --dev. Received"):
        model.splits("dev")


@pytest.mark.parametrize("loss", ["triplet", "cosine"])
def test_pairs_of_other_columns_than_those_to_train_on_are_scored(loss, tables):
    """A trained model must not be refused as if it were to be trained on these columns."""
    data = {"train": "triples.jsonl", "dev": str(tables / "dev.jsonl"), "texts": ["first", "second"]}
    config = FinetuneConfig.from_mapping({"task": "pairs-contrastive", "data": data, "vectors": {"loss": loss}})
    problem = open_problem(config, None, SentenceVectorsConfig(("score",)))
    [window] = problem.windows("dev", labelled=True)
    assert window.texts[0] == [row["first"] for row in pairs(tables)] and len(window.labels) == 80


@pytest.mark.parametrize("loss, own_dev", [("in-batch", False), ("cosine", True)])
def test_a_column_of_scores_that_is_named_must_be_there(loss, own_dev, tables):
    """All pairs would be trained on as if they meant the same, or be said to lack labels to evaluate on."""
    data = {"train": str(tables / "train.jsonl"), "texts": ["first", "second"], "label": "scores"}
    data |= {"dev": str(tables / "dev.jsonl")} if own_dev else {}
    config = FinetuneConfig.from_mapping({"task": "pairs-contrastive", "data": data, "vectors": {"loss": loss}})
    with pytest.raises(UserError, match="train.jsonl line 1: needs .*'scores'"):
        list(open_problem(config, None).windows("train", labelled=True))


def test_a_column_of_scores_may_be_that_of_the_pairs_to_evaluate_on_alone(tables):
    data = {"train": str(tables / "train.jsonl"), "dev": str(tables / "dev.jsonl"), "texts": ["first", "second"]}
    config = FinetuneConfig.from_mapping({"task": "pairs-contrastive", "data": {**data, "label": "score"}})
    [window] = open_problem(config, None).windows("train", labelled=True)
    assert len(window) == 400 and window.labels is None


def test_the_pairs_to_train_on_can_be_answered_too(tables, tmp_path):
    """`predict --split train` ended in a traceback: they are none of the splits of the pairs that judge."""
    data = {"train": str(tables / "train.jsonl"), "dev": str(tables / "dev.jsonl"), "texts": ["first", "second"]}
    problem = open_problem(FinetuneConfig.from_mapping({"task": "pairs-contrastive", "data": data}), None)
    assert problem.output_kind("train") == "file"
    [window] = problem.windows("train")
    with problem.writing("train", str(tmp_path / "cosines.jsonl")) as write:
        write(window, np.zeros((len(window), 1)))
    first = json.loads((tmp_path / "cosines.jsonl").read_text().splitlines()[0])
    assert first == {"first": window.texts[0][0], "second": window.texts[1][0], "score": 0.0}


def test_a_file_of_pairs_to_test_on_is_a_split(tables):
    """Otherwise the file would never be read."""
    path = str(tables / "dev.jsonl")
    data = {"train": "train.jsonl", "dev": path, "test": path, "texts": ["first", "second"]}
    problem = open_problem(FinetuneConfig.from_mapping({"task": "pairs-contrastive", "data": data}), None)
    assert problem.splits == ("train", "dev", "test")
    [window] = problem.windows("test")
    assert window.texts[1] == [row["second"] for row in pairs(tables)]


def test_one_column_of_a_file_to_compare_is_refused(tables):
    """Otherwise columns with STS-B's names would be read instead."""
    with pytest.raises(UserError, match="needs the names of two columns, .* Received: first"):
        judging_table(TaskDataConfig(texts=["first"]), {INPUT: str(tables / "dev.jsonl")})
    folder = SimpleNamespace(task={"task": "pairs-contrastive"}, other_fields={}, path="absent")
    with pytest.raises(UserError, match="needs the names of two columns, one for each text. Received: text."):
        finetune_config("absent", folder, {"texts": ["text"]})


def test_cosines_are_not_clipped_to_the_scores_of_the_pairs_that_judge(tables):
    """STS-B's scores are from 0 to 5: every negative cosine would be 0, in an answer or in a submission."""
    asked, _ = judging_table(TaskDataConfig(), {INPUT: str(tables / "dev.jsonl")})
    head = SentenceVectorsConfig(("score",))
    assert [row["score"] for row in plain_answers(head, np.array([[-0.5]]))] == [-0.5]
    assert list(submission_lines(asked, [7], [-0.5])) == ["7\t-0.500\n"]


def test_the_export_reads_long_texts_as_in_training(tmp_path):
    """Training reads a long text's head and tail; the export must not read the head alone."""
    path = write_served(
        tmp_path / "model", "single", SentenceVectorsConfig(("score",)), max_length=12, long="head_tail"
    )
    bert, texts = keras_bert.load(path), ["the cat", "cat " * 20 + "the sat " * 20]
    rows, _ = sequence_rows([texts], bert.tokenizer, InputConfig(max_length=12, long="head_tail"))
    ids = np.split(rows.ids, rows.starts[1:-1])
    expected = [mean_vectors(*states_of(bert.model, row)) for row in ids]
    np.testing.assert_allclose(serving_function(bert)(texts)["vectors"], np.concatenate(expected), atol=1e-5)


def states_of(model, ids):
    """The last states of one row, and the row's mask."""
    mask = np.ones((1, len(ids)), "int32")
    inputs = {"input_word_ids": np.array([ids], "int32"), "input_mask": mask, "input_type_ids": 0 * mask}
    return model.encoder(inputs)["sequence_output"], mask
