"""Generated English-like text, enough to learn something from in a few steps."""

import random

NOUNS = "cat dog bird fish horse mouse child teacher farmer sailor".split()
VERBS = "sees hears likes follows calls finds".split()
PLACES = "garden river house street forest market".split()


def documents(count, seed=0):
    rng = random.Random(seed)
    for _ in range(count):
        sentences = [
            f"The {rng.choice(NOUNS)} {rng.choice(VERBS)} the {rng.choice(NOUNS)} in the {rng.choice(PLACES)}."
            for _ in range(rng.randint(4, 12))
        ]
        yield " ".join(sentences)


def write_corpus(path, count=200, seed=0):
    path.write_text("\n\n".join(documents(count, seed)), encoding="utf-8")
    return str(path)
