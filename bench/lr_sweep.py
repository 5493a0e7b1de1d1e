#!/usr/bin/env python3
"""Accuracy of LeNet against the global batch, with the rate as it is and scaled by the batch, each without and with a warm-up:
the same samples in every run. Draws the figures and writes them beside the picture, as OUT.json. Those of docs/choosing.md are
kept in bench/figures/lr-sweep.json.
Usage: lr_sweep.py OUT.svg [MNIST] [EPOCHS]   MNIST: a folder of the four files (default: digits drawn on the spot)
       lr_sweep.py OUT.svg FIGURES.json       draws figures that were kept"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from plot import Panel, document, legend, linear, text
from processes import LOCKSTEP, Failed

BATCHES = (64, 128, 256, 512, 1024, 2048)
BASE, LR = 64, 0.02
SEEDS = (1, 2, 3)
FORMS = {
    "as it is": ["--warmup", "0"],
    "as it is, warm-up": ["--warmup", "1", "--schedule-unit", "epochs"],
    "scaled": ["--warmup", "0", "--scale-lr", f"linear={BASE}"],
    "scaled, warm-up": ["--warmup", "1", "--schedule-unit", "epochs", "--scale-lr", f"linear={BASE}"],
}
COLOURS = ("#888888", "#5a9a62", "#d98032", "#4878a8")
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 860, 420, 72, 44, 190, 56


def accuracy(batch, flags, seed, data, epochs):
    with tempfile.TemporaryDirectory(prefix="lockstep-sweep-") as folder:
        out = pathlib.Path(folder) / "run"
        command = [LOCKSTEP, "train", "mnist", "--global-batch-size", str(batch), "--lr", str(LR), "--epochs", epochs]
        command += ["--seed", str(seed), "--eval-every", f"{epochs}epochs", "--quiet", "--out", out, *flags, *data]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 0:
            return json.loads((out / "final.json").read_text())["metrics"]["accuracy"]
        if "NaN" in done.stderr or "not finite" in done.stderr:
            return 0.1  # it diverged
        raise Failed(done.stderr[-2000:])


def draw(rows, what):
    panel = Panel(LEFT, TOP, WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM, linear(0, len(BATCHES) - 1), linear(0, 1))
    batches = [(i, str(batch)) for i, batch in enumerate(BATCHES)]
    shares = [(tenth / 10, f"{10 * tenth}") for tenth in range(0, 11, 2)]
    panel.axes("global batch (samples a step), logarithmic", batches, "accuracy on the test digits (%)", shares)
    for number, (form, colour) in enumerate(zip(FORMS, COLOURS)):
        aside = 0.04 * (number - 1.5)  # so that equal ones are seen beside each other
        own = [row for row in rows if row["form"] == form]
        for row in own:
            panel.dots([(BATCHES.index(row["batch"]) + aside, value) for value in row["of_seeds"]], colour, 2.5)
        medians = [(BATCHES.index(row["batch"]), row["accuracy"]) for row in own]
        panel.curve(medians, colour, 2)
        panel.dots(medians, colour, 4.5)
    at = WIDTH - RIGHT + 18
    parts = [text(LEFT, 22, what, more='font-size="14"'), *panel.parts]
    parts.append(text(at, TOP + 8, "learning rate", more='font-weight="bold"'))
    parts += legend(at, TOP + 28, zip(FORMS, COLOURS), dot=4.5)
    notes = (f"as it is: {LR};", f"scaled: {LR} × samples / {BASE};", "warm-up: in the first epoch.")
    marks = (f"Line: median of {len(SEEDS)} seeds.", "Small dots: each seed.", "10 %: guessing.")
    for number, note in enumerate((*notes, "", *marks)):
        parts.append(text(at, TOP + 122 + 16 * number, note, more='font-size="10"'))
    return document(WIDTH, HEIGHT, parts)


def measure(data, epochs):
    rows = []
    for form, flags in FORMS.items():
        for batch in BATCHES:
            values = [accuracy(batch, flags, seed, data, epochs) for seed in SEEDS]
            rows.append({"form": form, "batch": batch, "accuracy": statistics.median(values), "of_seeds": values})
            print(json.dumps(rows[-1]), flush=True)
    return rows


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    picture = pathlib.Path(sys.argv[1])
    if len(sys.argv) == 3 and sys.argv[2].endswith(".json"):
        figures = json.loads(pathlib.Path(sys.argv[2]).read_text())
    else:
        data = ["--data", sys.argv[2]] if len(sys.argv) > 2 else []
        epochs = sys.argv[3] if len(sys.argv) > 3 else "4"
        figures = {"digits": "MNIST" if data else "drawn digits", "epochs": epochs, "results": measure(data, epochs)}
        picture.with_suffix(".json").write_text(json.dumps(figures) + "\n")
    picture.write_text(draw(figures["results"], f"LeNet on {figures['digits']} after {figures['epochs']} epochs"))


main()
