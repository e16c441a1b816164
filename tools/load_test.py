"""A served model under load: many clients, texts of mixed lengths, over gRPC.

    pip install -r requirements/dev.txt
    python tools/load_test.py served/sst2 --vocab vocab.txt [--clients 1,8,32] [--seconds 120] [--at HOST:PORT]
        [--batching served/sst2/batching.config] [--intra-op-threads 1] [--swaps 3] [--hostile]

Starts tools/serve.py on the folder, or puts load on the server at --at, such as TensorFlow Serving with and without
batching. Every client sends one text after the other (lengths log-normal, as in SST-2) for --seconds. With --swaps a
copy of the folder is served, in which that many new versions appear, evenly over each test. --hostile adds a client
that sends what a fuzzer would (tools/hostile_requests.py): each request has to be answered, or refused as the caller's
fault. For each number of clients it prints requests, errors, requests per second, milliseconds at the median and the
99th percentile, the server's memory before and after and its slope in MB per hour (least squares over the second half),
and how many requests each version answered. Exits with status 1 if a request failed or was answered with a number that
is not finite, or if a new version answered none.
"""

import argparse
import collections
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import prediction_service_pb2_grpc

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from tools.hostile_requests import REFUSALS, messages, text_request, texts  # noqa: E402
from tools.own_memory import own_memory, slope  # noqa: E402

SECONDS_TO_SWAP = 60  # The time a new version may take to answer.
SECONDS_TO_ANSWER = 60
SECONDS_BETWEEN_LOOKS = 1.0


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", help="a model's folder, which holds its versions")
    parser.add_argument("--vocab", required=True, help="a vocab.txt, whose whole words make up the texts")
    parser.add_argument("--clients", default="1,8,32", help="numbers of clients, each in a test of its own")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long each test lasts")
    parser.add_argument("--at", metavar="HOST:PORT", help="gRPC of a running server; by default one is started")
    parser.add_argument("--input", default="text", help="the name of the model's input of strings")
    parser.add_argument("--batching", metavar="FILE", help="how the server started here merges waiting requests")
    parser.add_argument(
        "--intra-op-threads", type=int, default=0, help="threads of one op in the server started here; 0: all cores"
    )
    parser.add_argument("--swaps", type=int, default=0, metavar="N", help="versions to add during each test")
    parser.add_argument("--hostile", action="store_true", help="add a client that sends what a fuzzer would")
    arguments = parser.parse_args()
    if arguments.swaps and arguments.at:
        parser.error("--swaps: needs a server that is started here, so no --at.")
    words = [word for word in open(arguments.vocab, encoding="utf-8").read().split("\n") if word.isalpha()]
    if not words:
        parser.error(f"--vocab: needs a vocab.txt with whole words, one a line. Received: none in {arguments.vocab}.")
    name = os.path.basename(os.path.abspath(arguments.folder))
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder
        if arguments.swaps:
            folder = shutil.copytree(folder, os.path.join(temporary, name))
        server, address = None, arguments.at
        if not address:
            server, address = start(folder, arguments.batching, arguments.intra_op_threads)
        try:
            results = [
                load(
                    address,
                    name,
                    arguments.input,
                    words,
                    int(clients),
                    arguments.seconds,
                    server,
                    folder if arguments.swaps else None,
                    arguments.swaps,
                    arguments.hostile,
                )
                for clients in arguments.clients.split(",")
            ]
        finally:
            if server:
                server.kill()
                server.wait()
    sys.exit(any(result["errors"] or len(result["versions"]) <= arguments.swaps for result in results))


def start(folder, batching=None, intra_op_threads=0):
    """(the process of tools/serve.py on a folder, the address of its gRPC)."""
    command = [sys.executable, os.path.join(HERE, "serve.py"), folder, "--port", "0", "--rest-port", "0"]
    command += ["--intra-op-threads", str(intra_op_threads)]
    command += ["--batching", batching] if batching else []
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    line = server.stdout.readline()
    if "gRPC " not in line:
        sys.exit(f"{folder}: the server did not start.")
    return server, f"127.0.0.1:{line.split('gRPC ')[1].split(',')[0]}"


def add_version(folder):
    """Copies the highest version in a model's folder as the next one, whole or not at all; returns its number."""
    highest = max(int(entry) for entry in os.listdir(folder) if entry.isdecimal())
    copy = shutil.copytree(os.path.join(folder, str(highest)), os.path.join(folder, "copying"))
    os.rename(copy, os.path.join(folder, str(highest + 1)))
    return highest + 1


