"""Options shared by several commands, and the settings they become."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import click

from keras_bert.api.keywords import LENGTHS, other_lengths
from keras_bert.config.corpus import CorpusConfig, FilterConfig, extended_filters
from keras_bert.config.finetuning import TaskDataConfig
from keras_bert.config.pretraining import DATA_SETS, DataConfig
from keras_bert.config.recipes import by_setting, given
from keras_bert.config.training import OptimizerConfig, TrainingConfig
from keras_bert.core import settings
from keras_bert.core.errors import UserError
from keras_bert.core.files import is_file
from keras_bert.core.patterns import expand
from keras_bert.core.runtime import import_tensorflow
from keras_bert.tasks.answer_files import PLAIN_FILE, check_output, require_writable

if TYPE_CHECKING:
    from keras_bert.data.pipeline.runners import Runner

_CORPUS = CorpusConfig()


class Number(click.FloatRange):
    """A number in a range. Refuses inf, and nan, which lies in every range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not finite.", param, ctx)
        return number


def setting_option(
    config: type, field: str, *names: str, has_default: bool = False, more: str = "", **attributes: Any
) -> Callable[..., Any]:
    """An option with the type and the meaning of a setting and, unless `names` are given, its name.

    With `has_default`, it has the setting's default. Otherwise the recipe's value counts; the help omits what 0 or null
    means, and such a 0 is refused. A "Default: " in `more` replaces the default in the meaning.
    """
    if has_default:
        attributes["default"] = getattr(config, field)
    meaning, off = re.subn(r"[;.] (0|null) [^;.]*\.$", ".", settings.meanings(config)[field])
    if "Default: " in more:
        meaning = re.sub(r"[;,] by default.*", ".", meaning)
    kind, *_ = settings.parts_of(settings.types_of(config)[field])
    text = f"{meaning[0].upper()}{meaning[1:]} {more}".strip()
    names = names or (f"--{field.replace('_', '-')}",)
    return click.option(*names, help=text, **{**_parsed_as(kind, without_0=off > 0), **attributes})


def _parsed_as(kind: Any, without_0: bool) -> dict[str, Any]:
    """How click parses the values of a setting: its arguments `type` or `is_flag`."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"type": click.Choice(inner)}
    if origin is Annotated and isinstance(inner[1], settings.Bounds):
        low, high, min_open, max_open = inner[1][1:]
        min_open = min_open or without_0
        if inner[0] is int:
            return {"type": click.IntRange(int(low) + min_open, None if math.isinf(high) else int(high))}
        return {"type": Number(low, None if math.isinf(high) else high, min_open, max_open)}
    return {"is_flag": True} if kind is bool else {}


def folder_to_write(context: click.Context, parameter: click.Parameter, path: str | None) -> str | None:
    """Parameter callback: refuses a path that cannot be written as a folder, before any computation."""
    _require_path(parameter, path)
    if path and is_file(path):
        raise UserError(f"{path}: needs a folder. Received: a file. Give another path.")
    if path and path.encode(errors="replace").decode() != path:
        raise UserError(f"{path!a}: needs a name in UTF-8, for TensorFlow. Give another path.")
    if path:
        require_writable(path)
    return path


def file_to_write(context: click.Context, parameter: click.Parameter, path: str | None) -> str | None:
    """Parameter callback: refuses a path that cannot be written as a file, before any computation."""
    _require_path(parameter, path)
    if path:
        check_output(path, PLAIN_FILE)
    return path


def _require_path(parameter: click.Parameter, path: str | None) -> None:
    """Raises `UserError` for an empty path, as from a shell variable that is not set."""
    if path == "":
        raise UserError(f"{_shown_name(parameter)}: needs a path. Received: an empty text. Give one.")


def _shown_name(parameter: click.Parameter) -> str:
    return parameter.opts[0] if isinstance(parameter, click.Option) else parameter.human_readable_name


def require_filled(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Parameter callback: refuses an empty text where a name is needed, which would count as not given.

    As from a shell variable that is not set: `--init "$MODEL"` then began with random weights.
    """
    if value == "" or isinstance(value, tuple) and "" in value:
        raise UserError(f"{_shown_name(parameter)}: needs a value. Received: an empty text. Give one.")
    return value


def load_tensorflow() -> None:
    """Imports TensorFlow, whose messages `--debug` shows."""
    import_tensorflow(click.get_current_context().find_root().params["debug"])


def require_source(path: str) -> None:
    """Raises `UserError` for input files that do not exist; a data set's name is only checked when it is read."""
    if path != "-" and not path.startswith(DATA_SETS):
        expand([path])


