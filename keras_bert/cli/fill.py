"""`run.py fill`."""

import click

from keras_bert.checkpoints.model_folder import find_model_folder
from keras_bert.quiet import import_tensorflow


@click.command()
@click.option("--model", required=True, metavar="MODEL", help="A run folder or a model folder.")
@click.option("--top-k", type=click.IntRange(min=1), default=5, show_default=True, help="Candidates a [MASK].")
@click.argument("texts", nargs=-1, required=True, metavar="TEXT…")
@click.pass_context
def fill(context, model, top_k, texts):
    """Fill the [MASK]s of a text.

    \b
    Example:
      python run.py fill --model runs/demo "Return [MASK] if the two values are [MASK]."
    """
    find_model_folder(model)
    import_tensorflow(context.find_root().params["debug"])
    from keras_bert.models.loading import load

    for filling in load(model).predict(list(texts), top_k):
        click.echo(filling.text)
        for number, candidates in enumerate(filling.candidates, start=1):
            shown = "  ".join(f"{piece} {probability:.3f}" for piece, probability in candidates)
            click.echo(f"  [MASK] {number}: {shown}")
        click.echo(f"  → {filling.filled}")