def load(address, name, input_name, words, clients, seconds, server=None, swapped=None, swaps=1, hostile=False):
    """Puts load on a server and prints a line.

    Args:
        swapped: the model's folder, in which `swaps` new versions are to appear, evenly over the seconds. The next part
            of the seconds begins when the version answers, because a busy machine takes long to load it.
        hostile: adds a client that sends what a fuzzer would.

    Returns: `requests`, `errors`, `rate` (requests per second), `p50` and `p99` in milliseconds, `versions` (`{version:
        the requests that it answered}`), `hostile` (`{answered or a status: hostile requests}`) and, for a server that
        was started here, the `memory` in MB before and after, and its `slope` in MB per hour.
    """
    memory, is_over = [resident(server)], threading.Event()
    found, answered_hostile = [([], []) for _ in range(clients)], collections.Counter()
    threads = [
        threading.Thread(target=client, args=(address, name, input_name, words, number, is_over, *found[number]))
        for number in range(clients)
    ]
    if hostile:
        found.append(([], []))
        threads.append(
            threading.Thread(
                target=hostile_client, args=(address, name, input_name, is_over, answered_hostile, found[-1][1])
            )
        )
    samples = []
    watcher = threading.Thread(target=watch, args=(server, is_over, samples)) if server else None
    begin = time.perf_counter()
    for thread in [*threads, *([watcher] if watcher else [])]:
        thread.start()
    parts = swaps + 1 if swapped else 1
    for part in range(parts):
        time.sleep(seconds / parts)
        if part + 1 < parts:
            added, latest = add_version(swapped), time.perf_counter() + SECONDS_TO_SWAP
            while time.perf_counter() < latest and not any(answers and answers[-1][1] >= added for answers, _ in found):
                time.sleep(0.1)
    is_over.set()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - begin
    answers, errors = (sum(column, []) for column in zip(*found))
    times, versions = [seconds for seconds, _ in answers], collections.Counter(version for _, version in answers)
    memory.append(resident(server))
    p50, p99 = np.quantile(times, [0.5, 0.99]) * 1000 if times else (np.nan, np.nan)
    result = {"requests": len(times), "errors": len(errors), "rate": len(times) / took, "p50": p50, "p99": p99}
    grows = slope(samples[len(samples) // 2 :])
    shown = f", {memory[0]:.0f} to {memory[1]:.0f} MB, {grows:+.1f} MB an hour" if server else ""
    if len(versions) > 1:
        shown += "".join(f", {number:,} by version {version}" for version, number in sorted(versions.items()))
    if hostile:
        shown += f", {answered_hostile.total():,} hostile: " + ", ".join(
            f"{number:,} {status}" for status, number in answered_hostile.most_common()
        )
    print(
        f"{clients} clients: {len(times):,} requests, {len(errors)} errors, {result['rate']:.1f} a second, "
        f"p50 {p50:.1f} ms, p99 {p99:.1f} ms{shown}",
        flush=True,
    )
    for error in errors[:3]:
        print(f"  {error}")
    return {**result, "versions": versions, "hostile": answered_hostile, "memory": memory, "slope": grows}


def watch(server, is_over, samples):
    """Appends (seconds, MB) for the server's process until `is_over` is set."""
    while not is_over.wait(SECONDS_BETWEEN_LOOKS):
        samples.append((time.perf_counter(), resident(server)))


def client(address, name, input_name, words, seed, is_over, answers, errors):
    """Sends one request after the other until `is_over` is set; appends (its seconds, the version) or its error."""
    rng = np.random.default_rng(seed)
    with grpc.insecure_channel(address) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        while not is_over.is_set():
            length = int(np.clip(rng.lognormal(np.log(13), 0.6), 1, 66))
            request = text_request(name, input_name, " ".join(rng.choice(words, length)))
            started_at = time.perf_counter()
            try:
                response = stub.Predict(request, timeout=SECONDS_TO_ANSWER)
            except grpc.RpcError as error:
                errors.append(f"{error.code()}: {error.details()}")
                continue
            if is_finite(response):
                answers.append((time.perf_counter() - started_at, response.model_spec.version.value))
            else:
                errors.append("an output is not finite")


def hostile_client(address, name, input_name, is_over, counts, errors):
    """Sends what a fuzzer would until `is_over` is set; counts answers and refusals, and appends everything else."""
    rng = np.random.default_rng(0)
    with grpc.insecure_channel(address) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        while not is_over.is_set():
            broken = {what: text_request(name, input_name, text) for what, text in texts(rng).items()}
            for what, request in {**broken, **messages(rng, name, input_name)}.items():
                try:
                    is_right, status = is_finite(stub.Predict(request, timeout=SECONDS_TO_ANSWER)), "answered"
                except grpc.RpcError as error:
                    status = error.code().name
                    is_right = what not in broken and status in REFUSALS
                counts[status] += 1
                if not is_right:
                    errors.append(f"{what}: {status}")


def is_finite(response):
    arrays = [tf.make_ndarray(value) for value in response.outputs.values()]
    return all(np.isfinite(array).all() for array in arrays if array.dtype.kind == "f")


def resident(server):
    """The memory of a server's process in MB."""
    return own_memory(server.pid) if server else float("nan")


if __name__ == "__main__":
    main()
