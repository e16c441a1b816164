"""Writes a model for LiteRT (TensorFlow Lite), for phones and other devices without TensorFlow."""

import os
import tempfile

import tensorflow as tf

from keras_bert import files
from keras_bert.checkpoints.huggingface import CONFIG
from keras_bert.checkpoints.tokenizer_settings import TOKENIZER_CONFIG, VOCABULARY, tokenizer_config
from keras_bert.errors import UserError
from keras_bert.export.edge_card import edge_card
from keras_bert.export.edge_signature import FLOAT16, NONE, TOKENS, edge_signature
from keras_bert.export.signature import Signature
from keras_bert.inference.loading import LoadedModel
from keras_bert.text import standalone_tokenizer
from keras_bert.text.sentencepiece_vocabulary import SentencePieceVocabulary
from keras_bert.whole_files import atomic_write, whole_folder, write_json

MODEL, LABELS, TOKENIZER, CARD = "model.tflite", "labels.txt", "tokenizer.py", "README.md"
_TABLE = os.path.basename(standalone_tokenizer.FILE)
_SHOWN = 5
_ALWAYS_WRITTEN = {MODEL, TOKENIZER, CARD, VOCABULARY, TOKENIZER_CONFIG, CONFIG, _TABLE}


def write_litert(
    output: files.StrPath, bert: LoadedModel, quantization: str = NONE, top_k: int = 5, encoder_only: bool = False
) -> int:
    """Writes a folder with the model, vocabulary, labels, tokenizer in plain Python and a card, whole or not at all.

    Args:
        output: the folder, new or empty, or that of an earlier export of this format, which is replaced.
        bert, quantization, top_k, encoder_only: see `edge_signature`.

    Returns: the size of model.tflite in bytes.

    Raises:
        UserError: the folder holds something else, a label has a line break, or the model cannot be converted; see
            `edge_signature`.
    """
    if isinstance(bert.tokenizer.vocabulary, SentencePieceVocabulary):
        raise UserError(
            f"{bert.path}: needs a WordPiece vocabulary, which the tokenizer in plain Python reads. Received: a "
            "SentencePiece model. Export a SavedModel instead."
        )
    held = set(files.list_folder(output))
    if held and not _ALWAYS_WRITTEN <= held <= {*_ALWAYS_WRITTEN, LABELS}:
        found = ", ".join(sorted(held - _ALWAYS_WRITTEN - {LABELS})[:_SHOWN]) or "a part of an export"
        raise UserError(
            f"{output}: needs a new or empty folder, or an earlier export. Received: {found}. Give another."
        )
    labels = () if encoder_only else getattr(bert.head, "labels", ())
    broken = next((label for label in labels if "\n" in label or "\r" in label), None)
    if broken is not None:
        raise UserError(
            f"{bert.path}: --format litert needs labels without line breaks, for {LABELS}. Received: {broken[:80]!r}. "
            "Rename it in config.json."
        )
    signature, content = convert(edge_signature(bert, quantization, top_k, encoder_only), quantization, bert.path)
    with whole_folder(output, last=MODEL) as aside:
        settings = tokenizer_config(
            bert.folder.tokenizer, bert.config.max_position_embeddings, bert.tokenizer.vocabulary
        )
        write_json(files.join(aside, TOKENIZER_CONFIG), settings)
        bert.tokenizer.vocabulary.to_file(files.join(aside, VOCABULARY))
        write_json(files.join(aside, CONFIG), {**bert.folder.other_fields, **bert.config.to_fields()})
        if labels:
            _write(files.join(aside, LABELS), "".join(f"{label}\n" for label in labels).encode())
        for source, name in ((standalone_tokenizer.__file__, TOKENIZER), (standalone_tokenizer.FILE, _TABLE)):
            with open(source, "rb") as stream:
                _write(files.join(aside, name), stream.read())
        card = edge_card(bert, signature, quantization, len(content), labels)
        _write(files.join(aside, CARD), card.encode())
        _write(files.join(aside, MODEL), content)
    return len(content)


def convert(signature: Signature, quantization: str, origin: str) -> tuple[Signature, bytes]:
    """`(the signature, the content of a .tflite file with it)`; of one row only if the converter needs that.

    Args:
        signature: the signature `tokens`, whose dimensions can all be resized.
        quantization: how weights are stored, one of `QUANTIZATIONS`. Activations are float32.
        origin: the model, for messages.

    Raises:
        UserError: the function needs ops that LiteRT lacks.
    """
    one_row = tuple(tf.TensorSpec([1, *spec.shape[1:]], spec.dtype, name=spec.name) for spec in signature.inputs)
    reason = ""
    for inputs in (signature.inputs, one_row):  # The converter lowers an LSTM only if it knows the batch.
        tried = signature._replace(inputs=inputs)
        try:
            return tried, _converted(tried, quantization)
        except Exception as error:
            if type(error).__name__ != "ConverterError":  # It is not public.
                raise
            reason = str(error).strip().splitlines()[0][:200]
    raise UserError(
        f"{origin}: --format litert needs a model of LiteRT's own ops. Received: one that needs others ({reason}). "
        "Export it as a SavedModel."
    )


def _converted(signature: Signature, quantization: str) -> bytes:
    function, holder = signature.traced(), tf.Module()
    holder.variables_read = list(function.graph.variables)
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(holder, folder, signatures={TOKENS: function})
        converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=[TOKENS])
        if quantization != NONE:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if quantization == FLOAT16:
            converter.target_spec.supported_types = [tf.float16]
        return converter.convert()


def _write(path: str, content: bytes) -> None:
    with atomic_write(path, "wb") as stream:
        stream.write(content)
