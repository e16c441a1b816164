"""What a finished fine-tuning run writes: the model folder, results.json and pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np

from keras_bert import extras
from keras_bert.checkpoints.model_writing import write_model_folder
from keras_bert.checkpoints.tokenizer_settings import TokenizerSettings
from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.tasks.finetuning.pictures import write_run_pictures
from keras_bert.tasks.model_cards import finetuning_card
from keras_bert.tasks.problem import Problem
from keras_bert.text.vocabulary import Vocabulary
from keras_bert.training.run_folder import RunFolder


def write_run_output(
    run: RunFolder,
    config: FinetuneConfig,
    model: keras.Model,
    vocabulary: Vocabulary,
    tokenizer: TokenizerSettings,
    problem: Problem,
    results: Mapping[str, Any],
    confusions: Mapping[str, np.ndarray],
    command: str | None,
    report: Callable[[str], object],
) -> None:
    """Writes all of it, results.json last, because it marks the run as finished.

    Args:
        run: the run's folder.
        config: the recipe.
        model: the trained model.
        vocabulary: its vocabulary.
        tokenizer: the settings of its tokenizer.
        problem: the task.
        results: the content of results.json.
        confusions: `{split: confusion matrix}` where the answers are classes.
        command: the command line, for the model card; None if unknown.
        report: receives one line of text at a time.
    """
    if extras.is_installed("matplotlib"):
        labels = problem.head.labels if confusions else ()
        write_run_pictures(run, config.name, confusions, labels, results["steps"])
    else:
        report("No pictures were drawn: matplotlib is missing. pip install 'bert-in-keras[plots]'")
    write_model_folder(
        run.model,
        model,
        vocabulary,
        **vars(tokenizer),
        head=problem.head,
        task=problem.described(),
        card=finetuning_card(config, run.path, results, command),
    )
    run.write_results(results)
    for line in results["warnings"]:
        report(line)
