"""The model folder: what is written reads back, and is refused when it does not fit."""

import errno
import json
import os
import shutil

import pytest
from full_disk import no_file_above
from tiny import random_model

from keras_bert.checkpoints.model_folder import newest_pretrained, open_model_folder
from keras_bert.checkpoints.writing import convert_folder, write_model_folder
from keras_bert.core.errors import UserError
from keras_bert.core.files import files_below
from keras_bert.inference.loading import load
from keras_bert.models.albert.kind import AlbertConfig
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.models.roberta.kind import RobertaConfig
from keras_bert.text.standalone_tokenizer import StandaloneTokenizer
from keras_bert.text.vocabulary import Vocabulary


@pytest.fixture(scope="module")
def model():
    return random_model()


@pytest.fixture(scope="module")
def vocabulary():
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = [chr(ord("a") + index) for index in range(26)]
    rest = [*letters, *(f"##{letter}" for letter in letters)]
    return Vocabulary([*special, *rest, "the", ".", ","])


@pytest.fixture
def folder(tmp_path, model, vocabulary):
    path = str(tmp_path / "model")
    write_model_folder(path, model, vocabulary, lower_case=True)
    return path


def test_a_folder_is_replaced_whole(folder, model, vocabulary):
    open(os.path.join(folder, "stale"), "w").close()
    write_model_folder(folder, model, vocabulary, lower_case=False)
    assert not os.path.exists(os.path.join(folder, "stale"))
    assert not os.path.exists(f"{folder}.partial")
    assert open_model_folder(folder).lower_case is False


def test_a_full_disk_is_no_bug(tmp_path, model, vocabulary, folder):
    """The end of a run on a full disk was a traceback of the library that writes the weights."""
    before = read_all(folder)
    with no_file_above(20_000), pytest.raises(OSError) as caught:
        write_model_folder(folder, model, vocabulary, lower_case=True)
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, os.path.join(folder, "model.safetensors"))
    assert read_all(folder) == before and os.listdir(tmp_path) == ["model"]


def read_all(folder):
    return {path: open(path, "rb").read() for path in files_below(folder)}


def test_a_kill_while_a_model_is_replaced_leaves_one_that_opens(tmp_path, model, vocabulary, killed_at):
    """Also by the name of the run's folder, and for commands that look for the newest run."""
    run = str(tmp_path / "run")
    folder = os.path.join(run, "model")
    write_model_folder(folder, model, vocabulary, lower_case=True)
    tensors = open_model_folder(folder).tensor_shapes()
    instant, is_over = 0, None
    while not is_over:
        is_over = killed_at(instant, lambda: write_model_folder(folder, model, vocabulary, lower_case=True))
        for name in (folder, run):
            opened = open_model_folder(name)
            assert opened.tensor_shapes() == tensors, instant
            assert Vocabulary.from_file(opened.vocabulary_file).tokens == vocabulary.tokens
        assert newest_pretrained(str(tmp_path)) == run
        instant += 1
    assert os.listdir(run) == ["model"]


def test_a_folder_of_runs_is_refused_with_the_name_of_one(folder, tmp_path):
    """Such as that of a sweep, or `runs`; whoever gave it was told to train a model."""
    for name in ("runs/b", "runs/a", "runs/unfinished"):
        os.makedirs(tmp_path / name)
    for name in ("runs/b", "runs/a"):
        shutil.copytree(folder, tmp_path / name / "model")
    with pytest.raises(UserError, match=f"Give one of the runs in it, such as {tmp_path}/runs/a.$"):
        open_model_folder(tmp_path / "runs")
    with pytest.raises(UserError, match="Train one with: python run.py pretrain.$"):
        open_model_folder(tmp_path / "runs" / "unfinished")


def test_a_table_with_more_rows_than_pieces_opens(folder, vocabulary, tmp_path):
    """Padded to a multiple of 64, or enlarged for tokens to come; it used to count as another model's vocabulary."""
    Vocabulary(vocabulary.tokens[:-3]).to_file(os.path.join(folder, "vocab.txt"))
    opened = open_model_folder(folder)
    assert len(opened.vocabulary) == opened.config.vocab_size == 60 and "57 pieces" in opened.notes[-1]
    loaded = load(folder)
    assert loaded.predict(["a [MASK]"], top_k=60)[0].candidates
    write_model_folder(str(tmp_path / "again"), loaded.model, loaded.tokenizer.vocabulary, lower_case=True)
    assert len(Vocabulary.from_file(tmp_path / "again" / "vocab.txt")) == 57
    assert open_model_folder(tmp_path / "again").vocabulary.tokens == opened.vocabulary.tokens


def test_positions_are_counted_from_the_padding_of_the_config(vocabulary, tmp_path):
    """Not from the vocabulary's padding where that differs: in transformers too, positions follow from config.json."""
    config = RobertaConfig(vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=2)
    folders = [str(tmp_path / name) for name in ("model", "converted")]
    write_model_folder(folders[0], BertForPreTraining(config), vocabulary, lower_case=True)
    convert_folder(open_model_folder(folders[0]), "huggingface", folders[1], vocabulary)
    assert vocabulary.pad_id != config.pad_token_id
    assert [open_model_folder(path).config for path in folders] == [config, config]


@pytest.mark.parametrize("made", [AlbertConfig, RobertaConfig])
def test_a_head_of_pretraining_is_no_task(made, vocabulary, tmp_path):
    """Any model can learn next sentences; the class for them alone is BERT's, and has no masked LM."""
    config = made(vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=2)
    first, again = (str(tmp_path / name) for name in ("model", "converted"))
    write_model_folder(first, BertForPreTraining(config, terms=("nsp",)), vocabulary, lower_case=True)
    assert open_model_folder(first).other_fields["architectures"][0].endswith(("ForPreTraining", "ForMaskedLM"))
    assert load(first).fill(["a [MASK]"])
    assert convert_folder(open_model_folder(first), "huggingface", again, vocabulary) == []


def test_added_tokens_are_kept(folder, vocabulary, tmp_path):
    """In an old folder of transformers, vocab.txt is shorter than the table, and added_tokens.json has the rest."""
    Vocabulary(vocabulary.tokens[:-2]).to_file(os.path.join(folder, "vocab.txt"))
    for name, content in (
        ("added_tokens.json", {"<ent>": 58, "<E>": 59}),
        ("special_tokens_map.json", {"additional_special_tokens": ["<E>"]}),
    ):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as stream:
            json.dump(content, stream)
    loaded, texts = load(folder), ["a <ENT>b <E>", "<e> <ent>"]
    ids = loaded.tokenizer(texts).to_list()
    assert [[index for index in row if index > 57] for row in ids] == [[58, 59], [58]]
    again = str(tmp_path / "again")
    write_model_folder(again, loaded.model, loaded.tokenizer.vocabulary, **vars(loaded.folder.tokenizer))
    assert load(again).tokenizer(texts).to_list() == ids
    assert load(again).tokenizer.vocabulary.fingerprint == loaded.tokenizer.vocabulary.fingerprint
    plain = StandaloneTokenizer.from_folder(again)
    assert [plain.tokenize(text) for text in texts] == ids and plain.tokens == loaded.tokenizer.vocabulary.tokens
    google = str(tmp_path / "google")
    convert_folder(loaded.folder, "google", google, loaded.tokenizer.vocabulary)
    assert load(google, lower_case=True).tokenizer(texts).to_list() == ids
