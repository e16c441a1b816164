"""A served model under load: many clients, texts of mixed lengths, over gRPC.

    pip install -r requirements/dev.txt
    python tools/load_test.py served/sst2 --vocab vocab.txt [--clients 1,8,32] [--seconds 120] [--at HOST:PORT]

Starts tools/serve.py on the folder, or loads the server at --at, such as TensorFlow Serving with and without batching.
Every client sends one text after the other (lengths log-normal, as in SST-2) for so many seconds. Printed are, for each
number of clients: requests, errors, requests a second, milliseconds at the median and the 99th percentile, and the
server's memory before and after. Exits with status 1 if a request failed or was answered with a number that is not
finite.
"""

import argparse
import os
import subprocess
import sys
import threading
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import grpc
import numpy as np
import psutil
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", help="a model's folder, which holds its versions")
    parser.add_argument("--vocab", required=True, help="a vocab.txt, whose whole words make up the texts")
    parser.add_argument("--clients", default="1,8,32", help="each number in a test of its own")
    parser.add_argument("--seconds", type=float, default=30.0, help="of each test")
    parser.add_argument("--at", metavar="HOST:PORT", help="gRPC of a running server; by default one is started")
    parser.add_argument("--input", default="text", help="the name of the model's input of strings")
    arguments = parser.parse_args()
    words = [word for word in open(arguments.vocab, encoding="utf-8").read().split("\n") if word.isalpha()]
    server, address = (None, arguments.at) if arguments.at else start(arguments.folder)
    name = os.path.basename(os.path.normpath(arguments.folder))
    try:
        results = [
            load(address, name, arguments.input, words, int(clients), arguments.seconds, server)
            for clients in arguments.clients.split(",")
        ]
    finally:
        if server:
            server.kill()
            server.wait()
    sys.exit(any(result["errors"] for result in results))


def start(folder):
    """(the process of tools/serve.py on a folder, the address of its gRPC)."""
    command = [sys.executable, os.path.join(HERE, "serve.py"), folder, "--port", "0", "--rest-port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    line = server.stdout.readline()
    if "gRPC " not in line:
        sys.exit(f"{folder}: the server did not start.")
    return server, f"127.0.0.1:{line.split('gRPC ')[1].split(',')[0]}"


def load(address, name, input_name, words, clients, seconds, server=None):
    """Loads a server and prints a line.

    Returns: `requests`, `errors`, `rate` (requests a second), `p50` and `p99` in milliseconds, and, of a server that
        was started here, the `memory` in MB before and after.
    """
    memory = [resident(server)]
    end = time.perf_counter() + seconds
    found = [([], []) for _ in range(clients)]
    threads = [
        threading.Thread(target=client, args=(address, name, input_name, words, number, end, *found[number]))
        for number in range(clients)
    ]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - begin
    times, errors = (sum(column, []) for column in zip(*found))
    memory.append(resident(server))
    p50, p99 = np.quantile(times, [0.5, 0.99]) * 1000 if times else (np.nan, np.nan)
    result = {"requests": len(times), "errors": len(errors), "rate": len(times) / took, "p50": p50, "p99": p99}
    shown = f", {memory[0]:.0f} to {memory[1]:.0f} MB" if server else ""
    print(
        f"{clients} clients: {len(times):,} requests, {len(errors)} errors, {result['rate']:.1f} a second, "
        f"p50 {p50:.1f} ms, p99 {p99:.1f} ms{shown}",
        flush=True,
    )
    for error in errors[:3]:
        print(f"  {error}")
    return {**result, "memory": memory}


def client(address, name, input_name, words, seed, end, times, errors):
    """Sends one request after the other until `end`, and appends its seconds or its error."""
    rng = np.random.default_rng(seed)
    with grpc.insecure_channel(address) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        while time.perf_counter() < end:
            length = int(np.clip(rng.lognormal(np.log(13), 0.6), 1, 66))
            request = predict_pb2.PredictRequest()
            request.model_spec.name = name
            request.inputs[input_name].CopyFrom(tf.make_tensor_proto([" ".join(rng.choice(words, length))]))
            began = time.perf_counter()
            try:
                response = stub.Predict(request, timeout=60)
            except grpc.RpcError as error:
                errors.append(f"{error.code()}: {error.details()}")
                continue
            arrays = [tf.make_ndarray(value) for value in response.outputs.values()]
            if all(np.isfinite(array).all() for array in arrays if array.dtype.kind == "f"):
                times.append(time.perf_counter() - began)
            else:
                errors.append("an output is not finite")


def resident(server):
    """The memory of a server's process in MB."""
    return psutil.Process(server.pid).memory_info().rss / 1e6 if server else float("nan")


if __name__ == "__main__":
    main()
