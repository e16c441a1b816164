"""Archives of web pages, written with warcio."""

import gzip
import io

import pytest

from keras_bert.core.errors import UserError
from keras_bert.data.corpus.corpus_report import CorpusReport
from keras_bert.data.corpus.documents import read_documents

pytest.importorskip("warcio", reason="the extra web is not installed")


def archive(*texts, kind="conversion", compressed=True):
    from warcio.warcwriter import WARCWriter

    stream = io.BytesIO()
    writer = WARCWriter(stream, gzip=compressed)
    writer.write_record(writer.create_warcinfo_record("a.warc.wet.gz", {"software": "a test"}))
    for number, text in enumerate(texts):
        writer.write_record(
            writer.create_warc_record(f"http://example.org/{number}", kind, io.BytesIO(text), length=len(text))
        )
    return stream.getvalue()


def read(path, content):
    path.write_bytes(content)
    good = path.parent / "good"
    good.write_text("Good.")
    report = CorpusReport()
    return list(read_documents([str(path), str(good)], report))[:-1], report


@pytest.mark.parametrize("compressed", [True, False])
def test_a_page_is_a_document(tmp_path, compressed):
    content = archive("Über uns\nEin Satz.".encode(), b" \n", b"caf\xe9", b"Last.", compressed=compressed)
    documents, report = read(tmp_path / "a.warc.wet.gz", content)
    assert documents == ["Über uns\nEin Satz.", "Last."]
    assert report.dropped == {"empty": 1, "not UTF-8": 1} and not report.skipped


def test_an_archive_of_pages_alone_is_refused(tmp_path):
    """Its records are HTML, which would be trained on or silently left out."""
    with pytest.raises(UserError, match=r"a\.warc\.gz: needs the text of web pages .* Give the WET file"):
        read(tmp_path / "a.warc.gz", archive(b"<html>", kind="resource"))


def test_the_text_in_an_archive_that_has_the_pages_too_is_read(tmp_path):
    """Otherwise crawlers that write both into one file would be refused."""
    content = archive(b"<html>", kind="resource") + archive(b"Text.")
    assert read(tmp_path / "a.warc", content)[0] == ["Text."]


def test_a_page_that_is_cut_is_left_out(tmp_path):
    """The end of a partly copied file would be silently missing."""
    content = archive(b"First.", b"Second.", compressed=False)
    documents, report = read(tmp_path / "a", content[: content.index(b"cond.")])
    assert documents == ["First."] and "ends within a page; kept what" in report.skipped[str(tmp_path / "a")]


def test_a_broken_archive_is_named(tmp_path):
    whole = gzip.decompress(archive(b"First.", b"Second."))
    broken = whole[: whole.rindex(b"WARC/1.0")] + b"nonsense\r\n\r\nmore"
    documents, report = read(tmp_path / "a", broken)
    assert documents == ["First."] and "broken archive" in report.skipped[str(tmp_path / "a")]
