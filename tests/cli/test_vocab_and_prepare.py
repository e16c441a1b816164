"""`run.py vocab` and `run.py prepare`: what they write, say and refuse."""

import json
import os
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from command_line import output_of
from corpus import write_corpus

from keras_bert.cli import main
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.config.recipes import find_config
from keras_bert.data.corpus.held_out import is_validation
from keras_bert.data.shards.prepared_folder import is_prepared
from keras_bert.data.shards.shard_files import ShardSet
from keras_bert.text.byte_vocabulary import ByteVocabulary
from keras_bert.text.t5_vocabulary import T5Vocabulary
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from keras_bert.text.xlnet_vocabulary import SPECIAL_TOKENS as XLNETS_TOKENS
from keras_bert.text.xlnet_vocabulary import XlnetVocabulary

CONLLU = [(1, "The", "DET", "_"), (2, "cat", "NOUN", "_"), (3, "sees", "VERB", "SpaceAfter=No"), (4, ".", "PUNCT", "_")]


@pytest.fixture
def text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").touch()
    return write_corpus(tmp_path / "text.txt")


def test_a_vocabulary_of_the_size_asked_for(text):
    output = output_of("vocab", "--input", "*.txt", "--size", "90", "--unused", "4", "--output", "new/vocab")
    vocabulary = Vocabulary.from_file("new/vocab")
    assert len(vocabulary) == 90 and vocabulary.tokens[:6] == [*SPECIAL_TOKENS, "[unused0]"]
    assert "90 pieces, rows 5 to 8 unused." in output and "skipped: empty.txt (empty)" in output
    assert "Next: python run.py prepare --input '*.txt' --vocab new/vocab" in output


def test_fewer_rows_are_explained(text):
    assert "fewer than 5,000, because no other pieces occur" in output_of(
        "vocab", "--input", text, "--size", "5000", "--output", "v.txt"
    )


def test_cased(text):
    output_of("vocab", "--input", text, "--size", "90", "--cased", "--output", "v.txt")
    assert "The" in Vocabulary.from_file("v.txt").ids


def test_extend(text):
    Vocabulary([*SPECIAL_TOKENS, "[unused0]", "[unused1]", "the", "."]).to_file("base.txt")
    output = output_of("vocab", "--input", text, "--extend", "base.txt", "--output", "v.txt")
    assert "2 new words in [unused] rows, the most frequent in (" in output
    assert Vocabulary.from_file("v.txt").tokens[5] == "in"


def test_the_vocabulary_says_whether_texts_are_lower_cased(text):
    """A cased vocabulary would gain words in lower case, and its shards ids of pieces that no text has."""
    Vocabulary([*SPECIAL_TOKENS, "[unused0]", "[unused1]", "[unused2]", "Paris", "the", "."]).to_file("cased.txt")
    output_of("vocab", "--input", text, "--extend", "cased.txt", "--output", "v.txt")
    assert "The" in Vocabulary.from_file("v.txt").tokens[5:8]
    output_of("prepare", "--input", text, "--vocab", "cased.txt", "--output", "out")
    assert ShardSet.open("out/train").meta["lower_case"] is False
    Vocabulary([*SPECIAL_TOKENS, "[unused0]", "the", "."]).to_file("lower.txt")
    Vocabulary([*SPECIAL_TOKENS, "[unused0]", "été", "."]).to_file("accents.txt")
    Path("bert").mkdir()
    Vocabulary([*SPECIAL_TOKENS, "[unused0]", "the", "."]).to_file("bert/vocab.txt")
    Path("bert/tokenizer_config.json").write_text('{"do_lower_case": false}')
    for given, flag, told in (("cased", "--uncased", "cased"), ("lower", "--cased", "uncased")):
        for command in (["vocab", "--extend"], ["prepare", "--vocab"]):
            output = output_of(*command, f"{given}.txt", flag, "--input", text, "--output", "w", status=2)
            assert re.search(
                f"{flag}: needs an? {flag[2:]} vocabulary. Received: .*{given}.txt, which is {told}", output
            )
    assert "which is cased" in output_of(
        "vocab", "--extend", "bert/vocab.txt", "--uncased", "--input", text, "--output", "w", status=2
    )
    Path("bert/tokenizer_config.json").write_text('{"do_lower_case": "false"}')
    output = output_of("prepare", "--vocab", "bert/vocab.txt", "--input", text, "--output", "w", status=2)
    assert "needs true or false as do_lower_case. Received: 'false'" in output
    output_of("vocab", "--extend", "accents.txt", "--cased", "--input", text, "--output", "w.txt")


