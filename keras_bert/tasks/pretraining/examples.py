"""A recipe's `examples`: whether its model will take them, and what the trained model makes of them."""

from collections.abc import Sequence

from keras_bert.config.bert import BOTH, MASKED, NEXT, BertConfig
from keras_bert.config.sampling import SamplingConfig
from keras_bert.errors import UserError
from keras_bert.inference.fill_mask import Filling, fill_masks, masked_ids
from keras_bert.inference.generation import Continuation, TextGenerator, first_ids
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.text.tokenizers import Tokenizer
from keras_bert.text.vocabulary import MASK

_TOKENS = 20  # That a left-to-right model adds to each.


def require_examples(texts: Sequence[str], config: BertConfig, tokenizer: Tokenizer) -> None:
    """Raises `UserError`, naming the example, for one that the model cannot take.

    Called before training: a run that finds it out after its last step can never finish.
    """
    for index, text in enumerate(texts):
        try:
            if config.predicts == MASKED:
                masked_ids(tokenizer, text, config)
            elif config.predicts == NEXT:
                first_ids(tokenizer, _beginning(text), config.max_position_embeddings)
        except UserError as error:
            raise UserError(f"examples.{index}: {error}") from None


def tried_examples(
    texts: Sequence[str], model: BertForPreTraining, tokenizer: Tokenizer
) -> Sequence[Filling | Continuation]:
    """What the trained model makes of the examples; nothing if it predicts both ways."""
    if model.config.predicts == BOTH:
        return []
    if model.config.predicts == MASKED:
        return fill_masks(model, tokenizer, texts)
    generate = TextGenerator(model, tokenizer)
    return [generate(_beginning(text), SamplingConfig(_TOKENS)) for text in texts]


def _beginning(text: str) -> str:
    """What a left-to-right model continues: the text before the first [MASK]."""
    return text.partition(MASK)[0].rstrip()
