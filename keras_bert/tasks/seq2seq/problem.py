"""Texts to write for texts, as a task for fine-tuning."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_bert.config.reading import HEAD_TAIL, TRUNCATE, ReadingConfig
from keras_bert.core.errors import UserError
from keras_bert.data.batches.token_rows import TargetRows
from keras_bert.data.windows import windows
from keras_bert.inference.texts import require_numbers
from keras_bert.models.bert.config import BertConfig
from keras_bert.tasks.answer_files import json_line, with_texts
from keras_bert.tasks.problem import Layout, Problem, all_the_same
from keras_bert.tasks.seq2seq.data import Pair, Pairs
from keras_bert.tasks.seq2seq.network import TargetObjective, target_losses
from keras_bert.tasks.seq2seq.scores import require_packages, text_scores
from keras_bert.tasks.seq2seq.serving import written
from keras_bert.tasks.seq2seq.task import NAME, ConditionalGenerationConfig, WrittenText
from keras_bert.tasks.sequence_rows import SequenceRows
from keras_bert.tasks.task import Window
from keras_bert.text.detokenizer import Detokenizer
from keras_bert.training.step import Objective


class Seq2SeqProblem(Problem):
    """The task `seq2seq`. The answers are a `WrittenText` for each text.

    A row is the source, laid out like any text; its target has the special tokens of a text too, as in transformers.

    Raises:
        UserError: a package that a metric needs is not installed.
    """

    per_cent = True
    takes_noise = True
    long = (TRUNCATE, HEAD_TAIL)

    head: ConditionalGenerationConfig

    def _open(self) -> None:
        self._pairs: Pairs = self._source
        self._settings = self._config.seq2seq
        self._detokenizer = Detokenizer(self._tokenizer)
        if self.head is None:
            require_packages(self._settings.metrics)
        if self._config.training.lora_rank:
            raise UserError(f"training.lora_rank: needs a task on an encoder alone. Received: {NAME}. Leave it out.")

    def _new_head(self) -> ConditionalGenerationConfig:
        return ConditionalGenerationConfig()

    @property
    def objective(self) -> Objective:
        return TargetObjective(self._settings.label_smoothing)

    @property
    def splits(self) -> tuple[str, ...]:
        return self._pairs.splits

    @property
    def metric_names(self) -> tuple[str, ...]:
        return tuple(self._settings.metrics)

    def task_record(self) -> dict[str, Any]:
        data = {"format": self._config.data.format, "columns": self._config.data.columns}
        return {
            "task": NAME,
            "max_length": self._config.input.max_length,
            "long": self._config.input.long,
            "texts": [self._pairs.source],
            "label": self._pairs.target,
            **{name: value for name, value in data.items() if value},
            **{name: value for name, value in vars(self._settings).items() if value is not None},
        }

    def make_model(self, bert_config: BertConfig, dtype: str | None = None) -> keras.Model:
        most = bert_config.max_position_embeddings
        if self._settings.max_target_length > most:
            raise UserError(
                f"seq2seq.max_target_length: needs at most {most}, the model's max_position_embeddings. "
                f"Received: {self._settings.max_target_length}."
            )
        return super().make_model(bert_config, dtype)

    def answering(self, model: keras.Model) -> Callable[..., dict[str, tf.Tensor]]:
        """Function (batch) -> `ids` int32 [batch, n best, tokens], `scores` [batch, n best]; with targets `losses`."""

        def answer(batch: Mapping[str, tf.Tensor], training: bool = False) -> dict[str, tf.Tensor]:
            batch = {**batch, "encoder_states": model.encode(batch, training=training)}
            found = written(model, batch, self._settings, self._tokenizer.vocabulary, self._settings.n_best)
            shape = [-1, self._settings.n_best]
            outputs = {"ids": tf.reshape(found.ids, [*shape, found.ids.shape[1]])}
            outputs["scores"] = tf.reshape(found.scores, shape)
            if "target_ids" in batch:
                logits = model(batch, training=training)["logits"]
                outputs["losses"] = target_losses(logits, batch["target_ids"], self._settings.label_smoothing)
            return outputs

        return answer

    def windows(self, split: str, labelled: bool = False) -> Iterator[Window[Pair]]:
        for pairs in windows(self._pairs.read(split, labelled), lambda pair: len(pair.source)):
            yield Window(pairs, self._pairs.origin(split))

    def lay_out(self, windows: Iterable[Window[Pair]]) -> Layout:
        rows = SequenceRows(self._tokenizer, self._config.input)
        targets = SequenceRows(self._tokenizer, ReadingConfig(self._settings.max_target_length))
        origin, has_targets = "", False
        empty: list[str] = []
        for window in windows:
            sources = [pair.source for pair in window.examples]
            rows.add([list(map(self.noise, sources)) if self.noise else sources])
            if wanted := [pair.target for pair in window.examples if pair.target is not None]:
                targets.add([wanted])
                has_targets = True
            empty += [pair.place for pair in window.examples if not pair.source.strip()]
            origin = window.origin
        found = rows.rows()
        if has_targets:
            target_rows = targets.rows()
            found.targets = TargetRows(target_rows.ids, target_rows.starts)
        warnings = [f"{origin}: empty texts: {len(empty):,} (the first: {empty[0]})"] if empty else []
        return Layout(rows=found, origin=origin, warnings=warnings)

    def answers_of(self, layout: Layout, outputs: Mapping[str, Any]) -> list[WrittenText]:
        scores = np.asarray(outputs["scores"])
        require_numbers(scores)
        ids = np.asarray(outputs["ids"])
        texts = self._detokenizer.texts(ids.reshape(-1, ids.shape[-1]))
        count = ids.shape[1]
        return [WrittenText(texts[count * row : count * (row + 1)], scores[row].tolist()) for row in range(len(ids))]

    def evaluate(self, split: str, answers: Sequence[WrittenText]) -> dict[str, float]:
        _, wanted = self._texts(split)
        return text_scores(self._settings.metrics, [answer.text for answer in answers], wanted)

    def baseline(self, split: str) -> dict[str, float]:
        """The scores of copying the texts."""
        return text_scores(self._settings.metrics, *self._texts(split))

    def remarks(self, split: str, answers: Sequence[WrittenText]) -> Iterator[str]:
        texts = [answer.text for answer in answers]
        return all_the_same(texts, lambda text: f"For every text of {split} the same is written, {text[:40]!r}")

    def lines(self, split: str, window: Window[Pair], answers: Sequence[WrittenText]) -> Iterator[str]:
        """A JSON object per text: the text by its column, what is `written` and its `score`.

        If several texts are written for one, `n_best` has them all, each with its score.
        """
        for pair, answer in zip(window.examples, answers, strict=True):
            row: dict[str, Any] = {"written": answer.text, "score": answer.score}
            if len(answer.texts) > 1:
                found = zip(answer.texts, answer.scores)
                row["n_best"] = [{"written": text, "score": score} for text, score in found]
            yield json_line(with_texts({self._pairs.source: pair.source}, row))

    def _texts(self, split: str) -> tuple[list[str], list[str]]:
        """(the texts of a split, the texts to write for them)."""

        def read() -> tuple[list[str], list[str]]:
            pairs = [(pair.source, pair.target or "") for pair in self._pairs.read(split, True)]
            return [source for source, _ in pairs], [target for _, target in pairs]

        return self._once(("texts", split), read)
