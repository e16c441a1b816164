"""The command line: one thin module per command.

Nothing imported here imports TensorFlow, so help and bad arguments are answered at once.
"""

import errno
import logging
import os
import signal
import sys
import traceback
from typing import Any, NoReturn

import click

from keras_bert import __version__
from keras_bert.cli.convert import convert
from keras_bert.cli.embed import embed
from keras_bert.cli.evaluate import evaluate
from keras_bert.cli.export import export
from keras_bert.cli.fill import fill
from keras_bert.cli.finetune import finetune
from keras_bert.cli.generate import generate
from keras_bert.cli.inspect import inspect
from keras_bert.cli.launch import launch
from keras_bert.cli.options import require_filled
from keras_bert.cli.predict import predict
from keras_bert.cli.prepare import prepare
from keras_bert.cli.pretrain import pretrain
from keras_bert.cli.retrieve import retrieve
from keras_bert.cli.settings import settings, settings_named
from keras_bert.cli.study import study
from keras_bert.cli.vocab import vocab
from keras_bert.core import files, messages
from keras_bert.core.errors import RunStopped, UserError, WorkerLost
from keras_bert.core.program import PROGRAM, same_command
from keras_bert.core.runtime import open_closed_streams
from keras_bert.training.run_folder import ERROR_LOG

# Errors of the operating system that the user can fix.
_USERS_ERRNO = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EACCES, errno.EPERM, errno.EROFS),
    # A file where a folder is needed, or the reverse; an invalid file name.
    *(errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP),
}


class BadInput(click.ClickException):
    exit_code = 2


class FrontDoor(click.Group):
    """Turns a `UserError` into one line and exit status 2; a bug keeps its traceback."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except UserError as error:
            raise BadInput(str(error)) from None
        except click.NoSuchOption as error:
            named = error.ctx and settings_named(error.ctx.info_name or "", error.option_name, not error.possibilities)
            if not named:
                raise
            sets = " or ".join(f"--set {key}=VALUE" for key in named)
            raise BadInput(f"{error.option_name}: is a setting, not an option. Give {sets}.") from None
        except RunStopped as stopped:
            try:
                click.echo(str(stopped))
            except OSError:  # Under --quiet, this may be the first line for a terminal that was closed.
                messages.silence(sys.stdout)
            if isinstance(stopped, WorkerLost):
                _leave(stopped.status)
            context.exit(stopped.status)
        except BrokenPipeError:
            raise  # click ends in silence, as programs do whose reader is gone.
        except OSError as error:
            # Errors from an object store (no such bucket, no permission, no network) are never bugs of this program.
            no_folder = "temporary directory" in str(error.strerror)  # Which Python looked for in vain.
            if error.errno in _USERS_ERRNO or no_folder or error.filename and files.is_remote(error.filename):
                raise BadInput(f"{error.filename or 'Writing'}: {error.strerror}.") from None
            self._keep_traceback(context)
        except KeyboardInterrupt:
            folder = context.meta.get("keras_bert.run_folder")
            advice = f" Run {same_command()} to resume." if folder and files.is_folder(folder) else ""
            click.echo(f"\nAborted!{advice}", err=True)
            context.exit(128 + signal.SIGINT)  # As shells do; click's 1 means a bug here.
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception:
            self._keep_traceback(context)

    def _keep_traceback(self, context: click.Context) -> None:
        """Called in an `except`: writes the traceback to RUN/error.log if there is a run folder, else re-raises."""
        folder, text = context.meta.get("keras_bert.run_folder"), traceback.format_exc()
        path = files.join(folder, ERROR_LOG) if folder else None
        if context.params.get("debug") or path is None or not _is_written(path, text):
            raise  # noqa: PLE0704
        last = text.strip().splitlines()[-1]
        click.echo(f"Internal error: {last[:300]}\nThe traceback is in {path}; --debug prints it.", err=True)
        context.exit(1)


def _leave(status: int) -> NoReturn:
    """Ends the process without TensorFlow's shutdown, which takes time and prints errors after a worker is lost."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _is_written(path: str, text: str) -> bool:
    """Writes a file if its folder exists and is writable. Returns whether it was written."""
    try:
        if files.is_folder(files.parent(path)):
            with files.open_file(path, "w") as stream:
                stream.write(text)
            return True
    except OSError:
        pass
    return False


@click.group(cls=FrontDoor, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--debug", is_flag=True, help="Print the traceback when the program fails.")
@click.version_option(__version__, prog_name="bert-in-keras")
def main(debug: bool) -> None:
    """BERT in TensorFlow and Keras: pretraining, fine-tuning, serving.

    \b
    python run.py pretrain    the demo: no download, two to four minutes

    \b
    From text to a server (the first two steps are optional):
    python run.py vocab --input 'wiki/*' --size 8192 --output vocab.txt
    python run.py prepare --input 'wiki/*' --vocab vocab.txt --output prepared
    python run.py pretrain --config wiki_mini --data prepared
    python run.py finetune --task sst2 --init runs/wiki_mini
    python run.py evaluate --model runs/sst2
    python run.py predict --model runs/sst2 --input texts.txt --output answers.jsonl
    python run.py export --model runs/sst2 --output served/sst2

    More about a command: python run.py COMMAND --help
    """
    open_closed_streams()
    messages.show()
    try:
        os.getcwd()
    except FileNotFoundError:
        raise UserError("The working folder was removed. Change to one that exists.") from None


main.help = (main.help or "").replace("python run.py", PROGRAM)
_COMMANDS = {  # The text of each in the list of commands; click would truncate the command's first sentence.
    pretrain: "Pretrain a BERT on text.",
    finetune: "Fine-tune a BERT on a task.",
    evaluate: "Score a fine-tuned model.",
    predict: "Answer examples with a fine-tuned model.",
    export: "Write a model for serving, LiteRT or ONNX.",
    vocab: "Learn a vocabulary, or extend one.",
    prepare: "Tokenize text once, for any number of runs.",
    fill: "Fill in the [MASK]s of a text.",
    generate: "Continue texts with a left-to-right model.",
    embed: "Write the vectors of texts.",
    retrieve: "Search passages, and score the results.",
    inspect: "Print a model's parameter counts.",
    settings: "List the settings of recipes.",
    convert: "Convert a model to another format.",
    launch: "Start several workers on this machine.",
    study: "Compare many runs on a page with pictures.",
}
_LEVELS = {"quiet": logging.WARNING, "verbose": logging.DEBUG}


def _show(context: click.Context, option: click.Parameter, is_given: bool) -> None:
    if is_given and option.name:
        messages.show(_LEVELS[option.name])


def _message_options() -> list[click.Option]:
    flags: dict[str, Any] = {"is_flag": True, "expose_value": False, "callback": _show}
    return [
        click.Option(["--quiet", "-q"], help="Print answers, warnings and errors only.", **flags),
        click.Option(["--verbose", "-v"], help="Print the time and the module of each message.", **flags),
    ]


for command, short_help in _COMMANDS.items():
    command.short_help = short_help
    main.add_command(command)
for command in [*_COMMANDS, *study.commands.values()]:
    for parameter in command.params:
        # Prefixes of texts, and texts themselves, may be empty. A metavar names whatever else is text.
        if parameter.metavar and "TEXT" not in parameter.metavar and parameter.callback is None:
            parameter.callback = require_filled
    if command not in (study, settings):
        command.params += _message_options()
    command.help = (command.help or "").replace("python run.py", PROGRAM)
