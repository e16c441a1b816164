"""Exports for runtimes other than TensorFlow: the signature on tokens, and the folder around the model."""

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_bert.checkpoints.huggingface import CONFIG
from keras_bert.config.finetuning import REGRESSION
from keras_bert.core import files
from keras_bert.core.errors import UserError
from keras_bert.core.whole_files import require_name, whole_folder, write_file, write_json
from keras_bert.export.network import Network
from keras_bert.export.serving_function import masked_lm_at_positions, model_signatures
from keras_bert.export.signature import Signature, TextInputs
from keras_bert.inference.loading import LoadedModel
from keras_bert.models.bert.config import MASKED
from keras_bert.models.kind import with_article
from keras_bert.tasks.kind import kind_of_head
from keras_bert.text.tokenizer_files import TOKENIZER_CONFIG
from keras_bert.text.vocabulary import Vocabulary, vocabulary_kinds

TOKENS = "tokens"


class Format(NamedTuple):
    """A format of exports.

    Attributes:
        name: its name for `--format`.
        file: the name of the model's file.
        about: the beginning of README.md, with the fields that `_card` fills in.
        example: the code in README.md.
    """

    name: str
    file: str
    about: str
    example: str


def portable_signature(
    bert: LoadedModel, form: Format, top_k: int = 5, encoder_only: bool = False, rounds_tables: bool = False
) -> Signature:
    """The signature `tokens` of a model, without string outputs; for a masked LM, `masked_lm_at_positions`.

    Args:
        top_k: the number of candidates for each [MASK] or next token.
        encoder_only: whether to return vectors, whatever head the model has.
        rounds_tables: see `PortableNetwork`.

    Raises:
        UserError: config.json has invalid settings for reading texts, or other runtimes cannot run the head.
    """
    inputs = PortableInputs(bert.config, bert.tokenizer, bert.folder.reading)
    network = PortableNetwork(bert.model, rounds_tables)
    if bert.head and not encoder_only and (needed := kind_of_head(bert.head).not_portable):
        raise UserError(
            f"{bert.path}: --format {form.name} needs {needed}. Received: "
            f"{with_article(bert.head.architecture)}. Export a SavedModel, or the --encoder."
        )
    if bert.predicts == MASKED and not encoder_only:
        signature = masked_lm_at_positions(inputs, network, top_k)
    else:
        signature = model_signatures(bert, inputs, network, top_k, 1, encoder_only)[TOKENS]
    return Signature(lambda *tokens: _without_strings(signature.function(*tokens)), signature.inputs)


