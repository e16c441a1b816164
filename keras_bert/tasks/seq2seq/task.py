"""Writing a text for a text, with an encoder and a decoder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from keras_bert.checkpoints.generation import GENERATION
from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.config.reading import own_field
from keras_bert.core.errors import UserError
from keras_bert.models.bert.config import DECODER_TOKENS
from keras_bert.models.kind import kind_of_config
from keras_bert.tasks.head import Head, HeadT
from keras_bert.tasks.kind import TaskKind
from keras_bert.tasks.shown_answers import shown
from keras_bert.tasks.task import PublishedScore

NAME = "seq2seq"


@dataclass(frozen=True)
class ConditionalGenerationConfig(Head):
    """The head of a `BertForConditionalGeneration`: the decoder, which the model's own config describes."""

    architecture: ClassVar[str] = "BertForConditionalGeneration"
    outputs: ClassVar[tuple[str, ...]] = ("tokens",)

    @classmethod
    def from_fields(cls: type[HeadT], fields: Mapping[str, Any], num_outputs: int, path: str) -> HeadT:
        return cls()


@dataclass(frozen=True)
class Seq2SeqTask:
    """The task as data: its name, as in `--task NAME`, and published scores."""

    name: str = NAME
    published: tuple[PublishedScore, ...] = ()


@dataclass(frozen=True)
class WrittenText:
    """What a model wrote for a text: in Python one text per beam, five at most; in a run `seq2seq.n_best` texts.

    Attributes:
        texts: the texts, the best first.
        scores: the sum of each text's log-probabilities of tokens; with beams, divided by the penalty of its length.
    """

    texts: list[str]
    scores: list[float]

    @property
    def text(self) -> str:
        """The best text."""
        return self.texts[0]

    @property
    def score(self) -> float:
        """The score of the best text."""
        return self.scores[0]


_IN_TRANSFORMERS = """\
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer, model = AutoTokenizer.from_pretrained("."), AutoModelForSeq2SeqLM.from_pretrained(".")
inputs = tokenizer("A text to read.", return_tensors="pt")
print(tokenizer.decode(model.generate(**inputs)[0], skip_special_tokens=True))"""


class Seq2Seq(TaskKind):
    """A text for each text, such as its title, its correction or its translation."""

    head, part, tasks = ConditionalGenerationConfig, "decoder", (NAME,)
    model = "keras_bert.tasks.seq2seq.network:BertForConditionalGeneration"
    own_task = NAME
    writes_texts = lists_answers = True
    not_portable = "a model that answers in one pass"
    pipeline = "text2text-generation"
    reads = ("texts", "label", "format", "columns", "dev_share")
    noun = "texts"
    baseline = "copy"

    def signatures(self, bert: Any, text_inputs: Any, network: Any, n_best: int) -> dict[str, Any]:
        from keras_bert.tasks.seq2seq.serving import seq2seq_signatures

        return seq2seq_signatures(bert, text_inputs, network, n_best)

    def open_problem(
        self, config: FinetuneConfig, tokenizer: Any, head: Any, task_record: Mapping[str, Any], own: Mapping[str, str]
    ) -> Any:
        from keras_bert.tasks.seq2seq.data import Pairs
        from keras_bert.tasks.seq2seq.problem import Seq2SeqProblem

        return Seq2SeqProblem(Seq2SeqTask(), Pairs(config.data, own), tokenizer, config, head, task_record)

    def folder_files(self, config: Any, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """generation_config.json, with which transformers' `generate` writes as the recipe says."""
        own = own_field(fields)
        if "max_target_length" not in own:
            return {}
        tokens = {name: getattr(config, name, None) for name in DECODER_TOKENS}
        values = {
            **tokens,
            "pad_token_id": fields["pad_token_id"],
            "eos_token_id": fields["eos_token_id"],
            "max_length": 1 + own["max_target_length"],  # transformers counts the token that a text starts with.
            "min_new_tokens": own.get("min_target_length") or None,
            "num_beams": own["beams"],
            "length_penalty": own["length_penalty"],
            "early_stopping": own.get("early_stopping"),
            "no_repeat_ngram_size": own.get("no_repeat_ngram"),
        }
        return {GENERATION: {name: value for name, value in values.items() if value is not None}}

    def card_example(self, fields: Mapping[str, Any]) -> str:
        return 'print(bert.predict(["A text to read."])[0].text)'

    def transformers_example(self, fields: Mapping[str, Any]) -> str:
        return _IN_TRANSFORMERS

    def answer(self, bert: Any, examples: Sequence[Any]) -> list[Any]:
        from keras_bert.export.serving_function import signatures_of
        from keras_bert.inference.texts import text_list

        served = signatures_of(bert).answers_by_length(text_list(examples))
        return [WrittenText([text.decode() for text in row["written"]], row["scores"].tolist()) for row in served]

    def answers_shown(self, bert: Any, texts: list[str]) -> list[str]:
        return [line for text, answer in zip(texts, bert.predict(texts)) for line in shown([text], [answer.text])]

    def require_start(self, folder: Any) -> None:
        kind = kind_of_config(folder.config)
        if not kind.decodes:
            raise UserError(
                f"{folder.path}: needs a model with a decoder, such as BART, for {NAME}. Received: {kind.title}, which "
                "has none. Give another --init."
            )


KINDS = (Seq2Seq(),)
