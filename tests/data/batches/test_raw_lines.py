"""Lines of raw text: documents, sides, order, and what is refused."""

import bz2
import gzip
import os

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.core.errors import UserError
from keras_bert.data.batches import raw_lines
from keras_bert.data.batches.raw_lines import RawLines
from keras_bert.data.corpus.documents import Corpus


def _documents(count, name="", lines=4):
    return [[f"{name}{number} line {line}" for line in range(lines)] for number in range(count)]


def _write(path, documents, blank="\n"):
    path.write_text(blank.join("".join(f"{line}\n" for line in document) for document in documents), encoding="utf-8")
    return str(path)


def _read(lines, validation, **options):
    """The documents of one pass as lists of lines, joined across chunks."""
    found = []
    for _, texts, numbers in lines.chunks(validation, **options).as_numpy_iterator():
        for number in np.unique(numbers):
            found.append([text.decode() for text in texts[numbers == number]])
    return found


def test_blank_lines_part_documents_and_each_is_on_one_side(tmp_path):
    documents = _documents(80)
    lines = RawLines([_write(tmp_path / "a.txt", documents, blank=" \t\n\n")], 0.3)
    sides = [_read(lines, validation) for validation in (False, True)]
    assert sorted(sides[0] + sides[1]) == sorted(documents)
    assert 12 < len(sides[1]) < 36


@pytest.mark.parametrize("blank", ["", "\u3000", "\u00a0 ", "\v"])
def test_lines_and_blanks_are_those_of_prepared_text(tmp_path, blank):
    """A byte order mark would be a piece of byte-level BPE, and a blank line of wide spaces would join documents."""
    (tmp_path / "a.txt").write_text(f"One.\nTwo.\n{blank}\nThree.\n", "utf-8-sig")
    documents = _read(RawLines([str(tmp_path / "a.txt")], 0.0), False)
    assert documents == [document.split("\n") for document in Corpus([str(tmp_path / "a.txt")]).documents()]


def test_a_document_that_goes_on_in_another_chunk_stays_on_its_side(tmp_path):
    documents = _documents(6, lines=700)
    lines = RawLines([_write(tmp_path / "a.txt", documents)], 0.5)
    heads = [{text.split()[0] for document in _read(lines, side) for text in document} for side in (False, True)]
    assert heads[0] and heads[1] and not heads[0] & heads[1]
    assert sum(len(document) for side in (False, True) for document in _read(lines, side)) == 6 * 700


def test_the_end_of_a_file_ends_a_document(tmp_path):
    names = [_write(tmp_path / name, [["one", "two"]]) for name in ("a.txt", "b.txt")]
    assert _read(RawLines(names, 0.0), False) == [["one", "two"], ["one", "two"]]


def test_chunks_are_bounded_by_bytes_and_long_lines_divided_between_sentences(tmp_path, monkeypatch):
    """Chunks of 512 lines of any length would take gigabytes if a line is a document, or a whole file."""
    monkeypatch.setattr(raw_lines, "_BYTES_AT_ONCE", 300)
    monkeypatch.setattr(raw_lines, "_LONGEST_LINE", 100)
    short = [[f"Line {n}. It is short."] for n in range(40)]
    long = [" ".join(f"Sentence {n} of a long line." for n in range(40))]
    lines = RawLines([_write(tmp_path / "a.txt", [*short, long])], 0.0)
    sizes = [sum(map(len, chunk)) for _, chunk, _ in lines.chunks(False).as_numpy_iterator()]
    assert len(sizes) > 5 and max(sizes) <= 400
    found = [line for document in _read(lines, False) for line in document]
    assert found == [*(line for [line] in short), *(f"Sentence {n} of a long line." for n in range(40))]


@pytest.mark.parametrize("space", [" ", "\u3000"])
def test_a_long_chinese_line_does_not_end_its_document(tmp_path, monkeypatch, space):
    """A blank line after its last full stop would make the next line another document, perhaps on the other side."""
    monkeypatch.setattr(raw_lines, "_LONGEST_LINE", 50)
    document = ["这是一个很长的句子。" * 4 + space, "这是下一行。"]
    [found] = _read(RawLines([_write(tmp_path / "a.txt", [document])], 0.0), False)
    assert "".join(found) == "".join(document).replace(space, "")


def test_chunk_numbers_do_not_depend_on_the_order(tmp_path):
    for name in "abcdef":
        _write(tmp_path / f"{name}.txt", _documents(300, name))
    lines = RawLines([str(tmp_path)], 0.1)
    orders = (None, tf.constant([5, 3, 1, 0, 2, 4], tf.int64))
    passes = [
        [(int(number), texts.tolist()) for number, texts, _ in lines.chunks(False, order).as_numpy_iterator()]
        for order in orders
    ]
    assert passes[0] != passes[1] and sorted(passes[0]) == sorted(passes[1])
    assert len({number for number, _ in passes[0]}) == len(passes[0]) > 6


