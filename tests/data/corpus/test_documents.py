import bz2
import gzip
import json
import lzma
import random

import pytest

from keras_bert.config.corpus import CorpusConfig
from keras_bert.core.errors import UserError
from keras_bert.data.corpus import text_lines
from keras_bert.data.corpus.corpus_report import CorpusReport
from keras_bert.data.corpus.documents import Corpus, read_documents
from keras_bert.data.pipeline.pieces import divide

SENTENCE = "This sentence has a good many words in it, so that it is long enough to count."
PARAGRAPH = " ".join([SENTENCE] * 4)


def read(*paths, **config):
    report = CorpusReport()
    return list(read_documents(paths, report, CorpusConfig(**config))), report


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


def test_blank_lines_separate_plain_documents(tmp_path):
    path = write(tmp_path / "a.txt", "\ufeff\n\nFirst.\r\nStill first.\r\n \t\r\n\r\nSecond.\n\nThird, no line end")
    documents, report = read(path)
    assert documents == ["First.\nStill first.", "Second.", "Third, no line end"]
    assert report == CorpusReport(documents=3)


def test_a_book_is_not_a_thousand_documents(tmp_path):
    """Paragraphs of a novel, taken as documents, would give no segment pairs."""
    paragraphs = [f"Paragraph {n} is short." for n in range(1000)]
    documents, report = read(write(tmp_path / "book.txt", "\n\n".join(paragraphs)))
    assert "\n\n".join(documents) == "\n\n".join(paragraphs)
    assert len(documents) == 3 and all(len(document) >= 10_000 * 0.95 for document in documents[:-1])
    assert report.books == [str(tmp_path / "book.txt")]


def test_a_chapter_goes_with_its_heading(tmp_path):
    """In a novel with blank lines only around headings, two words would make a document."""
    blocks = [block for n in range(15) for block in (f"CHAPTER {n}", f"{n} {SENTENCE} {SENTENCE}")]
    documents, report = read(write(tmp_path / "book.txt", "\n\n".join(blocks)))
    assert documents == ["\n\n".join(blocks)] and len(report.books) == 1


def test_a_few_short_texts_are_documents(tmp_path):
    assert read(write(tmp_path / "a.txt", "One.\n\nTwo.\n\nThree."))[0] == ["One.", "Two.", "Three."]


def test_documents_of_several_sentences_are_not_taken_for_a_book(tmp_path):
    """Blank lines separate documents, even short ones and a few of one sentence."""
    blocks = [f"Text {n}." if n % 10 == 0 else f"Text {n}. It is short." for n in range(1000)]
    documents, report = read(write(tmp_path / "a.txt", "\n\n".join(blocks)))
    assert documents == blocks and report.books == []


def test_a_text_without_blank_lines_is_cut_and_not_held_whole(tmp_path):
    lines = [f"{n} {SENTENCE}" for n in range(30_000)]
    documents, report = read(write(tmp_path / "a.txt", "\n".join(lines)))
    assert "\n".join(documents).split("\n") == lines
    assert len(documents) > 1 and max(map(len, documents)) <= 1_000_000
    assert report.cuts == len(documents) - 1


def test_a_long_document_is_cut_between_sentences_whatever_its_format(tmp_path):
    """A line of 30 MB would be one document that takes gigabytes to tokenize, and cuts would go unreported."""
    text = " ".join(f"{n} {SENTENCE}" for n in range(25_000))
    tagged = "".join(f"1\t{SENTENCE}\t_\tX\t_\t_\t0\t_\t_\t_\n\n" for _ in range(13_000))
    for name, content, joint in (
        ("line.txt", text, " "),
        ("line.jsonl", json.dumps({"text": text}), " "),
        ("tags.conllu", tagged, "\n"),
    ):
        documents, report = read(write(tmp_path / name, content))
        assert len(documents) > 1 and max(map(len, documents)) <= 1_000_000
        assert all(document.endswith(SENTENCE) for document in documents)
        assert joint.join(documents) == (text if joint == " " else "\n".join([SENTENCE] * 13_000))
        assert report.cuts == report.counts()["cuts"] == report.documents - 1
        assert f"cut: documents of over 1,000,000 characters, {report.cuts} times, between sentences" in str(report)
    assert documents[-1].words[0][0] == (0, len(SENTENCE), "X")


