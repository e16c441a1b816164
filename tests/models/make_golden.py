"""Writes golden_encoder.npz: transformers' outputs for the tests that must hold where it is absent.

    python tests/models/make_golden.py

The weights and the batch are made from fixed seeds by tests/support/tiny.py and are not stored.
"""

import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", "support"), os.getcwd()]

import numpy as np
import torch
import transformers
from tiny import pretraining_batch, random_weights, without_dropout

from keras_bert.models.pretraining import BertForPreTraining

GOLDEN = os.path.join(os.path.dirname(__file__), "golden_encoder.npz")


def main():
    config = without_dropout()
    tensors = random_weights(BertForPreTraining(config))
    model = transformers.BertForPreTraining(transformers.BertConfig(**vars(config))).eval()
    state = {name: torch.tensor(np.ascontiguousarray(value)) for name, value in tensors.items()}
    model.load_state_dict(state, strict=False)
    model.tie_weights()
    batch = pretraining_batch(config)
    inputs = {"input_ids": "input_word_ids", "attention_mask": "input_mask", "token_type_ids": "input_type_ids"}
    with torch.no_grad():
        outputs = model(
            **{theirs: torch.tensor(batch[ours]).long() for theirs, ours in inputs.items()}, output_hidden_states=True
        )
        pooled = model.bert(
            **{theirs: torch.tensor(batch[ours]).long() for theirs, ours in inputs.items()}
        ).pooler_output
    np.savez_compressed(
        GOLDEN,
        hidden_states=torch.stack(outputs.hidden_states).numpy(),
        pooled_output=pooled.numpy(),
        mlm_logits=outputs.prediction_logits.numpy(),
        nsp_logits=outputs.seq_relationship_logits.numpy(),
    )


if __name__ == "__main__":
    main()
