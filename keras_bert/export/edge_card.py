"""The card beside a LiteRT export: what goes in, what comes out, and how to run it from Python."""

from collections.abc import Sequence

import tensorflow as tf

from keras_bert.export.edge_signature import FLOAT16, INT8, NONE
from keras_bert.export.signature import Signature
from keras_bert.inference.loading import LoadedModel

_STORED = {
    NONE: "float32",
    FLOAT16: "float16; computed in float32",
    INT8: "8-bit integers with a scale for each row; activations stay float32",
}
# What an input besides the tokens may be in a row.
_EXAMPLES = {"masked_lm_positions": [1], "span_starts": [1, 3], "span_ends": [2, 4]}
_DIMENSIONS = {2: ("batch", "seq"), 3: ("batch", "choices", "seq")}

_CARD = """\
# {name} for LiteRT

`model.tflite` has the signature `tokens`. Weights: {stored}; {megabytes:.1f} MB. There is no signature on strings, for
which LiteRT has no ops: `tokenizer.py` makes the inputs in plain Python. `pip install ai-edge-litert` runs the model.

| input | type | shape |
| --- | --- | --- |
{inputs}

| output | type | shape |
| --- | --- | --- |
{outputs}

Dimensions with a name can be resized, `seq` up to {longest}; the model reads texts of up to {max_length} tokens. A row
with an id, segment or position out of range is answered with NaN and 0.

```python
import numpy as np
from ai_edge_litert.interpreter import Interpreter
from tokenizer import StandaloneTokenizer

tokenizer = StandaloneTokenizer.from_folder(".")
run = Interpreter("model.tflite", num_threads=2).get_signature_runner("tokens")
rows = tokenizer.encode({texts}, max_length={max_length})
outputs = run(**{{name: np.array({row}, "int32") for name, row in rows.items()}}{more})
```

| file | contents |
| --- | --- |
| `vocab.txt` | the pieces, one per line; the id is the line's number, from 0 |
{labels}| `tokenizer.py`, `character_table.npz` | the exact tokenizer, for Python without any package |
| `tokenizer_config.json`, `config.json` | its settings and the model's |
"""


def edge_card(bert: LoadedModel, signature: Signature, quantization: str, size: int, labels: Sequence[str]) -> str:
    """The text of README.md.

    Args:
        bert: the model.
        signature: what was exported.
        quantization: how weights are stored.
        size: the size of model.tflite in bytes.
        labels: the labels in the order of the logits; empty if there are none.
    """
    outputs = signature.traced().structured_outputs
    positions = bert.config.max_position_embeddings
    reading = bert.folder.reading
    has_choices = signature.inputs[0].shape.rank == 3
    more = "".join(f', {spec.name}=np.array([{_EXAMPLES[spec.name]}], "int32")' for spec in signature.inputs[3:])
    is_pair = reading.pair or has_choices or {"start_logits", "end_logits"} <= set(outputs)
    labels_row = "| `labels.txt` | the labels in the order of the logits, one per line |\n" if labels else ""
    return _CARD.format(
        name=bert.folder.other_fields.get("_name_or_path") or "BERT",
        stored=_STORED[quantization],
        megabytes=size / 1e6,
        inputs="\n".join(_row(spec.name, spec, _DIMENSIONS[spec.shape.rank]) for spec in signature.inputs[:3])
        + "".join("\n" + _row(spec.name, spec, ("batch", "masks")) for spec in signature.inputs[3:]),
        outputs="\n".join(_row(name, outputs[name], ("batch",)) for name in sorted(outputs)),
        longest=positions,
        texts='"a text", "the text it is paired with"' if is_pair else '"a text"',
        max_length=reading.max_length,
        row="[row]" if has_choices else "row",
        more=more,
        labels=labels_row,
    )


def _row(name: str, spec: tf.TensorSpec, dimensions: Sequence[str]) -> str:
    """A row of a table of tensors: known sizes as numbers, others by the names of the dimensions, or as `…`."""
    names = [*dimensions, *["…"] * spec.shape.rank][: spec.shape.rank]
    shape = ", ".join(name if size is None else str(size) for name, size in zip(names, spec.shape))
    return f"| `{name}` | {spec.dtype.name} | [{shape}] |"