def test_json_lines(tmp_path):
    rows = [json.dumps({"text": "One.\n\nStill one.", "id": 3}), "", json.dumps({"text": " 二。 "}, ensure_ascii=False)]
    documents, report = read(write(tmp_path / "a", "\ufeff" + "\r\n".join([*rows, json.dumps({"text": "  "})])))
    assert documents == ["One.\n\nStill one.", "二。"]
    assert report == CorpusReport(documents=2, dropped={"empty": 1})


WIKI = f"""<doc id="1" url="?curid=1" title="Tom &amp; Co">
Tom &amp; Co

Tom () &amp; Co (; ) is&lt;br&gt; a firm. {PARAGRAPH}
Early life and education.
{SENTENCE} The parts are as follows:
- {SENTENCE}
BULLET::::- {SENTENCE}
A list entry without an end that is nonetheless quite long, long enough for a paragraph
{PARAGRAPH}

</doc>
<doc id="2" url="?curid=2" title="A redirect">
A redirect


</doc>
<doc id="3">
中文

{"這是一個很長的句子，用來測試。" * 8}
簡歷.

</doc>
"""


def test_chinese_wikipedia_without_its_own_markup(tmp_path):
    """Words that depend on the reader's region, and the comma after a name that was a template."""
    text = "（），是-{zh-hans:软件; zh-hant:軟體}-、-{zh-tw|硬體}-和主-{}-機。" + "這是一個很長的句子，用來測試。" * 8
    path = write(tmp_path / "wiki_00", f'<doc id="1" title="甲">\n甲\n\n{text}\n</doc>\n')
    assert read(path)[0][0].startswith("是软件、硬體和主機。這")


def test_wiki_extractor_files_keep_running_text_only(tmp_path):
    documents, report = read(write(tmp_path / "wiki_00", WIKI))
    assert documents == [f"Tom  & Co  is a firm. {PARAGRAPH}\n\n{PARAGRAPH}", "這是一個很長的句子，用來測試。" * 8]
    assert report.dropped == {"hardly any running text": 1}


def zstd(content):
    """As `pzstd` and `zstd --long=31` write it: several frames, one to skip, and a window of 2 GB."""
    module = pytest.importorskip("backports.zstd", reason="the extra web is not installed")
    options = {module.CompressionParameter.window_log: 31}
    skipped = b"\x50\x2a\x4d\x18\4\0\0\0rest"
    writer = module.ZstdCompressor(options=options)  # Without a size, the window is not narrowed.
    return skipped + writer.compress(content[:9]) + writer.flush() + module.compress(content[9:])


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress, zstd])
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_compressed_files_local_and_through_gfile(tmp_path, compress, scheme):
    path = write(tmp_path / "a", compress(("第一。\n\n" + PARAGRAPH).encode()))
    assert read(f"{scheme}{path}")[0] == ["第一。", PARAGRAPH]


UNREADABLE = {
    "empty": b"",
    "blank": b" \n\r\n\t",
    "binary": b"PK\x00\x01" * 10,
    "latin-1": "café au lait\n\nsecond".encode("latin-1"),
    "utf-16": "plain\n\ntext".encode("utf-16"),
    "cut inside a character": "第一".encode()[:-1],
    "truncated gz": gzip.compress(PARAGRAPH.encode() * 9, mtime=0)[:-12],
    "truncated bz2": bz2.compress(PARAGRAPH.encode() * 9)[:-5],
    "truncated xz": lzma.compress(PARAGRAPH.encode() * 9)[:-5],
    "altered gz": gzip.compress(PARAGRAPH.encode(), mtime=0)[:-6] + b"\x00" * 6,
    "empty gz": gzip.compress(b"", mtime=0),
}


