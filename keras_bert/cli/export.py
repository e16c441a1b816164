"""`run.py export`."""

import shlex

import click

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.cli.options import casing_option, folder_to_write, model_option
from keras_bert.config.reading import ReadingConfig
from keras_bert.quiet import import_tensorflow


@click.command()
@model_option
@click.option(
    "--output",
    required=True,
    metavar="DIR",
    callback=folder_to_write,
    help="Model folder for TensorFlow Serving. The next version is written to it.",
)
@click.option(
    "--dtype",
    type=click.Choice(("float32", "bfloat16", "float16")),
    default="float32",
    show_default=True,
    help="Storage type of the weights. Computation is in float32.",
)
@click.option(
    "--jit",
    is_flag=True,
    help="Compile requests of a single row with XLA. TensorFlow Serving's CPU build lacks XLA.",
)
@click.option("--encoder", "encoder_only", is_flag=True, help="Export the text encoder without the head.")
@click.option(
    "--top-k",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="For a masked LM: pieces listed for each [MASK].",
)
@click.option(
    "--n-best",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="For question answering: answers listed for each question.",
)
@casing_option
@click.pass_context
def export(
    context: click.Context,
    model: str,
    output: str,
    dtype: str,
    jit: bool,
    encoder_only: bool,
    top_k: int,
    n_best: int,
    lower_case: bool | None,
) -> None:
    """Write a SavedModel for TensorFlow Serving: strings in, answers out.

    \b
    The first export is DIR/1/, the next DIR/2/. Each is self-contained.
    docs/serving.md lists the inputs and outputs of each kind of model.

    \b
    Example:
      python run.py export --model runs/demo --output served/demo
    """
    folder = open_model_folder(model, lower_case)
    ReadingConfig.from_fields(folder.other_fields, folder.config.max_position_embeddings, f"{folder.path}/config.json")
    import_tensorflow(context.find_root().params["debug"])
    from keras_bert.export.saved_model import write_version
    from keras_bert.export.serving_function import serving_function
    from keras_bert.inference.loading import load_folder

    function = serving_function(load_folder(folder), dtype, jit, top_k, n_best, encoder_only)
    version = write_version(output, function)
    for name, specs in function.inputs.items():
        click.echo(f"{name}: {', '.join(spec.name for spec in specs)} → {', '.join(function.outputs(name))}")
    click.echo(
        f"Written: {version}. Next: saved_model_cli show --dir {shlex.quote(version)} --all; "
        "docs/serving.md starts a server."
    )