restore_spaces_option = click.option(
    "--restore-spaces",
    metavar="MODEL",
    help="Before classifying, restore missing spaces between words with this model from `finetune --task segment`.",
)

casing_option = click.option(
    "--uncased/--cased",
    "lower_case",
    default=None,
    help="Lower-case texts, or keep case. Default: as the model folder says, or else as the vocabulary suggests.",
)

text_casing_option = click.option(
    "--uncased/--cased",
    "lower_case",
    default=None,
    help="Remove case and accents, or keep them. Default: as the given vocabulary suggests, or else remove.",
)

text_option = click.option(
    "--input",
    "inputs",
    multiple=True,
    required=True,
    metavar="GLOB",
    help="Text to read: a file, a folder, a quoted glob, tfds:NAME[/CONFIG][:SPLIT] or hf:datasets/ORG/NAME[:SPLIT]. "
    "Repeatable.",
)


def _only_one(context: click.Context, parameter: click.Parameter, columns: tuple[str, ...]) -> str | None:
    """Parameter callback: refuses several columns, of which click would take the last in silence."""
    if len(columns) > 1:
        raise UserError(f"--text: needs one column. Received: {', '.join(columns)}. Give one.")
    return columns[0] if columns else None


column_option = setting_option(
    CorpusConfig, "text", metavar="COLUMN", more=f"Default: {_CORPUS.text}.", multiple=True, callback=_only_one
)

format_option = setting_option(CorpusConfig, "format")

validation_share_option = setting_option(DataConfig, "validation_share", has_default=True)


