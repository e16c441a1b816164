"""What reading and filtering text costs: megabytes per CPU second, without filters, with each, and with C4's.

    python tools/measure_filters.py web.jsonl.gz
    python tools/measure_filters.py --formats wiki.xml.bz2 page.warc.wet.gz

Text is counted in UTF-8 bytes, before filtering. `prepare` reads and filters in one process; its other processes
tokenize.
"""

import dataclasses
import os
import resource
import statistics
import sys
import time

import click

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

from keras_bert.config.corpus import CorpusConfig, FilterConfig, extended_filters
from keras_bert.core import settings
from keras_bert.data.corpus.documents import Corpus

C4 = settings.from_mapping(FilterConfig, extended_filters("c4"))


def read(files, filters):
    """(CPU seconds, UTF-8 bytes of the documents, documents) of one reading."""
    corpus = Corpus(files, CorpusConfig(broken_lines="skip", filters=filters))
    started_at = time.process_time()
    written = documents = 0
    for document in corpus.documents():
        written += len(document.encode())
        documents += 1
    return time.process_time() - started_at, written, documents


@click.command()
@click.argument("files", nargs=-1, required=True)
@click.option("--bad-words", help="A list of words, for that filter.")
@click.option("--turns", default=3, show_default=True, help="Readings of each kind, in turns; medians count.")
@click.option("--formats", is_flag=True, help="Only read each file, without filters.")
def main(files, bad_words, turns, formats):
    if formats:
        for path in files:
            seconds, size, documents = read([path], FilterConfig())
            stored = os.path.getsize(path)
            click.echo(
                f"{path}: {stored / 1e6:.1f} MB hold {documents:,} documents, {size / 1e6:.1f} MB of text; "
                f"{size / 1e6 / seconds:.1f} MB of text per CPU second"
            )
        return
    kinds = {"no filter": FilterConfig()}
    for field in dataclasses.fields(FilterConfig):
        value = bad_words if field.name == "bad_words" else getattr(C4, field.name)
        if value:
            kinds[field.name] = FilterConfig(**{field.name: value})
    kinds["C4's, without repeated_spans"] = dataclasses.replace(C4, repeated_spans=0)
    kinds["C4's"] = C4
    if bad_words:
        kinds["C4's and bad_words"] = dataclasses.replace(C4, bad_words=bad_words)
    found = {name: [] for name in kinds}
    for _ in range(turns):
        for name, filters in kinds.items():
            found[name].append(read(files, filters))
    size = found["no filter"][0][1]
    plain = statistics.median(seconds for seconds, _, _ in found["no filter"])
    click.echo(f"{size / 1e6:.1f} MB of text, {found['no filter'][0][2]:,} documents")
    for name, results in found.items():
        seconds = statistics.median(seconds for seconds, _, _ in results)
        click.echo(
            f"{name:30} {size / 1e6 / seconds:6.1f} MB per CPU second, {1e9 * (seconds - plain) / size:6.1f} ms more "
            f"per MB; keeps {results[0][1] / size:6.1%} of the text, {results[0][2]:,} documents"
        )
    click.echo(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")


if __name__ == "__main__":
    main()
