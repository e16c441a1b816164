"""Recipes: read, overridden, refused with the right key."""

import contextlib
import dataclasses
import glob
import importlib
import itertools
import os
import pkgutil
import re

import numpy as np
import pytest
import yaml
from pages import ROOT

from keras_bert import config
from keras_bert.api.pretraining import default_recipe
from keras_bert.config.finetuning import FinetuneConfig, FinetuneTrainingConfig, default_rate
from keras_bert.config.initialization import NAMED
from keras_bert.config.objectives import PhaseConfig
from keras_bert.config.pretraining import DataConfig, PretrainConfig
from keras_bert.config.recipes import by_setting, configs_folder, find_config
from keras_bert.config.training import OptimizerConfig, TrainingConfig
from keras_bert.core import settings
from keras_bert.core.errors import UserError
from keras_bert.models.albert.kind import AlbertConfig
from keras_bert.models.bert.config import BertConfig


def recipe(values=None, **overrides):
    return PretrainConfig.from_mapping(values or {}, overrides)


def test_a_resolved_recipe_reads_back_equal():
    config = recipe({"model": "tiny", "phases": [{"share": 0.9, "batch_size": 8}, {"share": 0.1}]})
    assert PretrainConfig.from_mapping(yaml.safe_load(settings.to_yaml(config))) == config


def test_every_line_end_comes_back_from_a_run_folder(tmp_path):
    """U+0085, from a name in Latin-1, used to come back as a blank, and the run could not be resumed."""
    config = PretrainConfig(data=DataConfig(files=[f"a{end}b" for end in ("\n", "\r", "\x85", "\u2028")]))
    path = tmp_path / "config.yaml"
    path.write_bytes(settings.to_yaml(config).encode("utf-8"))
    assert PretrainConfig.from_file(path) == config


def test_what_differs_from_an_empty_list_are_its_items():
    """The list itself used to be listed too: `kinds: was [], now None`."""
    old, new = {"kinds": [], "rates": {"a": 1.0}, "n": 1}, {"kinds": ["typo"], "rates": {}, "n": 2}
    assert sorted(settings.differences(old, new)) == [("kinds.0", None, "typo"), ("n", 1, 2), ("rates.a", 1.0, None)]
    assert settings.differences(old, {**old, "kinds": None}) == [("kinds", [], None)]


def test_overrides_win_and_reach_into_sections_and_lists():
    config = recipe(
        {"model": {"extends": "tiny", "vocab_size": 99}, "phases": [{"batch_size": 8}]},
        **{"optimizer.learning_rate": "1e-3", "phases.0.batch_size": 16, "model.num_hidden_layers": 3},
    )
    # YAML 1.1 reads 1e-3 as text; a number it is all the same.
    assert config.optimizer.learning_rate == 0.001
    assert config.phases[0].batch_size == 16
    assert (config.model.num_hidden_layers, config.model.vocab_size, config.model.hidden_size) == (3, 99, 128)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("phases=[{share:1.0}]", [{"share": 1.0}]),
        ("phases=[{share:0.5,batch_size: 8},{share:0.5}]", [{"share": 0.5, "batch_size": 8}, {"share": 0.5}]),
        ("phases={a:{b:[1,2]}}", {"a": {"b": [1, 2]}}),
        ("phases={a: , b: 'c:d'}", {"a": None, "b": "c:d"}),
    ],
)
def test_braces_need_no_blanks_after_colons(text, value):
    """YAML reads `{share:1.0}` as the key "share:1.0", which no user means."""
    assert settings.parse_override(text) == ("phases", value)


@pytest.mark.parametrize("value", ["{a: 1, a: 2}", "{a:1, a:2}", "{a: 1, a:2}", "[{b: {a:1,a:2}}]"])
def test_a_key_that_an_override_repeats_is_refused(value):
    """Without blanks, the last value used to count."""
    with pytest.raises(UserError, match=r"^--set x=.*: .* is not a YAML value \('a' is given twice\)\.$"):
        settings.parse_override(f"x={value}")


