"""The table of figures on the terminal."""

from said import listen

from keras_bert.training.metrics import Column, FiguresTable
from keras_bert.training.run_context import Progress

COLUMNS = (Column("masked LM", "mlm_accuracy", "{:.1%}".format), Column("next sent.", "nsp_accuracy", "{:.1%}".format))
TRAINING = {
    "loss": 7.12345,
    "mlm_loss": 6.4,
    "mlm_accuracy": 0.0714,
    "learning_rate": 2e-3,
    "grad_norm": 1.0,
    "examples_per_second": 2101.4,
    "tokens_per_second": 1e5,
}
VALIDATION = {"eval_loss": 6.9, "eval_mlm_accuracy": 0.1, "eval_mask_token_loss": 6.1}


def test_rows_stand_under_their_headings():
    table = FiguresTable(COLUMNS)
    header, training = table.lines(1_000, 0.25, 150.0, TRAINING)
    (validation,) = table.lines(1_000, 0.25, None, VALIDATION)
    assert training.split() == ["1,000", "25%", "02:30", "7.1235", "7.1%", "2.00e-03", "2,101"]
    assert validation.split() == ["1,000", "25%", "6.9000", "10.0%", "validation"]
    for line in (training, validation):
        assert len(line) == len(header) <= 80
        for heading, value in (("masked LM", "%"), ("done", "25%")):
            end = header.index(heading) + len(heading)
            assert line[:end].endswith(value)


def test_the_header_comes_back_now_and_then():
    table = FiguresTable(COLUMNS, has_time_left=False)
    headers = [len(list(table.lines(step, 0.1, None, TRAINING))) - 1 for step in range(45)]
    assert [step for step, count in enumerate(headers) if count] == [0, 20, 40]


def test_progress_tells_the_time_left_of_this_start_alone(monkeypatch):
    """Half of the run was done before: 10 seconds for a quarter of it leave 10 more."""
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    progress, said = Progress(columns=COLUMNS), listen()
    now[0] = 60.0  # Compiling is no training.
    progress.start(0.5)
    now[0] = 70.0
    progress.advance(75, 0.75)
    progress.figures(75, TRAINING)
    progress.close()
    header, row = said
    assert row.split()[:3] == ["75", "75%", "00:10"] and header.split()[:3] == ["step", "done", "left"]
