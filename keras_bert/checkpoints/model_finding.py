"""Finds models: in a folder, in a run, among runs."""

from keras_bert import files, settings, whole_files
from keras_bert.checkpoints import google, huggingface
from keras_bert.checkpoints.hub_name import hub_proposal, is_web_address
from keras_bert.checkpoints.huggingface import CONFIG
from keras_bert.config.reading import FIELD
from keras_bert.errors import UserError
from keras_bert.model_kinds import google_configs
from keras_bert.program import PROGRAM


def find_model_folder(path: files.StrPath) -> tuple[str, str]:
    """`(folder, kind)` of the model at `path`: in that folder or, for a run folder, in its `model/`.

    Raises:
        UserError: there is no model, or the path cannot be read.
    """
    if is_web_address(path):
        raise UserError(f"{path}: is the address of a web page, not a folder.{hub_proposal(path)}")
    try:
        for folder in map(whole_files.standing, (path, files.join(path, "model"))):
            has_config = files.is_file(files.join(folder, CONFIG))
            # Some folders hold both formats; take the one that can be read.
            if google.is_google_folder(folder) and not (has_config and huggingface.has_weights(folder)):
                return folder, "google"
            if has_config:
                return folder, "huggingface"
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error}).{hub_proposal(path)}") from None
    raise UserError(
        f"{path}: needs a model folder (with {CONFIG} or {google_configs()[0]}) or a run folder that holds model/. "
        f"Train one with: {PROGRAM} pretrain.{hub_proposal(path)}"
    )


def newest_pretrained(folder: files.StrPath) -> str | None:
    """The newest run in `folder` with a model that is not fine-tuned; None if there is none."""
    paths = [files.join(folder, name) for name in files.list_folder(folder)]
    configs = {path: files.join(whole_files.standing(files.join(path, "model")), CONFIG) for path in paths}
    found = [path for path in paths if files.is_file(configs[path])]
    pretrained = [path for path in found if FIELD not in settings.read_json(configs[path])]
    return max(pretrained, key=lambda path: files.modified(configs[path]), default=None)