def test_another_model_by_name_and_changes_to_it():
    config = recipe({"model": "base"}, **{"model": "tiny", "model.vocab_size": 99})
    assert (config.model.hidden_size, config.model.vocab_size) == (128, 99)


def test_the_kind_of_model_may_be_chosen_after_its_settings():
    """It used to be refused: there was no such setting yet."""
    albert = recipe(**{"model.embedding_size": 4, "model.model_type": "albert"})
    assert albert.model == AlbertConfig(embedding_size=4)
    assert recipe(**{"model.model_type": "bert"}).model == BertConfig()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"optimiser": {}}, "optimiser: no such setting. The nearest is optimizer."),
        ({"optimizer": {"learning_rat": 1}}, "optimizer.learning_rat: .* nearest is optimizer.learning_rate"),
        ({"training": {"steps": "many"}}, "training.steps: needs a whole number. Received: 'many'"),
        ({"training": {"steps": 1.5}}, "training.steps: needs a whole number"),
        ({"training": {"seed": 2**32}}, "training.seed: needs a whole number from 0 to 4294967295. .*: 4294967296"),
        ({"training": {"seed": -1}}, "training.seed: needs a whole number from 0"),
        ({"training": {"steps": True}}, "training.steps: needs a whole number"),
        ({"training": {"jit_compile": "yes please"}}, "training.jit_compile: needs true, false or auto"),
        ({"training": {"steps": 0}}, "training.steps: needs a value above 0"),
        ({"optimizer": {"clip_norm": float("inf")}}, "optimizer.clip_norm: needs a finite number. Received: inf"),
        ({"training": {"strategy": "tpus"}}, "training.strategy: needs one of auto, one, mirrored"),
        ({"training": 3}, "training: needs a section of settings. Received: 3"),
        ({"model": {"hidden_size": 100}}, "model.hidden_size: needs a multiple of num_attention_heads"),
        ({"model": "hug"}, "hug: no such config. .*base"),
        ({"phases": [{"share": 0.5}]}, "phases: needs shares that sum to 1"),
        ({"phases": [{"share": 1.0}, {"share": 0.0}]}, "phases.1.share: needs a share above 0 and at most 1"),
        (
            {"phases": [{"share": 0.9}, {"share": 0.1}], "training": {"steps": 4}},
            r"training.steps: needs steps in every phase, as with 5 steps. Received: 4",
        ),
        (
            {"optimizer": {"warmup_share": 0.1}},
            "optimizer.warmup_share: needs optimizer.warmup_steps 0, not 10000. Received: 0.1",
        ),
        ({"phases": []}, "phases: needs at least one"),
        ({"phases": [{"sequence_length": 1024}]}, "phases.0.sequence_length: needs at most model.max_position"),
        ({"phases": [{"max_predictions_per_seq": 200}]}, "phases.0.max_predictions_per_seq"),
        ({"masking": {"mask_token_share": 0.95}}, "random_token_share: needs at most 1 together with mask_token_share"),
        ({"data": {"validation_share": 1.0}}, "data.validation_share"),
        ({"data": "c.txt"}, "data: needs a mapping. Received: 'c.txt'"),
        ({"init": 5}, "init: needs text. Received: 5"),
        ({5: 1}, "5: no such setting"),
        ({"model": {"extends": 5}}, "configs/models: has files with names, .* Received: 5"),
        ({"training": {"minutes": float("nan")}}, "training.minutes: needs a finite number. Received: nan"),
        ({"optimizer": {"clip_norm": ".inf"}}, "optimizer.clip_norm: needs a finite number. Received: '.inf'"),
        ({"examples": ["A [MASK].", "A cat."]}, r"examples.1: needs at least one \[MASK\], .*. Received: 'A cat.'"),
        ({"optimizer": {"learning_rate": -1}}, "optimizer.learning_rate: needs a value above 0"),
        ({"optimizer": {"name": "adam"}}, "optimizer.name: needs one of adafactor, adamw, lamb. Received: 'adam'"),
        ({"optimizer": {"layer_decay": 0}}, "optimizer.layer_decay: needs a factor above 0 and at most 1"),
        ({"optimizer": {"weight_average": 1}}, "optimizer.weight_average: needs a value of at least 0 and less than 1"),
        ({"optimizer": {"rates": {"embeddings": "low"}}}, "optimizer.rates.embeddings: needs a finite number. .*'low'"),
        ({"optimizer": {"rates": {"embeddings": -1}}}, "optimizer.rates.embeddings: needs 0 or more. Received: -1"),
        ({"optimizer": {"rates": {3: 0.1}}}, "optimizer.rates: needs names that are text. Received: 3"),
        ({"training": {"log_to": ["disk"]}}, "training.log_to.0: needs one of tensorboard, wandb, mlflow"),
        ({"training": {"log_to": ["wandb", "wandb"]}}, "training.log_to: needs some of tensorboard.*, each once"),
        (
            {"training": {"accumulation": "many"}},
            "accumulation: needs a whole number above 0 or auto. Received: 'many'",
        ),
        (
            {"optimizer": {"bias_correction": False}},
            r"optimizer.bias_correction: needs its default \(True\) with optimizer.name adamw; only lamb uses it. ",
        ),
        (
            {"optimizer": {"name": "adafactor", "beta_2": 0.98}},
            r"beta_2: needs its default \(0.999\) with .* adafactor, which does not use it. Received: 0.98",
        ),
        (
            {"optimizer": {"name": "adafactor", "beta_1": 0.8}},
            r"beta_1: needs its default \(0.9\) with .* adafactor, which .* without .*first_moment. Received: 0.8",
        ),
        (
            {"optimizer": {"polynomial_power": 1.5}},
            r"power: needs its default \(2.0\) with optimizer.schedule linear; only polynomial uses it. Received: 1.5",
        ),
        (
            {"optimizer": {"schedule": "constant", "decay_share": 0.5}},
            r"decay_share: needs its default \(1.0\) with .*schedule constant, which does not use it",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_its_key(values, message):
    with pytest.raises(UserError, match=message) as caught:
        recipe(values)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"learning_rate": 0.0}, "^learning_rate: needs a value above 0. Received: 0.0.$"),
        ({"learning_rate": None}, "^learning_rate: needs a finite number. Received: None.$"),
        ({"name": "adam"}, "^name: needs one of adafactor, adamw, lamb. Received: 'adam'.$"),
        ({"bias_correction": "no"}, "^bias_correction: needs true or false. Received: 'no'.$"),
        ({"rates": {"a": float("inf")}}, "^rates.a: needs a finite number. Received: inf.$"),
    ],
)
def test_what_is_made_in_python_is_checked_too(values, message):
    """`keras_bert.OptimizerConfig(…)` has no reader of recipes in front of it."""
    with pytest.raises(ValueError, match=message):
        OptimizerConfig(**values)


