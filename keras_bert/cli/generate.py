"""`run.py generate`."""

import click

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.cli.options import casing_option, load_tensorflow, model_option, require_utf8, setting_option
from keras_bert.config.inference import SamplingConfig, require_left_to_right
from keras_bert.config.recipes import given
from keras_bert.core.errors import UserError


@click.command()
@model_option
@setting_option(SamplingConfig, "max_tokens", has_default=True)
@setting_option(SamplingConfig, "temperature", has_default=True)
@setting_option(SamplingConfig, "top_k")
@setting_option(SamplingConfig, "top_p")
@setting_option(SamplingConfig, "seed", has_default=True)
@casing_option
@click.argument("texts", nargs=-1, required=True, metavar="TEXT…")
def generate(
    model: str,
    max_tokens: int,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    seed: int,
    lower_case: bool | None,
    texts: tuple[str, ...],
) -> None:
    """Continue texts with a left-to-right model.

    By default the most probable piece is added each time; --temperature draws one. A text ends where the model adds
    [SEP], or after --max-tokens.

    \b
    Example:
      python run.py generate --model runs/left_to_right_mini --temperature 0.8 --top-p 0.95 "The city is"
    """
    require_utf8(texts)
    options = {"max_tokens": max_tokens, "temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
    try:
        SamplingConfig(**given(options))
    except ValueError as error:
        raise UserError(f"--{str(error).replace('_', '-', 1)}") from None
    folder = open_model_folder(model, lower_case)  # Reports what is missing before TensorFlow is imported.
    require_left_to_right(folder.config, folder.name)
    load_tensorflow()
    from keras_bert.inference.loading import load_folder

    for continuation in load_folder(folder).generate(list(texts), **given(options)):
        click.echo(continuation.continued)
