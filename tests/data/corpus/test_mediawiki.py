"""MediaWiki dumps: which part of an article is text, which pages are articles, and what a broken dump reports."""

import bz2
from xml.sax.saxutils import escape

import pytest

from keras_bert.config.corpus import CorpusConfig
from keras_bert.data.corpus.corpus_report import CorpusReport
from keras_bert.data.corpus.documents import read_documents

pytest.importorskip("mwparserfromhell", reason="the extra wikipedia is not installed")

SENTENCE = "The town has a market, a school and a railway station, and lies on the river."
SECTION = f"{SENTENCE} {SENTENCE} {SENTENCE}"

ARTICLE = f"""{{{{Infobox settlement
| name = Berlin
| population = {{{{formatnum:3700000}}}}
}}}}
[[File:Berlin.jpg|thumb|The [[Reichstag]] by night]]
[[Datei:Wappen.svg|mini|The arms]]
'''Berlin''' ({{{{IPA|bɛʁˈliːn}}}}) is the ''capital'' of [[Germany|the country]] and a [[city]].<ref name="a">{{{{cite
book|title=Not text}}}}</ref> {SENTENCE}<ref name="a" /><!-- not text -->
It has 3.7&nbsp;million people &amp; many [https://example.org/trees trees] {{{{citation needed}}}}.

== History ==
=== Founding ===
{SECTION}
{{| class="wikitable"
! Year !! People
|-
| 1900 || A cell is not text, even if it ends like a sentence that is long enough to be one.
|}}

=== Lists ===
* {SENTENCE}
# {SENTENCE}
: {SENTENCE}
; {SENTENCE}
The parts are as follows:
* [[Mitte]]

== Economy ==
<gallery>
A.jpg|{SENTENCE}
</gallery>
<div class="note">{SECTION}</div>
 {SENTENCE}
----

== References ==
<references />
[[Category:Capitals]]
[[Kategorie:Hauptstadt]]
[[de:Berlin]]
"""

TEXT = f"""Berlin is the capital of the country and a city. {SENTENCE} It has 3.7\xa0million people & many trees.

{SECTION}

{SECTION}"""


def page(text, title="Berlin", namespace=0, redirect=False, model="wikitext"):
    redirect = '<redirect title="Elsewhere" />' if redirect else ""
    revision = f"<id>7</id><model>{model}</model><text bytes='9' xml:space='preserve'>{escape(text)}</text>"
    return f"<page><title>{title}</title><ns>{namespace}</ns><id>1</id>{redirect}<revision>{revision}</revision></page>"


def dump(*pages):
    names = "".join(
        f'<namespace key="{key}" case="first-letter">{name}</namespace>'
        for key, name in ((0, ""), (6, "Datei"), (14, "Kategorie"))
    )
    return (
        '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="de">'
        f"<siteinfo><namespaces>{names}</namespaces></siteinfo>\n" + "\n".join(pages) + "\n</mediawiki>\n"
    ).encode()


def read(path, content, **config):
    path.write_bytes(content)
    report = CorpusReport()
    return list(read_documents([str(path)], report, CorpusConfig(**config))), report


def test_an_article_is_its_paragraphs(tmp_path):
    """Headings, templates, tables, references, lists, images and categories would be trained on as text."""
    documents, report = read(tmp_path / "wiki.xml.bz2", bz2.compress(dump(page(ARTICLE))))
    assert documents == [TEXT]
    assert report == CorpusReport(documents=1)


def test_redirects_and_talk_pages_are_counted_and_left_out(tmp_path):
    pages = [
        page("#REDIRECT [[Elsewhere]]", redirect=True),
        page(SECTION, title="Talk:Berlin", namespace=1),
        page("{}", model="json"),
        page("A stub."),
        page(f"<b>{SECTION}"),
    ]
    documents, report = read(tmp_path / "a", b'<?xml version="1.0"?>\n' + dump(*pages))
    assert len(documents) == 1 and SENTENCE in documents[0]
    assert report.dropped == {"a redirect": 1, "not an article": 2, "hardly any running text": 1}


@pytest.mark.parametrize(
    ("link", "shown"),
    [
        *(("[[CSI: Miami]]", "CSI: Miami"), ("[[Re:Zero]]", "Re:Zero"), ("[[re: a letter]]", "re: a letter")),
        *(("[[:de:Berlin]]", "de:Berlin"), ("[[de:Berlin|Berlin]]", "Berlin")),
        *(("[[de:Berlin]]", ""), ("[[zh-yue:柏林]]", ""), ("[[ als:Berlin ]]", "")),
    ],
)
def test_only_links_to_other_languages_are_left_out(tmp_path, link, shown):
    """Titles of two or three letters and a colon would be lost in the middle of a sentence."""
    assert read(tmp_path / "a", dump(page(f"See “{link}” now. {SECTION}")))[0] == [f"See “{shown}” now. {SECTION}"]


@pytest.mark.parametrize("entity", ["&#xD83D;", "&#55357;", "&#xD83D;&#xDE00;"])
def test_half_a_surrogate_pair_is_no_text(tmp_path, entity):
    """It cannot be encoded, and would end the reading of the dump."""
    assert read(tmp_path / "a", dump(page(f"One{entity}. {SECTION}")))[0] == [f"One. {SECTION}"]


def test_of_several_revisions_the_newest_counts(tmp_path):
    older, newer = page(f"Old. {SECTION}"), page(f"New. {SECTION}")
    both = older.removesuffix("</page>") + newer[newer.index("<revision>") :]
    assert read(tmp_path / "a", dump(both))[0] == [f"New. {SECTION}"]


def test_several_streams_in_one_file(tmp_path):
    """Wikipedia's multistream dumps are many bz2 streams, one after the other."""
    whole = dump(page(f"One. {SECTION}"), page(f"Two. {SECTION}"))
    documents, _ = read(tmp_path / "a.bz2", bz2.compress(whole[:900]) + bz2.compress(whole[900:]))
    assert documents == [f"One. {SECTION}", f"Two. {SECTION}"]


WHOLE = dump(*[page(f"{number}. {SECTION}") for number in range(30)])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (WHOLE[:-200], "broken XML, "),
        (WHOLE.replace(b"20. ", b"20. <oops"), "broken XML, "),
        (bz2.compress(WHOLE)[:-40], "cannot be read ("),
        (b'<?xml version="1.0" encoding="gb2312"?>' + WHOLE, "broken XML, multi-byte encodings are not supported"),
        (b'<?xml version="1.0" encoding="none"?>' + WHOLE, "broken XML, unknown encoding: none"),
    ],
)
def test_a_broken_dump_is_named_and_what_comes_before_is_kept(tmp_path, content, told):
    good = tmp_path / "good"
    good.write_text("A good text.")
    bad = tmp_path / "bad"
    bad.write_bytes(content)
    report = CorpusReport()
    documents = list(read_documents([str(bad), str(good)], report))
    assert documents[-1] == "A good text." and documents[:-1] == [f"{n}. {SECTION}" for n in range(len(documents) - 1)]
    assert list(report.skipped) == [str(bad)] and report.skipped[str(bad)].startswith(told)
