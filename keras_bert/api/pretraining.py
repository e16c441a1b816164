"""Pretraining: `keras_bert.pretrain`, and the parts that `run.py pretrain` shares with it."""

import logging
import math
import os
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from keras_bert.api.given_data import GivenData
from keras_bert.api.keywords import callbacks_of, keyword_settings, length_settings, path_of, require_once
from keras_bert.api.run import PretrainingRun
from keras_bert.checkpoints.model_folder import given_prefix_space, given_vocabulary, open_model_folder
from keras_bert.config.objectives import PhaseConfig
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.config.recipes import find_config, given, recipe_init, recipe_name
from keras_bert.core import settings
from keras_bert.core.errors import UserError
from keras_bert.core.files import join
from keras_bert.core.program import command_line
from keras_bert.core.runtime import import_tensorflow
from keras_bert.core.yaml_and_json import read_json, read_yaml
from keras_bert.data.corpus.held_out import TRAIN
from keras_bert.data.shards.prepared_folder import is_prepared
from keras_bert.data.shards.shard_format import spaced_shards
from keras_bert.models.bert.config import REPLACED, BertConfig
from keras_bert.models.electra.kind import ElectraConfig
from keras_bert.models.kind import config_from_mapping, kind_of_config
from keras_bert.text.vocabulary import Vocabulary, find_vocabulary
from keras_bert.training.run_folder import PRETRAINING, RunFolder

if TYPE_CHECKING:
    import keras

_log = logging.getLogger(__name__)
_PREFIX_SPACE = "vocabulary.prefix_space"


def pretrain(
    data: Any = None,
    recipe: str | os.PathLike[str] | None = None,
    *,
    output: str | os.PathLike[str] | None = None,
    init: str | os.PathLike[str] | None = None,
    text: str | None = None,
    format: str | None = None,
    lower_case: bool | None = None,
    fresh: bool = False,
    callbacks: "Iterable[keras.callbacks.Callback]" = (),
    **keywords: Any,
) -> PretrainingRun:
    """Pretrains a BERT like `run.py pretrain`: the same recipe, data and seed give the same numbers.

    Called again with the same `output`, it resumes an interrupted run, and returns a finished one as it is.

    ```python
    run = keras_bert.pretrain("wiki/*", "wiki_mini", output="runs/wiki", steps=1000, learning_rate=5e-4)
    run = keras_bert.pretrain(frame, text="body", output="runs/mine", minutes=5)
    ```

    Args:
        data: a path, a glob or a data set by name, or a list of them; or the documents themselves: an iterable of
            strings or dicts, a DataFrame (pandas, polars), a `datasets.Dataset`, an Arrow table or a
            `tf.data.Dataset`. They are kept in the run's folder, `given/`. None for the recipe's own text.
        recipe: a name in configs/pretrain, or a file; by default, as for the command, the one for `init`, for `data` or
            the demo.
        output: the run's folder; by default runs/RECIPE.
        init: a model to start from.
        text: the column that holds the text in a table.
        format: the format of the tables, if their names and contents do not show it.
        lower_case: whether the vocabulary is for lower-cased text; by default as in the recipe or `init`.
        fresh: start over in a new folder beside `output` if that exists.
        callbacks: Keras callbacks, for which a step is a batch and a validation ends an epoch, with `val_…` figures.
        **keywords: settings by their last name (`steps=1000`, `batch_size=64`), by section (`masking={"unit":
            "span"}`) or by key (`**{"optimizer.name": "lamb"}`); `python run.py settings pretrain` lists them.

    Raises:
        UserError: the settings, the data or the folder cannot be used; the message says what to do in one line.
        RunStopped: interrupted (Ctrl-C, the stop button, SIGTERM), after a checkpoint; call it again to resume.
    """
    started_at = time.monotonic()
    sizes = {name: keywords.pop(name, None) for name in ("batch_size", "max_length")}
    by_key = keyword_settings(PretrainConfig, keywords)
    by_key |= length_settings(by_key)
    init = path_of(by_key.get("init") if init is None else init, "init")
    strategy = by_key.get("training.strategy")
    recipe_file = find_config("pretrain", path_of(recipe, "recipe") or default_recipe(data is not None, init, strategy))
    folder = path_of(output, "output") or os.path.join("runs", recipe_name(recipe_file, by_key))
    folder = RunFolder.fresh(folder).path if fresh else folder
    run = RunFolder(folder)
    run.require(PRETRAINING)
    kept = GivenData(folder)
    source = kept.corpus(data, text or by_key.get("data.text"))
    options = given({"data.files": source.paths, "data.text": source.text, "data.format": format})
    options |= phase_settings(recipe_file, by_key, **sizes)
    require_once(by_key, {**options, **given({"vocabulary.lower_case": lower_case})})
    chosen = {**by_key, **options}
    config = pretraining_recipe(recipe_file, init, lower_case, run, chosen)
    import_tensorflow()
    from keras_bert.tasks.pretraining.run import pretrain as train

    callbacks = callbacks_of(callbacks)
    require_tpu(config)
    kept.write()
    config.require_text()
    train(config, run, command_line(), started_at, callbacks)
    return PretrainingRun(folder)


