"""conlleval's rules, written out independently and word by word, as an oracle.

`chunk_ends` and `chunk_begins` are its two tables of pairs of tags; S and what follows E are as in its later ports.
"""


def chunk_ends(before, type_before, tag, type):
    """Whether a chunk ends between the word before and this one."""
    if before == "O":
        return False
    pairs = ["BB", "BO", "BS", "IB", "IO", "IS", "EB", "EE", "EI", "EO", "ES", "SB", "SE", "SI", "SO", "SS"]
    return before + tag in pairs or type_before != type


def chunk_begins(before, type_before, tag, type):
    """Whether a chunk begins at this word."""
    if tag == "O":
        return False
    pairs = ["BB", "IB", "OB", "EB", "SB", "BS", "IS", "OS", "ES", "SS", "EI", "OI", "SI", "EE", "OE", "SE"]
    return before + tag in pairs or type_before != type


def chunks(sentences):
    """Set of (first word, one past the last, type) of lists of labels, whose words are numbered consecutively."""
    found, number = set(), 0
    for labels in sentences:
        before, type_before, first = "O", "", None
        for label in [*labels, "O"]:
            tag, _, type = label.partition("-")
            if chunk_ends(before, type_before, tag, type):
                found.add((first, number, type_before))
            if chunk_begins(before, type_before, tag, type):
                first = number
            before, type_before, number = tag, type, number + 1
        number -= 1  # The O behind the sentence.
    return found


def scores(gold, predicted):
    """{type: (precision, recall, f1)}, and under None that of all types together."""
    true, guessed = chunks(gold), chunks(predicted)
    result = {}
    for type in {None} | {chunk[2] for chunk in true | guessed}:
        ours = {chunk for chunk in true if type in (None, chunk[2])}
        theirs = {chunk for chunk in guessed if type in (None, chunk[2])}
        correct = len(ours & theirs)
        precision = correct / len(theirs) if theirs else 0.0
        recall = correct / len(ours) if ours else 0.0
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        result[type] = precision, recall, f1
    return result


def accuracy(gold, predicted):
    """The share of words whose tag and type are both the same as written, in any scheme."""
    pairs = [pair for labels in zip(gold, predicted) for pair in zip(*labels)]
    return sum(label == guess for label, guess in pairs) / len(pairs)
