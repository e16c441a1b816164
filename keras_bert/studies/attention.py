"""What the heads of a BERT look at: drawn for each text, and measured."""

import base64
import dataclasses
import html
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from keras_bert.core.drawing import PAGE, PALE, TITLE, new_figure, plain, png
from keras_bert.core.errors import UserError
from keras_bert.core.files import StrPath
from keras_bert.inference.loading import LoadedModel, load
from keras_bert.inference.texts import encoder_inputs
from keras_bert.models.kind import kind_of_config, with_article
from keras_bert.studies.study import Findings, StudyFolder, rows_of_markdown

_PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "attention_page.html")
_SHOWN = 3  # Heads of each kind in the table.

SHARES = {
    "cls": "to [CLS]",
    "sep": "to [SEP]",
    "itself": "to itself",
    "previous": "to the token before",
    "next": "to the token after",
    "same": "to the same piece elsewhere",
}


@dataclasses.dataclass(frozen=True)
class TextAttention:
    """The attention within one text.

    Attributes:
        tokens: [seq], with [CLS] and [SEP].
        ids: int32 [seq].
        weights: float32 [layers, heads, seq, seq]; each row belongs to the token that looks, and sums to 1.
    """

    tokens: Sequence[str]
    ids: np.ndarray
    weights: np.ndarray


def attention(study: StudyFolder, model: StrPath, texts: Sequence[str]) -> Findings:
    """Draws every head of a model for each text, and measures what the heads look at.

    Args:
        texts: the texts; the shares are means over all of their tokens.

    Raises:
        UserError: a text is empty or too long for the model.
    """
    loaded = load(model)
    found = [text_attention(loaded, text) for text in texts]
    shares = head_shares(found, loaded.tokenizer.vocabulary.cls_id, loaded.tokenizer.vocabulary.sep_id)
    entropies = np.mean([head_entropy(one) for one in found], axis=0)
    pictures = {"shares": shares_picture({SHARES[key]: value for key, value in shares.items()}, entropies)}
    pages = []
    for number, (text, one) in enumerate(zip(texts, found), 1):
        name = "heads" if len(texts) == 1 else f"heads_{number}"
        pictures[name] = heads_picture(one, text)
        study.write_page(name, heads_page(one, text))
        pages.append(name)
    return Findings("What the heads look at", list(strongest_heads(shares, entropies)), pictures, pages)


def text_attention(loaded: LoadedModel, text: str) -> TextAttention:
    """The attention of every head within a text.

    Raises `UserError` for a text that is empty or too long, and for a model without attention.
    """
    kind = kind_of_config(loaded.config)
    if not kind.attends:
        raise UserError(f"The model: needs BERT's attention. Received: {with_article(kind.title)}, which has none.")
    vocabulary = loaded.tokenizer.vocabulary
    (pieces,) = loaded.tokenizer.tokenize([text]).to_list()
    most = loaded.config.max_position_embeddings
    if not pieces or len(pieces) + 2 > most:
        raise UserError(
            f"The text: needs 3 to {most} tokens, [CLS] and [SEP] included. "
            f"Received: {len(pieces) + 2} in {text[:80]!r}."
        )
    inputs = encoder_inputs([pieces], vocabulary)
    weights = np.stack([np.array(layer)[0] for layer in loaded.encoder(inputs, return_attentions=True)["attentions"]])
    ids = inputs["input_word_ids"][0]
    return TextAttention([vocabulary.tokens[number] for number in ids], ids, weights.astype("float32"))


def head_shares(found: Sequence[TextAttention], cls_id: int, sep_id: int) -> dict[str, np.ndarray]:
    """The mean share of each head's attention to each kind of target, over all tokens of all texts.

    [CLS] and [SEP] do not count as tokens that look. `same` is the share to the same piece elsewhere in the text,
    averaged over the pieces that occur more than once; NaN if there is none.

    Returns: `{key of SHARES: float64 [layers, heads]}`, from 0 to 1.
    """
    sums: dict[str, Any] = dict.fromkeys(SHARES, 0.0)
    counts = dict.fromkeys(SHARES, 0)
    for one in found:
        looks = (one.ids != cls_id) & (one.ids != sep_id)
        place = np.arange(len(one.ids))
        distance = place[None, :] - place[:, None]
        targets = {
            "cls": np.broadcast_to(one.ids == cls_id, distance.shape),
            "sep": np.broadcast_to(one.ids == sep_id, distance.shape),
            "itself": distance == 0,
            "previous": distance == -1,
            "next": distance == 1,
            "same": (one.ids[None, :] == one.ids[:, None]) & (distance != 0),
        }
        for key, target in targets.items():
            rows = looks & target.any(axis=1) if key == "same" else looks
            sums[key] = sums[key] + (one.weights * target).sum(axis=-1)[:, :, rows].sum(axis=-1, dtype="float64")
            counts[key] += int(rows.sum())
    return {key: sums[key] / counts[key] if counts[key] else np.full_like(sums[key], np.nan) for key in SHARES}