def pretraining_recipe(
    recipe_file: str, init: str | None, lower_case: bool | None, run: RunFolder | None, chosen: Mapping[str, Any]
) -> PretrainConfig:
    """The recipe of a run, checked as far as possible without its data; call its `require_text` later.

    Args:
        init: the model to start from; None for the recipe's own, if it has one.
        lower_case: the requested casing; None if none was.
        run: the run to resume, if it has begun; None for a new one.
        chosen: `{key: value}` of the settings that take precedence over the recipe's.

    Raises:
        UserError: a setting or a file that it names cannot be used.
    """
    of_model = _model_settings(init or recipe_init(recipe_file), lower_case, run)
    own = read_yaml(recipe_file)
    if "init" in of_model and not init:
        of_model = _unless_in_recipe(of_model, own, lower_case)
    if _PREFIX_SPACE in of_model and chosen.get(_PREFIX_SPACE, of_model[_PREFIX_SPACE]) != of_model[_PREFIX_SPACE]:
        _log.info(f"{_PREFIX_SPACE}: {chosen[_PREFIX_SPACE]} as set, where the model to start from has the other.")
    tokens = chosen.get("objective.tokens", settings.section_of(own, "objective").get("tokens"))
    if tokens == REPLACED and "model" in of_model:
        of_model["model"] = _as_discriminator(of_model["model"])
    opened = given({"init": of_model.pop("init", None)})
    changes = {**of_model, **chosen, **opened}
    if opened and "model" in of_model:
        changes = {**_settings_of_objective(of_model["model"], own, chosen), **changes}
    if not opened:
        of_recipe = settings.section_of(own, "vocabulary")
        set_already = {*changes, *(f"vocabulary.{key}" for key in of_recipe)}
        of_teacher = {f"teacher.{key}": value for key, value in settings.section_of(own, "teacher").items()}
        teacher = settings.text_of({**of_teacher, **chosen}, "teacher.model")
        of_vocabulary = _settings_of_vocabulary(chosen, lower_case)
        if teacher and not of_vocabulary and "file" not in of_recipe:
            of_vocabulary = _settings_of_teacher(teacher, lower_case)
        changes.update({key: value for key, value in of_vocabulary.items() if key not in set_already})
    recipe = PretrainConfig.from_file(recipe_file, changes)
    if recipe.initialization.replaces and not recipe.init:
        raise UserError("initialization.replaces: needs a model to start from. Received: none. Give --init.")
    recipe.require_before_end()
    if not recipe.init:
        recipe.initialization.require_for(kind_of_config(recipe.model))
    if not (opened or recipe.vocabulary.file or any(map(is_prepared, recipe.data.files))):
        recipe.require_learnable(lower_case)
    return recipe


def require_tpu(config: PretrainConfig) -> None:
    """Raises `UserError` if the recipe needs this machine's TPU, and there is none. Needs TensorFlow.

    Call it before any data is written or read. A remote TPU is contacted once the paths that it reads are checked.
    """
    from keras_bert.training.strategy import make_strategy

    if (config.training.strategy, config.training.tpu) == ("tpu", "local"):
        make_strategy("tpu")


def default_recipe(has_data: bool, init: str | None, strategy: str | None) -> str:
    """The name of the recipe for a run without one."""
    if init:
        return "continue"
    if strategy == "tpu":
        return "bert_base_tpu"
    return "bert_base" if has_data or strategy else "demo"


def phase_settings(
    recipe_file: str, chosen: Mapping[str, Any], batch_size: int | None, max_length: int | None
) -> dict[str, Any]:
    """`{key: value}` that give all phases of a recipe these sizes.

    The number of predicted tokens per row scales with the length, unless `chosen`, settings by key, sets it.

    Raises:
        UserError: the phases differ in a size that is given here.
    """
    options = given({"batch_size": batch_size, "sequence_length": max_length})
    if not options:
        return {}
    phases = chosen.get("phases", read_yaml(recipe_file).get("phases"))
    if not isinstance(phases, (list, tuple, type(None))):
        return {}  # The recipe is refused.
    length = settings.from_mapping(PhaseConfig, {**options, "max_predictions_per_seq": 1}).sequence_length
    mappings = [{}] if phases is None else phases
    own = [settings.from_mapping(PhaseConfig, phase, f"phases.{index}") for index, phase in enumerate(mappings)]
    found: dict[str, Any] = {} if mappings is phases else {"phases": mappings}
    for name, value in options.items():
        if len({getattr(phase, name) for phase in own}) > 1:
            option = "--max-length" if name == "sequence_length" else "--batch-size"
            values = " and ".join(str(getattr(phase, name)) for phase in own)
            each = " ".join(f"--set phases.{index}.{name}=N" for index in range(len(own)))
            raise UserError(f"{option}: needs phases that agree. Received: a recipe with {values}. Give {each}.")
        found |= {f"phases.{index}.{name}": value for index in range(len(own))}
    for index, phase in enumerate(own if max_length else ()):
        key = f"phases.{index}.max_predictions_per_seq"
        if key not in chosen:
            found[key] = math.ceil(phase.max_predictions_per_seq * length / phase.sequence_length)
    return found


