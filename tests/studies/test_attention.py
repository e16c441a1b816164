"""What heads attend to: shares and entropies of attention made by hand, and the page."""

import base64
import json
import re

import numpy as np
import pytest
from command_line import give
from finetuning import write_tiny_bert

from keras_bert.studies.attention import SHARES, TextAttention, head_entropy, head_shares, heads_page, strongest_heads

CLS, SEP = 2, 3


def by_hand():
    """[CLS] a b a [SEP] and three heads: one looks at the token before, one at the same piece, one at all equally."""
    ids = np.array([CLS, 7, 8, 7, SEP])
    before, same = np.zeros((5, 5)), np.eye(5)
    before[np.arange(1, 5), np.arange(4)] = 1.0
    before[0, 0] = 1.0
    same[1], same[3] = np.eye(5)[3], np.eye(5)[1]
    even = np.full((5, 5), 0.2)
    return TextAttention(["[CLS]", "a", "b", "a", "[SEP]"], ids, np.stack([[before, same, even]]).astype("float32"))


def test_shares_of_heads_made_by_hand():
    """Only a, b and a look; b has no other like it, so the share of like pieces is over the two a."""
    shares = head_shares([by_hand(), by_hand()], CLS, SEP)
    expected = {
        "cls": [1 / 3, 0.0, 0.2],
        "sep": [0.0, 0.0, 0.2],
        "itself": [0.0, 1 / 3, 0.2],
        "previous": [1.0, 0.0, 0.2],
        "next": [0.0, 0.0, 0.2],
        "same": [0.0, 1.0, 0.2],
    }
    assert list(expected) == list(SHARES)
    for key, values in expected.items():
        np.testing.assert_allclose(shares[key], [values], atol=1e-6, err_msg=key)


def test_the_entropy_is_0_for_one_target_and_ln_of_the_length_for_all_alike():
    np.testing.assert_allclose(head_entropy(by_hand()), [[0.0, 0.0, np.log(5)]], atol=1e-6)


def test_the_table_names_the_heads_by_layer_and_head_from_1():
    shares = head_shares([by_hand()], CLS, SEP)
    lines = list(strongest_heads(shares, head_entropy(by_hand())))
    assert "| to the token before | 40.0 | 1.1: 100.0%, 1.3: 20.0%, 1.2: 0.0% |" in lines
    assert any(line.startswith("| entropy, nats: broadest | 0.54 | 1.3: 1.61") for line in lines)


def read_page(page):
    """(tokens, weights float32 [layers, heads, seq, seq]) of a page, as its script reads them."""
    data = json.loads(re.search(r"const \{ tokens, scales, shares \} = (.*);", page)[1])
    scales, shares = (
        np.stack([[np.frombuffer(base64.b64decode(head), kind) for head in layer] for layer in data[name]])
        for name, kind in (("scales", "<f4"), ("shares", "u1"))
    )
    return data["tokens"], shares.reshape(*scales.shape, -1) / 255 * scales[..., None]


def test_a_long_text_keeps_its_even_heads_and_a_byte_for_each_weight():
    """In units of 1/255, a 600th is 0; a list of numbers would make the page of a BERT-base twice as large."""
    random = np.random.default_rng(0)
    weights = random.dirichlet(np.ones(600), (1, 2, 600)).astype("float32")
    weights[0, 0] = 1 / 600
    page = heads_page(TextAttention(["a"] * 600, np.full(600, 7), weights), "a")
    _, read = read_page(page)
    np.testing.assert_allclose(read[0, 0], weights[0, 0], rtol=1e-5)
    assert np.abs(read - weights).max() <= weights.max() / 255
    assert len(page) < 1.4 * weights.size


def test_the_page_holds_every_weight_and_no_token_ends_its_script():
    one = TextAttention(["[CLS]", "</script>", "[SEP]"], np.array([CLS, 7, SEP]), np.full((1, 1, 3, 3), 1 / 3))
    page = heads_page(one, "a < b")
    assert page.count("</script>") == 1 and "<h1>a &lt; b</h1>" in page
    tokens, weights = read_page(page)
    assert tokens == one.tokens
    np.testing.assert_allclose(weights, one.weights, atol=1e-6)
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "") and "https://" not in page


def test_the_study_from_the_command_line(tmp_path):
    bert = write_tiny_bert(tmp_path / "bert")
    line = ["study", "attention", "--model", bert, "--output", str(tmp_path / "out")]
    give(*line, "good w1 good", "bad w2")
    assert {"attention.md", "heads_1.html", "heads_2.html", "heads_1.png", "shares.png"} <= {
        path.name for path in (tmp_path / "out").iterdir()
    }


@pytest.mark.parametrize("text", ["", "good " * 40])
def test_a_text_that_does_not_fit_is_refused(tmp_path, text):
    bert = write_tiny_bert(tmp_path / "bert")
    line = ["study", "attention", "--model", bert, "--output", str(tmp_path / "out"), text]
    result = give(*line, status=2)
    assert "The text: needs 3 to 32 tokens" in result.output
