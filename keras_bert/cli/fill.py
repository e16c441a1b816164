"""`run.py fill`."""

import click

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.cli.options import casing_option, load_tensorflow, model_option, require_utf8


@click.command()
@model_option
@click.option("--top-k", type=click.IntRange(min=1), default=5, help="Candidates listed for each [MASK].")
@casing_option
@click.argument("texts", nargs=-1, required=True, metavar="TEXT…")
def fill(model: str, top_k: int, lower_case: bool | None, texts: tuple[str, ...]) -> None:
    """Fill in the [MASK]s of a text.

    \b
    Example:
      python run.py fill --model runs/demo "Return [MASK] if the two values are [MASK]."
    """
    require_utf8(texts)
    folder = open_model_folder(model, lower_case)  # Reports missing files before TensorFlow is imported.
    load_tensorflow()
    from keras_bert.inference.loading import load_folder

    for filling in load_folder(folder).fill(list(texts), top_k):
        click.echo(filling.text)
        for number, candidates in enumerate(filling.candidates, start=1):
            shown = "  ".join(f"{piece} {probability:.3f}" for piece, probability in candidates)
            click.echo(f"  [MASK] {number}: {shown}")
        click.echo(f"  → {filling.filled}")