def test_training_texts_are_the_training_sides(tmp_path):
    lines = RawLines([_write(tmp_path / "a.txt", _documents(50))], 0.3)
    assert list(lines.training_texts()) == [text for document in _read(lines, False) for text in document]


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.txt", bz2.compress(b"text"), r"a.txt: needs plain text or .gz .* Received: .bz2"),
        ("a.txt", b'<doc id="1">\n', "Received: WikiExtractor's format. Set data.source=files"),
        ("a.xml", b"<mediawiki>\n", "Received: a MediaWiki dump"),
        ("a.json", b' {"text": "a"}\n', "Received: a table"),
        ("a.txt", b"good\n\xff\xfe bad\n", "needs UTF-8. Received: byte 0xff at 5"),
        ("a.csv", b"id,text\n1,Text.\n", "Received: a table. Set data.source=files"),
        ("a.txt", b"# newdoc\n1\tA" + b"\t_" * 8 + b"\n", "Received: CoNLL-U"),
        ("a.txt", b"<html><p>Text.</p>", "a.txt: needs text. Received: HTML"),
        ("a.txt", b"%PDF-1.7", "a.txt: needs text. Received: PDF"),
        ("a.txt", b"One.\rTwo.\r", "needs a whole file of UTF-8 text .* Received: lines that end in .r alone"),
        ("a.txt", b"t\0e\0x\0t\0", "needs a whole file of UTF-8 text .* Received: binary"),
        ("a.txt", "text".encode("utf-16"), "needs a whole file of UTF-8 text .* Received: UTF-16, not UTF-8"),
    ],
)
def test_files_of_another_format_are_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message):
        RawLines([str(tmp_path / name)], 0.1)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r\r\n"])
def test_lines_may_end_as_on_any_system_of_today(tmp_path, end):
    (tmp_path / "a.txt").write_bytes(end.join([b"One.", b"Two.", b""]))
    assert _read(RawLines([str(tmp_path / "a.txt")], 0.0), False) == [["One.", "Two."]]


@pytest.mark.parametrize("end", [-1, -9, -100_000])
def test_a_truncated_gz_is_refused(tmp_path, end):
    """TensorFlow takes it for a shorter text, so the rest would be silently missing."""
    content = gzip.compress(os.urandom(200_000).hex().encode())
    (tmp_path / "a.gz").write_bytes(content[:end])
    with pytest.raises(UserError, match="a.gz: needs a whole file .* Received: cannot be read .* set data.source"):
        RawLines([str(tmp_path / "a.gz")], 0.1)


@pytest.mark.parametrize("zeros", [2, 100_000])
@pytest.mark.parametrize("rest", ["", "Two.\n"])
def test_a_gz_with_zeros_in_or_after_it_is_refused(tmp_path, zeros, rest):
    """As from a tape: Python skips the zeros, and TensorFlow would fail in the middle of a run."""
    after = gzip.compress(rest.encode()) if rest else b""
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"One.\n") + bytes(zeros) + after)
    with pytest.raises(UserError, match="a.gz: needs a whole file .* Received: zeros after compressed text"):
        RawLines([str(tmp_path / "a.gz")], 0.1)


def test_a_gz_of_several_parts_is_whole(tmp_path):
    """`cat a.gz b.gz` makes such a file."""
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"One.\n") + gzip.compress(b"Two.\n"))
    assert _read(RawLines([str(tmp_path / "a.gz")], 0.0), False) == [["One.", "Two."]]


def test_compression_is_told_by_the_content(tmp_path):
    """A browser decompresses a.gz as it saves it, and TensorFlow would fail in the middle of a run."""
    documents = _documents(3)
    plain = _write(tmp_path / "a.gz", documents)
    (tmp_path / "b.txt").write_bytes(gzip.compress(open(plain, "rb").read()))
    assert _read(RawLines([plain], 0.0), False) == _read(RawLines([str(tmp_path / "b.txt")], 0.0), False) == documents


def test_a_character_cut_where_looking_ends_is_no_fault(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"a" * (2**14 - 1) + "é".encode() + b"\n")
    assert len(list(RawLines([str(tmp_path / "a.txt")], 0.0).training_texts())) == 1


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A corpus of TensorFlow Datasets, prepared in a folder, with one text of several paragraphs."""
    import tensorflow_datasets as tfds

    class ThreeTexts(tfds.core.GeneratorBasedBuilder, skip_registration=True):
        VERSION = tfds.core.Version("1.0.0")

        def _info(self):
            features = tfds.features.FeaturesDict({"text": tfds.features.Text()})
            return tfds.core.DatasetInfo(builder=self, features=features)

        def _split_generators(self, download_manager):
            return {"train": self._generate_examples()}

        def _generate_examples(self):
            yield from enumerate({"text": text} for text in ("A one.\n\n\u3000\nA two.\n", "B.", "C one.\nC two."))

    builder = ThreeTexts(data_dir=tmp_path_factory.mktemp("tfds"))
    builder.download_and_prepare()
    return f"tfds:{builder.data_path}"


def test_a_tfds_corpus_gives_a_document_an_example(corpus):
    assert sorted(_read(RawLines([corpus], 0.0), False)) == [["A one.", "A two."], ["B."], ["C one.", "C two."]]


def test_a_data_set_of_the_hub_is_refused():
    with pytest.raises(UserError, match="Received: hf:datasets/org/name. Set data.source=files."):
        RawLines(["hf:datasets/org/name"], 0.1)


def test_a_corpus_beside_files_is_refused(corpus, tmp_path):
    with pytest.raises(UserError, match="either files or a single TFDS corpus"):
        RawLines([corpus, str(tmp_path)], 0.1)


def test_a_file_whose_name_is_no_utf8_in_a_folder_whose_name_is_a_pattern(tmp_path):
    """TensorFlow accepts a name that is not UTF-8 only as bytes."""
    folder = tmp_path / "é [1]"
    folder.mkdir()
    with open(os.path.join(os.fsencode(folder), b"caf\xe9 *.txt"), "wb") as stream:
        stream.write(b"one\ntwo\n")
    assert _read(RawLines([str(folder)], 0.0), False) == [["one", "two"]]
