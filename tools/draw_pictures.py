"""The pictures of README.md and docs/, each from what a run printed, a model answered or a page's table says.

python run.py pretrain | tail -n 20 >demo.txt
python tools/draw_pictures.py terminal "python run.py pretrain" demo.txt
python run.py finetune --task ner --init hf:sentence-transformers/all-MiniLM-L6-v2 --data-dir conll2003 \\
  --output runs/ner --set training.steps=150 --set training.batch_size=32 --set optimizer.learning_rate=2e-4
python tools/draw_pictures.py entities runs/ner "Ada Lovelace lived in London."
python tools/draw_pictures.py pipeline
python tools/draw_pictures.py tables
chromium --headless --virtual-time-budget=20000 --window-size=1000,640 \\
  --screenshot=docs/pictures/tensorboard.png 'http://localhost:6006/#text'

attention.png is the heads.png of `python run.py study attention`, landscape.png the planes.png of `python run.py study
landscape` (docs/studies.md); tools/plot_losses.py drew demo.png.
"""

import html
import os
import re
import sys

import click

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)
PICTURES = os.path.join(ROOT, "docs", "pictures")

WIDTH = 800
INK, PAPER, MUTED, BLUE, EDGE = "#1f2937", "#ffffff", "#6b7280", "#2563eb", "#d1d5db"
ENTITIES = {"PER": "#fde68a", "LOC": "#bbf7d0", "ORG": "#bfdbfe", "MISC": "#e9d5ff"}
MONO = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
SANS = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
STAGES = [
    ("Raw text", "wiki/*", ["Paris is the", "capital of France.", "…"]),
    ("Pretrain", "run.py pretrain", ["Paris is the [MASK]", "of France.", "→ capital"]),
    ("Fine-tune", "run.py finetune", ["A warm and", "funny film.", "→ positive"]),
    ("SavedModel", "run.py export", ["tokenizer and", "network in one", "graph"]),
    ("Serving", "POST …:predict", ["strings in,", "answers out", "→ 0.98 positive"]),
]


@click.group()
def main():
    """Draw the pictures of the documents."""


@main.command()
@click.argument("command")
@click.argument("printed", type=click.File(encoding="utf-8"))
def terminal(command, printed):
    """What a command printed, line by line."""
    lines = [f"$ {command}", *printed.read().splitlines()]
    width, height, size = WIDTH / (max(map(len, lines)) + 4), 17, 12.0
    drawn = []
    for number, line in enumerate(lines):
        color = "#86efac" if line.lstrip().startswith("→") else "#f9fafb" if number == 0 else "#d1d5db"
        drawn.append(
            f'<text class="line" x="{2 * width:.1f}" y="{40 + number * height}" fill="{color}" xml:space="preserve" '
            f'style="animation-delay: {0.3 * number:.1f}s" textLength="{len(line) * width:.1f}" '
            f'lengthAdjust="spacingAndGlyphs">{html.escape(line)}</text>'
        )
    # Without animation, every line is there from the start.
    style = "@keyframes appear { from { opacity: 0 } } .line { animation: appear 0.1s backwards; white-space: pre }"
    dots = "".join(f'<circle cx="{20 + 16 * n}" cy="15" r="5" fill="#4b5563"/>' for n in range(3))
    frame = f'<rect width="100%" height="100%" rx="8" fill="#111827"/>{dots}'
    body = f'<style>{style}</style>{frame}<g font-family="{MONO}" font-size="{size}">{"".join(drawn)}</g>'
    write_svg("demo", 40 + len(lines) * height, body)


@main.command()
def pipeline():
    """From text to answers."""
    box, gap, top = 136, 25, 12
    drawn = []
    for number, (title, command, lines) in enumerate(STAGES):
        x = 10 + number * (box + gap)
        drawn.append(f'<rect x="{x}" y="{top}" width="{box}" height="126" rx="8" fill="#eff6ff" stroke="{BLUE}"/>')
        drawn.append(text(x + box / 2, top + 24, title, 15, INK, 'font-weight="600" text-anchor="middle"'))
        drawn.append(text(x + box / 2, top + 45, command, 12, BLUE, f'text-anchor="middle" font-family="{MONO}"'))
        for row, line in enumerate(lines):
            color = "#15803d" if line.startswith("→") else MUTED
            drawn.append(text(x + box / 2, top + 74 + 18 * row, line, 12.5, color, 'text-anchor="middle"'))
        if number:
            drawn.append(f'<path d="M{x - gap + 3} {top + 63}h{gap - 9}m-5 -5l6 5l-6 5" fill="none" stroke="{INK}"/>')
    write_svg("pipeline", 150, "".join(drawn))