@pytest.mark.parametrize("flag", ["strip_accents", "tokenize_chinese_chars"])
def test_a_vocabulary_of_another_tokenizer_is_refused(text, flag):
    """The shards would hold other pieces than the model's, and only `pretrain` would refuse them."""
    Path("bert").mkdir()
    Vocabulary([*SPECIAL_TOKENS, "[unused0]", "the", "."]).to_file("bert/vocab.txt")
    Path("bert/tokenizer_config.json").write_text(json.dumps({"do_lower_case": True, flag: False}))
    for command in (["vocab", "--extend"], ["prepare", "--vocab"]):
        output = output_of(*command, "bert/vocab.txt", "--input", text, "--output", "w", status=2)
        assert "bert/vocab.txt: pretraining needs BERT's own tokenizer" in output and f"{flag} False" in output


@pytest.mark.parametrize("kind", ["wordpiece", "sentencepiece", "extended"])
def test_nothing_is_learned_from_held_out_documents(text, kind):
    """Pieces that no training document has would stay untrained, and validation would know its own words."""
    pages = {
        character: f"Here is {character}. There is {character} again." for character in map(chr, range(0x4E10, 0x4E40))
    }
    Path("pages.txt").write_text("\n\n".join(pages.values()), encoding="utf-8")
    options, file = ["--size", "300"], "v.txt"
    if kind == "sentencepiece":
        pytest.importorskip("sentencepiece")
        options, file = [*options, "--kind", kind], "v.model"
    elif kind == "extended":
        Vocabulary([*SPECIAL_TOKENS, *(f"[unused{n}]" for n in range(60))]).to_file("base.txt")
        options = ["--extend", "base.txt"]
    output = output_of("vocab", "--input", "pages.txt", *options, "--validation-share", "0.3", "--output", file)
    assert f"--validation-share 0.3 --vocab {file}" in output
    vocabulary = Vocabulary.from_file(file)
    learned = {character for character in pages if any(character in token for token in vocabulary.tokens)}
    trained = {character for character, page in pages.items() if not is_validation(page, 0.3)}
    assert learned == trained and 0 < len(trained) < len(pages)


def test_an_xlnets_model_is_learned_cased_with_its_special_tokens(text):
    """`prepare` then needs the same casing, and the recipe named next is the one for XLNets."""
    pytest.importorskip("sentencepiece")
    output = output_of("vocab", "--input", text, "--size", "90", "--kind", "xlnet", "--output", "spiece.model")
    assert "pieces of a SentencePiece model like XLNet's" in output
    assert "prepare --input text.txt --cased --vocab spiece.model" in output.replace(text, "text.txt")
    vocabulary = Vocabulary.from_file("spiece.model")
    assert isinstance(vocabulary, XlnetVocabulary) and vocabulary.tokens[:9] == [*XLNETS_TOKENS]
    assert "T" in "".join(vocabulary.tokens[9:]) and not vocabulary.is_piece[:8].any()
    output = output_of("prepare", "--input", text, "--cased", "--vocab", "spiece.model", "--output", "prepared")
    assert "pretrain --config xlnet_mini --data prepared" in output