def head_entropy(one: TextAttention) -> np.ndarray:
    """The mean entropy of each head's attention, in nats: float64 [layers, heads]. ln(seq) if uniform."""
    weights = one.weights.astype("float64")
    return -(weights * np.log(np.maximum(weights, 1e-30))).sum(axis=-1).mean(axis=-1)


def strongest_heads(shares: Mapping[str, np.ndarray], entropies: np.ndarray) -> Iterator[str]:
    """Lines of Markdown: for each kind of attention, the mean of all heads and the heads with most of it."""
    rows = []
    for key, values in shares.items():
        if np.isnan(values).all():
            continue
        rows.append([SHARES[key], f"{100 * values.mean():.1f}", _heads(values, "{:.1%}".format)])
    rows.append(["entropy, nats: broadest", f"{entropies.mean():.2f}", _heads(entropies, "{:.2f}".format)])
    rows.append(
        ["entropy, nats: sharpest", f"{entropies.mean():.2f}", _heads(-entropies, lambda value: f"{-value:.2f}")]
    )
    return rows_of_markdown(["share of the attention, per cent", "mean of all heads", "most, layer.head"], rows)


def _heads(values: np.ndarray, shown: Callable[[float], str]) -> str:
    order = np.argsort(-values, axis=None, kind="stable")[:_SHOWN]
    places = (np.unravel_index(index, values.shape) for index in order)
    return ", ".join(f"{layer + 1}.{head + 1}: {shown(float(values[layer, head]))}" for layer, head in places)


def shares_picture(shares: Mapping[str, np.ndarray], entropies: np.ndarray) -> bytes:
    """PNG with a panel of layers by heads for each kind of attention, and one for the entropy."""
    panels = {title: values for title, values in shares.items() if not np.isnan(values).all()}
    panels["entropy, nats"] = entropies
    layers, heads = entropies.shape
    columns = 4
    rows = -(-len(panels) // columns)
    figure = new_figure(3 + 2.6 * columns, rows * (1.2 + 0.22 * max(layers, 6)))
    grid = figure.subplots(rows, columns, squeeze=False).flatten()
    for axes, (title, values) in zip(grid, panels.items()):
        is_share = title != "entropy, nats"
        drawn = axes.imshow(values, aspect="auto", cmap="viridis", vmin=0, vmax=1 if is_share else None)
        axes.set(title=title, xlabel="head", ylabel="layer")
        axes.set_xticks(range(0, heads, max(heads // 6, 1)), range(1, heads + 1, max(heads // 6, 1)))
        axes.set_yticks(range(0, layers, max(layers // 6, 1)), range(1, layers + 1, max(layers // 6, 1)))
        figure.colorbar(drawn, ax=axes)
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    return png(figure)


def heads_picture(one: TextAttention, text: str) -> bytes:
    """PNG of all heads, a row for each layer; dark is much attention, a matrix's row is the token that looks."""
    layers, heads = one.weights.shape[:2]
    size = max(PAGE / (heads + 1), 0.5)
    figure = new_figure(size * (heads + 1), size * layers + 0.7)
    for layer, row in enumerate(figure.subplots(layers, heads, squeeze=False)):
        for head, axes in enumerate(row):
            axes.imshow(one.weights[layer, head], cmap="Blues", vmin=0, vmax=1)
            axes.set_xticks([])
            axes.set_yticks([])
            axes.spines[:].set_color(PALE)
            if layer == 0:
                axes.set_title(f"{head + 1}", fontsize="medium")
            if head == 0:
                axes.set_ylabel(f"layer {layer + 1}")
    figure.suptitle(plain(text, TITLE), fontsize="medium")
    return png(figure)


def heads_page(one: TextAttention, text: str) -> str:
    """A self-contained HTML page: all heads as small matrices, and lines from token to token for those chosen.

    Each row of a head is stored as bytes, in units of its greatest weight / 255: in common units, all weights of a
    uniform head over some hundred tokens would be 0.
    """
    scales = one.weights.max(axis=-1)
    shares = one.weights / np.maximum(scales, np.finfo("float32").tiny)[..., None]
    data = {
        "tokens": list(one.tokens),
        "scales": [[_as_text(head, "<f4") for head in layer] for layer in scales],
        "shares": [[_as_text(np.rint(255 * head), "u1") for head in layer] for layer in shares],
    }
    with open(_PAGE, encoding="utf-8") as stream:
        page = stream.read()
    # "</script>" in a token would end the script.
    content = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return page.replace("TITLE", html.escape(text)).replace('"DATA"', content)


def _as_text(values: np.ndarray, kind: str) -> str:
    """The values as base64 of their bytes, row by row."""
    return base64.b64encode(values.astype(kind).tobytes()).decode()
