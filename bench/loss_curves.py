#!/usr/bin/env python3
"""The training losses of several runs over each other, as an SVG.

    bench/loss_curves.py --title TEXT LABEL=RUN_DIR… > curves.svg

Each curve is the mean of a window of steps (one fiftieth of the run), on a logarithmic axis.
"""
import argparse
import json
import math
import pathlib

COLORS = ["#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b", "#17becf"]
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 720, 360, 64, 40, 150, 44


def losses(run):
    lines = (pathlib.Path(run) / "metrics.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    return [record["loss"] for record in records if record["kind"] == "train"]


def smooth(values):
    window = max(1, len(values) // 50)
    return [sum(values[max(0, i - window + 1) : i + 1]) / min(window, i + 1) for i in range(len(values))]


def ticks(low, high):
    """1, 2 and 5 times powers of ten within the range."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [f * 10.0**p for p in powers for f in (1, 2, 5) if low <= f * 10.0**p <= high]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--title", required=True)
    parser.add_argument("runs", nargs="+", metavar="LABEL=RUN_DIR")
    arguments = parser.parse_args()
    curves = [(label, smooth(losses(run))) for label, run in (text.split("=", 1) for text in arguments.runs)]
    low = min(min(values) for _, values in curves)
    high = max(max(values) for _, values in curves)
    steps = max(len(values) for _, values in curves)

    def x(step):
        return LEFT + (WIDTH - LEFT - RIGHT) * step / max(1, steps - 1)

    def y(loss):
        part = (math.log(loss) - math.log(low)) / max(1e-9, math.log(high) - math.log(low))
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * part

    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">')
    print(f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>')
    print(f'<text x="{LEFT}" y="22" font-size="14">{arguments.title}</text>')
    for tick in ticks(low, high):
        print(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" stroke="#ddd"/>')
        print(f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for quarter in range(5):
        step = round((steps - 1) * quarter / 4)
        print(f'<text x="{x(step):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{step + 1}</text>')
    print(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">step</text>')
    print(f'<text transform="translate(14 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">training loss</text>')
    for number, (label, values) in enumerate(curves):
        color = COLORS[number % len(COLORS)]
        every = max(1, len(values) // 300)
        points = " ".join(f"{x(i):.1f},{y(values[i]):.1f}" for i in range(0, len(values), every))
        print(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.3"/>')
        print(f'<text x="{WIDTH - RIGHT + 10}" y="{TOP + 14 + 18 * number}" fill="{color}">{label}</text>')
    print("</svg>")


if __name__ == "__main__":
    main()