def _model_settings(init: str | None, lower_case: bool | None, run: RunFolder | None) -> dict[str, Any]:
    """The settings taken from the model that training starts from.

    A `run` that has begun keeps the revision it began from. If that cannot be opened, the settings recorded by the run
    are used; the weights are in its checkpoints.
    """
    if not init:
        return {} if lower_case is None else {"vocabulary.lower_case": lower_case}
    init = run.begun_init(init) if run else init
    try:
        folder = open_model_folder(init, lower_case)
    except UserError as error:
        recorded = run.begun_settings() if run else None
        if recorded is None or recorded.get("init") != init:
            raise
        begun = PretrainConfig.from_mapping(recorded)
        _log.info(f"{error} The run has begun and does without it.")
        return {
            "init": begun.init,
            "model": settings.to_mapping(begun.model),
            "vocabulary.lower_case": begun.vocabulary.lower_case if lower_case is None else lower_case,
            _PREFIX_SPACE: begun.vocabulary.prefix_space,
        }
    for line in folder.notes:
        _log.info(line)
    folder.tokenizer.require_berts_own(init, "--init")
    return {
        "init": folder.name,
        "model": settings.to_mapping(folder.config.for_training()),
        "vocabulary.lower_case": folder.lower_case,
        _PREFIX_SPACE: folder.tokenizer.prefix_space,
    }


def _as_discriminator(model: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings of a BERT to start from, converted to an ELECTRA's; those of another kind unchanged."""
    if "model_type" in model:
        return model
    return settings.to_mapping(ElectraConfig.from_bert(BertConfig.from_mapping(model)))


def _settings_of_objective(
    model: Mapping[str, Any], recipe: Mapping[str, Any], chosen: Mapping[str, Any]
) -> dict[str, Any]:
    """The objective of models like the one to start from, unless the recipe or `chosen` sets one."""
    if "tokens" in settings.section_of(recipe, "objective") or {"objective", "objective.tokens"} & {*chosen}:
        return {}
    config = config_from_mapping(model)
    return {"objective.tokens": config.predicts, **kind_of_config(config).objective}


def _settings_of_vocabulary(chosen: Mapping[str, Any], lower_case: bool | None) -> dict[str, Any]:
    """The settings that follow from a given or prepared vocabulary: its size, casing and `prefix_space`."""
    data, file = chosen.get("data.files"), settings.text_of(chosen, "vocabulary.file")
    folder = data[0] if isinstance(data, list) and len(data) == 1 and is_prepared(data[0]) else ""
    prepared = find_vocabulary(folder) if folder else None
    if prepared:
        vocabulary = Vocabulary.from_file(prepared)
        meta = read_json(join(folder, TRAIN, "meta.json"))
        lower_case, prefix_space = meta["lower_case"], spaced_shards(meta)
    elif file:
        vocabulary, lower_case = given_vocabulary(file, lower_case)
        prefix_space = given_prefix_space(file, vocabulary)
    else:
        return {}
    return {"model.vocab_size": len(vocabulary), "vocabulary.lower_case": lower_case, _PREFIX_SPACE: prefix_space}


def _settings_of_teacher(teacher: str, lower_case: bool | None) -> dict[str, Any]:
    """The teacher's vocabulary, whose ids the run's texts need, with its size and casing."""
    folder = open_model_folder(teacher, lower_case)
    chosen = {"vocabulary.file": folder.vocabulary_file}
    return {**chosen, **_settings_of_vocabulary(chosen, folder.lower_case)}


def _unless_in_recipe(
    model_settings: dict[str, Any], recipe: Mapping[str, Any], lower_case: bool | None
) -> dict[str, Any]:
    """The settings taken from the recipe's `init` model, except those that the recipe sets itself."""
    own = ["model"] if "model" in recipe else []
    of_vocabulary = settings.section_of(recipe, "vocabulary")
    if lower_case is None and "lower_case" in of_vocabulary:
        own.append("vocabulary.lower_case")
    if "prefix_space" in of_vocabulary:
        own.append(_PREFIX_SPACE)
    return {key: value for key, value in model_settings.items() if key not in own}
