"""`hf:NAME` against a server in the hub's form: what is fetched, what is kept, and what each failure says."""

import errno
import json
import os
import shutil
import subprocess
import sys

import huggingface_hub
import huggingface_hub.constants
import numpy as np
import pytest
import safetensors.numpy
from goldens import COMMITTED
from hub_server import Repository, forget_sessions, hub_server, own_cache, point_to
from tiny import VOCABULARY
from torch_files import BERT_CONFIG, bert_shapes, numbers

from keras_bert.checkpoints.model_folder import open_model_folder, vocabulary_path
from keras_bert.checkpoints.sentence_transformers import POOLING_CONFIG, vector_files
from keras_bert.checkpoints.writing import convert_folder
from keras_bert.config.inference import VectorConfig
from keras_bert.core.errors import UserError

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NAME = "someone/tiny-bert"
TENSORS = {name: numbers(name, shape) for name, shape in bert_shapes().items()}
SMALL = {
    "config.json": json.dumps(BERT_CONFIG).encode(),
    "vocab.txt": "".join(f"{token}\n" for token in VOCABULARY.tokens).encode(),
    "tokenizer_config.json": b'{"do_lower_case": false}',
}
WEIGHTS = {"model.safetensors": safetensors.numpy.save(TENSORS)}
# What else lies in such repositories, which nobody here needs.
OTHERS = dict.fromkeys(
    ("tf_model.h5", "flax_model.msgpack", "README.md", "model.onnx", "onnx/m.onnx"), b"not to be fetched"
)
PICKLED = {"pytorch_model.bin": b"not to be fetched either"}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    return own_cache(str(tmp_path / "cache"), monkeypatch)


@pytest.fixture
def hub(cache, monkeypatch):
    with hub_server() as server:
        point_to(server.url, monkeypatch)
        server.repositories[NAME] = Repository({**SMALL, **WEIGHTS, **OTHERS, **PICKLED})
        yield server


