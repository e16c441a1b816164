"""What several tests of training begin from."""

import pytest
from corpus import write_corpus
from finetuning import write_sst2, write_tiny_bert


@pytest.fixture(scope="module")
def init(tmp_path_factory):
    """A model folder."""
    return write_tiny_bert(tmp_path_factory.mktemp("bert") / "model")


@pytest.fixture(scope="module")
def glue(tmp_path_factory):
    """A folder with SST-2 in small."""
    return write_sst2(tmp_path_factory.mktemp("glue"))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A text of made-up documents."""
    return write_corpus(tmp_path_factory.mktemp("corpus") / "text.txt")
