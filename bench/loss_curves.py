#!/usr/bin/env python3
"""The training losses of several runs over each other, as an SVG; with --metric the metric of their evaluations beside them.

    bench/loss_curves.py --title TEXT [--loss "cross entropy, nats"] [--metric accuracy] LABEL=RUN_DIR… > curves.svg

Each point of a loss is the mean of a window of steps (one fiftieth of the run), on a logarithmic axis. The metric is a share,
drawn in percent, of the validation samples where a run has some, else of the test samples.
"""
import argparse
import json
import pathlib
import sys

from plot import COLOURS, Panel, decades, document, even, legend, linear, logarithmic, text

LEFT, TOP, WIDTH, HEIGHT, BETWEEN, BOTTOM, LEGEND = 64, 40, 506, 276, 74, 44, 176
WIDTH_OF_TWO = 380


def records(run):
    return [json.loads(line) for line in (pathlib.Path(run) / "metrics.jsonl").read_text().splitlines()]


def window_of(steps):
    return max(1, steps // 50)


def smooth(values):
    window = window_of(len(values))
    return [sum(values[max(0, i - window + 1) : i + 1]) / min(window, i + 1) for i in range(len(values))]


def losses(run):
    """(step, loss) of some 300 to 600 steps, the last one among them."""
    values = smooth([record["loss"] for record in records(run) if record["kind"] == "train"])
    every = max(1, len(values) // 300)
    return [(i + 1, values[i]) for i in range((len(values) - 1) % every, len(values), every)]


def split_of(runs):
    """What the evaluations are of: validation, if all runs have it."""
    has = [any(record.get("split") == "validation" for record in records(run)) for run in runs]
    return "validation" if all(has) else "test"


def metrics(run, metric, split):
    """(step, value) of the evaluations."""
    return [(r["step"], r[metric]) for r in records(run) if r["kind"] == "eval" and r["split"] == split and metric in r]


def steps_axis(last):
    return [(step, f"{step:g}") for step in even(last, 8)]


def add_curves(panel, curves, dots):
    for number, (_, points) in enumerate(curves):
        colour = COLOURS[number % len(COLOURS)]
        panel.curve(points, colour)
        if dots:
            panel.dots(points, colour, 2)


def loss_panel(curves, width, last, unit):
    values = [loss for _, points in curves for _, loss in points]
    low, high = min(values), max(values)
    panel = Panel(LEFT, TOP, width, HEIGHT, linear(0, last), logarithmic(low, high))
    title = f"training loss ({unit})" if unit else "training loss"
    panel.axes("training step", steps_axis(last), title, [(tick, f"{tick:g}") for tick in decades(low, high)])
    add_curves(panel, curves, dots=False)
    return panel


def metric_panel(curves, left, width, last, title):
    low = min(value for _, points in curves for _, value in points)
    floor = int(10 * low) / 10
    panel = Panel(left, TOP, width, HEIGHT, linear(0, last), linear(floor, 1))
    tenths = [(tenth / 10, f"{10 * tenth}") for tenth in range(round(10 * floor), 11)]
    panel.axes("training step", steps_axis(last), f"{title} (%)", tenths)
    add_curves(panel, curves, dots=True)
    return panel


def draw(title, unit, last, of_losses, of_metric=None, metric_title=None):
    """The SVG of curves (label, points) up to the step `last`: losses, and beside them, if given, a metric of the same runs in the
    same order."""
    panels = [loss_panel(of_losses, WIDTH_OF_TWO if of_metric else WIDTH, last, unit)]
    if of_metric:
        panels.append(metric_panel(of_metric, panels[0].right + BETWEEN, WIDTH_OF_TWO, last, metric_title))
    right = panels[-1].right
    entries = [(label, COLOURS[number % len(COLOURS)]) for number, (label, _) in enumerate(of_losses)]
    parts = [text(LEFT, 22, title, more='font-size="14"'), *(part for panel in panels for part in panel.parts)]
    parts += legend(right + 12, TOP + 10, entries)
    for number, note in enumerate((f"losses: mean of {window_of(last)} steps,", "logarithmic axis")):
        parts.append(text(right + 12, TOP + 26 + 20 * len(entries) + 15 * number, note, more='font-size="10"'))
    return document(right + LEGEND, TOP + HEIGHT + BOTTOM, parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--title", required=True)
    parser.add_argument("--loss", default="", metavar="UNIT", help="what the loss is, and its unit")
    parser.add_argument("--metric", metavar="NAME", help="of the evaluations: accuracy, dice")
    parser.add_argument("runs", nargs="+", metavar="LABEL=RUN_DIR")
    arguments = parser.parse_args()
    runs = [run.split("=", 1) for run in arguments.runs]
    of_metric, metric_title = None, None
    if arguments.metric:
        split = split_of([run for _, run in runs])
        of_metric = [(label, metrics(run, arguments.metric, split)) for label, run in runs]
        metric_title = f"{split} {arguments.metric}"
        for label, points in of_metric:
            if not points:
                sys.exit(f"{label}: has no {split} {arguments.metric} in its metrics.jsonl")
    of_losses = [(label, losses(run)) for label, run in runs]
    last = max(points[-1][0] for _, points in of_losses)
    sys.stdout.write(draw(arguments.title, arguments.loss, last, of_losses, of_metric, metric_title))


if __name__ == "__main__":
    main()