def test_a_value_that_says_the_same_gets_the_type_of_its_setting():
    """Otherwise a resolved recipe would be written as `1` here and as `1.0` there, and differ from itself."""
    made = FinetuneTrainingConfig(epochs=2, log_to=("wandb",), class_weights={"a": 1})
    assert repr((made.epochs, made.log_to, made.class_weights)) == "(2.0, ['wandb'], {'a': 1.0})"
    made = FinetuneTrainingConfig(class_weights={np.int64(0): 1.0, np.str_("a"): np.float32(2.0)})
    assert yaml.safe_load(settings.to_yaml(made))["class_weights"] == {0: 1.0, "a": 2.0}


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("learning_rate", "learning_rate: .* nearest is optimizer.learning_rate"),
        ("optimizer.lerning_rate", "nearest is optimizer.learning_rate"),
        ("training.steps.more", "training.steps is a value, not a section"),
        ("phases.3.batch_size", "needs an index from 0 to 0"),
        ("phases.².batch_size", "needs an index from 0 to 0. Received: '²'"),
        ("examples.0", "^examples.0: needs the whole list, which is empty. Received: '0'.$"),
        ("phases.1.batch_size", "phases.1: needs a section of settings. Received: 5"),
        ("training.steps", "training: needs a section of settings. Received: 'long'"),  # It would replace the value.
    ],
)
def test_an_override_of_nothing_is_refused(key, message):
    with pytest.raises(UserError, match=message):
        recipe({"phases": [{}, 5] if "phases.1" in key else [{}], "training": "long"}, **{key: 1})


