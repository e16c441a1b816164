"""GLUE's folders in small: their names, headers and oddities, with a few rows of our own."""

_PARSES = ["1", "1n", "slate", "( a )", "( b )", "(ROOT a)", "(ROOT b)"]
_PARSE_COLUMNS = ["promptID", "pairID", "genre", "sentence1_binary_parse", "sentence2_binary_parse"]
_PARSE_COLUMNS += ["sentence1_parse", "sentence2_parse"]
_STSB_COLUMNS = ["genre", "filename", "year", "old_index", "source1", "source2"]
_STSB_CELLS = ["main-captions", "MSRvid", "2012test", "0000", "none", "none"]


def write_tsv(path, rows, bom=False, final_newline=True):
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join("\t".join(map(str, row)) for row in rows) + ("\n" if final_newline else "")
    path.write_bytes((b"\xef\xbb\xbf" if bom else b"") + text.encode("utf-8"))
    return path


def write_glue(folder):
    """Writes all of GLUE below `folder` (a `pathlib.Path`), diagnostic included; returns the folder."""
    cola = [["gj04", 1, "", "A good one ."], ["w_80", 0, "*", "One a good ."], ["ad03", 1, "", 'He said " no .']]
    write_tsv(folder / "CoLA/train.tsv", cola)
    write_tsv(folder / "CoLA/dev.tsv", cola[:2], final_newline=False)
    write_tsv(folder / "CoLA/test.tsv", [["index", "sentence"], [0, "First ."], [1, "Second ."]])

    sst2 = [["sentence", "label"], ["a charming journey ", 1], ["bleak and desperate ", 0], ["so dull ", 0]]
    _three(folder / "SST-2", sst2, [["index", "sentence"], [0, "an uneasy mishmash "], [1, "fine "]])

    header = ["Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"]
    mrpc = [header, [1, 11, 12, '" We agree , he said', "We agree ."], [0, 13, 14, "It rose .", '" It fell ."']]
    mrpc_test = [["index", *header[1:]], [0, 15, 16, "One .", "Two ."]]
    _three(folder / "MRPC", mrpc, mrpc_test, bom=True)

    columns = ["index", *_STSB_COLUMNS, "sentence1", "sentence2"]
    stsb = [[*columns, "score"], [0, *_STSB_CELLS, "A plane .", "An air plane .", "5.000"]]
    stsb += [[1, *_STSB_CELLS, "A man .", "A flute .", "3.8"]]
    _three(folder / "STS-B", stsb, [columns, [0, *_STSB_CELLS, "A girl .", "A boy ."]])

    qqp = [["id", "qid1", "qid2", "question1", "question2", "is_duplicate"]]
    qqp += [[133273, 1, 2, 'What is "it"?', "What is it?", 1], [402555, 3, 4, "Who are", ""]]
    qqp += [["you?", "Who?", 0], [360472, 5, 6, "When?", "Where?", 0]]
    _three(folder / "QQP", qqp, [["id", "question1", "question2"], [0, "Would?", "Could?"]])

    header = ["index", *_PARSE_COLUMNS, "sentence1", "sentence2"]
    mnli = [["He left .", "He went .", "entailment"], ["He left .", "He ate .", "neutral"]]
    mnli += [["He left .", "He stayed .", "contradiction"]]
    train = [[*header, "label1", "gold_label"]] + [[i, *_PARSES, *row, row[-1]] for i, row in enumerate(mnli)]
    write_tsv(folder / "MNLI/train.tsv", train)
    for name, texts in (("matched", mnli), ("mismatched", mnli[::-1])):
        rows = [[*header, *(f"label{n}" for n in range(1, 6)), "gold_label"]]
        rows += [[i, *_PARSES, *row[:2], *["neutral"] * 5, row[2]] for i, row in enumerate(texts)]
        write_tsv(folder / f"MNLI/dev_{name}.tsv", rows)
        rows = [header] + [[i, *_PARSES, *row[:2]] for i, row in enumerate(texts)]
        write_tsv(folder / f"MNLI/test_{name}.tsv", rows)

    for name, columns, words in (
        ("QNLI", ("question", "sentence"), ("entailment", "not_entailment")),
        ("RTE", ("sentence1", "sentence2"), ("entailment", "not_entailment")),
        ("WNLI", ("sentence1", "sentence2"), (1, 0)),
    ):
        header = ["index", *columns]
        rows = [[0, "Is it so ?", "It is ."], [1, '"Yes', 'No"'], [2, "When ?", "Then ."]]
        labels = ["label", words[1], words[0], words[1]]
        _three(folder / name, [row + [label] for row, label in zip([header, *rows], labels)], [header, *rows])

    rows = [["index", "sentence1", "sentence2"], [0, "The cat sat .", "The cat did not sit ."], [1, "A .", "B ."]]
    write_tsv(folder / "diagnostic/diagnostic.tsv", rows)
    return folder


def _three(folder, labelled, test, **options):
    write_tsv(folder / "train.tsv", labelled, **options)
    write_tsv(folder / "dev.tsv", labelled, **options)
    write_tsv(folder / "test.tsv", test)
