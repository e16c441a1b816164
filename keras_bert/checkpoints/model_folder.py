"""The model folder: config.json, vocab.txt, tokenizer_config.json and model.safetensors.

Names and fields are Hugging Face's, so that `transformers` opens what is written here.
"""

import dataclasses
import json
import os

import safetensors
import safetensors.numpy

from keras_bert import files, settings
from keras_bert.checkpoints.names import huggingface_variables
from keras_bert.config import BertConfig
from keras_bert.errors import UserError

CONFIG, VOCABULARY, TOKENIZER, WEIGHTS = "config.json", "vocab.txt", "tokenizer_config.json", "model.safetensors"


@dataclasses.dataclass
class ModelFolder:
    """What a model folder holds; the tensors are read when asked for."""

    path: str
    config: BertConfig
    lower_case: bool

    @property
    def vocabulary_file(self):
        return os.path.join(self.path, VOCABULARY)

    @property
    def weights_file(self):
        return os.path.join(self.path, WEIGHTS)

    def tensor_shapes(self):
        """`{Hugging Face name: shape}` from the file's header alone."""
        with _open_weights(self.weights_file) as weights:
            return {name: tuple(weights.get_slice(name).get_shape()) for name in weights.keys()}

    def load_into(self, model):
        """Copies every tensor into a `BertForPreTraining`. Raises `UserError` for one absent or misshapen."""
        with _open_weights(self.weights_file) as weights:
            present = set(weights.keys())
            for name, variable in huggingface_variables(model):
                if name.huggingface not in present:
                    raise UserError(f"{self.weights_file}: needs the tensor {name.huggingface} and lacks it.")
                value = weights.get_tensor(name.huggingface)
                needed = tuple(variable.shape)[::-1] if name.transposed else tuple(variable.shape)
                if value.shape != needed:
                    raise UserError(
                        f"{self.weights_file}: {name.huggingface} needs shape {list(needed)} by {CONFIG}. "
                        f"Received: {list(value.shape)}."
                    )
                variable.assign(value.T if name.transposed else value)


def find_model_folder(path):
    """The model folder that `path` names: itself, or the `model/` of a run folder."""
    for folder in (path, os.path.join(path, "model")):
        if os.path.isfile(os.path.join(folder, CONFIG)):
            return folder
    raise UserError(
        f"{path}: needs a model folder (with {CONFIG}) or a run folder that holds model/. "
        "Train one with: python run.py pretrain"
    )


def open_model_folder(path):
    """Reads the small files of the folder that `path` names and checks them against each other."""
    folder = find_model_folder(path)
    for name in (VOCABULARY, WEIGHTS):
        if not os.path.isfile(os.path.join(folder, name)):
            raise UserError(f"{folder}: needs {name} and lacks it.")
    config = BertConfig.from_file(os.path.join(folder, CONFIG))
    tokenizer_file = os.path.join(folder, TOKENIZER)
    lower_case = True
    if os.path.isfile(tokenizer_file):
        lower_case = bool(settings.read_yaml(tokenizer_file).get("do_lower_case", True))
    return ModelFolder(folder, config, lower_case)


def write_model_folder(path, model, vocabulary, lower_case):
    """Writes a `BertForPreTraining` to `path`, whole or not at all.

    Args:
        path: the folder; replaced if there.
        model: the model; its weights are written in float32.
        vocabulary: a `text.Vocabulary`.
        lower_case: whether its tokenizer lower-cases.
    """
    aside = f"{path}.partial"
    files.remove_folder(aside)
    files.make_folder(aside)
    # safetensors writes a buffer as it lies in memory, so a transpose must be a copy.
    tensors = {
        name.huggingface: variable.numpy().T.copy() if name.transposed else variable.numpy()
        for name, variable in huggingface_variables(model)
    }
    safetensors.numpy.save_file(tensors, os.path.join(aside, WEIGHTS), metadata={"format": "pt"})
    _write_json(os.path.join(aside, CONFIG), _huggingface_config(model.config))
    _write_json(os.path.join(aside, TOKENIZER), _tokenizer_config(model.config, lower_case))
    vocabulary.to_file(os.path.join(aside, VOCABULARY))
    files.remove_folder(path)
    files.rename(aside, path)


def _huggingface_config(config):
    return {
        "architectures": ["BertForPreTraining"],
        "model_type": "bert",
        **dataclasses.asdict(config),
        "pad_token_id": 0,
        "position_embedding_type": "absolute",
    }


def _tokenizer_config(config, lower_case):
    return {
        "do_lower_case": lower_case,
        "tokenize_chinese_chars": True,
        "strip_accents": None,
        "tokenizer_class": "BertTokenizer",
        "model_max_length": config.max_position_embeddings,
        "unk_token": "[UNK]",
        "sep_token": "[SEP]",
        "pad_token": "[PAD]",
        "cls_token": "[CLS]",
        "mask_token": "[MASK]",
    }


def _write_json(path, values):
    with files.atomic_write(path) as stream:
        stream.write(json.dumps(values, indent=2) + "\n")


def _open_weights(path):
    try:
        return safetensors.safe_open(path, framework="np")
    except (safetensors.SafetensorError, OSError) as error:
        raise UserError(f"{path}: is not a whole safetensors file ({error}). Fetch or write it again.") from None
