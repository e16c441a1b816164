"""Helpers for drawing all pictures with matplotlib, without a window system."""

import functools
import io
import logging
import warnings
from typing import Any

from keras_bert.core.imports import import_extra

_log = logging.getLogger(__name__)

PAGE = 7.3  # Inches; as wide as a page of text.
ACCENT, PALE, INK = "#2563eb", "#b9cbe9", "#1f2937"
# Fonts of Linux, macOS and Windows with Chinese characters.
_CHINESE = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "Droid Sans Fallback",
    "Hiragino Sans GB",
    "Arial Unicode MS",
    "Microsoft YaHei",
    "SimHei",
)
_FIRST_CHINESE = "\u2e80"
NAME, TITLE = 30, 70  # The most characters in the name of a row or a curve, and in the title of a picture.


def new_figure(width: float, height: float) -> Any:
    """A matplotlib Figure; the size is in inches. Raises `UserError` if matplotlib is not installed."""
    # pyplot would choose a window system, and its figures would have to be closed.
    module = import_extra("matplotlib.figure", "Drawing pictures")
    figure = module.Figure(figsize=(width, height), layout="constrained")
    # Otherwise a notebook that has not imported pyplot shows the figure's `repr` instead of the figure.
    figure._repr_png_ = functools.partial(png, figure)
    return figure


def tidy(axes: Any, along: str = "both") -> None:
    """Removes the frame above and to the right, and draws a faint grid `along` x, y or both, behind all else."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=along, alpha=0.3)
    axes.set_axisbelow(True)


def set_logarithmic(axes: Any) -> None:
    """Makes the x axis logarithmic, for values of at least 1, once all is drawn."""
    ticker = import_extra("matplotlib.ticker", "Drawing pictures")
    axes.set_xscale("log", subs=())
    least, most = axes.get_xlim()
    # By default a short axis gets labels such as 3 × 10², which overlap, as do three labels for each of many decades.
    subs = (1.0, 2.0, 5.0) if most <= 200 * least else (1.0, 3.0) if most <= 5000 * least else (1.0,)
    axes.xaxis.set_major_locator(ticker.LogLocator(subs=subs))
    axes.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))
    axes.tick_params(axis="x", labelsize="small")


def png(figure: Any) -> bytes:
    """A Figure as PNG."""
    for text in figure.findobj(import_extra("matplotlib.text", "Drawing pictures").Text):
        if max(text.get_text(), default="") >= _FIRST_CHINESE:
            text.set_fontfamily([*text.get_fontfamily(), *_chinese_fonts()])
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ \(.N\{CJK")  # Two lines for each; `_chinese_fonts` says why.
        figure.savefig(stream, format="png", dpi=150)
    return stream.getvalue()


@functools.cache
def _chinese_fonts() -> list[str]:
    """The first of `_CHINESE` that is installed, if any, for what matplotlib's own font lacks."""
    fonts = import_extra("matplotlib.font_manager", "Drawing pictures").fontManager.ttflist
    names = {font.name for font in fonts}
    found = [name for name in _CHINESE if name in names][:1]
    if not found:
        _log.warning(
            f"Pictures have boxes for Chinese characters: install a font that has them, such as {_CHINESE[0]}."
        )
    return found


def plain(text: str, most_characters: int = NAME) -> str:
    """The text shortened to fit, and escaped so that matplotlib draws it literally."""
    if text.startswith("_"):
        text = f" {text}"  # Legends leave out names that start with an underscore.
    text = text if len(text) <= most_characters else text[: most_characters - 1] + "…"
    return text.replace("$", r"\$")