def go_offline(monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    forget_sessions()


def check(folder):
    for name, value in TENSORS.items():
        np.testing.assert_array_equal(folder.tensors.value(folder.tensors.places[name]), value)


def refusal(name=f"hf:{NAME}"):
    with pytest.raises(UserError) as refused:
        check(open_model_folder(name))
    message = str(refused.value)
    assert message.startswith(name) and "\n" not in message
    return message


def test_weights_are_fetched_when_they_are_asked_for_and_nothing_else_is(hub):
    folder = open_model_folder(f"hf:{NAME}")
    assert set(hub.fetched()) == set(SMALL)
    assert folder.config.hidden_size == 8 and folder.lower_case is False
    assert folder.name == f"hf:{NAME}@{hub.repositories[NAME].refs['main']}"
    check(folder)
    assert hub.fetched()[len(SMALL) :] == ["model.safetensors"]


def test_how_vectors_are_made_is_fetched_with_the_config(hub, monkeypatch):
    """modules.json names a file in a folder; without it, vectors pooled by [CLS] would become means."""
    files = {**vector_files(8, 5), POOLING_CONFIG: {"pooling_mode": "cls"}}
    sent = {name: json.dumps(content).encode() for name, content in files.items()}
    hub.repositories[NAME].publish({**SMALL, **WEIGHTS, **OTHERS, **sent, "0_Other/config.json": b"{}"})
    folder = open_model_folder(f"hf:{NAME}")
    assert set(hub.fetched()) == {*SMALL, *sent}
    check(folder)
    go_offline(monkeypatch)
    for name in (f"hf:{NAME}", folder.name):
        cached = open_model_folder(name)
        assert cached.vectors() == VectorConfig("cls", True) and cached.vector_length == 5


def test_how_vectors_are_made_is_fetched_where_transformers_alone_filled_the_cache(hub, monkeypatch):
    """transformers never asks for modules.json; at a known commit, the model would pass for whole and give means."""
    sent = {name: json.dumps(content).encode() for name, content in vector_files(8, 5).items()}
    commit = hub.repositories[NAME].publish({**SMALL, **WEIGHTS, **sent})
    for file in (*SMALL, *WEIGHTS):
        huggingface_hub.hf_hub_download(NAME, file, revision=commit)
    assert open_model_folder(f"hf:{NAME}@{commit}").vectors() == VectorConfig("mean", True)
    go_offline(monkeypatch)
    assert open_model_folder(f"hf:{NAME}@{commit}").vectors() == VectorConfig("mean", True)


def test_what_is_in_the_cache_is_not_fetched_again(hub):
    folder = open_model_folder(f"hf:{NAME}")
    check(folder)
    hub.requests.clear()
    check(open_model_folder(f"hf:{NAME}"))
    assert hub.fetched() == [] and hub.requests
    hub.requests.clear()
    check(open_model_folder(folder.name))
    assert hub.requests == []  # A commit never changes.


@pytest.mark.skipif(huggingface_hub.__version__ < "1", reason="huggingface_hub 1 tries again by itself")
def test_a_fetch_that_is_cut_off_goes_on_where_it_was(hub):
    hub.repositories[NAME].cuts["model.safetensors"] = [3000, 2000]
    check(open_model_folder(f"hf:{NAME}"))
    assert hub.fetched().count("model.safetensors") == 3


def test_a_fetch_that_never_ends_is_refused_and_leaves_nothing(hub, cache, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    hub.repositories[NAME].cuts["model.safetensors"] = [0] * 20
    assert "model.safetensors: could not be fetched" in refusal()
    hub.repositories[NAME].cuts.clear()
    check(open_model_folder(f"hf:{NAME}"))


@pytest.mark.parametrize("file", ["model.safetensors", "vocab.txt"])
def test_bytes_that_are_not_those_listed_are_refused_and_removed(hub, file):
    """The hub's own library only compares sizes."""
    content = {**SMALL, **WEIGHTS}[file]
    hub.repositories[NAME].sent_instead[file] = content[:-2] + b"??"
    for _ in range(2):
        assert f"{file} does not match its hash on the hub" in refusal()
    hub.repositories[NAME].sent_instead.clear()
    check(open_model_folder(f"hf:{NAME}"))


def test_a_file_sent_too_short_is_refused(hub):
    hub.repositories[NAME].sent_instead["model.safetensors"] = WEIGHTS["model.safetensors"][:-100]
    assert "model.safetensors: could not be fetched" in refusal()


def test_offline_the_cache_is_enough(hub, monkeypatch):
    repository = hub.repositories[NAME]
    repository.refs["v1.0"] = repository.refs["main"]
    for name in (f"hf:{NAME}", f"hf:{NAME}@v1.0"):
        check(open_model_folder(name))
    go_offline(monkeypatch)
    hub.requests.clear()
    for revision in ("", "@main", "@v1.0", f"@{repository.refs['main']}"):
        check(open_model_folder(f"hf:{NAME}{revision}"))
    assert hub.requests == []
    assert "is not in the cache" in refusal(f"hf:{NAME}@v2.0") and "HF_HUB_OFFLINE is set). Run" in refusal("hf:other")


def test_offline_with_the_small_files_alone(hub, monkeypatch):
    open_model_folder(f"hf:{NAME}")
    go_offline(monkeypatch)
    assert "its weights are not in the cache" in refusal()


def test_no_network_takes_the_cache_and_says_so(hub, monkeypatch):
    check(open_model_folder(f"hf:{NAME}"))
    hub.is_down = True
    folder = open_model_folder(f"hf:{NAME}")
    check(folder)
    assert len(folder.notes) == 1 and "from the cache, commit" in folder.notes[0]
    point_to("http://127.0.0.1:9", monkeypatch)
    check(open_model_folder(f"hf:{NAME}"))
    assert "the hub cannot be reached" in refusal("hf:other/model")


def test_branches_tags_and_commits(hub):
    """A name without a commit is what is published now; with one it is that forever."""
    repository = hub.repositories[NAME]
    first = repository.refs["main"]
    repository.refs["refs/pr/1"] = repository.refs["v1"] = first
    old = open_model_folder(f"hf:{NAME}")
    config = {**BERT_CONFIG, "hidden_dropout_prob": 0.5}
    second = repository.publish({**SMALL, **WEIGHTS, "config.json": json.dumps(config).encode()})
    assert open_model_folder(f"hf:{NAME}").name == f"hf:{NAME}@{second}"
    for revision in ("v1", "refs/pr/1", first):
        folder = open_model_folder(f"hf:{NAME}@{revision}")
        assert folder.name == old.name and folder.config.hidden_dropout_prob == 0.1
    assert "the model has no revision 'v9'" in refusal(f"hf:{NAME}@v9")


def test_a_commit_published_between_the_answers(hub):
    """The listing is of the commit that the first file came from, whatever was published in between."""
    repository = hub.repositories[NAME]
    listed, second = repository.commit_of, None

    def commit_of(revision):
        nonlocal second
        commit = listed(revision)
        if second is None:
            second = repository.publish(
                {**SMALL, **PICKLED, "model.safetensors": safetensors.numpy.save(TENSORS, {"a": "b"})}
            )
        return commit

    repository.commit_of = commit_of
    folder = open_model_folder(f"hf:{NAME}")
    assert folder.name.endswith(second)
    check(folder)


def test_who_may_not_have_it_is_told_what_to_do(hub, monkeypatch):
    assert "the hub has no such model, or it is private" in refusal("hf:nobody/nothing")
    hub.repositories[NAME].access = "gated"
    assert f"is gated. Request access on {hub.url}/{NAME}" in refusal()
    hub.repositories[NAME].access = "hf_secret"
    assert "or it is private" in refusal()
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    check(open_model_folder(f"hf:{NAME}"))


def golden(name):
    with open(os.path.join(COMMITTED, "torch_save", name), "rb") as stream:
        return stream.read()


def shards(suffix, contents):
    """Two files that hold half of the tensors each, and their index."""
    files = [f"{suffix[0]}-0000{number}-of-00002.{suffix[1]}" for number in (1, 2)]
    names = TENSORS
    if suffix[1] == "bin":  # As of 2019.
        names = [name.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta") for name in TENSORS]
    weight_map = {name: files[index % 2] for index, name in enumerate(names)}
    index = json.dumps({"weight_map": weight_map}).encode()
    return {f"{suffix[0]}.{suffix[1]}.index.json": index, **dict(zip(files, contents))}


@pytest.mark.parametrize(
    "weights",
    [
        {"pytorch_model.bin": golden("bert.bin")},
        {"pytorch_model.bin": golden("bert_legacy.bin")},
        shards(("pytorch_model", "bin"), [golden("bert.bin"), golden("bert_legacy.bin")]),
        shards(("model", "safetensors"), [safetensors.numpy.save(TENSORS, {"shard": number}) for number in "12"]),
    ],
    ids=["pickle", "old_pickle", "shards_of_pickles", "shards_of_safetensors"],
)
def test_one_form_of_the_weights_is_fetched_whichever_there_is(hub, monkeypatch, weights):
    hub.repositories[NAME] = Repository(
        {**SMALL, **weights, **OTHERS, **({} if "pytorch" in str(weights) else PICKLED)}
    )
    check(open_model_folder(f"hf:{NAME}"))
    assert sorted(hub.fetched()) == sorted({**SMALL, **weights})
    go_offline(monkeypatch)
    folder = open_model_folder(f"hf:{NAME}")
    check(folder)
    last = max(weights) if len(weights) == 1 else sorted(weights)[1]
    os.unlink(os.path.join(folder.path, last))
    refusal()


def test_googles_files(hub, tmp_path):
    plain, google = str(tmp_path / "plain"), str(tmp_path / "google")
    os.mkdir(plain)
    for name, content in {**SMALL, **WEIGHTS}.items():
        with open(os.path.join(plain, name), "wb") as stream:
            stream.write(content)
    folder = open_model_folder(plain)
    convert_folder(folder, "google", google, VOCABULARY)
    written = {}
    for name in os.listdir(google):
        with open(os.path.join(google, name), "rb") as stream:
            written[name] = stream.read()
    hub.repositories[NAME] = Repository({**written, "bert_model.ckpt.meta": b"not to be fetched"})
    fetched = open_model_folder(f"hf:{NAME}")
    assert fetched.kind == "google" and "bert_model.ckpt.index" not in hub.fetched()
    for name, value in folder.read("encoder").items():
        np.testing.assert_array_equal(fetched.read("encoder")[name], value)
    assert sorted(hub.fetched()) == sorted(set(written) - {"README.md"})


def test_repositories_without_a_model(hub):
    hub.repositories["someone/empty"] = Repository({"README.md": b""})
    needed = "needs config.json or bert_config.json or albert_config.json in the repository. It holds: README.md"
    assert needed in refusal("hf:someone/empty")
    hub.repositories["bare-name"] = Repository({**SMALL, "tf_model.h5": b""})
    assert "needs model.safetensors or pytorch_model.bin in the repository" in refusal("hf:bare-name")


def test_a_full_disk(hub, cache, monkeypatch):
    fetch = huggingface_hub.hf_hub_download

    def full(repository, file, **options):
        if file in WEIGHTS:
            raise OSError(errno.ENOSPC, "No space left on device")
        return fetch(repository, file, **options)

    folder = open_model_folder(f"hf:{NAME}")
    with monkeypatch.context() as patched:
        patched.setattr(huggingface_hub, "hf_hub_download", full)
        assert f"{cache} has no space for model.safetensors. Free some space, or set HF_HOME" in refusal()
    left = shutil.disk_usage(folder.path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: left._replace(free=100))
    assert "has no space for model.safetensors, which takes" in refusal()
    assert "model.safetensors" not in hub.fetched()


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert "Install it with: pip install 'bert-in-keras[hub]'" in refusal()


@pytest.mark.parametrize("name", ["hf:", "hf:a b", "hf:a/b/c", "hf:../x y", "hf:name@", "hf://owner/name"])
def test_names_that_cannot_be(name):
    assert "needs the form hf:NAME or hf:NAME@REVISION" in refusal(name)


@pytest.mark.parametrize("name", ["hf:me/bert--base", "hf:me/..", "hf:.bert", "hf:me/bert.git", f"hf:{'b' * 97}"])
def test_names_that_the_hub_would_not_have_are_one_line(name):
    """The hub's library used to raise an error of its own while it looked into the cache."""
    assert refusal(name).startswith(f"{name}: is not a name of the hub. ")


@pytest.mark.parametrize(
    "path, proposed",
    [
        ("bert-base-uncased", "hf:bert-base-uncased"),
        ("google-bert/bert-base-uncased@main", "hf:google-bert/bert-base-uncased@main"),
        ("https://huggingface.co/google-bert/bert-base-uncased", "hf:google-bert/bert-base-uncased"),
        ("there/and-empty", None),
        ("/no/such/folder", None),
        ("..", None),
    ],
)
def test_a_bare_name_that_is_no_folder_is_answered_with_the_name_to_give(tmp_path, monkeypatch, path, proposed):
    monkeypatch.chdir(tmp_path)
    os.mkdir("there")
    with pytest.raises(UserError) as refused:
        open_model_folder(path)
    assert (proposed in str(refused.value)) if proposed else ("hf:" not in str(refused.value))


def test_the_vocabulary_of_a_model_by_name(hub):
    with open(vocabulary_path(f"hf:{NAME}"), "rb") as stream:
        assert stream.read() == SMALL["vocab.txt"]
    assert "model.safetensors" not in hub.fetched() and vocabulary_path("a/vocab.txt") == "a/vocab.txt"


def test_the_command_line_takes_the_hubs_own_settings(hub, tmp_path):
    """HF_ENDPOINT, HF_HOME and HF_HUB_OFFLINE as everybody knows them; without a terminal no bars."""

    def inspect(name, **more):
        environment = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home"), **more}
        command = [sys.executable, os.path.join(ROOT, "run.py"), "inspect", name]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    first = inspect(f"hf:{NAME}")
    assert first.returncode == 0 and "Parts: encoder, masked LM head." in first.stdout
    assert "%|" not in first.stderr
    assert inspect(f"hf:{NAME}", HF_HUB_OFFLINE="1").stdout == first.stdout
    missing = inspect("hf:other", HF_HUB_OFFLINE="1")
    assert missing.returncode == 2 and missing.stderr.count("\n") == 1
    bare = inspect("tiny-bert")
    assert bare.returncode == 2 and "hf:tiny-bert" in bare.stderr
