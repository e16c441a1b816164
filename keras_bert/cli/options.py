"""Options that several commands have."""

import click

casing_option = click.option(
    "--uncased/--cased",
    "lower_case",
    default=None,
    help="Whether the model lower-cases. Default: as its folder says, or, in Google's, as its vocabulary looks.",
)

text_option = click.option(
    "--input",
    "inputs",
    multiple=True,
    required=True,
    metavar="GLOB",
    help="Text: files, folders, quoted globs or tfds:NAME[/CONFIG][:SPLIT]. Repeatable.",
)
