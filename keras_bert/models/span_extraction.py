"""The model that finds an answer in a passage: the scores of its start and of its end at every token."""

import keras

from keras_bert.models.encoder_with_heads import EncoderWithHeads


@keras.saving.register_keras_serializable(package="keras_bert")
class BertForQuestionAnswering(EncoderWithHeads):
    """Each token's last state under a dense layer of two outputs (paper, section 4.2; run_squad.py, `create_model`).

    Args:
        config: a `BertConfig`.

    Call arguments:
        inputs: the encoder's dict.

    Returns a dict: `start_logits` and `end_logits`, each [batch, seq], float32, of padding too.
    """

    def __init__(self, config, **kwargs):
        super().__init__(config, with_pooler=False, **kwargs)
        # The original drops nothing here.
        self.qa_outputs = self.make_classifier(2, "qa_outputs", dropout_prob=0.0)
        self.build()

    def call(self, inputs, training=False):
        states = self.encoder(inputs, training=training)["sequence_output"]
        logits = self.qa_outputs(states, training=training)
        return {"start_logits": logits[..., 0], "end_logits": logits[..., 1]}
