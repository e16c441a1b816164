"""The answers of transformers' `generate`, for a model that is a table of logits and for BART. See `__main__.py`.

python tools/goldens/of_decoding.py make FOLDER  needs of_encoder_decoders.py's BART in the folder
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import arrays
import numpy as np
import torch
import transformers

ROWS, VOCAB, MOST = 24, 11, 10
BARTS, T5S = (2, 2, 1), (0, 1, 0)  # Start, end and padding.
CASES = [
    {"tokens": BARTS, **case}
    for case in (
        {},
        {"no_repeat_ngram": 2},
        {"no_repeat_ngram": 3, "min_tokens": 5},
        {"first_token": 0, "last_token": 2, "no_repeat_ngram": 1, "max_tokens": 9},
        {"beams": 2},
        {"beams": 2, "length_penalty": 2.0, "early_stopping": "never", "n_best": 2},
        {"beams": 2, "length_penalty": 0.0, "early_stopping": "never"},
        {"beams": 4, "n_best": 3},
        {"beams": 4, "n_best": 4, "length_penalty": 0.5, "early_stopping": True},
        {"beams": 4, "n_best": 2, "length_penalty": 2.0, "early_stopping": "never"},
        {"beams": 4, "n_best": 4, "length_penalty": -1.0},
        {"beams": 4, "length_penalty": 2.0, "early_stopping": True, "no_repeat_ngram": 3, "min_tokens": 6},
        {"beams": 4, "n_best": 2, "no_repeat_ngram": 2, "first_token": 3, "last_token": 1},
        {"beams": 3, "max_tokens": 1, "first_token": 0},
        {"beams": 3, "n_best": 3, "max_tokens": 3, "min_tokens": 3, "early_stopping": "never", "length_penalty": -0.5},
    )
] + [
    {"tokens": T5S, "min_tokens": 2},
    {"tokens": T5S, "beams": 4, "n_best": 4, "early_stopping": True, "length_penalty": 2.0, "no_repeat_ngram": 3},
    {"tokens": T5S, "beams": 5, "n_best": 5, "length_penalty": 1.5, "no_repeat_ngram": 1, "max_tokens": 8},
]
# Nothing may occur twice, or this BART says one word again and again; 267 is one that it says soon.
BART_CASES = [
    {"tokens": BARTS, "no_repeat_ngram": 2, "last_token": 2},
    {
        "tokens": (2, 267, 1),
        "beams": 4,
        "n_best": 2,
        "length_penalty": 0.5,
        "no_repeat_ngram": 1,
        "first_token": 0,
        "last_token": 2,
    },
]
_NAMES = {
    "max_tokens": "max_new_tokens",
    "min_tokens": "min_new_tokens",
    "beams": "num_beams",
    "n_best": "num_return_sequences",
    "no_repeat_ngram": "no_repeat_ngram_size",
    "first_token": "forced_bos_token_id",
    "last_token": "forced_eos_token_id",
}


class TableConfig(transformers.PretrainedConfig):
    model_type = "table"


class Table(transformers.PreTrainedModel, transformers.GenerationMixin):
    """Its logits are a sum for the row, the place and the two tokens before. The first token precedes itself.

    Args:
        of_tokens: [vocab, vocab, vocab], for the token before the last, the last and the next.
        of_rows: [rows, vocab].
        of_places: [places, vocab]. Without them, answers with the same pairs of tokens would have the same score.
    """

    config_class = TableConfig

    def __init__(self, of_tokens: np.ndarray, of_rows: np.ndarray, of_places: np.ndarray) -> None:
        super().__init__(TableConfig(vocab_size=VOCAB, num_hidden_layers=1))
        tables = (of_tokens, of_rows, of_places)
        self.of_tokens, self.of_rows, self.of_places = (torch.nn.Parameter(torch.tensor(table)) for table in tables)

    def forward(self, input_ids: torch.Tensor, row: torch.Tensor, **kwargs: Any) -> transformers.utils.ModelOutput:
        before = torch.cat([input_ids[:, :1], input_ids[:, :-1]], dim=1)
        logits = self.of_tokens[before, input_ids] + self.of_rows[row][:, None] + self.of_places[: input_ids.shape[1]]
        return transformers.modeling_outputs.CausalLMOutput(logits=logits)

    def prepare_inputs_for_generation(
        self, input_ids: torch.Tensor, row: torch.Tensor, **kwargs: Any
    ) -> dict[str, Any]:
        return {"input_ids": input_ids, "row": row}


def make(folder: str) -> None:
    """Writes decoding.npz: the tables and the answers for CASES, and under `bart` those for BART_CASES."""
    rng = np.random.default_rng(0)
    shapes = {"of_tokens": (VOCAB, VOCAB, VOCAB), "of_rows": (ROWS, VOCAB), "of_places": (MOST, VOCAB)}
    tables = {name: rng.normal(0, 1, shape).astype("float32") for name, shape in shapes.items()}
    tables["of_rows"][:, [BARTS[1], T5S[1]]] += 0.7  # Answers of many lengths.
    starts = torch.zeros((ROWS, 1), dtype=torch.int64)
    of_table = answers(
        Table(**tables).eval(), CASES, lambda start: {"input_ids": starts + start, "row": torch.arange(ROWS)}
    )
    bart = os.path.join(folder, "encoder_decoders", "bart")
    golden = arrays.load(os.path.join(bart, "golden.npz"))
    read = {name: torch.tensor(golden[f"inputs/{name}"]).long() for name in ("input_ids", "attention_mask")}
    model = transformers.BartForConditionalGeneration.from_pretrained(bart).eval()
    of_bart = answers(model, BART_CASES, lambda start: {**read, "decoder_start_token_id": start})
    of_bart = {f"bart/{name}": value for name, value in of_bart.items()}
    arrays.save(os.path.join(folder, "decoding.npz"), ["transformers", "torch"], {**tables, **of_table, **of_bart})


def answers(
    model: transformers.GenerationMixin, cases: list[dict[str, Any]], inputs_of: Callable[[int], dict[str, Any]]
) -> dict[str, np.ndarray]:
    """The cases as JSON, and `{number/ids, lengths or scores: array}` of each.

    Args:
        inputs_of: what `generate` takes, for the token that rows start with.
    """
    found = {"cases": np.array([json.dumps(case) for case in cases])}
    for number, case in enumerate(cases):
        settings = {"max_tokens": MOST, "beams": 1, **case}
        special = settings.pop("tokens")
        of_case = answers_of(model, settings, special, inputs_of(special[0]))
        found.update({f"{number}/{name}": value for name, value in of_case.items()})
    return found


def answers_of(
    model: transformers.GenerationMixin, settings: dict[str, Any], special: tuple[int, ...], inputs: dict[str, Any]
) -> dict[str, np.ndarray]:
    """The ids without the token that rows start with, padded after the end, their lengths and their scores."""
    start, end, padding = special
    asked = {_NAMES.get(name, name): value for name, value in settings.items()}
    if settings["beams"] == 1:
        asked.update(early_stopping=None, length_penalty=None)
    given = model.generate(
        **inputs,
        **asked,
        bos_token_id=start,
        eos_token_id=end,
        pad_token_id=padding,
        do_sample=False,
        use_cache=not isinstance(model, Table),
        return_dict_in_generate=True,
        output_scores=True,
        output_logits=True,
    )
    most = settings["max_tokens"]
    ids = np.full((len(given.sequences), most), padding, np.int32)
    lengths = np.zeros(len(ids), np.int32)
    for row, answer in enumerate(given.sequences[:, 1:].tolist()):
        lengths[row] = answer.index(end) + 1 if end in answer else len(answer)
        ids[row, : lengths[row]] = answer[: lengths[row]]
    if settings["beams"] > 1:
        return {"ids": ids, "lengths": lengths, "scores": given.sequences_scores.numpy()}
    forced = {0} if "first_token" in settings else set()
    forced |= {most - 1} if "last_token" in settings else set()
    scores = np.zeros(len(ids), np.float32)
    for place, logits in enumerate(given.logits):
        gained = logits.log_softmax(dim=-1).numpy()[np.arange(len(ids)), ids[:, place]]
        scores += np.where((place < lengths) & (place not in forced), gained, 0.0)
    return {"ids": ids, "lengths": lengths, "scores": scores}


if __name__ == "__main__":
    {"make": make}[sys.argv[1]](sys.argv[2])
