"""The shared beginnings of training tests.

Given files, pytest also reads this in the process that hands them to its workers, which needs no TensorFlow. Imports
that need it are therefore in the fixtures.
"""

import pytest
from corpus import write_corpus


@pytest.fixture(scope="module")
def init(tmp_path_factory):
    """A model folder."""
    from finetuning import write_tiny_bert

    return write_tiny_bert(tmp_path_factory.mktemp("bert") / "model")


@pytest.fixture(scope="module")
def glue(tmp_path_factory):
    """A folder with a small SST-2."""
    from finetuning import write_sst2

    return write_sst2(tmp_path_factory.mktemp("glue"))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A text of made-up documents."""
    return write_corpus(tmp_path_factory.mktemp("corpus") / "text.txt")
