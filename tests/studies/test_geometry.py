"""Neighbours of words, and the sum of the embeddings taken apart."""

import numpy as np
import pytest
from command_line import give
from finetuning import VOCABULARY, write_tiny_bert

from keras_bert.checkpoints.writing import write_model_folder
from keras_bert.core.errors import UserError
from keras_bert.inference.loading import load
from keras_bert.inference.texts import encoder_inputs
from keras_bert.models.albert.kind import AlbertConfig
from keras_bert.models.elmo.kind import ElmoConfig
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.models.roberta.kind import RobertaConfig
from keras_bert.studies.geometry import (
    contextual_vectors,
    embedding_shares,
    geometry,
    neighbour_table,
    piece_of,
    share_table,
    spread,
    text_rows,
    whole_words,
    word_of,
)
from keras_bert.studies.study import StudyFolder
from keras_bert.text.sentencepiece_vocabulary import SentencePieceVocabulary

ROWS = [np.array(VOCABULARY.tokens.index(word) + np.zeros(1), np.int32) for word in ("good", "fine", "good")]


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return load(write_tiny_bert(tmp_path_factory.mktemp("geometry") / "bert"))


def id_of(word):
    return VOCABULARY.tokens.index(word)


def test_neighbours_are_by_the_cosine_and_never_the_word_itself():
    """`fine` points where `good` does but is ten times as long; `bad` is its opposite; `nice` has no vector."""
    candidates = np.array([id_of(word) for word in ("good", "fine", "bad", "nice")])
    vectors = np.array([[1.0, 0.0], [10.0, 1.0], [-1.0, 0.0], [0.0, 0.0]])
    lines = list(neighbour_table(VOCABULARY, candidates, [id_of("good")], {"made up": vectors}, most=2))
    assert lines == ["|  | made up |", "| --- | --- |", "| good | fine 1.00, nice 0.00 |"]
    assert list(spread({"a": np.ones((3, 2)), "b": np.eye(3)}))[-1].endswith("| 1.00 | 0.00 |")


def test_contextual_vectors_are_means_over_all_occurrences(bert):
    """Compared with reading one text at a time, without padding."""
    rows = [
        np.array([id_of(word) for word in text.split()], np.int32) for text in ("good w1 good w2", "bad", "w1 good")
    ]
    found = contextual_vectors(bert, rows, np.array([id_of("good"), id_of("bad")]), layer=1)
    states = [bert.encoder(encoder_inputs([row], VOCABULARY))["hidden_states"][1][0] for row in rows]
    expected = [np.mean([states[0][1], states[0][3], states[2][2]], axis=0), np.array(states[1][1])]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_shares_of_the_parts_add_up_and_follow_their_size(bert):
    shares = embedding_shares(bert, ROWS)
    np.testing.assert_allclose(sum(shares.values()), np.ones(3), atol=1e-6)
    embeddings = bert.encoder.embeddings
    tables = embeddings.word_embeddings, embeddings.position_embeddings, embeddings.token_type_embeddings
    before = [np.array(table) for table in tables]
    for table in tables[1:]:
        table.assign(np.zeros(table.shape))
    np.testing.assert_allclose(embedding_shares(bert, ROWS)["word"], np.ones(3), atol=1e-6)
    for table, values in zip(tables, before):
        table.assign(values)


def test_positions_are_those_that_tokens_have(tmp_path):
    """The first row of this RoBERTa's table belongs to no token: positions are counted from the padding's, 0."""
    config = RobertaConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        pad_token_id=VOCABULARY.pad_id,
    )
    write_model_folder(str(tmp_path / "roberta"), BertForPreTraining(config), VOCABULARY, lower_case=True)
    roberta = load(tmp_path / "roberta")
    before = embedding_shares(roberta, ROWS)
    table = roberta.encoder.embeddings.position_embeddings
    table.assign(np.concatenate([np.full((1, 16), 9.0), np.array(table)[1:]]))
    for part, shares in embedding_shares(roberta, ROWS).items():
        np.testing.assert_allclose(shares, before[part], atol=1e-6, err_msg=part)


def test_shares_are_shown_by_ranges_of_positions():
    lines = list(share_table({"word": np.full(20, 0.5), "position": np.full(20, 0.3), "segment": np.full(20, 0.2)}))
    assert lines[2:] == ["| [CLS] | 50.0 | 30.0 | 20.0 |", "| 1 to 15 | 50.0 | 30.0 | 20.0 |"] + [
        "| 16 to 19 | 50.0 | 30.0 | 20.0 |"
    ]


def test_candidates_are_whole_words_that_are_frequent_enough():
    counts = np.full(len(VOCABULARY), 5)
    counts[id_of("bad")] = 4
    tokens = {VOCABULARY.tokens[number] for number in whole_words(VOCABULARY, counts)}
    assert tokens == {"good", "fine", "nice", "dull", "poor"}


