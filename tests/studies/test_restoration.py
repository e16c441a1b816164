"""What a corruption has destroyed, and what a model restores of it."""

import numpy as np
import pytest
import tensorflow as tf
from corpus import write_corpus
from pretraining import MODEL, recipe

from keras_bert.config.corruption import CorruptionConfig
from keras_bert.config.objectives import MaskingConfig
from keras_bert.data.batches.corruption.corruption import Corruption
from keras_bert.studies.restoration import LOST, MOVED, NATS, destroyed_by, restoration
from keras_bert.tasks.pretraining.run import pretrain
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from keras_bert.training.run_folder import RunFolder

VOCABULARY = Vocabulary([*SPECIAL_TOKENS, "[unused0]", "[unused1]", "[unused2]", ".", "a", "b", "c"])
SIZE, WIDTH, LENGTHS = len(VOCABULARY), 20, np.array([20, 13, 20], "int32")


def corrupted(kinds, marks=0):
    """Three rows with four words, most of which occur more than once, corrupted."""
    corrupt = Corruption(CorruptionConfig(kinds), MaskingConfig(), VOCABULARY, seed=3, decoder_start=VOCABULARY.sep_id)
    rows = np.random.default_rng(0).integers(SIZE - 4, SIZE, (3, WIDTH)).astype("int32")
    made = corrupt(tf.constant(rows + marks), tf.constant(LENGTHS), tf.range(3, dtype=tf.int64))
    return {name: value.numpy() for name, value in made.items()}


def marked(kinds):
    made = corrupted(kinds, SIZE * np.arange(1, WIDTH + 1, dtype="int32"))
    return made, destroyed_by(made["input_word_ids"], made["target_ids"], SIZE)


@pytest.mark.parametrize(
    "kinds",
    [["masking"], ["infilling", "sentences"], ["sentences", "deletion"], ["rotation"], ["fragment"], ["sentinels"]],
)
def test_tokens_are_told_apart_without_changing_the_corruption(kinds):
    """Otherwise what counts as lost would not be what was hidden from the model."""
    plain, (made, _) = corrupted(kinds), marked(kinds)
    for name in ("input_word_ids", "decoder_input_ids", "target_ids"):
        np.testing.assert_array_equal(made[name] % SIZE, plain[name])


def test_what_is_lost_and_what_is_moved():
    texts = LENGTHS.sum() - 2 * len(LENGTHS)
    for kinds, lost in (
        (["masking"], 0.15),
        (["deletion"], 0.15),
        (["infilling"], 0.3),
        (["infilling", "sentences"], 0.3),
    ):
        destroyed = marked(kinds)[1]
        assert abs(destroyed.lost.sum() - lost * texts) <= 2, kinds
        assert (destroyed.moved.sum() > 0) == ("sentences" in kinds)
    plain, destroyed = corrupted(["masking"]), marked(["masking"])[1]
    np.testing.assert_array_equal(destroyed.lost, plain["input_word_ids"] != plain["target_ids"])
    made, destroyed = marked(["sentinels"])
    np.testing.assert_array_equal(destroyed.lost, made["target_ids"] >= SIZE)  # All but the sentinels and the end.


def test_a_text_that_begins_elsewhere_has_two_breaks():
    """Copying goes wrong at its first token, and where the moved part ends."""
    made, destroyed = marked(["rotation"])
    assert not destroyed.lost.any()
    is_rotated = (made["input_word_ids"] != made["target_ids"]).any(axis=1)
    np.testing.assert_array_equal(destroyed.moved.sum(axis=1), 2 * is_rotated)
    assert is_rotated.any() and destroyed.moved[is_rotated, 1].all()


DECODED = {
    "model": {**MODEL, "model_type": "t5", "head_size": 16},
    "objective.tokens": "decoded",
    "objective.pair": "none",
    "objective.packing": "document",
    "objective.corruption.kinds": ["infilling", "sentences"],
}


@pytest.mark.slow
@pytest.mark.parametrize(("changes", "figures"), [({}, {LOST, NATS}), (DECODED, {LOST, NATS, MOVED})])
def test_a_run_is_measured_on_its_own_held_out_rows(tmp_path, changes, figures):
    run = RunFolder(str(tmp_path / "run"))
    results = pretrain(recipe(write_corpus(tmp_path / "text.txt"), **{"training.steps": 12}, **changes), run)
    found = restoration(run.path)
    assert found.keys() == figures and 0 <= found[LOST] <= 1
    # A BERT's count includes replaced tokens; a decoder's has fewer than all tokens, and harder ones.
    loss = results.get("eval_mask_token_loss", results.get("eval_text_token_loss"))
    assert found[NATS] == pytest.approx(loss, abs=0.5)
