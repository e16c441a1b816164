"""Time of training on SQuAD's questions, windows included, beside transformers' run_qa.

    pip install -r requirements-bench.txt
    python tools/benchmark_squad.py --init MODEL --train train-v1.1.json --questions 192 --rounds 5

The contestants train on the same questions, drawn from all of the file, in batches of 12 windows of 384 tokens, stride
128, float32, with AdamW, clipping and linear decay. A turn begins with the questions and passages as text and ends when
each window has been trained on once:

    ours       windows, batches by length, and the step compiled by XLA, as configs/finetune/squad.yaml
    run_qa     the fast tokenizer's windows and their answers' places as in transformers' run_qa.py, every window padded
               to 384, and its Trainer
    dynamic    the same, each batch padded to its longest window

Each lives in a process of its own and sleeps while it is not its turn. They take turns, after one that is not counted
(which compiles, here), and each round is compared within itself. `--clock cpu --threads 1` counts processor seconds, for
machines that are never idle.
"""

import os
import statistics
import sys
import tempfile

import click
from contestant import CLOCKS, Contestant, run

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BATCH, MAX_LENGTH, STRIDE, RATE, SEED = 12, 384, 128, 3e-5, 1
NAMES = ("ours", "run_qa", "dynamic")


def questions_of(train, count):
    """`AnsweredQuestions`, every so many-th of a file's, and no passage that none of them is about."""
    import dataclasses

    import numpy as np

    from keras_bert.tasks.question_answering.answer_spans import load_questions
    from keras_bert.tasks.question_answering.squad import qa_task

    answered = load_questions(qa_task(train=train, dev=train, unanswerable=False), "train")
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


def build_ours(init, train, questions, threads):
    """Function () that makes the windows and trains on them; gives their number and the loss."""
    from keras_bert.quiet import import_tensorflow

    import_tensorflow()
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    from keras_bert.checkpoints.model_folder import open_model_folder
    from keras_bert.config.finetuning import FinetuneOptimizerConfig
    from keras_bert.data.length_batches import LengthBatches, choose_widths
    from keras_bert.models.loading import model_tokenizer
    from keras_bert.models.span_extraction import BertForQuestionAnswering
    from keras_bert.models.span_objective import SpanObjective
    from keras_bert.tasks.question_answering.windows import question_windows
    from keras_bert.training.optimizer import make_optimizer
    from keras_bert.training.step import Step

    answered = questions_of(train, questions)
    folder = open_model_folder(init)
    tokenizer = model_tokenizer(folder)
    model = BertForQuestionAnswering(folder.config)
    folder.load_into(model)
    optimizer = make_optimizer(FinetuneOptimizerConfig(learning_rate=RATE), total_steps=10**6)
    optimizer.build(model.trainable_variables)
    step = Step(tf.distribute.get_strategy(), model, SpanObjective(), optimizer, jit_compile=True)
    epochs, steps = iter(range(10**6)), iter(range(10**6))

    def turn():
        rows = question_windows(answered, tokenizer, MAX_LENGTH, STRIDE).rows
        reader = LengthBatches(rows, BATCH, SEED, tokenizer.vocabulary.pad_id, choose_widths(rows.lengths))
        loss = 0.0
        for batch in reader.epoch(next(epochs)):
            loss += float(step.train(batch, tf.constant(next(steps), tf.int64))["sums"]["loss"]["loss"])
        return len(rows), loss / len(rows)

    return turn


def build_theirs(padding):
    def build(init, train, questions, threads):
        import torch
        import transformers

        torch.set_num_threads(threads)
        transformers.logging.set_verbosity_error()
        answered = questions_of(train, questions)
        texts = [question.text for question in answered.questions]
        passages = [answered.passages[question.passage] for question in answered.questions]
        tokenizer = transformers.AutoTokenizer.from_pretrained(init)
        model = transformers.AutoModelForQuestionAnswering.from_pretrained(init)
        collator = transformers.default_data_collator if padding else transformers.DataCollatorWithPadding(tokenizer)
        scratch = tempfile.mkdtemp()

        def turn():
            rows = windows(tokenizer, texts, passages, answered.spans, padding)
            arguments = transformers.TrainingArguments(
                output_dir=scratch,
                per_device_train_batch_size=BATCH,
                num_train_epochs=1,
                learning_rate=RATE,
                save_strategy="no",
                logging_strategy="no",
                report_to=[],
                use_cpu=True,
                disable_tqdm=True,
                seed=SEED,
            )
            trainer = transformers.Trainer(model, arguments, data_collator=collator, train_dataset=rows)
            return len(rows), trainer.train().training_loss

        return turn

    return build


def windows(tokenizer, questions, passages, spans, padding):
    """Rows as run_qa.py makes them: the fast tokenizer's, with the places of the answers' first and last piece."""
    encoded = tokenizer(
        questions,
        passages,
        truncation="only_second",
        max_length=MAX_LENGTH,
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


BUILDERS = {"ours": build_ours, "run_qa": build_theirs(True), "dynamic": build_theirs(False)}


def serve(name, settings):
    """A contestant: each turn tells its seconds, how many windows there were, and the loss."""
    *given, clock = settings
    train_once = BUILDERS[name](*given)

    def turn(_):
        began = CLOCKS[clock]()
        rows, loss = train_once()
        return {"seconds": CLOCKS[clock]() - began, "windows": rows, "loss": loss}

    return turn


@click.command()
@click.option("--init", required=True, metavar="MODEL", help="A Hugging Face folder.")
@click.option("--train", required=True, metavar="FILE", help="SQuAD's training file.")
@click.option("--questions", default=192, show_default=True, help="Questions of a turn.")
@click.option("--rounds", default=5, show_default=True)
@click.option("--contestants", default=",".join(NAMES), show_default=True)
@click.option("--threads", default=os.cpu_count(), show_default=True)
@click.option("--clock", type=click.Choice(list(CLOCKS)), default="wall", show_default=True)
def main(init, train, questions, rounds, contestants, threads, clock):
    """Train on SQuAD by turns with run_qa, and compare."""
    names = contestants.split(",")
    running = {name: Contestant(name, [init, train, questions, threads, clock], threads) for name in names}
    first = {name: one.ask() for name, one in running.items()}
    found = []
    for number in range(1, rounds + 1):
        found.append({name: one.ask()["seconds"] for name, one in running.items()})
        click.echo(f"round {number}: " + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in found[-1].items()))
    for name, one in running.items():
        one.close()
        line = (
            f"{name:10} {statistics.median(turn[name] for turn in found):8.1f} s for {first[name]['windows']:,} windows "
            f"of {questions:,} questions, first {first[name]['seconds']:.1f} s"
        )
        if "ours" in running and name != "ours":
            ratios = sorted(turn[name] / turn["ours"] for turn in found)
            line += f"; ours is {statistics.median(ratios):.2f} times as fast [{ratios[0]:.2f}, {ratios[-1]:.2f}]"
        click.echo(line)


if __name__ == "__main__":
    run(main, serve)