@main.command()
@click.argument("model")
@click.argument("sentence")
def entities(model, sentence):
    """The entities that a tagger finds in a sentence."""
    import keras_bert

    answer = keras_bert.serving_function(keras_bert.load(model))([sentence])
    count = answer["num_words"][0]
    labels = [label.decode() for label in answer["labels"][0][:count]]
    runs = []  # [label, start, end] of words and of entities.
    for label, start, end in zip(labels, answer["starts"][0], answer["ends"][0]):
        if label.startswith("I-") and runs and runs[-1][0] == label[2:]:
            runs[-1][2] = end
        else:
            runs.append([label[2:], start, end])
    size, width, height = 15, 9.1, 40
    x, y, last, drawn = 16.0, 34, 0, []
    for label, start, end in runs:
        shown = sentence[start:end]
        needed = width * len(shown) + (14 + 7 * len(label) if label else 0)
        x += width * (start - last)
        if x + needed > WIDTH - 16:
            x, y = 16.0, y + height
        if label:
            color = ENTITIES.get(label, EDGE)
            drawn.append(
                f'<rect x="{x - 5:.1f}" y="{y - 19}" width="{needed + 6:.1f}" height="27" rx="5" fill="{color}"/>'
            )
            drawn.append(text(x + width * len(shown) + 8, y, label, 10.5, MUTED, f'font-family="{SANS}"'))
        fixed = f'font-family="{MONO}" textLength="{width * len(shown):.1f}" lengthAdjust="spacingAndGlyphs"'
        drawn.append(text(x, y, shown, size, INK, fixed))
        x, last = x + needed, end
    write_svg("entities", y + 24, "".join(drawn))


