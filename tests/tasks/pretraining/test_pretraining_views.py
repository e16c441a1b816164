"""What TensorBoard is given besides figures."""

import os

import numpy as np
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.projector import projector_plugin
from tensorflow.tsl.profiler.protobuf import xplane_pb2
from tiny import pretraining_batch, random_weights, without_dropout

from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.tasks.pretraining.views import fillings_panel, write_embeddings
from keras_bert.text.vocabulary import Vocabulary
from keras_bert.training.profiling import PROFILED_STEPS, profiled

VOCABULARY = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a|b", "##s", *(f"w{i}" for i in range(53))])


def test_the_panel_shows_the_models_own_best_at_the_mask():
    model = BertForPreTraining(without_dropout())
    random_weights(model)
    batch = pretraining_batch(model.config)
    for row, position in enumerate(batch["masked_lm_positions"][:, 0]):
        batch["input_word_ids"][row, position] = VOCABULARY.mask_id
    batch["masked_lm_ids"][:, 0] = 5
    header, *table = fillings_panel(model, VOCABULARY, batch)
    assert len(header) == 3 and len(table) == 4
    logits = model({key: value for key, value in batch.items() if key != "masked_lm_positions"})["mlm_logits"].numpy()
    for row, (text, stood_there, fillings) in enumerate(table):
        best = np.argsort(-logits[row, batch["masked_lm_positions"][row, 0]])[:5]
        shown = [filling.rsplit(" ", 1)[0] for filling in fillings.split(" · ")]
        assert [filling.replace("\\", "") for filling in shown] == [VOCABULARY.tokens[index] for index in best]
        assert text.count("**\\[MASK\\]**") == 1 and stood_there == "a\\|b"


def test_rows_without_a_mask_are_left_out():
    model = BertForPreTraining(without_dropout())
    batch = pretraining_batch(model.config)
    batch["input_word_ids"][batch["input_word_ids"] == VOCABULARY.mask_id] = 9
    assert len(fillings_panel(model, VOCABULARY, batch)) == 1


def test_tensorboard_reads_the_embeddings(tmp_path):
    """Read with the projector plugin's own reader; neither a line break nor a blank label may shift the others."""
    table = np.arange(12, dtype="float32").reshape(4, 3)
    write_embeddings(str(tmp_path), "words", table, ["a", "\u2028", "c\td", "e\n"])
    path = projector_plugin._rel_to_abs_asset_path("words.bytes", str(tmp_path / "projector_config.pbtxt"))
    np.testing.assert_array_equal(projector_plugin._read_tensor_binary_file(path, table.shape), table)
    assert (tmp_path / "words_labels.tsv").read_text(encoding="utf-8").split("\n") == ["a", r"'\u2028'", "c d", "e", ""]
    assert "tensor_shape: 4" in (tmp_path / "projector_config.pbtxt").read_text()


def test_a_trace_is_written_of_the_steps_asked_for(tmp_path):
    folder = str(tmp_path)
    seen = []
    for number in profiled((number for number in range(12)), 100, 104, folder):
        tf.matmul(tf.ones([8, 8]), tf.ones([8, 8]))
        seen.append((number, bool(tf.io.gfile.glob(os.path.join(folder, "plugins/profile/*/*.xplane.pb")))))
    assert seen == [(number, number >= 4 + PROFILED_STEPS) for number in range(12)]
    (trace,) = tf.io.gfile.glob(os.path.join(folder, "plugins/profile/*/*.xplane.pb"))
    steps = _marked_steps(trace)
    assert steps == list(range(104, 104 + PROFILED_STEPS)), "the overview page shows no steps without these marks"


def _marked_steps(trace):
    """The numbers of the steps that a profiler's trace marks."""
    space = xplane_pb2.XSpace.FromString(tf.io.gfile.GFile(trace, "rb").read())
    found = []
    for plane in space.planes:
        names = {number: stat.name for number, stat in plane.stat_metadata.items()}
        for event in (event for line in plane.lines for event in line.events):
            if plane.event_metadata[event.metadata_id].name == "train":
                found += [stat.int64_value for stat in event.stats if names[stat.metadata_id] == "step_num"]
    return sorted(found)


def test_the_panel_reaches_the_text_page(tmp_path):
    from keras_bert.training.metrics_log import MetricsLog
    from keras_bert.training.run_folder import RunFolder
    from keras_bert.training.run_loggers import TensorBoardLogger

    run = RunFolder(str(tmp_path))
    log = MetricsLog(run, 0, [TensorBoardLogger(run)])
    log.table(3, "fillings", [["text", "stood there"], ["a", "b"]])
    log.close()
    events = EventAccumulator(os.path.join(run.tensorboard, "validation")).Reload()
    (event,) = events.Tensors("fillings")
    assert event.step == 3 and b"stood there" in tf.make_ndarray(event.tensor_proto).ravel()