@pytest.mark.parametrize("value", [{}, {"batch_size": 8}])
def test_a_mapping_is_no_list(value):
    """`--set phases={}` used to be ignored."""
    by_key = by_setting(PretrainConfig, {"phases": value, "training": {"steps": 3}, "masking": {}})
    assert by_key == {"phases": value, "training.steps": 3}
    with pytest.raises(UserError, match="phases: needs a list. Received: {"):
        recipe({"model": "tiny"}, **by_key)


def test_an_item_of_a_list_that_a_recipe_leaves_at_its_default_is_changed():
    """It used to be refused with the words that the list needs to be a list."""
    config = recipe({"model": "tiny"}, **{"phases.0.batch_size": 16, "training.log_to.0": "wandb"})
    assert config.phases == [PhaseConfig(batch_size=16)] and config.training.log_to == ["wandb"]
    assert recipe({"model": "tiny"}).phases == [PhaseConfig()]


def test_broken_recipes_are_named_with_their_line(tmp_path):
    cases = {
        b"a: [1": "line 1|line 2",
        b"\xff\xfe": "not UTF-8",
        b"- 1": "needs settings as",
        b"": "needs settings as",
        b"name: a\ntraining: {seed: 1}\n\ntraining: {steps: 5}\n": "line 4 is not .*'training' is given twice",
        b"model:\n  vocab_size: 5\n  vocab_size: 6\n": "line 3 is not valid YAML .'vocab_size' is given twice",
        b"? [a]\n: 1\n": "line 1 is not valid YAML .a key must be text",
        b"name: !!bool 3\n": "is not valid YAML",
        b"name: \0\n": "is not valid YAML",
        b"name: " + b"[" * 1000: "is not valid YAML",
    }
    for content, message in cases.items():
        path = tmp_path / "recipe.yaml"
        path.write_bytes(content)
        with pytest.raises(UserError, match=message) as caught:
            PretrainConfig.from_file(path)
        assert str(path) in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(UserError, match="cannot be read"):
        PretrainConfig.from_file(tmp_path / "absent.yaml")


KINDS = {"pretrain": PretrainConfig, "finetune": FinetuneConfig}


def shipped(kind):
    return sorted(glob.glob(os.path.join(configs_folder(), kind, "*.yaml")))


def header_of(path):
    """`{"Command": …, "Time": …, "Score": …}` as a recipe's header states them, lines joined."""
    with open(path, encoding="utf-8") as file:
        comments = [line[1:].strip() for line in itertools.takewhile(lambda line: line.startswith("#"), file)]
    stated, word = {}, None
    for line in comments:
        if match := re.match(r"(Command|Time|Score): +(.*)", line):
            word, line = match.groups()
        if word:
            stated[word] = f"{stated.get(word, '')} {line}".strip()
    return stated


@pytest.mark.parametrize(("kind", "path"), [(kind, path) for kind in KINDS for path in shipped(kind)])
def test_every_shipped_recipe_is_valid_and_its_header_states_command_time_and_score(kind, path):
    KINDS[kind].from_file(path)
    stated = header_of(path)
    assert list(stated) == ["Command", "Time", "Score"] and all(stated.values())
    assert stated["Command"].startswith(f"python run.py {kind}")
    name = os.path.splitext(os.path.basename(path))[0]
    assert kind == "pretrain" or f"--task {name} " in stated["Command"]


