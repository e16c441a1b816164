"""CoNLL-U as a corpus: the text is joined again, and labels keep their places."""

import pickle

import pytest

from keras_bert.data.corpus.corpus_report import CorpusReport
from keras_bert.data.corpus.documents import read_documents
from keras_bert.data.corpus.formats import conllu_documents
from keras_bert.data.corpus.text_lines import Unreadable

PAGE = """\
# newdoc id = one
# text = Don't go to Paris.
1-2	Don't	_	_	_	_	_	_	_	_
1	Do	do	AUX	_	_	0	_	_	_
2	n't	not	PART	_	_	0	_	_	_
3	go	go	VERB	_	_	0	_	_	_
3.1	there	there	ADV	_	_	_	_	_	_
4	to	to	ADP	_	_	0	_	_	_
5	Paris	Paris	PROPN	_	_	0	_	_	SpaceAfter=No
6	.	.	PUNCT	_	_	0	_	_	_

# text = 去北京
1	去	去	VERB	_	_	0	_	_	SpaceAfter=No
2	北京	北京	PROPN	_	_	0	_	_	SpaceAfter=No

# newdoc id = two
1	Yes	yes	INTJ	_	_	0	_	_	_
"""


def test_documents_sentences_and_words(tmp_path):
    path = tmp_path / "page.conllu"
    path.write_text(PAGE, encoding="utf-8")
    documents = list(read_documents([path]))
    assert documents == ["Don't go to Paris.\n去北京", "Yes"]
    first = pickle.loads(pickle.dumps(documents[0]))  # As it is sent to another process.
    assert first.sentences == ["Don't go to Paris.", "去北京"]
    words = [[(text[start:end], tag) for start, end, tag in row] for text, row in zip(first.sentences, first.words)]
    assert words == [
        [("Don't", "AUX"), ("go", "VERB"), ("to", "ADP"), ("Paris", "PROPN"), (".", "PUNCT")],
        [("去", "VERB"), ("北京", "PROPN")],
    ]


def test_a_file_without_newdoc_is_one_document():
    lines = [line for line in PAGE.splitlines() if not line.startswith("#")]
    (document,) = conllu_documents(lines, CorpusReport())
    assert len(document.sentences) == 3


@pytest.mark.parametrize("line", ["1\tYes", "one\tYes\t_\tX\t_\t_\t0\t_\t_\t_"])
def test_other_lines_are_named(line):
    with pytest.raises(Unreadable, match="line 1 is not a number and nine more cells"):
        list(conllu_documents([line], CorpusReport()))


def test_what_comes_before_such_a_line_is_kept():
    """A treebank without `# newdoc` is one document, which would be lost because of its last line."""
    documents = conllu_documents([*PAGE.splitlines()[-1:], "", "2\tNo"], CorpusReport())
    assert next(documents) == "Yes"
    with pytest.raises(Unreadable, match="line 3"):
        next(documents)


@pytest.mark.parametrize("first", ["# text mining", "# newdoc", "# sent_id = 1", "#text", "# global.columns", "1\tone"])
def test_text_that_begins_like_a_comment_is_text(tmp_path, first):
    """Notes in Markdown would be skipped as broken CoNLL-U; only a word in ten cells makes a file CoNLL-U."""
    path = tmp_path / "notes.md"
    path.write_text(f"{first}\nIt finds words in texts.\n\nMore.\n")
    assert list(read_documents([path])) == [f"{first}\nIt finds words in texts.", "More."]


def test_comments_before_the_first_word_are_no_text(tmp_path):
    """A treebank with unusual comments would be trained on as plain text."""
    path = tmp_path / "page"
    path.write_text(f"# a comment\n\n# another\n{PAGE}", encoding="utf-8")
    assert list(read_documents([path])) == ["Don't go to Paris.\n去北京", "Yes"]