@pytest.mark.parametrize("content", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_bad_file_is_named_and_the_others_are_read(tmp_path, content):
    bad = write(tmp_path / "bad", content)
    good = write(tmp_path / "good", "Good.")
    documents, report = read(bad, good)
    assert documents == ["Good."] and report.documents == 1
    assert list(report.skipped) == [str(bad)] and report.skipped[str(bad)]
    assert report.skipped[str(bad)].startswith("UTF-16, not UTF-8") == (content is UNREADABLE["utf-16"])


def test_missing_files_are_named(tmp_path):
    good = write(tmp_path / "good", "Good.")
    missing = [str(tmp_path / "no"), f"file://{tmp_path}/no"]
    assert list(read(*missing, good)[1].skipped) == missing


LINES = [f"{n} {SENTENCE} {n * 7919 % 1009}" for n in range(3000)]
TEXT = "\n".join(line + "\n" * (n % 10 == 9) for n, line in enumerate(LINES)).encode()
BEFORE, AFTER = TEXT[:200_000], TEXT[200_000:]
COMPLETE = sum(map(bool, BEFORE.split(b"\n")[:-1]))


def cut(content):
    """Without its second half, in the middle of a line."""
    return content[: len(content) // 2]


DAMAGED = {
    "gz": (gzip.compress(TEXT, mtime=0)[:-9], 2999, "end-of-stream"),
    "half a gz": (cut(gzip.compress(TEXT, mtime=0)), 1400, "end-of-stream"),
    "half a bz2": (cut(bz2.compress(TEXT, 1)), 1000, "end-of-stream"),
    "half an xz": (cut(lzma.compress(TEXT)), 1300, "end-of-stream"),
    "altered gz": (gzip.compress(TEXT, mtime=0)[:-8] + bytes(8), 2999, "CRC"),
    "not UTF-8": (BEFORE + b"\xff" + AFTER, COMPLETE, "not UTF-8"),
    "binary": (BEFORE + b"\0" + AFTER, COMPLETE, "binary"),
}


@pytest.mark.parametrize(("content", "fewest", "told"), DAMAGED.values(), ids=DAMAGED.keys())
def test_the_lines_before_damage_are_kept(tmp_path, content, fewest, told):
    """A megabyte before each damaged place would be silently lost."""
    path = write(tmp_path / "a", content)
    documents, report = read(path)
    lines = [line for document in documents for line in document.split("\n") if line]
    assert lines == LINES[: len(lines)] and len(lines) >= fewest
    skipped = report.skipped[str(path)]
    assert told in skipped and skipped.endswith(f"kept what comes before it, {len(documents):,} documents")


def test_damage_in_a_zst_file(tmp_path):
    """It would end the run with a library's own error, or silently cut the text."""
    content = zstd(TEXT)
    for damaged in (content[:-9], content[:1000] + bytes(99) + content[1099:]):
        documents, report = read(write(tmp_path / "a.zst", damaged), write(tmp_path / "good", "Good."))
        assert documents[-1] == "Good." and "cannot be read (" in report.skipped[str(tmp_path / "a.zst")]


def test_what_comes_before_damage_is_kept_in_every_format(tmp_path):
    """An article, a line of JSON or a sentence would be lost with the damaged block."""
    contents = {
        "wiki": "".join(f'<doc id="{n}" title="{n}">\n{n} {PARAGRAPH}\n</doc>\n' for n in range(900)),
        "json": "".join(json.dumps({"text": f"{n} {PARAGRAPH}"}) + "\n" for n in range(900)),
        "conllu": "".join(f"# newdoc\n1\tWord{n}\t" + "_\t" * 7 + "_\n" for n in range(900)),
    }
    for name, content in contents.items():
        content = gzip.compress(content.encode(), mtime=0)
        whole, _ = read(write(tmp_path / name, content))
        documents, report = read(write(tmp_path / f"cut {name}", content[:-9]))
        assert len(whole) == 900 and documents == whole[: len(documents)] and len(documents) >= 899
        assert "end-of-stream" in report.skipped[str(tmp_path / f"cut {name}")]


def plain_lines(blocks, longest):
    """Each block is split with what is pending before it; an unfinished line over the limit ends there."""
    pending, lines = "", []
    for block in blocks:
        *complete, pending = (pending + block).split("\n")
        lines += complete
        if len(pending) > longest:
            lines.append(pending)
            pending = ""
    return [*lines, pending] if pending else lines


@pytest.mark.parametrize("longest", [1 << 26, 20])
@pytest.mark.parametrize("seed", range(20))
def test_lines_are_the_same_wherever_they_are_cut(monkeypatch, longest, seed):
    """Lines over many blocks, blocks of many lines, and lines over the limit."""
    monkeypatch.setattr(text_lines, "_LONGEST_LINE", longest)
    generator = random.Random(seed)
    text = "".join(generator.choices("ab\n", weights=[9, 9, generator.choice([0, 1, 6])], k=300))
    places = sorted(generator.choices(range(301), k=generator.choice([1, 9, 99])))
    blocks = [text[start:end] for start, end in zip([0, *places], [*places, 300])]
    found = list(text_lines.decoded_lines(block.encode() for block in blocks))
    assert found == plain_lines(blocks, longest)
    assert longest == 20 or found == text.removesuffix("\n").split("\n")


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.txt", "<!-- saved -->\n<!DOCTYPE html>\n<p>Text.</p>", "HTML"),
        ("a", '<?xml version="1.0"?>\n<html xmlns="x">', "HTML"),
        ("a.htm.gz", gzip.compress(b"<center>Text.</center>", mtime=0), "HTML"),
        ("a", '<?xml version="1.0"?>\n<TEI>Text.</TEI>', "XML"),
        ("a.txt", b"%PDF-1.7\n...", "PDF"),
        ("a.txt", "{\\rtf1 Text.}", "RTF"),
        ("a.docx", b"PK\3\4...", "a zip archive or an Office document"),
        ("a.txt", b"\x89PNG\r\n...", "an image"),
        ("a.txt.gz", b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n", "a pointer of Git LFS"),
        ("a.tar.gz", gzip.compress(b"a.txt".ljust(257, b"\0") + b"ustar\x0000", mtime=0), "a tar archive"),
    ],
)
def test_what_holds_text_but_is_none_is_refused(tmp_path, name, content, told):
    """Tags or pointers would be trained on, or the run would start without the file."""
    path = write(tmp_path / name, content)
    remedy = "Fetch the file itself: git lfs pull." if "pointer" in told else "Extract"
    with pytest.raises(UserError, match=f"{path}: needs text. Received: {told}. {remedy}"):
        read(path)


CSV = 'id,review,label\n1,"Good, as\nthey say.",1\n2, ,0\n3,Bad.,0\n'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", CSV),
        ("a.csv.gz", gzip.compress(CSV.encode(), mtime=0)),
        ("a.TSV", CSV.replace(", as\nthey", "").replace(",", "\t")),
    ],
)
def test_a_column_of_a_table_is_read(tmp_path, name, content):
    """Otherwise indices, labels and commas would be trained on too, as one document."""
    documents, report = read(write(tmp_path / name, content), text="review")
    assert len(documents) == 2 and "say." in documents[0] and documents[1] == "Bad." and report.dropped == {"empty": 1}


