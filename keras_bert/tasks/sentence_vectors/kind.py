"""Vectors of texts, compared by their cosine."""

from collections.abc import Collection, Mapping
from typing import Any

from keras_bert.checkpoints.names import StoredName, TensorName
from keras_bert.config.bert import BertConfig
from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.config.heads import SentenceVectorsConfig
from keras_bert.task_kinds import TaskKind
from keras_bert.tasks.sentence_vectors.tables import NAME, judging_table, training_table
from keras_bert.tasks.task import INPUT

PART = "similarity"


class SentenceVectors(TaskKind):
    """Pairs of texts that mean the same, brought together among the others of a batch.

    The encoder is what is trained; the only tensor of the head is the scale of the cosines.
    """

    head, part, tasks = SentenceVectorsConfig, PART, (NAME,)
    tensors = {
        PART: (
            TensorName(
                "similarity.log_scale",
                StoredName("keras_bert.similarity.log_scale"),
                StoredName("keras_bert/similarity/log_scale"),
            ),
        )
    }
    titles = {PART: "scale of the cosines"}
    in_transformers = False
    pipeline = "sentence-similarity"

    def make_model(self, config: BertConfig, head: SentenceVectorsConfig, **keras_options: Any) -> Any:
        from keras_bert.models.sentence_vectors import BertForSentenceVectors

        return BertForSentenceVectors(config, **keras_options)

    def signatures(self, bert: Any, text_inputs: Any, network: Any, n_best: int) -> dict[str, Any]:
        from keras_bert.export.sentence_vectors import sentence_vector_signatures

        return sentence_vector_signatures(text_inputs, network)

    def open_problem(
        self,
        config: FinetuneConfig,
        tokenizer: Any,
        head: SentenceVectorsConfig | None,
        described: Mapping[str, Any],
        own: Mapping[str, str],
    ) -> Any:
        from keras_bert.tasks.sentence_vectors.problem import ContrastiveProblem

        judge, source = judging_table(config.data, own)
        problem = ContrastiveProblem(judge, source, tokenizer, config, head, described)
        if INPUT not in own:
            problem.train_on(*training_table(config.data))
        return problem

    def card_example(self, fields: Mapping[str, Any]) -> str:
        return (
            'vectors = keras_bert.serving_function(bert)(["A cat sleeps.", "The cat is asleep."])["vectors"]\n'
            "print(vectors @ vectors.T)  # The cosines of all pairs."
        )

    def data_fields(self, task: str) -> Collection[str]:
        return ("texts", "label", "format", "columns", "positive")


KINDS = (SentenceVectors(),)
