"""What benchmarks compare: programs that live in processes of their own and sleep while it is not their turn."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
_FLAG = "--contestant"


class Contestant:
    """A process of the script that makes it, which answers when asked.

    Args:
        name: what the script's `serve` is called with, beside the settings.
        settings: JSON values.
        threads: for OpenMP.
        environment: variables of its own.
    """

    def __init__(self, name, settings, threads, **environment):
        self._name = name
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", os.path.abspath(sys.argv[0]), _FLAG, name, json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "OMP_NUM_THREADS": str(threads),
                "TF_CPP_MIN_LOG_LEVEL": "3",
                "TOKENIZERS_PARALLELISM": "false",
                **environment,
            },
        )

    def ask(self, request=None):
        """Its answer to one request; both are JSON values."""
        print(json.dumps(request), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"{self._name} ended early. Run: {' '.join(self._process.args)}")
        return json.loads(line)

    def close(self):
        self._process.stdin.close()
        self._process.wait()


def run(main, serve):
    """`main()`, or, in a contestant's process, `serve(name, settings, scratch)`.

    `serve` makes whatever takes time and returns a function from a request to an answer. What it prints is not seen;
    the folder `scratch` exists as long as the contestant.
    """
    if _FLAG not in sys.argv:
        return main()
    name, settings = sys.argv[sys.argv.index(_FLAG) + 1 :]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with tempfile.TemporaryDirectory() as scratch:
        answer = serve(name, json.loads(settings), scratch)
        for line in sys.stdin:
            print(json.dumps(answer(json.loads(line))), file=answers, flush=True)


def spread(values, digits):
    """Median and quartiles of one value or more, as text."""
    low, _, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return f"{statistics.median(values):.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"
