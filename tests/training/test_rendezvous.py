"""Workers that come late are waited for; one that never comes is named."""

import concurrent.futures
import socket
import time

import pytest

from keras_bert.core.errors import UserError
from keras_bert.training.cluster import wait_for_workers


@pytest.fixture
def addresses():
    with socket.socket() as one, socket.socket() as other, socket.socket() as third:
        for free in (one, other, third):
            free.bind(("localhost", 0))
        return [f"localhost:{free.getsockname()[1]}" for free in (one, other, third)]


def test_a_worker_that_never_comes_is_named(addresses):
    with pytest.raises(UserError, match=f"of the 2 processes in TF_CONFIG, {addresses[1]} did not answer"):
        wait_for_workers(addresses[:2], 0, 0.5)


def test_late_ones_are_waited_for(addresses):
    """The first to have seen all goes on, as TensorFlow does, with its port open again."""

    def worker(index):
        time.sleep(0.5 * index)
        wait_for_workers(addresses, index, 20)
        with socket.create_server(("", int(addresses[index].rpartition(":")[2]))):
            time.sleep(3)
        return index

    with concurrent.futures.ThreadPoolExecutor(3) as threads:
        assert list(threads.map(worker, range(3))) == [0, 1, 2]


def test_a_port_that_is_taken_and_an_address_without_one_are_refused(addresses):
    with socket.create_server(("", int(addresses[0].rpartition(":")[2]))):
        with pytest.raises(UserError, match=f"cannot listen at {addresses[0]}, .*Free the port"):
            wait_for_workers(addresses, 0, 1)
    with pytest.raises(UserError, match="form host:port.* Received: 'localhost'"):
        wait_for_workers(["localhost", addresses[1]], 0, 1)
    with pytest.raises(UserError, match=r"\[host\]:port for IPv6. Received: '::1:2222'"):
        wait_for_workers([addresses[0], "::1:2222"], 0, 1)


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6 here")
def test_workers_known_by_ipv6_addresses_find_each_other(addresses):
    """In brackets, as TF_CONFIG has them; and one may be known by IPv4 all the same."""
    ports = [address.rpartition(":")[2] for address in addresses[:2]]
    named = [f"[::1]:{ports[0]}", f"127.0.0.1:{ports[1]}"]

    def worker(index):
        wait_for_workers(named, index, 10)
        with socket.create_server(("", int(ports[index])), family=socket.AF_INET6, dualstack_ipv6=True):
            time.sleep(2)

    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        list(threads.map(worker, range(2)))