def sentencepieces(*tokens):
    """A SentencePiece vocabulary with some pieces after the special ones."""
    special = [("<pad>", 3), ("<unk>", 2), ("[CLS]", 3), ("[SEP]", 3), ("[MASK]", 3)]
    model = b""
    for token, kind in [*special, *((token, 1) for token in tokens)]:
        text = token.encode()
        piece = b"\x0a" + bytes([len(text)]) + text + b"\x18" + bytes([kind])
        model += b"\x0a" + bytes([len(piece)]) + piece
    return SentencePieceVocabulary(model)


def test_sentencepieces_are_words_by_their_mark_and_shown_without_it():
    vocabulary = sentencepieces("▁", "▁the", "s", "▁a", ",", "▁1990", "▁हिन्दी", "ing")
    candidates = whole_words(vocabulary, np.full(len(vocabulary), 5))
    assert [vocabulary.tokens[piece] for piece in candidates] == ["▁the", "▁a", "▁हिन्दी"]
    the = vocabulary.tokens.index("▁the")
    assert list(neighbour_table(vocabulary, candidates, [the], {"same": np.ones((3, 1))}, 2))[2:] == [
        "| the | a 1.00, हिन्दी 1.00 |"
    ]


def test_byte_level_bpe_has_words_after_blanks(goldens):
    """The blank in their pieces used to be no letter, so that the study refused every word."""
    roberta = load(f"{goldens}/roberta")
    vocabulary = roberta.tokenizer.vocabulary
    piece = piece_of(roberta, "ca")
    assert vocabulary.tokens[piece] == "Ġca" and word_of(vocabulary, piece) == "ca"
    assert vocabulary.tokens[whole_words(vocabulary, np.full(len(vocabulary), 5))[-1]] == "Ġh"


def test_rows_end_with_their_document_and_the_text_with_its_tokens(bert, tmp_path):
    (tmp_path / "text.txt").write_text("good bad\n\nfine\n\nnice poor dull\n")
    assert [len(row) for row in text_rows(bert, [str(tmp_path / "text.txt")], 100)] == [2, 1, 3]
    assert [len(row) for row in text_rows(bert, [str(tmp_path / "text.txt")], 4)] == [2, 1, 1]


def test_a_word_of_several_pieces_or_with_a_digit_is_refused(bert):
    with pytest.raises(UserError, match="--word good bad: needs a word that is one piece .* Received: 'good bad'"):
        piece_of(bert, "good bad")
    with pytest.raises(UserError, match="--word zebra: needs a word"):
        piece_of(bert, "zebra")
    with pytest.raises(UserError, match="--word w1: needs a word of letters alone, .* Received: 'w1'"):
        piece_of(bert, "w1")


def test_the_study_from_the_command_line(bert, tmp_path):
    (tmp_path / "text.txt").write_text("good w1 bad. fine w2 bad. nice w3 poor. " * 10)
    line = ["study", "geometry", "--model", bert.path, "--text", str(tmp_path / "text.txt")]
    line += ["--output", str(tmp_path / "out")]
    give(*line, "--word", "good")
    assert "| good | " in (tmp_path / "out" / "geometry.md").read_text()
    rare = give(*line, "--word", "dull", status=2)
    assert "--word dull: needs 5 occurrences in the text. Received: 0" in rare.output
    (tmp_path / "one.txt").write_text("good w1 w2. " * 10)  # It has no neighbours to average.
    of_one = [argument.replace("text.txt", "one.txt") for argument in line]
    alone = give(*of_one, "--word", "good", status=2)
    assert "needs two words or more with 5 occurrences, to compare. Received: one" in alone.output
    deep = give(*line, "--word", "good", "--layer", "2", status=2)
    assert "--layer: needs one from 1 to 1. Received: 2" in deep.output


def test_a_model_whose_embeddings_are_of_words_alone_has_no_shares(tmp_path):
    """An ELMo has no positions, which would otherwise be found only after all of the text is encoded."""
    config = ElmoConfig(vocab_size=len(VOCABULARY), hidden_size=16, num_hidden_layers=1, max_position_embeddings=32)
    write_model_folder(str(tmp_path / "elmo"), BertForPreTraining(config), VOCABULARY, lower_case=True)
    (tmp_path / "text.txt").write_text("good w1 bad. fine w2 bad. nice w3 poor. " * 10)
    with StudyFolder(str(tmp_path / "out")) as study:
        found = geometry(study, tmp_path / "elmo", ["good"], [str(tmp_path / "text.txt")], 100, 2, None)
    assert found.lines[2].startswith("| good | ") and not found.pictures
    assert not any("sum of the embeddings" in line for line in found.lines)


def test_the_last_layer_of_an_albert_is_its_last_block(tmp_path):
    """With two blocks a group, the middle block would be taken for the last, and no later one could be named."""
    sizes = {"vocab_size": len(VOCABULARY), "hidden_size": 16, "embedding_size": 8, "max_position_embeddings": 32}
    config = AlbertConfig(**sizes, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, inner_group_num=2)
    write_model_folder(str(tmp_path / "albert"), BertForPreTraining(config), VOCABULARY, lower_case=True)
    with pytest.raises(UserError, match="--layer: needs one from 1 to 2. Received: 3."):
        geometry(StudyFolder(str(tmp_path / "study")), tmp_path / "albert", ["good"], [], 100, 2, 3)
