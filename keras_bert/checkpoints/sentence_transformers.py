"""The files that tell sentence-transformers how to make vectors from a model's states.

modules.json lists what a text passes through: the model itself ("Transformer"), "Pooling" with its config.json, perhaps
"Normalize". See https://sbert.net/docs/sentence_transformer/usage/custom_models.html
"""

import re
from collections.abc import Mapping
from typing import Any

from keras_bert.config.inference import VectorConfig
from keras_bert.core.errors import UserError
from keras_bert.core.files import StrPath, is_file, join
from keras_bert.core.yaml_and_json import read_if_there, read_json, read_json_list
from keras_bert.text.tokenizer_files import TOKENIZER_CONFIG

MODULES, LIBRARY_CONFIG = "modules.json", "config_sentence_transformers.json"
# How the model reads texts; the name depends on the kind of model, but newer versions write the first for all.
_KINDS = ("bert", "roberta", "camembert", "albert", "xlm-roberta", "xlnet")
READING_CONFIGS = tuple(f"sentence_{kind}_config.json" for kind in _KINDS)
POOLING, NORMALIZE = "1_Pooling", "2_Normalize"
POOLING_CONFIG = f"{POOLING}/config.json"
FILES = (MODULES, LIBRARY_CONFIG, *READING_CONFIGS, POOLING_CONFIG)

_READ_HERE = {"cls": "cls", "mean": "mean", "max": "max"}  # Their names and ours.
_PATH = re.compile(r"(?!\.)[\w.-]*", re.ASCII)  # A module's folder within the model's, or "" for the model's.
# The fields of a pooling's config, of which the true ones say what it does; newer versions write `pooling_mode`.
_MODE_FIELDS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


def vector_files(width: int, max_length: int) -> dict[str, Any]:
    """The files `{path in the folder: content}` of a model whose vectors are means at length 1, compared by cosine.

    Any version from 2.0 on reads them.

    Args:
        width: the length of the vectors.
        max_length: the most tokens of a text, special tokens included.
    """
    paths = {"Transformer": "", "Pooling": POOLING, "Normalize": NORMALIZE}
    return {
        MODULES: [
            {"idx": index, "name": str(index), "path": path, "type": f"sentence_transformers.models.{name}"}
            for index, (name, path) in enumerate(paths.items())
        ],
        POOLING_CONFIG: {
            "word_embedding_dimension": width,
            **{field: mode == "mean" for field, mode in list(_MODE_FIELDS.items())[:4]},  # 2.0 knows these alone.
        },
        # The tokenizer lower-cases by itself.
        READING_CONFIGS[0]: {"max_seq_length": max_length, "do_lower_case": False},
        LIBRARY_CONFIG: {
            "model_type": "SentenceTransformer",
            "__version__": {"sentence_transformers": "2.0.0"},
            "prompts": {},
            "default_prompt_name": None,
            "similarity_fn_name": "cosine",
        },
    }


def read_vectors(folder: StrPath, lower_case: bool) -> VectorConfig | None:
    """How vectors are made, according to a folder's files; None if it has none or they name no pooling.

    Args:
        lower_case: whether the model's tokenizer lower-cases.

    Raises:
        UserError: the files cannot be read, or ask for something that is not supported.
    """
    modules = _modules(folder)
    beyond = [name for name in modules if name not in ("Transformer", "Pooling", "Normalize")]
    if beyond:
        raise _not_done(folder, MODULES, "the modules Transformer, Pooling and Normalize", ", ".join(beyond))
    if "Pooling" not in modules:
        return None
    file = join(modules["Pooling"], "config.json")
    modes = _modes(read_json(join(folder, file)))
    if len(modes) != 1 or modes[0] not in _READ_HERE:
        raise _not_done(folder, file, f"one pooling of {', '.join(_READ_HERE)}", " and ".join(modes))
    library = read_if_there(join(folder, LIBRARY_CONFIG))
    for field in ("default_prompt_name", "truncate_dim"):
        if library.get(field):
            raise _not_done(folder, LIBRARY_CONFIG, f"no {field}", repr(library[field]))
    for name in READING_CONFIGS:
        if read_if_there(join(folder, name)).get("do_lower_case") and not lower_case:
            raise _not_done(folder, name, "do_lower_case false, as the tokenizer does not lower-case,", "true")
    return VectorConfig(_READ_HERE[modes[0]], "Normalize" in modules)


def read_max_length(folder: StrPath) -> int | None:
    """The most tokens of a text, special tokens included, according to a folder's files; None if they do not say.

    Version 6 leaves it to the tokenizer's own settings, in a folder with modules.json.

    Raises:
        UserError: the files cannot be read, or say anything but a number.
    """
    places = [(name, "max_seq_length") for name in READING_CONFIGS]
    if is_file(join(folder, MODULES)):
        places.append((TOKENIZER_CONFIG, "model_max_length"))
    for name, field in places:
        found = read_if_there(join(folder, name)).get(field)
        if found is not None:
            if not isinstance(found, int) or found < 1:
                raise UserError(f"{join(folder, name)}: {field} needs a number of tokens. Received: {found!r}.")
            return found
    return None


def stored_files(folder: StrPath, longest: int) -> dict[str, Any] | None:
    """These files of a folder, `{path in it: content}`, with the most tokens of a text; empty without modules.json.

    None if some modules have weights.

    Args:
        longest: the most tokens that the model reads; a tokenizer without a maximum says 10^30.

    Raises:
        UserError: a file cannot be read.
    """
    modules = _modules(folder)
    if not modules:
        return {}
    if set(modules) - {"Transformer", "Pooling", "Normalize"}:
        return None
    names = [LIBRARY_CONFIG, *READING_CONFIGS]
    names += [join(path, "config.json") for path in modules.values() if path]
    found: dict[str, Any] = {name: content for name in names if (content := read_if_there(join(folder, name)))}
    if max_length := read_max_length(folder):  # A tokenizer is written with the model's maximum.
        named = next((name for name in READING_CONFIGS if name in found), READING_CONFIGS[0])
        found[named] = {**found.get(named, {}), "max_seq_length": min(max_length, longest)}
    return {MODULES: read_json_list(join(folder, MODULES)), **found}


def _modules(folder: StrPath) -> dict[str, str]:
    """`{name of its class: path in the folder}` of each module; empty without modules.json."""
    path = join(folder, MODULES)
    if not is_file(path):
        return {}
    modules = {}
    for entry in read_json_list(path):
        kind, place = (entry.get("type"), entry.get("path")) if isinstance(entry, dict) else (None, None)
        if not isinstance(kind, str) or not isinstance(place, str) or not _PATH.fullmatch(place):
            raise UserError(
                f"{path}: needs the type of each module, and its folder in this one as path. Received: {entry!r}. "
                "Fetch it again."
            )
        modules[kind.rpartition(".")[2]] = place
    return modules


def _modes(config: Mapping[str, Any]) -> list[str]:
    """What a pooling does, by sentence-transformers' newer names; several are concatenated."""
    named = config.get("pooling_mode")
    if named is None:
        named = [mode for field, mode in _MODE_FIELDS.items() if config.get(field)] or ["mean"]
    return list(map(str, named)) if isinstance(named, list) else [str(named)]


def _not_done(folder: StrPath, file: str, needed: str, received: str) -> UserError:
    return UserError(
        f"{join(folder, file)}: needs {needed} to make vectors by it. Received: {received}. Name a pooling, such as "
        f"mean, or use the folder without {MODULES}."
    )
