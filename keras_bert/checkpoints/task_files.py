"""The files beside a model's weights that let other libraries use it for its task."""

from collections.abc import Mapping
from typing import Any

from keras_bert.core import files, whole_files
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.kind import kind_of_config
from keras_bert.tasks.kind import kind_of_fields


def write_task_files(
    folder: files.StrPath, config: BertConfig, fields: Mapping[str, Any], more_files: Mapping[str, Any] | None = None
) -> None:
    """Writes the JSON files of a model's kind of task, such as modules.json.

    Args:
        fields: the content of config.json.
        more_files: more files, or replacements for those, `{path in the folder: content}`.
    """
    kind = kind_of_fields(fields)
    of_kind = kind.folder_files(config, fields) if kind and kind_of_config(config).in_transformers else {}
    for name, content in {**of_kind, **(more_files or {})}.items():
        path = files.join(folder, name)
        files.make_folder(files.parent(path))
        whole_files.write_json(path, content)