@pytest.mark.parametrize("begin", [Corpus.documents, divide])
def test_a_table_without_the_column_is_refused_before_anything_is_read(tmp_path, begin):
    """It would be found only after hours, behind all other files, here or in a worker."""
    write(tmp_path / "a.txt", "Text.")
    path = write(tmp_path / "b.csv", CSV)
    with pytest.raises(UserError) as error:
        begin(Corpus([str(tmp_path)]))
    assert str(error.value) == (
        f"{path} line 1: needs a column 'text'. Received: the columns 'id', 'review', 'label'. "
        "Name the column with --text COLUMN (data.text), by its number from 0 if this line is no header; if the "
        "separators are others, give --format csv, ssv, tsv or raw_tsv (data.format)."
    )


def test_ragged_rows_and_damage_in_a_table(tmp_path):
    """The setting for broken lines of JSON applies, and rows before the damage are kept."""
    rows = "".join(f"{n},Text {n}.\n" for n in range(9000))
    path = write(tmp_path / "a.csv", f"id,text\n0\n{rows}")
    with pytest.raises(UserError, match="line 2: needs 2 cells .* --broken-lines skip"):
        read(path)
    documents, report = read(path, broken_lines="skip")
    assert len(documents) == 9000 and report.broken_lines == {"too few or too many cells": 1}
    cut = write(tmp_path / "b.csv", gzip.compress(f"id,text\n{rows}".encode())[:-9])
    kept, report = read(cut)
    assert kept == documents[: len(kept)] and len(kept) > 8000 and "end-of-stream" in report.skipped[str(cut)]


