"""Where edits move the parts of a text, so that answers and words are found again."""

import numpy as np

from keras_bert.tasks.noise import Edit, EditedText, Noise


def test_parts_before_inside_and_after_edits():
    edited = EditedText("the cat sat", [Edit(0, 1, "T"), Edit(5, 6, ""), Edit(7, 8, ""), Edit(10, 10, "x")])
    assert edited.text == "The ctsaxt"
    assert [edited.span(*span) for span in ((0, 3), (4, 7), (8, 11), (4, 11))] == [(0, 3), (4, 6), (6, 10), (4, 10)]


def test_an_edit_across_an_end_is_inside_as_a_whole():
    edited = EditedText("abcdef", [Edit(1, 3, "XYZ")])
    assert edited.text == "aXYZdef" and edited.span(2, 5) == (1, 6) and edited.span(0, 2) == (0, 4)


def test_what_is_inserted_belongs_to_the_character_before():
    edited = EditedText("ab", [Edit(1, 1, "a"), Edit(2, 2, "b")])
    assert edited.text == "aabb" and edited.span(0, 1) == (0, 2) and edited.span(1, 2) == (2, 4)


def test_neighbouring_parts_stay_neighbours_whatever_the_edits():
    """Otherwise a character could belong to two words, or to none."""
    random = np.random.default_rng(0)
    for _ in range(300):
        text = "".join(random.choice(list("ab c中"), 12))
        places = sorted(random.choice(13, 4, replace=False).tolist())
        edits = [Edit(places[0], places[1], "x" * int(random.integers(3))), Edit(places[2], places[3], "")]
        edited = EditedText(text, edits)
        # Cuts that no edit crosses.
        cuts = [cut for cut in range(13) if not any(edit.start < cut < edit.end for edit in edits)]
        spans = [edited.span(start, end) for start, end in zip(cuts, cuts[1:])]
        assert "".join(edited.text[start:end] for start, end in spans) == edited.text[spans[0][0] :]
        assert edited.text[: spans[0][0]] == (edits[0].text if edits[0].end == 0 else "")


def test_a_part_that_must_stay_is_never_lost():
    text, kept = "中国人 ab", [(0, 1), (2, 3)]
    edited = Noise("zh-drop=1").edited(text, kept)
    assert edited.text == "中人 ab" and [edited.text[slice(*edited.span(*part))] for part in kept] == ["中", "人"]