def test_the_recipe_that_is_named_learns_such_a_vocabulary():
    """`prepare` would propose ALBERT's recipe for T5's pieces, and BERT's for byte-level BPE."""
    for vocabulary, kind in ((T5Vocabulary, "t5"), (XlnetVocabulary, "xlnet"), (ByteVocabulary, "bytes")):
        recipe = PretrainConfig.from_file(find_config("pretrain", vocabulary.example_recipe))
        assert recipe.vocabulary.kind == kind


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("", "either --size"),
        ("--size 90 --extend vocab.txt", "either --size"),
        ("--extend vocab.txt --unused 3", "--unused goes with --size"),
        ("--extend vocab.txt --kind bytes", "--kind goes with --size"),
        ("--extend vocab.json", "--extend: needs a WordPiece vocabulary"),
        ("--size 90 --output text.txt", "text.txt: exists already"),
        ("--size 6", "needs at least"),
        ("--size 9 --unused 4 --input 'no text'", "--size: needs more than the 9 special tokens"),
        ("--size 90 --output v.model --input 'no text'", ".model is for a SentencePiece model"),
        ("--size 90 --input 'nothing*'", "No file matches 'nothing*'"),
        ("--size 90 --kind xlnet", "needs a name that ends in .model for a SentencePiece model like XLNet's"),
        ("--extend text.txt", "text.txt: needs a"),
        ("--size 90 --kind bytes --output vocab.json --uncased", "--uncased: needs a vocabulary that may be uncased"),
    ],
)
def test_what_vocab_refuses(text, arguments, told):
    before = open(text, encoding="utf-8").read()
    output = output_of("vocab", "--input", text, "--output", "v.txt", *shlex.split(arguments), status=2)
    assert told in output and "Traceback" not in output
    assert open(text, encoding="utf-8").read() == before


def test_vocab_writes_over_no_file_beside_its_output(text):
    """Another vocabulary's merges, or a model's own tokenizer_config.json, would be overwritten."""
    Path("bert").mkdir()
    Path("merges.txt").write_text("mine")
    tokens = [*SPECIAL_TOKENS, "[unused0]", "the", "."]
    Vocabulary(tokens).to_file("bert/vocab.txt")
    config = json.dumps({"do_lower_case": True, "added_tokens_decoder": {"8": {"content": "<new>"}}})
    Path("bert/tokenizer_config.json").write_text(config)
    for arguments, file in (
        ("--size 300 --kind bytes --output vocab.json", "merges.txt"),
        ("--extend bert/vocab.txt --output bert/law.txt", "bert/tokenizer_config.json"),
    ):
        output = output_of("vocab", "--input", text, *arguments.split(), status=2)
        assert f"{file}: exists already. Remove it, or give another --output." in output
    assert Path("merges.txt").read_text() == "mine" and Path("bert/tokenizer_config.json").read_text() == config
    output_of("vocab", "--input", text, "--extend", "bert/vocab.txt", "--output", "law/vocab.txt")
    assert "<new>" in Vocabulary.from_file("law/vocab.txt").ids


def test_text_among_which_a_command_would_write_is_refused(text):
    """An interrupted `prepare` could not resume: its own shards would count as text, which had thus changed."""
    Vocabulary([*SPECIAL_TOKENS, "the", "."]).to_file(".hidden/vocab.txt")
    for arguments, file in (
        ("vocab --input . --size 90 --output v.txt", "v.txt"),
        ("vocab --input *.txt --size 90 --output v.txt", "v.txt"),
        ("prepare --input . --vocab .hidden/vocab.txt --output out", "out/train/meta.json"),
        ("prepare --input **/*.txt --vocab .hidden/vocab.txt --output out", "out/vocab.txt"),
    ):
        output = output_of(*arguments.split(), status=2)
        assert "--input: needs text without the files that are written." in output and f"{file}. Give a" in output
    assert sorted(os.listdir()) == [".hidden", "empty.txt", "text.txt"]


def test_prepare_writes_a_folder_and_tells_what_was_in_it(text):
    output_of("vocab", "--input", text, "--size", "90", "--cased", "--output", "vocab")
    write_corpus(Path("again.txt"), 50)
    options = ["--cased", "--validation-share", "0.2", "--shard-megabytes", "0.01"]
    output = output_of("prepare", "--input", "*.txt", "--vocab", "vocab", "--output", "out", *options)
    assert is_prepared("out")
    train = ShardSet.open("out/train", Vocabulary.from_file("vocab"))
    assert train.meta["lower_case"] is False and not train.has_word_marks and len(train.names) > 1
    for told in (
        f"train: {train.meta['documents']:,} documents, {train.meta['sentences']:,} sentences",
        "[UNK]: 0.000%",
        "dropped: 50 documents (duplicate), ",
        "skipped: empty.txt (empty)",
        "pretrain --config wiki_mini --data out",
    ):
        assert told in output


def test_a_single_document_leaves_nothing_to_validate_on(text):
    """`prepare` would report success, and `pretrain` then refuse the folder."""
    Path("one.txt").write_text("The cat sees the dog. The dog sees the cat.\n")
    Vocabulary([*SPECIAL_TOKENS, "the", "cat", "dog", "."]).to_file("v.txt")
    output = output_of("prepare", "--input", "one.txt", "--vocab", "v.txt", "--output", "out")
    assert "no documents for validation" in output and "blank lines" in output and "--validation-share" in output
    assert "Next:" not in output