def test_parquet(tmp_path):
    """As for other tables, a column is read; if none is given, the message lists the columns."""
    arrow = pytest.importorskip("pyarrow", reason="the extra datasets is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    texts = arrow.array([b"One.", None, b"caf\xe9", "二。".encode()]).view(arrow.string())
    lists = arrow.array([["One."]] * 4)
    table = arrow.table({"id": [1, 2, 3, 4], "body": texts, "kind": texts.dictionary_encode(), "list": lists})
    path = str(tmp_path / "a")
    parquet.write_table(table, path)
    for name in ("body", "kind"):
        documents, report = read(path, text=name)
        assert documents == ["One.", "二。"] and report.dropped == {"empty": 1, "not UTF-8": 1}
    for name, told in (
        ("text", "the columns 'id', 'body', 'kind', 'list'"),
        ("id", "row 1: needs text. Received: 'id' is not text, 1"),
        ("list", "Received: 'list' is not text"),
    ):
        with pytest.raises(UserError, match=rf"{told}.* Name (the|its) column with --text COLUMN"):
            read(path, text=name)
    with open(path, "r+b") as stream:
        stream.truncate(99)
    assert "damaged Parquet" in read(path, write(tmp_path / "good", "Good."))[1].skipped[path]


def test_tables_without_a_header_and_of_formats_that_are_told(tmp_path):
    """A column may be chosen by its number, and a format given."""
    assert read(write(tmp_path / "a.csv", "1;First.\n2;Second.\n"), text="1")[0] == ["First.", "Second."]
    assert read(write(tmp_path / "a.txt", "id\ttext\n1\tFirst.\n"), format="raw_tsv")[0] == ["First."]
    assert read(write(tmp_path / "a.json", '[{"text": "First."}, {"text": null}, {"text": "Second."}]'))[0] == [
        "First.",
        "Second.",
    ]


def test_a_folder_that_datasets_wrote_is_its_files(tmp_path):
    """Otherwise descriptions beside the text, and the library's caches, would be read as text."""
    arrow = pytest.importorskip("pyarrow", reason="the extra datasets is not installed")
    table = arrow.table({"text": ["First.", "Second."]})
    for name in ("data-00000-of-00001.arrow", "cache-12.arrow"):
        with arrow.ipc.new_stream(str(tmp_path / name), table.schema) as writer:
            writer.write_table(table)
    write(tmp_path / "state.json", '{"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}')
    write(tmp_path / "dataset_info.json", "{}")
    corpus = Corpus([str(tmp_path)])
    assert list(corpus.documents()) == ["First.", "Second."] and corpus.report.documents == 2


def test_nothing_at_all_is_an_error_that_names_files(tmp_path):
    path = write(tmp_path / "a", b"")
    with pytest.raises(UserError, match=f"{path}: empty"):
        read(path)


def test_documents_stream(tmp_path):
    """The first document must come before a later file is opened."""
    documents = read_documents([write(tmp_path / "a", "First.\n\nSecond."), tmp_path / "not yet there"])
    assert next(documents) == "First."
    write(tmp_path / "not yet there", "Third.")
    assert list(documents) == ["Second.", "Third."]
