"""A tagger's answers as Python objects."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from keras_bert.export.serving_function import ServingFunction
from keras_bert.inference.texts import text_list
from keras_bert.tasks.tagging.label_schemes import UnknownLabel, read_entities
from keras_bert.tasks.tagging.serving import WORDS


class Entity(NamedTuple):
    """An entity in a text.

    Attributes:
        label: its type, without the scheme's prefix.
        text: its words, joined by spaces.
        start, end: its offsets in the text, in characters; the end is exclusive.
    """

    label: str
    text: str
    start: int
    end: int


@dataclasses.dataclass
class TaggedText:
    """The labels of the words of one text.

    Attributes:
        words: the words.
        labels: the label of each word.
        scores: the probability of each label.
        starts, ends: the offsets of each word in the text, in characters; if the model was given words, in these words
            joined by single spaces.
    """

    words: list[str]
    labels: list[str]
    scores: list[float]
    starts: list[int]
    ends: list[int]

    @property
    def entities(self) -> list[Entity]:
        """The entities that the labels mark in IOB1, BIO or BIOES; [] if they mark none."""
        try:
            found = read_entities(self.labels, [0, len(self.labels)])
        except UnknownLabel:
            return []
        return [
            Entity(found.types[kind], " ".join(self.words[first:end]), self.starts[first], self.ends[end - 1])
            for first, end, kind in found.spans().tolist()
        ]


def tagged_texts(function: ServingFunction, examples: Sequence[Any]) -> list[TaggedText]:
    """Labels the words of texts, or of lists of words.

    Args:
        examples: texts, or lists of words.

    Raises:
        ValueError: `examples` are neither, or a mix of both; or a list ends with an empty word, as padding does.
    """
    is_split = [isinstance(example, (list, tuple)) for example in examples]
    if not any(is_split):
        texts = text_list(examples)
        return list(_tagged(texts, function.answers_by_length(texts)))
    if not all(is_split):
        raise ValueError("texts: needs only texts or only lists of words. Received: both.")
    sentences = [text_list(words) for words in examples]
    if padded := next((words for words in sentences if words and not words[-1]), None):
        raise ValueError(f"texts: needs a last word that is not empty. Received: {padded!r:.80}. Leave it out.")
    served = function.answers_by_length(sentences, signature=WORDS)
    return list(_tagged([" ".join(words) for words in sentences], served))


def _tagged(texts: Sequence[str], served: Sequence[dict[str, Any]]) -> Iterator[TaggedText]:
    for text, row in zip(texts, served, strict=True):
        count = row["num_words"]
        starts, ends = (row[name][:count].tolist() for name in ("starts", "ends"))
        yield TaggedText(
            [text[start:end] for start, end in zip(starts, ends)],
            [label.decode("utf-8") for label in row["labels"][:count]],
            row["scores"][:count].tolist(),
            starts,
            ends,
        )