@main.command()
def tables():
    """What the pages' tables say, as bars."""
    from keras_bert.core.drawing import ACCENT, PAGE, PALE, new_figure, png, set_logarithmic, tidy
    from keras_bert.tasks.finetuning.pictures import scores_picture

    speeds = [
        (row[0], *found) for row in table("docs/performance.md", "| | times as fast as") for found in times(row[1])
    ]
    figure = new_figure(PAGE, 0.3 * len(speeds) + 0.5)
    axes = figure.subplots()
    colors = [ACCENT if is_main else PALE for _, is_main, *_ in speeds]
    drawn = axes.barh(range(len(speeds)), [factor for _, _, factor, _ in speeds], 0.7, color=colors)
    axes.bar_label(drawn, [f"{factor:g}× {of}" for _, _, factor, of in speeds], padding=4)
    axes.set_yticks(range(len(speeds)), [name if is_main else "" for name, is_main, *_ in speeds])
    axes.axvline(1, color=INK, linewidth=0.8, linestyle=":")
    axes.set(xlim=(0, 24), xticks=[], title="times as fast as")
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    tidy(axes, "x")
    axes.spines["bottom"].set_visible(False)
    write("speeds", png(figure))

    seeds = table("docs/learning.md", "| seed | CPU seconds |")
    found = {"most frequent label": "label", "from scratch": "scratch", "after five minutes": "[123]"}
    f1 = {
        name: [score for row in seeds if re.search(f"{part}$", row[0]) for score in numbers(row[-1])]
        for name, part in found.items()
    }
    write("five_minutes", scores_picture({"CoNLL-2003, entity F1": f1}))

    header, *rows = table("docs/studies.md", "| | nats below the unigram | STS-B", with_header=True)
    panels = {
        f"published: {column.strip('*')}" if column.startswith("*") else column: {
            row[0]: numbers(row[place]) or [None] for row in rows
        }
        for place, column in enumerate(header)
        if place > 1
    }
    write("ablation", scores_picture(panels))

    header, *rows = table("docs/studies.md", "| | CCONJ | DET | ADP | PRON | ADV | ADJ | VERB", 1, with_header=True)
    by_row = {row[0]: [numbers(cell)[0] for cell in row[1:]] for row in rows}
    figure = new_figure(PAGE, 3.6)
    left, right = figure.subplots(1, 2, sharey=True)
    places = range(len(header) - 1)
    left.plot(by_row["BERT-mini, half reconstructed"], places, "o", color=ACCENT, label="BERT-mini")
    left.plot(by_row["ALBERT-base, half reconstructed"], places, "s", color=PALE, label="ALBERT-base")
    left.set(title="half of the words reconstructed", xlabel="step", xlim=(200, 30000))
    left.set_yticks(places, header[1:])
    left.invert_yaxis()
    set_logarithmic(left)
    right.barh(places, by_row["reconstructed at the end, per cent"], 0.8, color=PALE, label="reconstructed")
    right.barh(places, by_row["predicted at the end, per cent"], 0.4, color=ACCENT, label="predicted")
    right.set(title="at the end", xlabel="per cent of the words", xlim=(0, 100))
    for axes in (left, right):
        tidy(axes, "x")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, frameon=False)
    write("parts_of_speech", png(figure))

    steps = [[numbers(cell)[0] for cell in row[:1] + row[2:]] for row in table("docs/learning.md", "| steps | length")]
    figure = new_figure(PAGE, 3.4)
    axes = figure.subplots()
    done, loss, _, at_mask, unigram = zip(*steps)
    axes.plot(done, loss, "o-", color=ACCENT, label="masked LM loss")
    axes.plot(done, at_mask, "s-", color=PALE, label="at [MASK]")
    axes.plot(done, unigram, ":", color=INK, label="unigram at [MASK]")
    axes.set(xlabel="step", ylabel="nats, held out", xlim=(0, None), ylim=(0, None))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    tidy(axes)
    axes.legend(frameon=False, loc="lower left")
    write("wiki_mini", png(figure))

    rows = table("docs/studies.md", "| step | nats below")
    panels = {"parts of speech, probed": 4, "entities, probed": 5, "CoNLL-2003 F1, fine-tuned": 6}
    figure = new_figure(PAGE, 2.8)
    for axes, (title, place) in zip(figure.subplots(1, 3), panels.items()):
        axes.plot(*zip(*[(numbers(row[0])[0], numbers(row[place])[0]) for row in rows]), "o-", color=ACCENT)
        axes.set(xlabel="step")
        axes.set_title(title, fontsize="medium")
        set_logarithmic(axes)
        axes.tick_params(axis="y", labelsize="small")
        tidy(axes)
    figure.axes[0].set_ylabel("per cent")
    write("probes", png(figure))


def table(page, beginning, number=0, with_header=False):
    """The rows, lists of cells, of a page's table whose header begins with `beginning`; `number` counts such tables."""
    with open(os.path.join(ROOT, page), encoding="utf-8") as stream:
        lines = stream.read().splitlines()
    at = [place for place, line in enumerate(lines) if line.startswith(beginning)][number]
    end = next(place for place in range(at, len(lines)) if not lines[place].startswith("|"))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[at:end]]
    return [rows[0], *rows[2:]] if with_header else rows[2:]


def times(cell):
    """(whether it is the row's main figure, how many times as fast, as what) for each "N× …" in a cell."""
    found = re.findall(r"(\**)([\d.]+)×\**\s+([^;]+)", cell)
    return [(bool(bold), float(factor), of.strip()) for bold, factor, of in found]


def numbers(cell):
    return [float(found.replace(",", "")) for found in re.findall(r"\d[\d,.]*", cell)]


def text(x, y, content, size, color, more=""):
    """An element of SVG."""
    return f'<text x="{x:.1f}" y="{y}" font-size="{size}" fill="{color}" {more}>{html.escape(content)}</text>'


def write_svg(name, height, body):
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" font-family="{SANS}">'
    )
    ground = f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>'
    write(name, f"{head}{ground}{body}</svg>\n".encode(), "svg")


def write(name, content, ending="png"):
    path = os.path.join(PICTURES, f"{name}.{ending}")
    with open(path, "wb") as stream:
        stream.write(content)
    click.echo(f"Written: {path}, {len(content):,} bytes")


if __name__ == "__main__":
    main()
