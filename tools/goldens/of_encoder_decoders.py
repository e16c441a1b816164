"""transformers' results for models with an encoder and a decoder: folders, and the outputs of their models.

python tools/goldens/of_encoder_decoders.py make FOLDER  writes encoder_decoders/NAME for each of CASES
python tools/goldens/of_encoder_decoders.py open JOBS    opens folders; `open_folders` describes JOBS
"""

import json
import os
import sys

import arrays
import numpy as np
import torch
import transformers
from of_transformers import PACKAGES, byte_tokenizer, randomize, scored_pieces, tokenizer_arrays

# Sides of different sizes, and the pieces of the small byte-level BPE.
BART = {
    "vocab_size": 268,
    "d_model": 8,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 12,
    "max_position_embeddings": 24,
}
# More distances than buckets, heads whose widths do not add up to the states' width, and rows without a piece.
T5 = {
    "vocab_size": 72,
    "d_model": 8,
    "d_kv": 3,
    "d_ff": 16,
    "num_layers": 2,
    "num_decoder_layers": 2,
    "num_heads": 2,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 6,
    "dropout_rate": 0.0,
    "decoder_start_token_id": 0,
}
GATED_T5 = {**T5, "num_decoder_layers": 1, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
SENTINELS = 4
CASES = {
    "bart": ("BartForConditionalGeneration", {**BART, "scale_embedding": True}),
    "bart_model": ("BartModel", BART),
    "t5": ("T5ForConditionalGeneration", T5),
    "t5_gated": ("T5ForConditionalGeneration", GATED_T5),
}
# The norms of T5, and BART's two LayerNorms outside its layers; `randomize` knows the others.
_NORMS = ("layer_norm.weight", "layernorm_embedding.weight")


def make(folder: str) -> None:
    """Writes a model folder with golden.npz for each of CASES."""
    for seed, (name, (kind, fields)) in enumerate(CASES.items()):
        config_class = getattr(transformers, kind).config_class
        model = getattr(transformers, kind)(config_class(**fields, attn_implementation="eager")).eval()
        if not getattr(model.config, "scale_decoder_outputs", True):  # transformers ties them in every T5.
            model.lm_head.weight = torch.nn.Parameter(torch.empty_like(model.lm_head.weight))
        randomize(model, seed)
        with torch.no_grad():
            for parameter, value in model.named_parameters():
                value += float(parameter.endswith(_NORMS))
            if hasattr(model, "final_logits_bias"):
                model.final_logits_bias.copy_(torch.linspace(-1, 1, fields["vocab_size"])[None])
        case = os.path.join(folder, "encoder_decoders", name)
        model.save_pretrained(case)
        os.chmod(os.path.join(case, "model.safetensors"), 0o644)
        tokenizer = t5_tokenizer() if kind.startswith("T5") else byte_tokenizer()
        tokenizer.save_pretrained(case)
        inputs = random_inputs(fields["vocab_size"], tokenizer.pad_token_id)
        stored = {f"inputs/{key}": value for key, value in inputs.items()}
        stored.update({f"outputs/{key}": value for key, value in outputs_of(model, inputs).items()})
        arrays.save(os.path.join(case, "golden.npz"), PACKAGES, {**stored, **tokenizer_arrays(case)})


def t5_tokenizer() -> transformers.T5Tokenizer:
    """A unigram tokenizer of letters and a few words with T5's special tokens."""
    sentinels = [(f"<extra_id_{number}>", 0.0) for number in reversed(range(SENTINELS))]
    special = [(token, 0.0) for token in ("<pad>", "</s>", "<unk>")]
    vocabulary = [*special, *scored_pieces("he", "▁a"), *sentinels]
    return transformers.T5Tokenizer(vocab=vocabulary, extra_ids=SENTINELS, model_max_length=512)


def random_inputs(
    vocab_size: int, pad_id: int, batch: int = 3, length: int = 9, targets: int = 7
) -> dict[str, np.ndarray]:
    """Rows of several lengths on both sides, padded on the right."""
    rng = np.random.default_rng(0)

    def rows(most: int) -> tuple[np.ndarray, np.ndarray]:
        mask = (np.arange(most) < rng.integers(most // 2, most + 1, (batch, 1))).astype("int32")
        return np.where(mask, rng.integers(4, vocab_size, mask.shape), pad_id).astype("int32"), mask

    names = ("input_ids", "attention_mask", "decoder_input_ids", "decoder_attention_mask")
    return dict(zip(names, (*rows(length), *rows(targets))))


def outputs_of(model: torch.nn.Module, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """`logits` if it has them, and the stacked states of the encoder and of the decoder."""
    with torch.no_grad():
        tensors = {name: torch.tensor(value).long() for name, value in inputs.items()}
        outputs = model(**tensors, output_hidden_states=True, use_cache=False)
    states = {name: getattr(outputs, f"{name}_hidden_states") for name in ("encoder", "decoder")}
    found = {f"{name}_states": torch.stack(values).numpy() for name, values in states.items()}
    return {**found, "logits": outputs.logits.numpy()} if "logits" in outputs else found


def open_folders(jobs: str) -> None:
    """Opens folders that another program wrote.

    Args:
        jobs: a JSON file with a list of objects: the `folder` to open; the `kind`, a class of transformers; the
            `golden` with the inputs; and the file to write `to`. It gets `outputs/…`, and the tensors `missing`,
            `unexpected` and `mismatched`.
    """
    with open(jobs, encoding="utf-8") as stream:
        listed = json.load(stream)
    for job in listed:
        kind = getattr(transformers, job["kind"])
        model, info = kind.from_pretrained(job["folder"], output_loading_info=True)
        golden = arrays.load(job["golden"])
        inputs = {key.removeprefix("inputs/"): value for key, value in golden.items() if key.startswith("inputs/")}
        found = {f"outputs/{name}": value for name, value in outputs_of(model.eval(), inputs).items()}
        found.update({key.removesuffix("_keys"): np.array(sorted(map(str, names))) for key, names in info.items()})
        arrays.save(job["to"], PACKAGES, {**found, **tokenizer_arrays(job["folder"])})


if __name__ == "__main__":
    {"make": make, "open": open_folders}[sys.argv[1]](sys.argv[2])