def test_prepare_marks_chinese_words_on_request(text):
    pytest.importorskip("jieba")
    output_of("vocab", "--input", text, "--size", "90", "--output", "v.txt")
    output_of("prepare", "--input", text, "--vocab", "v.txt", "--output", "out", "--whole-words", "jieba")
    assert ShardSet.open("out/train").has_word_marks


def test_prepare_marks_phrases_of_a_list_and_of_tags(text):
    output_of("vocab", "--input", text, "--size", "90", "--output", "v.txt")
    Path("phrases.txt").write_text("the cat\nthe dog\n")
    rows = ["# newdoc", "# text = The cat sees."]
    rows += [f"{n}\t{w}\t_\t{t}\t_\t_\t0\t_\t_\t{m}" for n, w, t, m in CONLLU]
    Path("tagged.conllu").write_text("\n".join([*rows, "", ""]))
    options = ["--phrases", "phrases.txt", "--phrase-tags", "VERB, PROPN"]
    output = output_of(
        "prepare", "--input", text, "--input", "tagged.conllu", "--vocab", "v.txt", "--output", "out", *options
    )
    assert "in phrases: " in output
    meta = ShardSet.open("out/train").meta
    assert meta["phrase_marks"]["phrases"] == 2 and meta["phrase_marks"]["tags"] == ["VERB", "PROPN"]
    output = output_of("prepare", "--input", text, "--vocab", "v.txt", "--output", "o", "--phrases", "no.txt", status=2)
    assert "no.txt: cannot be read" in output and "Traceback" not in output


def test_what_prepare_refuses(text):
    output_of("vocab", "--input", text, "--size", "90", "--output", "v.txt")
    for arguments, told in (
        (["--output", "."], ".: needs a folder by its name"),
        (["--output", "out", "--vocab", text], "text.txt: needs a"),
        (["--output", "out", "--input", "nothing*"], "No file matches"),
        (["--output", "out", "--validation-share", "1"], "is not in the range"),
        (["--output", "out", "--phrase-tags", "VERB,noun"], "phrase_tags.1: needs one of ADJ, "),
        (["--output", "out", "--phrase-tags", "VERB", "--filters", "c4"], "--phrase-tags: needs text that is not"),
    ):
        output = output_of("prepare", "--input", text, "--vocab", "v.txt", *arguments, status=2)
        assert told in output and "Traceback" not in output
    assert is_prepared("out") is False


def test_a_vocabulary_is_no_text(text):
    """A vocabulary matched by `--input '*.txt'` would silently become a document."""
    output_of("vocab", "--input", text, "--size", "90", "--output", "v.txt")
    for line in (
        ["prepare", "--input", "*.txt", "--vocab", "./v.txt", "--output", "out"],
        ["prepare", "--input", text, "--vocab", "v.txt", "--output", "out", "--phrases", text],
        ["vocab", "--input", "*.txt", "--extend", "v.txt", "--output", "w.txt"],
        ["pretrain", "--data", "*.txt", "--config", "wiki_mini", "--set", "vocabulary.file=v.txt"],
    ):
        output = output_of(*line, status=2)
        assert "v.txt: needs to be no part of the text" in output.replace(str(text), "v.txt"), output
    assert is_prepared("out") is False
    output_of("prepare", "--input", text, "--vocab", "v.txt", "--output", "out")


@pytest.fixture
def pages(text):
    """Web pages as JSON lines: a menu, a repeated page, a broken line."""
    first = open(text, encoding="utf-8").read().split("\n\n")[:40]
    rows = [json.dumps({"content": f"Menu\n{page}"}) for page in [*first, f"New. {first[0]}"]]
    Path("pages.jsonl").write_text("\n".join([*rows, '{"content": "cut']), encoding="utf-8")
    output_of("vocab", "--input", text, "--size", "90", "--output", "v.txt")
    return ["--input", "pages.jsonl", "--text", "content"]


