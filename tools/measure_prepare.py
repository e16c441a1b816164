"""Speed and memory of `prepare` at two sizes of text: memory must not grow with the text.

    python tools/measure_prepare.py --vocab vocab.txt wiki_00 wiki_01.gz
    python tools/measure_prepare.py --vocab vocab.txt --megabytes 200 --parts 8 --runner direct --repeats 3 wiki_0*

The text is the files', repeated until it is large enough, with every tenth word exchanged for another one of the same
document, so that no document occurs twice. Memory is the peak of all processes together, with shared pages counted in
each. The time is the command's own, from start to end; the processor's seconds, of all processes together, show the
cost even if other work runs on the machine.
"""

import gzip
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import click
import numpy as np
import psutil

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

from keras_bert.data.corpus.documents import Corpus  # noqa: E402

CHANGED_SHARE = 0.1
SECONDS_BETWEEN_LOOKS = 0.1


def write_text(path, documents, megabytes):
    """Writes documents, their words varied, until there are `megabytes` million bytes; returns the bytes written."""
    generator = random.Random(0)
    written = 0
    with open(path, "wb") as stream:
        while True:
            for document in documents:
                words = document.split(" ")
                for _ in range(max(1, int(CHANGED_SHARE * len(words)))):
                    words[generator.randrange(len(words))] = generator.choice(words)
                # A paragraph's blank line would end the document in a plain file.
                block = " ".join(words).replace("\n\n", "\n").encode("utf-8") + b"\n\n"
                stream.write(block)
                written += len(block)
                if written >= megabytes * 1e6:
                    return written


def tree_memory(process):
    """Bytes of a process and of all that it started."""
    total = 0
    for member in [process, *process.children(recursive=True)]:
        try:
            total += member.memory_info().rss
        except psutil.NoSuchProcess:
            pass
    return total


def processor_seconds():
    """The processor's seconds of all processes that have ended, their own ended children included."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(arguments):
    """(seconds, seconds of the processor, peak bytes) of `run.py prepare`."""
    started_at, used = time.perf_counter(), processor_seconds()
    command = [sys.executable, os.path.join(ROOT, "run.py"), "prepare", *arguments]
    with tempfile.TemporaryFile("w+") as output:
        running = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        process, peak = psutil.Process(running.pid), 0
        while running.poll() is None:
            try:
                peak = max(peak, tree_memory(process))
            except psutil.NoSuchProcess:
                break
            time.sleep(SECONDS_BETWEEN_LOOKS)
        running.wait()
        seconds = time.perf_counter() - started_at
        output.seek(0)
        if running.returncode:
            raise click.ClickException(output.read())
        return seconds, processor_seconds() - used, peak


def divided(path, count, folder):
    """Copies a text into `count` gzip files between documents, and returns the folder; a single file stays as it is."""
    if count == 1:
        return path
    os.makedirs(folder)
    with open(path, "rb") as stream:
        blocks = stream.read().split(b"\n\n")
    for number in range(count):
        part = b"\n\n".join(blocks[len(blocks) * number // count : len(blocks) * (number + 1) // count])
        with gzip.open(os.path.join(folder, f"{number:03d}.gz"), "wb", 6) as stream:
            stream.write(part)
    return folder


@click.command()
@click.argument("files", nargs=-1, required=True)
@click.option("--vocab", required=True, help="The vocab.txt.")
@click.option("--workers", default=0, show_default=True, help="As for prepare.")
@click.option("--megabytes", multiple=True, default=[10, 200], show_default=True, help="Sizes of text. Repeatable.")
@click.option("--parts", default=1, show_default=True, help="Divide the text into this many gzip files.")
@click.option("--runner", help="Compare with prepare --runner, each in turn.")
@click.option("--repeats", default=1, show_default=True, help="How often each is measured.")
def main(files, vocab, workers, megabytes, parts, runner, repeats):
    documents = list(Corpus(files).documents())
    ways = {"plain": []} | ({f"--runner {runner}": ["--runner", runner]} if runner else {})
    with tempfile.TemporaryDirectory() as folder:
        for size in megabytes:
            text = os.path.join(folder, f"{size}.txt")
            written = write_text(text, documents, size)
            text = divided(text, parts, os.path.join(folder, f"{size}"))
            figures = {way: [] for way in ways}
            for way, options in list(ways.items()) * repeats:
                shards = os.path.join(folder, "shards")
                seconds, processor, peak = measure(
                    ["--input", text, "--vocab", vocab, "--output", shards, "--workers", str(workers), *options]
                )
                shutil.rmtree(shards)
                figures[way].append((seconds, processor))
                click.echo(
                    f"{written / 1e6:6.0f} MB, {way}: {seconds:6.1f} s, {written / 1e6 / seconds:5.1f} MB/s; "
                    f"{processor:6.1f} s of the processor, {written / 1e6 / processor:5.1f} MB each; "
                    f"at most {peak / 1e6:,.0f} MB of memory"
                )
            if runner:
                plain, beam = (np.median(figures[way], axis=0) for way in ways)
                click.echo(
                    f"{written / 1e6:6.0f} MB, speed of --runner {runner} against plain, medians: "
                    f"{plain[0] / beam[0]:.2f} by the clock, {plain[1] / beam[1]:.2f} by the processor"
                )


if __name__ == "__main__":
    main()