def _all_of(*options: Callable[..., Any]) -> Callable[..., Any]:
    """Adds several options to a command."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


# `corpus_config` takes their values.
corpus_options = _all_of(
    column_option,
    format_option,
    setting_option(CorpusConfig, "broken_lines", has_default=True),
    click.option(
        "--filters", metavar="NAME", help="Filters for web text: a name in configs/filters, such as c4, or a YAML file."
    ),
    setting_option(FilterConfig, "bad_words", metavar="FILE"),
)


def corpus_config(
    text: str | None, format: str | None, broken_lines: str, filters: str | None, bad_words: str | None
) -> CorpusConfig:
    """Returns the `CorpusConfig` of the `corpus_options`."""
    values = {**extended_filters(filters or {}), **given({"bad_words": bad_words})}
    return settings.from_mapping(
        CorpusConfig, {**given({"text": text, "format": format}), "broken_lines": broken_lines, "filters": values}
    )


def corpus_arguments(**values: str | None) -> str:
    """Returns the `corpus_options` that differ from the defaults, for the command line of the next command."""
    defaults = {"text": _CORPUS.text, "format": None, "broken_lines": _CORPUS.broken_lines}
    return "".join(
        f" --{name.replace('_', '-')} {shlex.quote(value)}"
        for name in (*defaults, "filters", "bad_words")
        if (value := values[name]) is not None and value != defaults.get(name)
    )


model_option = click.option(
    "--model",
    required=True,
    metavar="MODEL",
    help="A run folder, a model folder, a Hugging Face or Google folder, a peft adapter's folder, or "
    "hf:NAME[@REVISION] for a model on the Hugging Face hub.",
)


max_length_option = click.option(
    "--max-length",
    type=int,
    help="Truncate texts to this many tokens, [CLS] and [SEP] included. Default: as in fine-tuning, or as the model "
    "folder says for sentence-transformers, or else the model's maximum.",
)

batch_tokens_option = click.option(
    "--batch-tokens", type=click.IntRange(min=1), default=4096, help="Tokens per batch, padding included."
)


def _table_options(*files: Callable[..., Any], more: str = "") -> Callable[..., Any]:
    return _all_of(
        setting_option(TaskDataConfig, "folder", "--data-dir", metavar="DIR", more=more),
        *files,
        setting_option(
            TaskDataConfig, "texts", "--text", "texts", multiple=True, metavar="COLUMN", more=f"Repeatable. {more}"
        ),
        setting_option(TaskDataConfig, "label", metavar="COLUMN", more=more),
        format_option,
    )


_SPLITS = ("train", "dev", "test")
_AS_TRAINED = "Default: as in training."
# Where a task's examples are; for a trained model, only what differs from training. For `table_settings`.
table_options = _table_options(*(setting_option(TaskDataConfig, split, metavar="FILE") for split in _SPLITS))
other_table_options = _table_options(
    *(
        click.option(f"--{split}", metavar="FILE", help=f"File to use for `--split {split}`. {_AS_TRAINED}")
        for split in _SPLITS
    ),
    more=_AS_TRAINED,
)


def table_settings(data_dir: str | None, texts: Sequence[str], **others: str | None) -> dict[str, Any]:
    """Returns `{field of TaskDataConfig: value}` for the `table_options` that were given."""
    return given({"folder": data_dir, "texts": list(texts) or None, **others})


# Options of every training run; `run_settings` takes their values.
run_options = _all_of(
    setting_option(TrainingConfig, "steps"),
    setting_option(TrainingConfig, "minutes"),
    setting_option(TrainingConfig, "max_minutes"),
    setting_option(OptimizerConfig, "learning_rate"),
    click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="KEY=VALUE",
        help="Override any setting of the recipe, such as training.log_every=10; `settings` lists them. Repeatable.",
    ),
    click.option("--fresh", is_flag=True, help="Start a new run in a new folder, such as RUN-2, instead of resuming."),
    setting_option(TrainingConfig, "strategy"),
    setting_option(TrainingConfig, "devices", metavar="GPU:0,GPU:1"),
    setting_option(TrainingConfig, "tpu", metavar="NAME"),
)


def run_settings(
    by_key: Mapping[str, Any],
    strategy: str | None,
    devices: str | None,
    tpu: str | None,
    learning_rate: float | None = None,
    **others: Any,
) -> dict[str, Any]:
    """Returns `{key: value}`, settings of a recipe, for the `run_options` and `others` of its training that were given.

    The run's length, whether it is among them or in `by_key`, the settings given by `--set`, replaces the recipe's.
    """
    chosen = given(
        {
            **{f"training.{name}": value for name, value in others.items()},
            "training.strategy": strategy or ("tpu" if tpu else None),
            "training.devices": [name.strip() for name in devices.split(",")] if devices else None,
            "training.tpu": tpu,
            "optimizer.learning_rate": learning_rate,
        }
    )
    return {**chosen, **other_lengths({**by_key, **chosen})}


def set_by_key(cls: type[Any], overrides: Iterable[str]) -> dict[str, Any]:
    """Returns `{key: value}` of all `--set KEY=VALUE`; of a repeated key, the last counts, as for any option.

    Args:
        cls: the recipe's dataclass, such as `PretrainConfig`.
        overrides: the values of the option.
    """
    return by_setting(cls, dict(map(settings.parse_override, overrides)))


def require_agreement(by_key: Mapping[str, Any], of_options: Mapping[str, Any]) -> None:
    """Raises `UserError` if options contradict each other, because one would be ignored.

    Args:
        by_key: the settings given by `--set`.
        of_options: the settings given by options of their own.
    """
    lengths = [key for key in LENGTHS if of_options.get(key) or by_key.get(key)]
    if len(lengths) > 1:
        names = [f"--{key.removeprefix('training.')}" if of_options.get(key) else f"--set {key}" for key in lengths]
        raise UserError(f"{names[0]}: needs to be the only length of the run. Received: {names[1]} too. Leave out one.")
    for key in by_key:
        if key in of_options and not _is_same(of_options[key], by_key[key]):
            raise UserError(
                f"--set {key}: conflicts with an option for the same setting. Received: {by_key[key]!r} by --set and "
                f"{of_options[key]!r} by the option. Leave out one."
            )


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are equal; YAML reads 1e-3 as text."""
    try:
        return one == other or float(one) == float(other)
    except (TypeError, ValueError):
        return False


def require_utf8(texts: Iterable[str]) -> None:
    """Raises `UserError` if a text on the command line was not UTF-8."""
    for text in texts:
        if text.encode("utf-8", "replace").decode("utf-8") != text:
            raise UserError(f"TEXT: needs UTF-8. Received: {text!r}. Is the terminal set to another encoding?")


RUNNERS = ("direct", "dataflow", "spark", "flink")
# `beam_runner` takes their values.
runner_options = _all_of(
    click.option(
        "--runner",
        type=click.Choice(RUNNERS),
        help="Run on Apache Beam, on this machine (direct) or a cluster. Beam's own options follow --.",
    ),
    click.argument("beam_options", nargs=-1, metavar="[-- --BEAM_OPTION=VALUE …]"),
)


def beam_runner(name: str | None, beam_options: tuple[str, ...], workers: int = 0) -> Runner | None:
    """Returns the `Runner` for the `runner_options` that were given, or None without `--runner`."""
    if name is None:
        if beam_options:
            raise click.UsageError(f"Got an unexpected argument ({beam_options[0]}). Options of Beam need --runner.")
        return None
    from keras_bert.data.pipeline.runners import Runner

    return Runner(name, beam_options, workers)