@pytest.mark.parametrize("path", shipped("finetune"))
def test_a_finetuning_header_cites_the_page_its_figures_are_on(path):
    """A time or score that is on no page would be unfounded."""
    stated = header_of(path)
    for said in (stated["Time"], stated["Score"]):
        pages = re.findall(r"\((docs/\w+\.md)\)", said)
        assert bool(pages) != (said == "not measured")
        for page in pages:
            with open(os.path.join(ROOT, page), encoding="utf-8") as file:
                figures = set(re.findall(r"\d+\.\d+|\d+", file.read()))
            assert set(re.findall(r"(?<![-\w.])\d+\.\d+", said)) <= figures


@pytest.mark.parametrize("path", [path for path in shipped("finetune") if "contrastive" not in path])
def test_a_recipe_keeps_the_papers_rate_for_bert_base_and_large(path):
    """As `learning_rate`, the paper's rate would be every model's. Contrastive losses are not in the paper."""
    optimizer = FinetuneConfig.from_file(path).optimizer
    assert optimizer.learning_rate is None
    for width in (768, 1024):
        assert default_rate(optimizer.base_rate, width) == optimizer.base_rate in (5e-5, 3e-5, 2e-5)


@pytest.mark.parametrize(
    ("width", "rates"),
    [(128, (6e-4, 3.6e-4)), (256, (4.5e-4, 2.7e-4)), (384, (2e-4, 1.2e-4)), (768, (5e-5, 3e-5)), (16, (6e-4, 3.6e-4))],
)
def test_the_rate_follows_the_width(width, rates):
    """docs/finetuning.md shows these; the narrowest stop at 12 times BERT-base's."""
    assert tuple(default_rate(base, width) for base in (5e-5, 3e-5)) == rates


@pytest.mark.parametrize(("width", "rate"), [(128, 1.7e-3), (256, 1.5e-3), (384, 1e-3), (768, 5e-4), (1024, 5e-4)])
def test_loras_rate_is_higher_and_grows_less(width, rate):
    assert default_rate(5e-5, width, with_lora=True) == rate


def test_bert_base_is_the_papers():
    config = PretrainConfig.from_file(find_config("pretrain", "bert_base"))
    assert config.training.steps == 1_000_000
    assert [(p.share, p.sequence_length, p.batch_size) for p in config.phases] == [(0.9, 128, 256), (0.1, 512, 256)]
    assert config.model == BertConfig()
    assert dataclasses.asdict(config.optimizer) == {
        "name": "adamw",
        "learning_rate": 1e-4,
        "warmup_steps": 0,
        "warmup_share": 0.01,  # 10,000 steps.
        "schedule": "linear",
        "polynomial_power": 2.0,
        "decay_share": 1.0,
        "weight_decay": 0.01,
        "beta_1": 0.9,
        "beta_2": 0.999,
        "epsilon": 1e-6,
        "clip_norm": 1.0,
        "bias_correction": True,
        "relative_step": False,
        "first_moment": False,
        "layer_decay": 1.0,
        "rates": {},
        "weight_average": 0.0,
    }
    assert config.initialization == NAMED["paper"]


def test_model_configs_are_read_from_json_and_yaml_alike(tmp_path):
    config = BertConfig(hidden_size=64, num_attention_heads=4)
    for name in ("config.json", "model.yaml"):
        config.to_file(tmp_path / name)
        assert BertConfig.from_file(tmp_path / name) == config


def test_another_kind_of_model_is_refused(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "deberta", "vocab_size": 5}')
    with pytest.raises(UserError, match="'deberta' is not supported"):
        BertConfig.from_file(tmp_path / "config.json")


