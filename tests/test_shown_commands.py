"""Every command that a page or a recipe's header shows is one that the command line takes."""

import fnmatch
import glob
import os
import re
import shlex
import subprocess

import click
import pytest
from pages import ROOT, text_of

from keras_bert.cli import main
from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.config.recipes import find_config
from keras_bert.core import settings

PAGES = sorted(
    os.path.relpath(path, ROOT)
    for pattern in ("*.md", "docs/*.md", "configs/*/*.yaml")
    for path in glob.glob(os.path.join(ROOT, pattern))
)
RECIPES = {"pretrain": PretrainConfig, "finetune": FinetuneConfig}


def commands_of(page):
    """The words of each `python run.py` command, except those that leave something out (…).

    N becomes 1, and nothing is remote.
    """
    text = text_of(page)
    if page.endswith(".yaml"):
        text = re.sub(r"^# (Command:)?", "", text, flags=re.MULTILINE)
    text = re.sub(r"\\\n\s*", " ", text).replace("gs://", "")
    program = r"(?:python run\.py|keras-bert)\s+(?!-)"
    lines = re.findall(rf"^\s*(?:srun )?{program}(.+)$", text, re.MULTILINE)
    lines += re.findall(rf"`{program}([^`]+)`", text)
    return [shlex.split(re.sub(r"\bN\b", "1", line), comments=True) for line in lines if "…" not in line]


def parsed(words):
    """(the name of a command, its parameters); nothing runs."""
    command, context = main, click.Context(main)
    while isinstance(command, click.Group):
        name, *words = words
        command = command.get_command(context, name)
        assert command is not None, f"no command {name}"
    return name, command.make_context(name, words, parent=context).params


@pytest.mark.parametrize("page", [page for page in PAGES if commands_of(page)])
def test_every_command_shown_is_taken(page, tmp_path, monkeypatch):
    """With its options, a recipe of that name, and settings of that recipe."""
    monkeypatch.chdir(tmp_path)
    for words in commands_of(page):
        try:
            name, params = parsed(words)
            if name in RECIPES:
                recipe = params.get("config") or params.get("task") or "bert_base"
                overrides = dict(settings.parse_override(text) for text in params["overrides"])
                if recipe not in ("glue", "superglue"):
                    RECIPES[name].from_file(find_config(name, recipe), overrides)
        except Exception as error:
            pytest.fail(f"{page}: run.py {shlex.join(words)}: {error!r}")


def test_shown_commands_read_the_text_that_make_data_fetches():
    """A reader may have no other text."""
    fetched = re.search(r"test -s (wiki/\S+)", text_of("Makefile"))[1]
    for page in PAGES:
        for words in commands_of(page) if page != "docs/learning.md" else ():  # It describes the text of its runs.
            text = [word for word in words if word.startswith(("wiki/", "novels/"))]
            assert all(fnmatch.fnmatch(fetched, glob) for glob in text), f"{page}: run.py {shlex.join(words)}"


def test_no_shown_run_is_to_be_written_into_the_folder_of_its_start():
    """`finetune --task sst2 --init runs/sst2` without --output is refused: the folder holds a run."""
    for page in PAGES:
        for words in commands_of(page):
            params = parsed(words)[1]
            output = params.get("output") or f"runs/{params.get('task') or params.get('config')}"
            assert output not in (params.get("init"), params.get("teacher")), f"{page}: run.py {shlex.join(words)}"


def test_git_ignores_what_the_shown_commands_write():
    """A reader who follows a page in a clone would otherwise commit models and vectors, or lose them among changes."""
    shown = (parsed(words)[1] for page in PAGES for words in commands_of(page))
    written = {params.get("output") or params.get("directory") for params in shown} - {None, "-"}
    relative = {path for path in written if not os.path.isabs(path) and path.split("/")[0] not in ("b", "bucket")}
    relative |= {"classifier.keras", "texts.txt"}  # docs/python.md
    check = ["git", "check-ignore", "--no-index", "--stdin"]
    ran = subprocess.run(check, cwd=ROOT, input="\n".join(relative), capture_output=True, text=True)
    if ran.returncode == 128:
        pytest.skip("no clone")
    assert relative == set(ran.stdout.splitlines())
