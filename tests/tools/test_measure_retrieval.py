"""A SQuAD file becomes a search whose relevant passages answer the questions."""

import json

from keras_bert.data.tables.retrieval_files import read_retrieval_set
from tools.measure_retrieval import write_folder


def test_questions_without_an_answer_are_left_out(tmp_path):
    """A file of SQuAD 2.0 used to end in a traceback."""
    questions = [
        {"id": "a", "question": "Who sat?", "answers": [{"text": "cat", "answer_start": 14}]},
        {"id": "b", "question": "Who stood?", "answers": [], "is_impossible": True},
    ]
    paragraph = {"context": "It was day. A cat sat.", "qas": questions}
    (tmp_path / "squad.json").write_text(json.dumps({"data": [{"paragraphs": [paragraph]}]}))
    write_folder(str(tmp_path / "squad.json"), str(tmp_path / "beir"), sentences=True)
    asked = read_retrieval_set(str(tmp_path / "beir"))
    (relevant,) = asked.grades["a"]
    assert list(asked.queries) == ["a"] and dict(asked.passages.items())[relevant] == "A cat sat."