@pytest.mark.parametrize(
    ("warmup", "steps", "message"),
    [
        (10_000, 10_000, "needs to end before the run does, of 10,000 steps. Received: 10,000. Set .*_steps=999,"),
        (901, 1000, r"needs to end before the first phase \(900 steps\) does, .* Set optimizer.warmup_steps=90,"),
        (900, 1000, None),
        (0, 2, None),
    ],
)
def test_a_warm_up_that_outlasts_its_phase_is_refused(warmup, steps, message):
    """Such a run never reaches its learning rate, and nothing used to say so."""
    phases = [{"share": 0.9}, {"share": 0.1}] if steps == 1000 else [{}]
    values = {"optimizer": {"warmup_steps": warmup}, "phases": phases, "training": {"steps": steps}}
    with pytest.raises(UserError, match=message) if message else contextlib.nullcontext():
        recipe(values).require_before_end()
    recipe({**values, "training": {"minutes": 1}}).require_before_end()  # Nobody knows its steps.


def test_a_trace_of_steps_after_the_end_is_refused():
    """No trace was written, and nothing used to say so."""
    values = {"optimizer": {"warmup_steps": 2}}
    recipe(values | {"training": {"steps": 40, "profile_at": 39}}).require_before_end()
    with pytest.raises(UserError, match="profile_at: needs a step before the end of the run, of 40 steps. Rec.*: 40"):
        recipe(values | {"training": {"steps": 40, "profile_at": 40}}).require_before_end()
    recipe(values | {"training": {"minutes": 1, "profile_at": 2_000_000}}).require_before_end()


def test_going_on_has_a_warm_up_in_any_number_of_steps():
    """README's example without a recipe used to take the warm-up of a million steps, and never left it."""
    for steps in (10, 10_000):
        changes = {"training.steps": steps}
        config = PretrainConfig.from_file(find_config("pretrain", default_recipe(False, "MODEL", None)), changes)
        config.require_before_end()
        assert config.name == "continue" and config.training.steps == steps


def settings_classes():
    """Every dataclass in `config/` that a user's file or command line fills in."""
    names = (module.name for module in pkgutil.iter_modules(config.__path__, "keras_bert.config."))
    modules = map(importlib.import_module, names)
    found = {value for module in modules for value in vars(module).values() if dataclasses.is_dataclass(value)}
    return sorted(found, key=lambda cls: cls.__name__)


@pytest.mark.parametrize("cls", settings_classes(), ids=lambda cls: cls.__name__)
def test_every_setting_has_a_meaning(cls):
    """Otherwise `run.py settings` and the help of options would be silent about it."""
    known = settings.meanings(cls)
    assert [field.name for field in dataclasses.fields(cls) if not known.get(field.name, "").endswith(".")] == []
    assert set(known) <= {field.name for field in dataclasses.fields(cls)}


@pytest.mark.parametrize(
    ("cls", "name", "takes"),
    [
        (OptimizerConfig, "schedule", "one of linear, cosine, polynomial, constant"),
        (OptimizerConfig, "learning_rate", "a number above 0"),
        (OptimizerConfig, "rates", "a mapping, each a number, 0 or more"),
        (PhaseConfig, "sequence_length", "a whole number, at least 8"),
        (PhaseConfig, "masking_share", "a share from 0 to 1, or null"),
        (TrainingConfig, "jit_compile", "true, false or auto"),
        (TrainingConfig, "devices", "a list of text"),
        (FinetuneConfig, "task", "text"),
    ],
)
def test_what_a_setting_takes_is_what_its_refusals_say(cls, name, takes):
    [setting] = [setting for setting in settings.every_setting(cls) if setting.key == name]
    assert setting.takes == takes


def test_an_override_of_a_section_stays_as_it_was_given():
    """Otherwise a later key would change the caller's dict, and with it the settings of the next run."""
    objective = {"pair": "none"}
    settings.apply_overrides(PretrainConfig, {}, {"objective": objective, "objective.packing": "full"})
    assert objective == {"pair": "none"}
