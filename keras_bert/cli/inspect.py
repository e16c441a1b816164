"""`run.py inspect`."""

import math
from collections.abc import Iterator

import click

from keras_bert.checkpoints.hub import hub_proposal, is_hub_name, is_web_address
from keras_bert.checkpoints.model_folder import ModelFolder, open_model_folder
from keras_bert.config.recipes import find_config
from keras_bert.core.errors import UserError
from keras_bert.core.files import is_folder
from keras_bert.models import sizes
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.kind import kind_of_config
from keras_bert.models.tensor_names import BILSTM, DECODER, ENCODER, LM_HEAD, MASKED_LM_HEAD, POOLER
from keras_bert.models.term import all_terms
from keras_bert.tasks.kind import task_kinds
from keras_bert.text.vocabulary import vocabulary_kind

_PARTS = {
    ENCODER: "encoder",
    POOLER: "pooler",
    MASKED_LM_HEAD: "masked LM head",
    BILSTM: "BiLSTM",
    DECODER: "decoder",
    LM_HEAD: "LM head",
}


@click.command()
@click.argument("model", metavar="MODEL|CONFIG")
def inspect(model: str) -> None:
    """Print a model's parameter counts, part by part, next to the formulas often quoted for them.

    MODEL is a run folder, a model folder, a Hugging Face or Google folder, a peft adapter's folder, or
    hf:NAME[@REVISION] for a model on the Hugging Face hub. CONFIG is a file, or a name in configs/models.

    \b
    Example:
      python run.py inspect base
    """
    is_model = is_hub_name(model) or is_web_address(model) or is_folder(model)
    folder = open_model_folder(model) if is_model else None
    config = folder.config if folder else _config(model)
    for line in folder.notes if folder else ():
        click.echo(line)
    for line in _table(config):
        click.echo(line)
    if folder:
        for line in _contents(folder):
            click.echo(line)


def _config(name: str) -> BertConfig:
    try:
        return BertConfig.from_file(find_config("models", name))
    except UserError as error:
        raise UserError(f"{error} For a model, give its folder.{hub_proposal(name)}") from None


def _contents(folder: ModelFolder) -> Iterator[str]:
    of_terms = {term.head: f"{term.title} head" for term in all_terms()}
    of_tasks = {part: title for kind in task_kinds() for part, title in kind.titles.items()}
    titles = {**of_terms, **_PARTS, **of_tasks}
    shapes, parts = folder.tensor_shapes(), folder.parts()
    yield f"{folder.tensors.path}: {len(shapes)} tensors, {sum(map(math.prod, shapes.values())):,} values."
    yield f"Parts: {', '.join(titles[part] for part in parts)}."
    known = [name for part in parts for name in folder.names(part)]
    unknown = folder.tensors.unused(known)
    if unknown:
        yield f"Not part of {folder.model_kind.title}: {', '.join(unknown)}."
    description = vocabulary_kind(folder.vocabulary_file).describe(folder.tokenizer)
    yield f"{folder.vocabulary_file}: {description}"


def _table(config: BertConfig) -> Iterator[str]:
    encoder, heads = sizes.encoder_parts(config), sizes.head_parts(config)
    yield (
        f"H = {config.hidden_size}, L = {config.num_hidden_layers}, A = {config.num_attention_heads}, "
        f"V = {config.vocab_size:,}" + (", left to right" if config.is_causal else "")
    )
    yield from map(_row, encoder)
    yield _sum("encoder with pooler", sizes.total(encoder))
    yield from map(_row, heads)
    kind = kind_of_config(config)
    if kind.pretrains_pooler:
        yield _sum("encoder with pretraining heads", sizes.total(encoder) + sizes.total(heads))
    else:
        rest = "decoder" if kind.decodes else "pretraining heads"
        yield _sum(f"encoder and {rest}, without pooler", sizes.whole_model(config))
    quoted = kind.quoted_counts(config, sizes.total(encoder))
    if quoted:
        yield ""
    for formula, count, remark in quoted:
        yield _sum(formula, count)
        yield f"    {remark}"


def _row(part: sizes.Part) -> str:
    return f"  {part.name:<30}{part.product:<30}{part.count:>15,}"


def _sum(name: str, count: int) -> str:
    return f"{name:<62}{count:>15,}"
