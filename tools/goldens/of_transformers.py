"""transformers' results: model folders, and the outputs of their models. See `__main__.py`.

python tools/goldens/of_transformers.py make FOLDER  writes a model folder with golden.npz for each of CASES
python tools/goldens/of_transformers.py open JOBS    opens folders; `open_folders` describes JOBS
"""

import json
import os
import sys
from typing import Any

import arrays
import numpy as np
import torch
import transformers
from tokenizers import pre_tokenizers

PACKAGES = ["transformers", "torch"]
_NORMS = ("LayerNorm.weight", "rel_attn.layer_norm.weight", "ff.layer_norm.weight")
TEXT = "The cat, hé."  # Case, an accent and words in pieces.

CONFIG = {
    "vocab_size": 60,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 32,
    "max_position_embeddings": 24,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
# Two groups of two layers, and two blocks in a layer: 8 blocks, 4 of them with weights.
ALBERT = {**CONFIG, "embedding_size": 8, "num_hidden_layers": 4, "num_hidden_groups": 2, "inner_group_num": 2}
SMALL = {**CONFIG, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
# 256 bytes, the special tokens and a few merges.
SMALL_ROBERTA = {**SMALL, "vocab_size": 268, "type_vocab_size": 1, "max_position_embeddings": 26}
# Its tokenizer's pieces.
SMALL_XLM_ROBERTA = {**SMALL_ROBERTA, "vocab_size": 68}
SMALL_CAMEMBERT = {**SMALL_ROBERTA, "vocab_size": 71}
# Its tokenizer's pieces. There are no other dropouts.
SMALL_XLNET = {"vocab_size": 72, "d_model": 8, "n_layer": 1, "n_head": 2, "d_inner": 16, "dropout": 0.0}
SMALL_ELECTRA = {**SMALL, "embedding_size": 4}
SMALL_DISTILBERT = {
    "vocab_size": 60,
    "dim": 8,
    "n_layers": 1,
    "n_heads": 2,
    "hidden_dim": 16,
    "max_position_embeddings": 24,
    "dropout": 0.0,
    "attention_dropout": 0.0,
}
SMALL_ALBERT = {**SMALL, "num_hidden_layers": 2, "embedding_size": 4}


def labelled(*labels: str, **fields: Any) -> dict[str, Any]:
    """The fields of a small config with named labels."""
    return {**SMALL, **labels_of(*labels), **fields}


def labels_of(*labels: str) -> dict[str, Any]:
    """The fields of a config that name its labels."""
    return {"id2label": dict(enumerate(labels)), "label2id": {label: index for index, label in enumerate(labels)}}


CASES = {
    "pretraining": ("BertForPreTraining", CONFIG),
    "pretraining_gelu_new": ("BertForPreTraining", {**SMALL, "hidden_act": "gelu_new"}),
    "encoder": ("BertModel", SMALL),
    "spans": ("BertForQuestionAnswering", SMALL),
    "tags": ("BertForTokenClassification", labelled("O", "B-PER", "I-PER")),
    "choice": ("BertForMultipleChoice", SMALL),
    "single_label": (
        "BertForSequenceClassification",
        labelled("against", "neutral", "for", problem_type="single_label_classification"),
    ),
    "multi_label": (
        "BertForSequenceClassification",
        labelled("sport", "politics", problem_type="multi_label_classification"),
    ),
    "regression": ("BertForSequenceClassification", labelled("similarity", problem_type="regression")),
    # transformers writes no problem_type for these, and for two labels not even the names.
    "as_it_comes": ("BertForSequenceClassification", SMALL),
    "three_labels": ("BertForSequenceClassification", {**SMALL, "num_labels": 3}),
    "one_label": ("BertForSequenceClassification", {**SMALL, "num_labels": 1}),
    "no_and_yes": ("BertForSequenceClassification", {**SMALL, "id2label": {0: "no", 1: "yes"}}),
    "causal": ("BertLMHeadModel", {**SMALL, "num_hidden_layers": 2, "is_decoder": True, "use_cache": False}),
    "albert": ("AlbertForPreTraining", ALBERT),
    "albert_encoder": ("AlbertModel", SMALL_ALBERT),
    "albert_spans": ("AlbertForQuestionAnswering", SMALL_ALBERT),
    "albert_tags": ("AlbertForTokenClassification", {**labelled("O", "B-PER", "I-PER"), **SMALL_ALBERT}),
    "albert_choice": ("AlbertForMultipleChoice", SMALL_ALBERT),
    "albert_classes": (
        "AlbertForSequenceClassification",
        {**labelled("against", "neutral", "for", problem_type="single_label_classification"), **SMALL_ALBERT},
    ),
    "next_sentence": ("BertForNextSentencePrediction", SMALL),
    "roberta": ("RobertaForMaskedLM", {**SMALL_ROBERTA, "num_hidden_layers": 2}),
    "roberta_encoder": ("RobertaModel", SMALL_ROBERTA),
    "roberta_spans": ("RobertaForQuestionAnswering", SMALL_ROBERTA),
    "roberta_tags": ("RobertaForTokenClassification", {**labelled("O", "B-PER", "I-PER"), **SMALL_ROBERTA}),
    "roberta_choice": ("RobertaForMultipleChoice", SMALL_ROBERTA),
    "roberta_classes": (
        "RobertaForSequenceClassification",
        {**labelled("against", "neutral", "for", problem_type="single_label_classification"), **SMALL_ROBERTA},
    ),
    "xlm-roberta": ("XLMRobertaForMaskedLM", {**SMALL_XLM_ROBERTA, "num_hidden_layers": 2}),
    "xlm-roberta_encoder": ("XLMRobertaModel", SMALL_XLM_ROBERTA),
    "xlm-roberta_spans": ("XLMRobertaForQuestionAnswering", SMALL_XLM_ROBERTA),
    "xlm-roberta_tags": ("XLMRobertaForTokenClassification", {**labelled("O", "B-PER", "I-PER"), **SMALL_XLM_ROBERTA}),
    "xlm-roberta_choice": ("XLMRobertaForMultipleChoice", SMALL_XLM_ROBERTA),
    "xlm-roberta_classes": (
        "XLMRobertaForSequenceClassification",
        {**labelled("against", "neutral", "for", problem_type="single_label_classification"), **SMALL_XLM_ROBERTA},
    ),
    "camembert": ("CamembertForMaskedLM", SMALL_CAMEMBERT),
    "xlnet": ("XLNetLMHeadModel", {**SMALL_XLNET, "n_layer": 2}),
    "xlnet_encoder": ("XLNetModel", {**SMALL_XLNET, "clamp_len": 5}),
    "xlnet_spans": ("XLNetForQuestionAnsweringSimple", SMALL_XLNET),
    "xlnet_tags": ("XLNetForTokenClassification", {**labels_of("O", "B-PER", "I-PER"), **SMALL_XLNET}),
    "xlnet_choice": ("XLNetForMultipleChoice", SMALL_XLNET),
    "xlnet_classes": (
        "XLNetForSequenceClassification",
        {**labels_of("against", "neutral", "for"), "problem_type": "single_label_classification", **SMALL_XLNET},
    ),
    "electra": ("ElectraForPreTraining", {**SMALL_ELECTRA, "num_hidden_layers": 2, "hidden_act": "gelu_new"}),
    "electra_generator": ("ElectraForMaskedLM", {**SMALL_ELECTRA, "hidden_act": "gelu_new"}),
    "electra_encoder": ("ElectraModel", {**SMALL, "embedding_size": 8}),
    "electra_spans": ("ElectraForQuestionAnswering", SMALL_ELECTRA),
    "electra_tags": ("ElectraForTokenClassification", {**labelled("O", "B-PER", "I-PER"), **SMALL_ELECTRA}),
    "electra_choice": ("ElectraForMultipleChoice", SMALL_ELECTRA),
    "electra_classes": (
        "ElectraForSequenceClassification",
        {**labelled("against", "neutral", "for", problem_type="single_label_classification"), **SMALL_ELECTRA},
    ),
    "roberta-prelayernorm": ("RobertaPreLayerNormForMaskedLM", {**SMALL_ROBERTA, "num_hidden_layers": 2}),
    "roberta-prelayernorm_encoder": ("RobertaPreLayerNormModel", SMALL_ROBERTA),
    "roberta-prelayernorm_classes": (
        "RobertaPreLayerNormForSequenceClassification",
        {**labelled("against", "neutral", "for", problem_type="single_label_classification"), **SMALL_ROBERTA},
    ),
    "distilbert": ("DistilBertForMaskedLM", {**SMALL_DISTILBERT, "n_layers": 2, "activation": "relu"}),
    "distilbert_encoder": ("DistilBertModel", {**SMALL_DISTILBERT, "sinusoidal_pos_embds": True}),
    "distilbert_spans": ("DistilBertForQuestionAnswering", SMALL_DISTILBERT),
    "distilbert_tags": ("DistilBertForTokenClassification", {**SMALL_DISTILBERT, **labels_of("O", "B-PER", "I-PER")}),
    "distilbert_choice": ("DistilBertForMultipleChoice", SMALL_DISTILBERT),
    "distilbert_classes": (
        "DistilBertForSequenceClassification",
        {**SMALL_DISTILBERT, **labels_of("against", "neutral", "for"), "problem_type": "single_label_classification"},
    ),
}
CONFIGS = {
    "": transformers.BertConfig,
    "albert_": transformers.AlbertConfig,
    "roberta-prelayernorm_": transformers.RobertaPreLayerNormConfig,
    "roberta_": transformers.RobertaConfig,
    "xlm-roberta_": transformers.XLMRobertaConfig,
    "camembert_": transformers.CamembertConfig,
    "xlnet_": transformers.XLNetConfig,
    "electra_": transformers.ElectraConfig,
    "distilbert_": transformers.DistilBertConfig,
    "bart_": transformers.BartConfig,
    "t5_": transformers.T5Config,
}


def make(folder: str) -> None:
    """Writes a model folder with golden.npz for each of CASES, and the default config."""
    for seed, (name, (kind, fields)) in enumerate(CASES.items()):
        own = {} if kind.startswith("XLNet") else {"attn_implementation": "eager"}
        config = config_of(kind)(**fields, **own)
        model = getattr(transformers, kind)(config).eval()
        randomize(model, seed)
        case = os.path.join(folder, name)
        model.save_pretrained(case)
        os.chmod(os.path.join(case, "model.safetensors"), 0o644)
        tokenizer_of(kind).save_pretrained(case)
        inputs = random_inputs(choices=2 if kind.endswith("ForMultipleChoice") else None)
        if is_robertas(kind):
            inputs = as_robertas(inputs)
        if kind.startswith("XLNet"):
            inputs = as_xlnets(inputs)
        found = outputs_of(model, inputs)
        if name == "xlnet":
            found.update(streams_of(model, inputs))
        if name == "electra":
            inputs["is_replaced"] = np.random.default_rng(1).integers(0, 2, inputs["input_ids"].shape)
            found["loss"] = replaced_token_loss(model, inputs)
        if name == "albert":
            found["loss"] = sentence_order_loss(model, inputs)
        if name == "pretraining":
            found.update(attentions_of(model, inputs), **gradients_of(model, inputs))
        stored = {f"inputs/{key}": value for key, value in inputs.items()}
        stored.update({f"outputs/{key}": value for key, value in found.items()})
        arrays.save(os.path.join(case, "golden.npz"), PACKAGES, {**stored, **tokenizer_arrays(case)})
    arrays.save(os.path.join(folder, "sentence_order.npz"), PACKAGES, sentence_order())
    for name, make_config in CONFIGS.items():
        with open(os.path.join(folder, f"{name}config_defaults.json"), "w", encoding="utf-8") as stream:
            json.dump(make_config().to_dict(), stream, indent=2, sort_keys=True)


def config_of(kind: str) -> Any:
    """The config of a class of transformers."""
    names = (name for name in CONFIGS if name and kind.lower().startswith(name[:-1].replace("-", "")))
    return CONFIGS[next(names, "")]


def is_robertas(kind: str) -> bool:
    """Whether a class of transformers is RoBERTa's, or one that computes the same."""
    return kind.startswith(("Roberta", "XLMRoberta", "Camembert"))


def tokenizer_of(kind: str) -> Any:
    """A small tokenizer for a class of transformers."""
    if kind.startswith(("XLMRoberta", "Camembert")):
        return unigram_tokenizer(kind)
    if kind.startswith("XLNet"):
        return xlnet_tokenizer()
    if kind.startswith("DistilBert"):
        return tokenizer(model_input_names=["input_ids", "attention_mask"])
    return byte_tokenizer() if kind.startswith("Roberta") else tokenizer()


def unigram_tokenizer(kind: str) -> Any:
    """A unigram tokenizer of letters and a few words, in the order of fairseq's dictionary for this class."""
    is_xlm = kind.startswith("XLMRoberta")
    first = ("<s>", "<pad>", "</s>", "<unk>") if is_xlm else ("<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>")
    vocabulary = [(piece, 0.0) for piece in first]
    if not is_xlm:
        vocabulary += [("<unk>NOTUSED", -100.0), ("<s>", 0.0), ("</s>", 0.0)]
    vocabulary += [*scored_pieces("hé", "é"), ("<mask>", 0.0)]
    make_tokenizer = transformers.XLMRobertaTokenizer if is_xlm else transformers.CamembertTokenizer
    return make_tokenizer(vocab=vocabulary, model_max_length=SMALL["max_position_embeddings"])


def scored_pieces(*more: str) -> list[tuple[str, float]]:
    """Letters and a few words, with their scores."""
    letters = [chr(ord("a") + index) for index in range(26)]
    words = ["▁The", "▁the", "▁ca", "▁cat", "▁h", *more, "▁c", ",", ".", "▁"]
    pieces = [*words, *letters, *map(str.upper, letters)]
    return [(piece, -float(row + 1)) for row, piece in enumerate(pieces)]


def xlnet_tokenizer() -> Any:
    """A unigram tokenizer of letters and a few words with XLNet's special tokens."""
    special = ("<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>")
    vocabulary = [*((token, 0.0) for token in special), *scored_pieces("he", "▁a")]
    return transformers.XLNetTokenizer(vocab=vocabulary, model_max_length=512)


def byte_tokenizer() -> Any:
    """A byte-level BPE of a few merges."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("t", "h"), ("th", "e"), ("c", "a"), ("Ġ", "ca"), ("Ã", "©"), ("h", "Ã©"), ("Ġ", "h")]
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *letters, *map("".join, merges), "<mask>"]
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    length = SMALL["max_position_embeddings"]
    return transformers.RobertaTokenizer(vocab=vocabulary, merges=merges, model_max_length=length)


def as_robertas(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Inputs with RoBERTa's padding, from which it counts positions, and one segment."""
    ids, mask = inputs["input_ids"], inputs["attention_mask"]
    return {**inputs, "input_ids": np.where(mask, ids + 3, 1), "token_type_ids": 0 * mask}


def as_xlnets(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Inputs with XLNet's padding id, still at the end of rows, and the segment of <cls> at their last token."""
    ids, mask = inputs["input_ids"], inputs["attention_mask"]
    is_last = mask.cumsum(axis=-1) == mask.sum(axis=-1, keepdims=True)
    segments = np.where(is_last & (mask > 0), 2, inputs["token_type_ids"])
    return {**inputs, "input_ids": np.where(mask, ids, 5), "token_type_ids": segments.astype("int32")}


def padded_at_start(inputs: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The inputs of an encoder with the padding before the tokens, and where each column of a row came from."""
    mask = inputs["attention_mask"]
    source = (np.arange(mask.shape[-1]) + mask.sum(axis=-1, keepdims=True)) % mask.shape[-1]
    names = ("input_ids", "attention_mask", "token_type_ids")
    return {name: np.take_along_axis(inputs[name], source, axis=-1) for name in names}, source


def randomize(model: torch.nn.Module, seed: int) -> None:
    """Sets all parameters to random values, biases and LayerNorm too: at 0 and 1 their omission would go unnoticed."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            value = rng.normal(0.0, 0.2, parameter.shape) + name.endswith(_NORMS)
            parameter.copy_(torch.tensor(value))


def tokenizer(**options: Any) -> transformers.BertTokenizer:
    """A tokenizer of letters and a few words."""
    letters = [chr(ord("a") + index) for index in range(26)]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces = [*special, *letters, *(f"##{letter}" for letter in letters), "the", ".", ","]
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    length = CONFIG["max_position_embeddings"]
    return transformers.BertTokenizer(vocab=vocabulary, model_max_length=length, **options)


def tokenizer_arrays(folder: str) -> dict[str, np.ndarray]:
    """TEXT and its ids, by the tokenizer in a folder."""
    ids = transformers.AutoTokenizer.from_pretrained(folder)(TEXT, add_special_tokens=False)["input_ids"]
    return {"text": np.array(TEXT), "text_ids": np.array(ids)}


def random_inputs(batch: int = 3, length: int = 12, choices: int | None = None) -> dict[str, np.ndarray]:
    """Rows of several lengths with both segments and, without `choices`, masked positions, some with weight 0."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(6, length + 1, batch * (choices or 1))
    mask = (np.arange(length) < lengths[:, None]).astype("int32")
    inputs = {
        "input_ids": rng.integers(1, CONFIG["vocab_size"], mask.shape).astype("int32") * mask,
        "attention_mask": mask,
        "token_type_ids": (np.arange(length) >= 4).astype("int32") * mask,
    }
    if choices:
        return {name: value.reshape(batch, choices, length) for name, value in inputs.items()}
    return {
        **inputs,
        "masked_lm_positions": np.stack([np.sort(rng.choice(6, 3, False)) for _ in range(batch)]).astype("int32"),
        "masked_lm_ids": rng.integers(1, CONFIG["vocab_size"], (batch, 3)).astype("int32"),
        "masked_lm_weights": (np.arange(3) < rng.integers(1, 4, (batch, 1))).astype("float32"),
        "next_sentence_labels": rng.integers(0, 2, batch).astype("int32"),
    }


def run(model: torch.nn.Module, inputs: dict[str, np.ndarray], **options: Any) -> Any:
    """Calls a model of transformers."""
    segments = () if type(model).__name__.startswith("DistilBert") else ("token_type_ids",)
    names = ("input_ids", "attention_mask", *segments)
    return model(**{name: torch.tensor(inputs[name]).long() for name in names}, **options)


def outputs_of(model: torch.nn.Module, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """All logits and, for a model without a task's head, `hidden_states` stacked and `pooler_output`."""
    if type(model).__name__.startswith("XLNet"):
        return outputs_of_xlnet(model, inputs)
    with torch.no_grad():
        outputs = run(model, inputs)
        if type(model).__name__.endswith(("Model", "ForPreTraining", "ForMaskedLM")):
            encoded = run(model.base_model, inputs, output_hidden_states=True)
            outputs["hidden_states"] = torch.stack(encoded.hidden_states)
            if encoded.get("pooler_output") is not None:
                outputs["pooler_output"] = encoded.pooler_output
    left_out = "last_hidden_state"
    return {name: value.numpy() for name, value in outputs.items() if torch.is_tensor(value) and name != left_out}


def outputs_of_xlnet(model: torch.nn.Module, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """As `outputs_of`: computed for rows that are padded at the start, and given in the order of `inputs`."""
    at_start, source = padded_at_start(inputs)
    back = np.argsort(source, axis=-1)
    has_no_head = type(model).__name__ in ("XLNetModel", "XLNetLMHeadModel")
    with torch.no_grad():
        outputs = run(model, at_start, output_hidden_states=has_no_head, use_mems=False)
    found = {name: value.numpy() for name, value in outputs.items() if torch.is_tensor(value)}
    found.pop("last_hidden_state", None)
    if has_no_head:
        found["hidden_states"] = np.stack([value.numpy() for value in outputs.hidden_states])

    def in_order(value: np.ndarray) -> np.ndarray:
        if value.shape[:2] == back.shape:
            return np.take_along_axis(value, back.reshape(*back.shape, *[1] * (value.ndim - 2)), axis=1)
        return value

    states = {"hidden_states": np.stack([*map(in_order, found.pop("hidden_states"))])} if has_no_head else {}
    return {**{name: in_order(value) for name, value in found.items()}, **states}


def streams_of(model: torch.nn.Module, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What an XLNet makes of random permutations: both streams over two rows of text, the second with memory.

    Each row is padded at the start, except those of `streams/whole`. `streams/NAME` are the inputs of the second call,
    without `mems` those of the first too, and `streams/outputs/…` what it returns.
    """
    rng = np.random.default_rng(1)
    batch, _ = padded_at_start(inputs)
    rows, length = batch["input_ids"].shape
    order = np.argsort(rng.random((rows, length)), axis=1)
    perm_mask = (order[:, None] >= order[:, :, None]).astype("float32")
    places = np.stack([rng.choice(np.flatnonzero(row), 3, False) for row in batch["attention_mask"]])
    target_mapping = np.eye(length, dtype="float32")[places]
    options = {"perm_mask": torch.tensor(perm_mask), "target_mapping": torch.tensor(target_mapping), "use_mems": True}
    with torch.no_grad():
        mems = run(model, batch, **options).mems
        outputs = run(model, batch, mems=mems, output_hidden_states=True, **options)
        last = run(model.transformer, batch, mems=mems, **options).last_hidden_state
        # Rows without padding, twice: the second remembers the text of the first, without <sep> and <cls>.
        whole = whole_rows(inputs)
        text = [value[:-2] for value in run(model, whole, **options).mems]
        labels = torch.tensor(np.take_along_axis(whole["input_ids"], places, axis=1)).long()
        loss = run(model, whole, mems=text, labels=labels, **options).loss
    memories = {f"streams/mems/{index}": value.numpy() for index, value in enumerate(mems)}
    again = {f"streams/outputs/mems/{index}": value.numpy() for index, value in enumerate(outputs.mems)}
    stored = {**batch, "perm_mask": perm_mask, "target_mapping": target_mapping}
    return {
        **{f"streams/{name}": value for name, value in stored.items()},
        **memories,
        **again,
        **{f"streams/whole/{name}": value for name, value in {**whole, "ranks": order, "places": places}.items()},
        "streams/outputs/loss_of_whole": loss.numpy(),
        "streams/outputs/content": outputs.hidden_states[-2].numpy(),
        "streams/outputs/query": last.numpy(),
        "streams/outputs/logits": outputs.logits.numpy(),
    }


def whole_rows(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The inputs of an XLNet with tokens instead of padding."""
    mask = inputs["attention_mask"]
    is_last = np.arange(mask.shape[1]) == mask.shape[1] - 1
    segments = np.broadcast_to(np.where(is_last, 2, 0), mask.shape).astype("int32")
    ids = np.where(mask, inputs["input_ids"], 9).astype("int32")
    return {"input_ids": ids, "attention_mask": np.ones_like(mask), "token_type_ids": segments}


def attentions_of(model: torch.nn.Module, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """`attentions`, stacked: [layers, batch, heads, seq, seq]."""
    with torch.no_grad():
        return {"attentions": torch.stack(run(model.bert, inputs, output_attentions=True).attentions).numpy()}


def masked_labels(inputs: dict[str, np.ndarray]) -> torch.Tensor:
    """The masked ids at their positions, -100 elsewhere: [batch, seq]."""
    labels = torch.full(inputs["input_ids"].shape, -100)
    masked = (inputs[f"masked_lm_{part}"] for part in ("positions", "ids", "weights"))
    for row, columns in enumerate(zip(*masked)):
        for position, label, weight in zip(*columns):
            if weight:
                labels[row, position] = int(label)
    return labels


def gradients_of(model: torch.nn.Module, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The pretraining loss and its gradients, including the tied word embeddings'."""
    following = torch.tensor(inputs["next_sentence_labels"]).long()
    loss = run(model, inputs, labels=masked_labels(inputs), next_sentence_label=following).loss
    loss.backward()
    gradients = {f"gradients/{name}": value.grad.numpy() for name, value in model.named_parameters()}
    return {"loss": loss.detach().numpy(), **gradients}


def sentence_order_loss(model: torch.nn.Module, inputs: dict[str, np.ndarray]) -> np.ndarray:
    """The pretraining loss of an ALBERT: masked LM and sentence order."""
    order = torch.tensor(inputs["next_sentence_labels"]).long()
    with torch.no_grad():
        return run(model, inputs, labels=masked_labels(inputs), sentence_order_label=order).loss.numpy()


def replaced_token_loss(model: torch.nn.Module, inputs: dict[str, np.ndarray]) -> np.ndarray:
    """The loss of an ELECTRA's discriminator."""
    with torch.no_grad():
        return run(model, inputs, labels=torch.tensor(inputs["is_replaced"])).loss.numpy()


def sentence_order() -> dict[str, np.ndarray]:
    """The pretraining loss of an ALBERT, and what its sentence order head makes of its pooled output."""
    config = transformers.AlbertConfig(**SMALL, embedding_size=4, classifier_dropout_prob=0.1)
    model = transformers.AlbertForPreTraining(config).eval()
    randomize(model, 1)
    inputs = random_inputs()
    labels = masked_labels(inputs)
    order = torch.tensor(inputs["next_sentence_labels"]).long()
    with torch.no_grad():
        outputs = run(model, inputs, labels=labels, sentence_order_label=order)
        pooled = run(model.albert, inputs).pooler_output
    head = {f"head/{name}": value for name, value in model.sop_classifier.classifier.named_parameters()}
    found = {
        **{f"outputs/{name}": outputs[name] for name in ("loss", "prediction_logits", "sop_logits")},
        **head,
        "pooled_output": pooled,
    }
    stored = {f"inputs/{name}": value for name, value in inputs.items()}
    return {**stored, **{name: value.detach().numpy() for name, value in found.items()}}


def open_folders(jobs: str) -> None:
    """Opens folders that another program wrote.

    Args:
        jobs: a JSON file with a list of objects: the `folder` to open; the `kind`, a class of transformers; the
            `golden` with the inputs; and the file to write `to`. It gets `outputs/…`, the tensors `missing`,
            `unexpected` and `mismatched`, the `kind` of the model, `labels`, `problem_type` and `text_ids`.
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
        found["kind"], found["labels"] = type(model).__name__, list(model.config.id2label.values())
        found["problem_type"] = str(model.config.problem_type)
        arrays.save(job["to"], PACKAGES, {**found, **tokenizer_arrays(job["folder"])})


if __name__ == "__main__":
    {"make": make, "open": open_folders}[sys.argv[1]](sys.argv[2])
