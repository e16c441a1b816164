"""Time of training on SQuAD's questions, windows included, beside transformers' run_qa.

    pip install -r requirements/bench.txt
    python tools/benchmark_squad.py --init MODEL --train train-v1.1.json --questions 192 --rounds 5

The contestants train on the same questions, drawn from all of the file, in batches of 12 windows of 384 tokens, stride
128, float32, with AdamW, clipping and linear decay. A turn begins with the questions and passages as text and ends when
each window has been trained on once:

    ours       windows, batches by length, and the step compiled by XLA, as in configs/finetune/squad.yaml
    uncompiled the same without XLA
    run_qa     the fast tokenizer's windows and their answers' places as in transformers' run_qa.py, every window padded
               to 384, and its Trainer
    dynamic    the same, each batch padded to its longest window

Each lives in a process of its own and sleeps while it is not its turn. They take turns, after one that is not counted
(in which ours compiles), and each round is compared within itself. `--clock cpu --threads 1` counts processor seconds,
for machines that are never idle.
"""

import os
import sys

import click
from contestant import run
from epochs import compare, options, our_training, serve_epochs, start_tensorflow, start_torch, their_training

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BATCH, MAX_LENGTH, STRIDE, RATE = 12, 384, 128, 3e-5


def questions_of(train, count):
    """`AnsweredQuestions`: `count` of a file's at equal distances, with only the passages that they are about."""
    import dataclasses

    import numpy as np

    from keras_bert.config.finetuning import TaskDataConfig
    from keras_bert.tasks.question_answering.data import load_questions
    from keras_bert.tasks.question_answering.task import own_questions

    answered = load_questions(own_questions(TaskDataConfig(train=train, dev=train), unanswerable=False), "train")
    chosen = np.linspace(0, len(answered) - 1, min(count, len(answered))).astype(int)
    passages = sorted({answered.questions[index].passage for index in chosen})
    places = {passage: place for place, passage in enumerate(passages)}
    questions = [
        answered.questions[index]._replace(passage=places[answered.questions[index].passage]) for index in chosen
    ]
    return dataclasses.replace(
        answered,
        passages=[answered.passages[passage] for passage in passages],
        questions=questions,
        spans=answered.spans[chosen],
    )


def build_ours(jit_compile):
    def build(init, train, questions, threads, scratch):
        start_tensorflow(threads)
        from keras_bert.checkpoints.model_folder import open_model_folder
        from keras_bert.inference.loading import model_tokenizer
        from keras_bert.tasks.question_answering.network import BertForQuestionAnswering, SpanObjective
        from keras_bert.tasks.question_answering.windows import question_windows

        answered = questions_of(train, questions)
        folder = open_model_folder(init)
        tokenizer = model_tokenizer(folder)
        model = BertForQuestionAnswering(folder.config)
        folder.load_into(model)
        pad_id = tokenizer.vocabulary.pad_id
        train_on = our_training(model, SpanObjective(), pad_id, BATCH, RATE, jit_compile)

        def epoch():
            rows = question_windows(answered, tokenizer, MAX_LENGTH, STRIDE).rows
            return len(rows), train_on(rows)

        return epoch

    return build


def build_theirs(padding):
    def build(init, train, questions, threads, scratch):
        start_torch(threads)
        import transformers

        answered = questions_of(train, questions)
        texts = [question.text for question in answered.questions]
        passages = [answered.passages[question.passage] for question in answered.questions]
        tokenizer = transformers.AutoTokenizer.from_pretrained(init)
        model = transformers.AutoModelForQuestionAnswering.from_pretrained(init)
        collator = transformers.default_data_collator if padding else transformers.DataCollatorWithPadding(tokenizer)
        train_on = their_training(model, collator, BATCH, RATE, scratch)

        def epoch():
            rows = windows(tokenizer, texts, passages, answered.spans, padding)
            return len(rows), train_on(rows)

        return epoch

    return build


def windows(tokenizer, questions, passages, spans, padding, max_length=MAX_LENGTH):
    """Rows as run_qa.py makes them: the fast tokenizer's, with the places of the answers' first and last pieces."""
    encoded = tokenizer(
        questions,
        passages,
        truncation="only_second",
        max_length=max_length,
        stride=STRIDE,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
        padding="max_length" if padding else False,
    )
    rows = []
    for index, question in enumerate(encoded["overflow_to_sample_mapping"]):
        offsets, sequence = encoded["offset_mapping"][index], encoded.sequence_ids(index)
        start, end = spans[question]
        first = sequence.index(1)
        last = len(sequence) - 1 - sequence[::-1].index(1)
        places = 0, 0
        if offsets[first][0] <= start and offsets[last][1] >= end:
            while first < len(offsets) and offsets[first][0] <= start:
                first += 1
            while offsets[last][1] >= end:
                last -= 1
            places = first - 1, last + 1
        row = {name: encoded[name][index] for name in ("input_ids", "attention_mask", "token_type_ids")}
        rows.append({**row, "start_positions": places[0], "end_positions": places[1]})
    return rows


BUILDERS = {
    "ours": build_ours(jit_compile=True),
    "uncompiled": build_ours(jit_compile=False),
    "run_qa": build_theirs(True),
    "dynamic": build_theirs(False),
}


@click.command()
@click.option("--init", required=True, metavar="MODEL", help="A Hugging Face folder.")
@click.option("--train", required=True, metavar="FILE", help="SQuAD's training file.")
@click.option("--questions", default=192, show_default=True, help="Questions of a turn.")
@options(BUILDERS, rounds=5)
def main(init, train, questions, **turns):
    """Train on SQuAD by turns with run_qa, and compare."""
    compare([init, train, questions], **turns)


if __name__ == "__main__":
    run(main, serve_epochs(BUILDERS))
