#!/usr/bin/env python3
"""Accuracy of LeNet against the global batch, with the rate as it is, scaled by the batch, and scaled with a warm-up: the
same samples in every run. Writes the figures as JSON and draws them.
Usage: lr_sweep.py OUT.svg [MNIST] [EPOCHS]   MNIST: a folder of the four files (default: digits drawn on the spot)"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from processes import LOCKSTEP, Failed

BATCHES = (64, 128, 256, 512, 1024, 2048)
BASE, LR = 64, 0.02
SEEDS = (1, 2, 3)
FORMS = {
    "as it is": ["--warmup", "0"],
    "scaled": ["--warmup", "0", "--scale-lr", f"linear={BASE}"],
    "scaled, warm-up": ["--warmup", "1", "--schedule-unit", "epochs", "--scale-lr", f"linear={BASE}"],
}
COLOURS = ("#888888", "#d98032", "#4878a8")
WIDTH, HEIGHT, LEFT, BOTTOM = 760, 380, 70, 60


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
    least = 0.5
    def x(batch):
        return LEFT + (WIDTH - LEFT - 190) * BATCHES.index(batch) / (len(BATCHES) - 1)
    def y(value):
        return 30 + (HEIGHT - BOTTOM - 30) * (1 - (max(value, least) - least) / (1 - least))
    out = [f'<text x="{LEFT}" y="18" font-weight="bold">{what}</text>']
    for tick in range(5):
        value = least + (1 - least) * tick / 4
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - 190}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.2f}</text>')
    for batch in BATCHES:
        out.append(f'<text x="{x(batch):.0f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{batch}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - 190) / 2}" y="{HEIGHT - 14}" text-anchor="middle">samples a step</text>')
    for i, (form, colour) in enumerate(zip(FORMS, COLOURS)):
        own = [row for row in rows if row["form"] == form]
        points = " ".join(f"{x(row['batch']):.1f},{y(row['accuracy']):.1f}" for row in own)
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for row in own:
            hollow = row["accuracy"] < least
            out.append(f'<circle cx="{x(row["batch"]):.1f}" cy="{y(row["accuracy"]):.1f}" r="4" stroke="{colour}" '
                       f'fill="{"white" if hollow else colour}"/>')
        out.append(f'<rect x="{WIDTH - 170}" y="{40 + 22 * i}" width="14" height="4" fill="{colour}"/>')
        out.append(f'<text x="{WIDTH - 150}" y="{46 + 22 * i}">{form}</text>')
    out.append(f'<text x="{WIDTH - 170}" y="120" font-size="10">hollow: below {least}</text>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">'
    return "\n".join([head, f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', *out, "</svg>"]) + "\n"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    data = ["--data", sys.argv[2]] if len(sys.argv) > 2 else []
    epochs = sys.argv[3] if len(sys.argv) > 3 else "4"
    rows = []
    for form, flags in FORMS.items():
        for batch in BATCHES:
            values = [accuracy(batch, flags, seed, data, epochs) for seed in SEEDS]
            rows.append({"form": form, "batch": batch, "accuracy": statistics.median(values), "of_seeds": values})
            print(json.dumps(rows[-1]), flush=True)
    digits = "MNIST" if data else "drawn digits"
    what = f"LeNet on {digits}, {epochs} epochs: accuracy (median of {len(SEEDS)} seeds), rate {LR} at {BASE} samples a step"
    pathlib.Path(sys.argv[1]).write_text(draw(rows, what))


main()
