"""The examples of docs/python.md and of README.md do run."""

import shlex

import pytest
from click.testing import CliRunner
from pages import blocks
from tiny import random_weights, tiny_config

from keras_bert.checkpoints.model_folder import write_model_folder
from keras_bert.cli import main
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary

WORDS = "the cat dog sat slept on mat a . ##s".split()


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_every_example_runs(page, tmp_path, monkeypatch):
    """In order and in one namespace, as a reader would; a message names the page and its line."""
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *WORDS])
    model = BertForPreTraining(tiny_config(vocab_size=len(vocabulary)))
    random_weights(model)
    write_model_folder(str(tmp_path / "runs" / "demo"), model, vocabulary, lower_case=True)
    monkeypatch.chdir(tmp_path)
    names, ran = {}, 0
    for language, content, line in blocks(page):
        if language == "python":
            # The empty lines in front make the numbers in a traceback those of the page.
            exec(compile("\n" * line + content, page, "exec"), names)
            ran += 1
        elif language == "sh":
            for command in content.splitlines():
                assert command.startswith("python run.py ")
                result = CliRunner().invoke(main, shlex.split(command)[2:])
                assert result.exit_code == 0, f"{page}: {command}: {result.output}"
    assert ran > 0
