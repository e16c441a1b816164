"""`run.py export`."""

import os

import click

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.cli.options import casing_option
from keras_bert.config.reading import ReadingConfig
from keras_bert.errors import UserError
from keras_bert.quiet import import_tensorflow


@click.command()
@click.option(
    "--model", required=True, metavar="MODEL", help="A run folder, or a folder of Hugging Face's or Google's."
)
@click.option(
    "--output", required=True, metavar="DIR", help="The model's folder for Serving; its next version is written there."
)
@click.option(
    "--dtype",
    type=click.Choice(("float32", "bfloat16", "float16")),
    default="float32",
    show_default=True,
    help="What weights are stored in. All is computed in float32.",
)
@click.option(
    "--jit", is_flag=True, help="Let XLA compile the network for single rows. Serving's CPU build has it off."
)
@click.option("--encoder", "encoder_only", is_flag=True, help="Export the vectors of texts, whatever head there is.")
@click.option(
    "--top-k", type=click.IntRange(min=1), default=5, show_default=True, help="A masked LM's pieces for a [MASK]."
)
@click.option(
    "--n-best", type=click.IntRange(min=1), default=5, show_default=True, help="Answers to a question about a passage."
)
@casing_option
@click.pass_context
def export(context, model, output, dtype, jit, encoder_only, top_k, n_best, lower_case):
    """Write a model as TensorFlow Serving runs it: strings in, answers out.

    \b
    DIR/1/ is the first version, DIR/2/ the next one. Nothing else is needed where it is served.
    What goes in and what comes out, for each kind of model, is in docs/serving.md.

    \b
    Example:
      python run.py export --model runs/demo --output served/demo
    """
    folder = open_model_folder(model, lower_case)
    ReadingConfig.from_fields(folder.other_fields, folder.config.max_position_embeddings, f"{folder.path}/config.json")
    if os.path.isfile(output):
        raise UserError(f"{output}: needs a folder. Received: a file. Give another DIR.")
    import_tensorflow(context.find_root().params["debug"])
    from keras_bert.export.saved_model import write_version
    from keras_bert.export.serving_function import serving_function
    from keras_bert.models.loading import load

    function = serving_function(load(model, lower_case), dtype, jit, top_k, n_best, encoder_only)
    version = write_version(output, function)
    for name, specs in function.inputs.items():
        click.echo(f"{name}: {', '.join(spec.name for spec in specs)} → {', '.join(function.outputs(name))}")
    click.echo(
        f"Written: {version}. Next: saved_model_cli show --dir {version} --all; docs/serving.md starts a server."
    )