class PortableInputs(TextInputs):
    """Inputs whose shapes follow from those of the request, as LiteRT's delegates need to run the graph.

    Padding is computed, so rows should be no longer than needed.
    """

    def from_tokens(
        self, input_word_ids: tf.Tensor, input_mask: tf.Tensor, input_type_ids: tf.Tensor
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        inputs, is_valid = self._checked(input_word_ids, input_mask, input_type_ids)
        longest = self.config.max_position_embeddings
        return {name: column[:, :longest] for name, column in inputs.items()}, is_valid

    def as_rows(self, tokens: tf.Tensor) -> tf.Tensor:
        # A product of dimensions would make all later shapes depend on a value.
        return tf.reshape(tokens, tf.stack([-1, tf.shape(tokens)[2]]))


class PortableNetwork(Network):
    """A network that computes padding.

    Args:
        rounds_tables: whether embedding tables are stored in 8 bits with a scale for each row; LiteRT's converter would
            use a single scale for a whole table.
    """

    def __init__(self, model: keras.Model, rounds_tables: bool = False) -> None:
        super().__init__(model)
        self._look_up = _look_up_int8 if rounds_tables else tf.gather

    def encode(self, inputs: Mapping[str, tf.Tensor], only_pooled: bool = False) -> dict[str, tf.Tensor]:
        return self._encode(inputs, keeps_padding=True, look_up=self._look_up, only_pooled=only_pooled)


def _look_up_int8(table: tf.Variable, ids: tf.Tensor) -> tf.Tensor:
    with tf.init_scope():  # Outside the graph being traced.
        values = table.numpy()
    scales = np.maximum(np.abs(values).max(axis=1, keepdims=True), 1e-12) / 127
    rounded = tf.constant(np.round(values / scales).astype("int8"))
    return tf.cast(tf.gather(rounded, ids), tf.float32) * tf.gather(tf.constant(scales), ids)


def _without_strings(outputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    return {name: output for name, output in outputs.items() if output.dtype != tf.string}


# Example rows of inputs other than the tokens.
EXAMPLES = {"masked_lm_positions": [1], "span_starts": [1, 3], "span_ends": [2, 4]}
_DIMENSIONS = {2: ("batch", "seq"), 3: ("batch", "choices", "seq")}

_TABLES = """\

| input | type | shape |
| --- | --- | --- |
{inputs}

| output | type | shape |
| --- | --- | --- |
{outputs}

Dimensions with a name may have any size, `seq` up to {longest}; the model reads texts of up to {max_length} tokens. A
row with an id, segment or position out of range is answered with NaN and 0.
"""
_FILES = """\

| file | contents |
| --- | --- |
| {vocabulary} | {files_hold} |
{labels}| `tokenizer.py`, `{table}` | the exact tokenizer, for Python without any package |
| `tokenizer_config.json`, `config.json` | its settings and the model's |
"""


def _card(bert: LoadedModel, form: Format, signature: Signature, stored: str, size: int, labels: Sequence[str]) -> str:
    """The text of README.md.

    Args:
        stored: how weights are stored.
        size: the size of the model's file in bytes.
        labels: the labels in the order of the logits; empty if there are none.
    """
    outputs = signature.traced().structured_outputs
    positions = bert.config.max_position_embeddings
    reading = bert.folder.reading
    has_choices = signature.inputs[0].shape.rank == 3
    more = "".join(
        f', {spec.name}=np.array([{EXAMPLES[spec.name]}], "{spec.dtype.name}")' for spec in signature.inputs[3:]
    )
    takes_pairs = kind_of_head(bert.head).takes_pairs(bert) if bert.head else reading.pair
    is_pair = takes_pairs or has_choices or {"start_logits", "end_logits"} <= set(outputs)
    vocabulary = bert.tokenizer.vocabulary
    tokenizer, _, table = _plain_tokenizer(type(vocabulary))
    labels_row = "| `labels.txt` | the labels in the order of the logits, one per line |\n" if labels else ""
    return (form.about + _TABLES + form.example + _FILES).format(
        name=bert.folder.other_fields.get("_name_or_path") or "BERT",
        stored=stored,
        megabytes=size / 1e6,
        inputs="\n".join(_row(spec.name, spec, _DIMENSIONS[spec.shape.rank]) for spec in signature.inputs[:3])
        + "".join("\n" + _row(spec.name, spec, ("batch", "masks")) for spec in signature.inputs[3:]),
        outputs="\n".join(_row(name, outputs[name], ("batch",)) for name in sorted(outputs)),
        longest=positions,
        texts='"a text", "the text it is paired with"' if is_pair else '"a text"',
        max_length=reading.max_length,
        row="[row]" if has_choices else "row",
        more=more,
        tokenizer=tokenizer,
        vocabulary=", ".join(f"`{name}`" for name in (vocabulary.file_name, *vocabulary.other_files)),
        files_hold=vocabulary.files_hold,
        table=os.path.basename(table),
        labels=labels_row,
    )


def _row(name: str, spec: tf.TensorSpec, dimensions: Sequence[str]) -> str:
    """A row of the table of tensors; unknown sizes are shown by the names of the dimensions, or as `…`."""
    names = [*dimensions, *["…"] * spec.shape.rank][: spec.shape.rank]
    shape = ", ".join(name if size is None else str(size) for name, size in zip(names, spec.shape))
    return f"| `{name}` | {spec.dtype.name} | [{shape}] |"


LABELS, TOKENIZER, CARD = "labels.txt", "tokenizer.py", "README.md"
_SHOWN = 5
_ALWAYS_WRITTEN = {TOKENIZER, CARD, TOKENIZER_CONFIG, CONFIG}


def _plain_tokenizer(kind: type[Vocabulary]) -> tuple[str, str, str]:
    """`(class, code file, data file)` of the tokenizer in plain Python."""
    assert kind.plain_tokenizer
    module, _, name = kind.plain_tokenizer.partition(":")
    code = importlib.import_module(module)
    return name, str(code.__file__), code.FILE


def _files_of(kind: type[Vocabulary], model: str) -> set[str]:
    """The names of the files in every export of a model with a vocabulary of this kind."""
    table = os.path.basename(_plain_tokenizer(kind)[2])
    return {*_ALWAYS_WRITTEN, model, kind.file_name, *kind.other_files, table}


def write_portable(
    output: files.StrPath,
    bert: LoadedModel,
    form: Format,
    convert: Callable[[], tuple[Signature, bytes]],
    stored: str,
    encoder_only: bool = False,
) -> int:
    """Atomically writes a folder with the model, vocabulary, labels, a plain Python tokenizer and a card.

    Args:
        output: the folder, new or empty, or that of an earlier export of this format, which is replaced.
        convert: function () -> `(the model's signature, the content of its file)`.
        stored: how its weights are stored, for the card.
        encoder_only: see `portable_signature`.

    Returns: the size of the model's file in bytes.

    Raises:
        UserError: the vocabulary has no tokenizer in plain Python, the folder holds something else, a label has a line
            break, or the model cannot be converted.
    """
    vocabulary, kinds = bert.tokenizer.vocabulary, [kind for kind in vocabulary_kinds() if kind.plain_tokenizer]
    if not vocabulary.plain_tokenizer:
        raise UserError(
            f"{bert.path}: needs a vocabulary with a tokenizer in plain Python: "
            f"{' or '.join(kind.title for kind in kinds)}. Received: {vocabulary.title}. Export a SavedModel instead."
        )
    require_name(output)  # Before the conversion, which takes minutes.
    held = set(files.list_folder(output))
    exports = [_files_of(kind, form.file) for kind in kinds]
    if held and not any(export <= held <= {*export, LABELS} for export in exports):
        found = ", ".join(sorted(held.difference({LABELS}, *exports))[:_SHOWN]) or "a part of an export"
        raise UserError(
            f"{output}: needs a new or empty folder, or an earlier export. Received: {found}. Give another."
        )
    has_labels = bert.head and not encoder_only and not bert.head.outputs
    labels = bert.head.labels if has_labels and getattr(bert.head, "problem_type", None) != REGRESSION else ()
    broken = next((label for label in labels if "\n" in label or "\r" in label), None)
    if broken is not None:
        raise UserError(
            f"{bert.path}: --format {form.name} needs labels without line breaks, for {LABELS}. Received: "
            f"{broken[:80]!r}. Rename it in config.json."
        )
    signature, content = convert()
    with whole_folder(output, last=form.file) as aside:
        settings = vocabulary.tokenizer_config(bert.folder.tokenizer, bert.config.max_position_embeddings)
        write_json(files.join(aside, TOKENIZER_CONFIG), settings)
        vocabulary.to_file(files.join(aside, vocabulary.file_name))
        write_json(files.join(aside, CONFIG), {**bert.folder.other_fields, **bert.config.to_fields()})
        if labels:
            write_file(files.join(aside, LABELS), "".join(f"{label}\n" for label in labels))
        _, code, table = _plain_tokenizer(type(vocabulary))
        for source, name in ((code, TOKENIZER), (table, os.path.basename(table))):
            write_file(files.join(aside, name), files.content(source))
        card = _card(bert, form, signature, stored, len(content), labels)
        write_file(files.join(aside, CARD), card)
        write_file(files.join(aside, form.file), content)
    return len(content)
