"""Plain references for the filters of web text, and random pages to compare on."""

import re
from collections import Counter

from keras_bert.text.sentences import split_sentences

MARKS = tuple('.?!"”»。！？｡．」』')
NOTICES = "terms of use|privacy policy|cookie policy|uses cookies|use of cookies|use cookies"
IDEOGRAPH = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")


def words_of(line):
    words = []
    for chunk in line.split():
        if not IDEOGRAPH.search(chunk):
            words.append(chunk)
            continue
        words += IDEOGRAPH.findall(chunk)
        words += [part for part in IDEOGRAPH.split(chunk) if re.search(r"\w", part)]
    return words


def filter_page(text, config, bad_words=()):
    """(text or None, the filter that dropped it, lines removed by filter)."""
    removed, kept, found = Counter(), [], []
    looks_at_lines = any(
        getattr(config, name)
        for name in (
            "terminal_punctuation min_words max_word_length citation_markers javascript policy_notices"
        ).split()
    )
    for line in text.splitlines() if looks_at_lines else [text]:
        line = line.strip()
        if not line:
            continue
        if config.max_word_length and any(len(word) > config.max_word_length for word in words_of(line)):
            removed["max_word_length"] += 1
            continue
        if config.citation_markers:
            count = len(re.findall(r"\[\d*\]|\[edit\]|\[citation needed\]", line))
            removed["citation_markers"] += count
            line = re.sub(r"\[\d*\]|\[edit\]|\[citation needed\]", "", line).strip()
        if config.terminal_punctuation and not (line[-1:] in MARKS and line[-1:] and line[-3:] != "..."):
            removed["terminal_punctuation"] += 1
            continue
        if config.min_words and len(words_of(line)) < config.min_words:
            removed["min_words"] += 1
            continue
        if config.lorem_ipsum and re.search("lorem ipsum", line, re.I):
            found.append("lorem_ipsum")
        if config.javascript and re.search("javascript", line, re.I):
            removed["javascript"] += 1
            continue
        if config.curly_braces and "{" in line:
            found.append("curly_braces")
        if config.policy_notices and re.search(NOTICES, line, re.I):
            removed["policy_notices"] += 1
            continue
        if line:
            kept.append(line)
    text = "\n\n".join(kept) if looks_at_lines else text
    if bad_words and re.search(rf"(?:\W|^)({'|'.join(map(re.escape, bad_words))})(?:\W|$)", text.lower()):
        found.append("bad_words")
    if len(split_sentences(text)) < config.min_sentences:
        found.append("min_sentences")
    if not text:
        found.append("no line left")
    order = ["lorem_ipsum", "curly_braces", "bad_words", "min_sentences", "no line left"]
    dropped_by = min(found, key=order.index) if found else None
    return (None if dropped_by else text), dropped_by, +removed


WORDS = (
    "the cat sat on a mat and saw two dogs there JavaScript java lorem ipsum Ipsum cookies privacy policy Terms of use "
    "uses naked ape na\u00efve caf\u00e9 3rd x_y don't re-entry [1] [] [edit] [2a] { } ... it"
).split()
ENDS = [".", ".", ".", "?", "!", '"', ".\u201d", ".[12]", "...", "\u2026", "", ",", ":", "; "]


def random_line(random):
    if random.random() < 0.05:
        return "".join(random.choice(["  ", "\t"]) for _ in range(random.randrange(3)))
    words = ["The", *(random.choice(WORDS) for _ in range(random.randrange(12)))]
    # Most pages have nothing that drops a page.
    words = [word for word in words if word not in "{}" or random.random() < 0.1]
    if random.random() < 0.03:
        words.append("Lorem Ipsum")
    if random.random() < 0.03:
        words.append("w" * 1001)
    return " ".join(words) + random.choice(ENDS)


def random_page(random):
    return random.choice(["\n", "\n\n", "\r\n"]).join(random_line(random) for _ in range(random.randrange(1, 9)))


def without_repeated_spans(documents, length):
    """`documents`: lists of sentences. The sentences of each without the spans seen before in it or an earlier one.

    A span that overlaps one of these stays if it is the first like it.
    """
    seen, results = {}, []
    for document, sentences in enumerate(documents):
        removed, stay = set(), set()
        for first in range(len(sentences) - length + 1):
            span = tuple(" ".join(sentence.lower().split()) for sentence in sentences[first : first + length])
            seen_in, seen_at = seen.setdefault(span, (document, first))
            if (seen_in, seen_at) != (document, first):
                removed.update(range(first, first + length))
                if seen_in == document and first < seen_at + length:
                    stay.update(range(seen_at, seen_at + length))
        results.append([sentence for number, sentence in enumerate(sentences) if number not in removed - stay])
    return results
