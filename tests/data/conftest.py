"""Random shards, and functions that open sources of them."""

import pytest
from random_shards import numbered_vocabulary, open_source, write_shards


@pytest.fixture(scope="module")
def vocabulary():
    return numbered_vocabulary(3000)


@pytest.fixture(scope="module")
def shards(tmp_path_factory, vocabulary):
    shards = write_shards(tmp_path_factory.mktemp("data") / "shards", vocabulary, 60)
    assert len(shards.names) > 6
    return shards


@pytest.fixture(scope="module")
def plans_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("plans")


@pytest.fixture(scope="module")
def make_source(shards, vocabulary, plans_folder):
    def make(**options):
        return open_source(shards, vocabulary, plans_folder, **options)

    return make
