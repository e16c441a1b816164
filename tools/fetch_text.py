"""Writes a data set's documents to a file, for the documentation's commands that read 'wiki/*'.

python tools/fetch_text.py tfds:wikipedia/20230601.simple wiki/simple.jsonl
"""

import json
import os
import sys

import click

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@click.command()
@click.argument("source")
@click.argument("output")
def main(source, output):
    """Write the text of SOURCE, such as tfds:NAME or hf:datasets/ORG/NAME, to OUTPUT as JSON lines."""
    from keras_bert.core.errors import UserError
    from keras_bert.core.whole_files import atomic_write
    from keras_bert.data.corpus.documents import Corpus

    try:
        with atomic_write(output) as stream:
            for document in Corpus([source]).documents("Written"):
                stream.write(json.dumps({"text": document}, ensure_ascii=False) + "\n")
    except UserError as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"Written: {output}, {os.path.getsize(output):,} bytes")


if __name__ == "__main__":
    main()
