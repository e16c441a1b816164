"""The training losses of several runs in one picture.

python tools/plot_losses.py --output losses.png scratch=runs/a mini=runs/b MiniLM=runs/c
"""

import os
import sys

import click

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="NAME=RUN…")
@click.option("--output", required=True, metavar="FILE.png")
@click.option("--title", default="")
@click.option("--smoothed", default=1, show_default=True, help="Logged figures that the drawn one is the mean of.")
def main(runs, output, title, smoothed):
    """Draw the losses of runs of any kind over their steps."""
    from keras_bert.core.whole_files import atomic_write
    from keras_bert.tasks.finetuning.pictures import loss_picture
    from keras_bert.training.metrics_log import read_metrics
    from keras_bert.training.run_folder import RunFolder

    found = {}
    for text in runs:
        name, equals, path = text.partition("=")
        lines = read_metrics(RunFolder(path).metrics_file)
        if not equals or not lines:
            raise click.ClickException(f"{text}: needs NAME=RUN with the folder of a run that has logged something.")
        if name in found:
            raise click.ClickException(f"{text}: needs a name of its own. Received: one of another run.")
        found[name] = lines
    with atomic_write(output, "wb") as stream:
        stream.write(loss_picture(found, title, smoothed))
    click.echo(f"Written: {output}")


if __name__ == "__main__":
    main()