def test_prepare_filters_web_text_and_counts_what_it_drops(pages):
    prepare = ["prepare", *pages, "--vocab", "v.txt", "--output", "out", "--filters", "c4"]
    output = output_of(*prepare, status=2)
    assert "pages.jsonl line 42: needs a JSON object" in output and "--broken-lines skip" in output
    output = output_of(*prepare, "--broken-lines", "skip")
    assert "skipped: 1 broken lines (not JSON), the first pages.jsonl line 42" in output
    assert "filtered: 41 lines (terminal_punctuation), " in output
    corpus = ShardSet.open("out/train").meta["corpus"]
    assert corpus == ShardSet.open("out/validation").meta["corpus"]
    assert corpus["broken_lines"] == {"not JSON": 1} and corpus["removed"]["terminal_punctuation"] == 41
    assert corpus["removed"]["repeated_spans"] > 0
    made_with = {"text": "content", "broken_lines": "skip", "filters.min_words": 5, "filters.repeated_spans": 3}
    assert made_with.items() <= corpus["settings"].items()


def test_prepare_does_not_go_on_with_other_filters(pages, monkeypatch):
    """Shards made with and without filters would be mixed."""
    Path("words.txt").write_text("zebra\n")
    prepare = ["prepare", *pages, "--vocab", "v.txt", "--output", "out", "--broken-lines", "skip"]
    options = ["--shard-megabytes", "0.0005", "--bad-words", "words.txt"]
    with monkeypatch.context() as patch, pytest.raises(RuntimeError, match="killed"):
        patch.setattr("keras_bert.data.corpus.documents.Corpus.record", _stop)
        CliRunner().invoke(main, [*prepare, *options], catch_exceptions=False)
    assert "with another reading" in output_of(*prepare, *options[:2], status=2)
    Path("words.txt").write_text("lion\n")
    assert "with another reading" in output_of(*prepare, *options, status=2)
    Path("words.txt").write_text("zebra\n")
    assert "Resuming in out.partial" in output_of(*prepare, *options)


def _stop(corpus):
    raise RuntimeError("killed after the last document")


def test_vocab_takes_the_same_options_and_passes_them_on(pages):
    options = ["--broken-lines", "skip", "--filters", "c4"]
    output = output_of("vocab", *pages, *options, "--size", "60", "--output", "w.txt")
    assert f"prepare {' '.join(pages)} {' '.join(options)} --vocab w.txt" in output
    assert "filtered: 41 lines" in output
    assert "menu" not in Vocabulary.from_file("w.txt").ids


def test_a_model_has_as_many_rows_as_the_vocabulary_that_is_there(text, monkeypatch):
    """With the recipe's own number, every prepared folder but one would be refused."""
    output_of("vocab", "--input", text, "--size", "90", "--output", "v.txt")
    output_of("prepare", "--input", text, "--vocab", "v.txt", "--output", "out")
    sizes = []
    monkeypatch.setattr(
        "keras_bert.tasks.pretraining.run.pretrain", lambda recipe, *_: sizes.append(recipe.model.vocab_size)
    )
    for arguments in (
        ["--data", "out"],
        ["--data", text, "--set", "vocabulary.file=v.txt"],
        ["--data", "out", "--set", "model=tiny"],
        ["--data", "out", "--set", "model.vocab_size=80"],
        ["--data", text],
    ):
        output_of("pretrain", "--config", "wiki_mini", *arguments)
    assert sizes == [90, 90, 90, 80, 8192]


def test_a_run_has_the_casing_of_the_vocabulary_that_is_there(text, monkeypatch):
    """Lower-cased text would silently leave the pieces with capitals untrained."""
    output_of("vocab", "--input", text, "--size", "90", "--cased", "--output", "cased.txt")
    output_of("prepare", "--input", text, "--vocab", "cased.txt", "--output", "out")
    found = []
    monkeypatch.setattr(
        "keras_bert.tasks.pretraining.run.pretrain", lambda recipe, *_: found.append(recipe.vocabulary.lower_case)
    )
    given = ["--data", text, "--set", "vocabulary.file=cased.txt"]
    for arguments in (["--data", "out"], given, [*given, "--set", "vocabulary.lower_case=true"], ["--data", text]):
        output_of("pretrain", "--config", "wiki_mini", *arguments)
    assert found == [False, False, True, True]
    assert "--uncased: needs an uncased vocabulary" in output_of("pretrain", *given, "--uncased", status=2)
