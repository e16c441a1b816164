"""`run.py export`."""

import logging
import shlex
from typing import TYPE_CHECKING

import click

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.cli.options import casing_option, folder_to_write, load_tensorflow, model_option
from keras_bert.core.errors import UserError
from keras_bert.core.imports import require_extra
from keras_bert.core.locks import folder_taken
from keras_bert.core.terminal_bar import working
from keras_bert.models.bert.config import MASKED, NEXT
from keras_bert.models.kind import with_article
from keras_bert.tasks.kind import kind_of_head

if TYPE_CHECKING:
    from keras_bert.inference.loading import LoadedModel

_log = logging.getLogger(__name__)

SAVED_MODEL, LITERT, ONNX = "savedmodel", "litert", "onnx"
_ONLY_OF = {"quantize": LITERT, **dict.fromkeys(("dtype", "compute", "jit", "n_best"), SAVED_MODEL)}
_LISTED_BY = {
    "top_k": "a masked LM or a left-to-right model",
    "n_best": "a model that answers questions or writes texts",
}


@click.command()
@model_option
@click.option(
    "--output",
    required=True,
    metavar="DIR",
    callback=folder_to_write,
    help="Model folder for TensorFlow Serving, in which the next version is written; for other formats, the folder to "
    "write.",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice((SAVED_MODEL, LITERT, ONNX)),
    default=SAVED_MODEL,
    help="What to write: a SavedModel, a model for LiteRT (phones; docs/edge.md) or one in ONNX (docs/onnx.md).",
)
@click.option(
    "--quantize",
    type=click.Choice(("none", "float16", "int8")),
    default="none",
    help="For LiteRT: storage type of the weights. Activations are float32.",
)
@click.option(
    "--dtype",
    type=click.Choice(("float32", "bfloat16", "float16")),
    default="float32",
    help="For a SavedModel: storage type of the weights, whatever --compute is.",
)
@click.option(
    "--compute",
    type=click.Choice(("float32", "bfloat16")),
    default="float32",
    help="For a SavedModel: type of the encoder's matrix products. bfloat16 is faster on a server whose processor "
    "multiplies it (amx_bf16 or avx512_bf16 in /proc/cpuinfo) and slower on others.",
)
@click.option(
    "--jit",
    is_flag=True,
    help="For a SavedModel: compile requests of a single row with XLA, which TensorFlow Serving's CPU build lacks.",
)
@click.option("--encoder", "encoder_only", is_flag=True, help="Export the text encoder without the head.")
@click.option(
    "--top-k",
    type=click.IntRange(min=1),
    default=5,
    help="For a masked LM: pieces listed for each [MASK]; for a left-to-right model: pieces that may come next.",
)
@click.option(
    "--n-best",
    type=click.IntRange(min=1),
    default=5,
    help="For question answering: answers to each question; for a model that writes texts: texts for each input.",
)
@casing_option
@click.pass_context
def export(
    context: click.Context,
    model: str,
    output: str,
    kind: str,
    quantize: str,
    dtype: str,
    compute: str,
    jit: bool,
    encoder_only: bool,
    top_k: int,
    n_best: int,
    lower_case: bool | None,
) -> None:
    """Write a SavedModel for TensorFlow Serving (strings in, answers out), or one for LiteRT or in ONNX (tokens in).

    The first export is DIR/1/, the next DIR/2/. Each is self-contained. docs/serving.md lists the inputs and outputs of
    each kind of model, docs/edge.md those for LiteRT, docs/onnx.md those in ONNX.

    \b
    Example:
      python run.py export --model runs/demo --output served/demo
    """
    _require_options_of(context, kind)
    if kind == ONNX:
        require_extra("onnx", "--format onnx")  # Before weights are fetched from the hub.
    folder = open_model_folder(model, lower_case)
    _ = folder.reading  # Refuses invalid settings.
    load_tensorflow()
    from keras_bert.inference.loading import load_folder

    bert = load_folder(folder)
    _require_lists(context, bert, encoder_only)
    if kind != SAVED_MODEL:
        from keras_bert.export.litert import write_litert
        from keras_bert.export.onnx import write_onnx

        with folder_taken(output), working("Converting the model"):
            if kind == ONNX:
                size = write_onnx(output, bert, top_k, encoder_only)
            else:
                size = write_litert(output, bert, quantize, top_k, encoder_only)
        _log.info(f"Written: {output}, {size / 1e6:.1f} MB. Next: {output}/README.md says how to run it.")
        return
    from keras_bert.export.saved_model import write_version
    from keras_bert.export.serving_function import serving_function

    with working("Exporting the model"):
        function = serving_function(bert, dtype, jit, top_k, n_best, encoder_only, compute)
        version = write_version(output, function)
    for name, specs in function.inputs.items():
        _log.info(f"{name}: {', '.join(spec.name for spec in specs)} → {', '.join(function.outputs(name))}")
    _log.info(
        f"Written: {version}. Next: saved_model_cli show --dir {shlex.quote(version)} --all; "
        "docs/serving.md starts a server."
    )


def _require_options_of(context: click.Context, kind: str) -> None:
    """Raises `UserError` if an option was given that the format does not have."""
    for name, only in _ONLY_OF.items():
        if only != kind and _is_given(context, name):
            option = f"--{name.replace('_', '-')}"
            raise UserError(f"{option}: needs --format {only}. Received: --format {kind}. Give it, or leave this out.")


def _require_lists(context: click.Context, bert: "LoadedModel", encoder_only: bool) -> None:
    """Raises `UserError` if a length was given for a list that the export does not return."""
    head = None if encoder_only else bert.head
    has_list = {
        "top_k": bert.predicts in (MASKED, NEXT) and not encoder_only,
        "n_best": head is not None and kind_of_head(head).lists_answers,
    }
    for name, needed in _LISTED_BY.items():
        if not has_list[name] and _is_given(context, name):
            received = "--encoder" if encoder_only else with_article(type(bert.model).__name__)
            raise UserError(f"--{name.replace('_', '-')}: needs {needed}. Received: {received}. Leave it out.")


def _is_given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
