#!/usr/bin/env python3
"""Draws what `./run bench choosing --json` measured as SVG: samples a second, memory, bytes sent and idle cores of each form, by
network. The figures of docs/choosing.md are kept in bench/figures/choosing.json.
Usage: choosing_picture.py FIGURES.json OUT.svg"""

import json
import sys

from plot import AXIS, GRID, document, even, line, text

WIDTH, LEFT, BAR, HEAD, FOOT = 1080, 120, 16, 58, 62
COLUMN, BETWEEN = 175, 60
FIGURES = {  # figure: colour, title of the axis, what the legend says, what its numbers are multiplied by
    "samples_per_second": ("#4878a8", "samples a second (1/s)", "speed of training", 1),
    "pss_mb_all": ("#d98032", "memory (MB)", "memory of all processes", 1),
    "sent_mb": ("#5a9a62", "sent in a step (MB)", "bytes sent by the busiest", 1),
    "idle": ("#8a6aa8", "idle cores (%)", "idle share of the cores in use", 100),
}


def axis(x, top, bottom, most, title):
    """The lines and numbers of one column, from 0 to `most`."""
    parts = []
    for value in even(most, 4):
        at = x + value / most * COLUMN
        parts += [line(at, top, at, bottom, GRID), line(at, bottom, at, bottom + 4, AXIS)]
        parts.append(text(at, bottom + 16, f"{value:g}", "middle", 'font-size="10"'))
    parts += [line(x, top, x, bottom, AXIS), line(x, bottom, x + COLUMN, bottom, AXIS)]
    return [*parts, text(x + COLUMN / 2, bottom + 32, title, "middle", 'font-size="11"')]


def draw_network(rows, top):
    """The bars of one network, below `top`; each column has the scale of its longest bar."""
    bottom, parts = top + BAR * len(rows) + 3, []
    for column, (figure, (colour, title, _, factor)) in enumerate(FIGURES.items()):
        x, most = LEFT + column * (COLUMN + BETWEEN), factor * max(row[figure] for row in rows)
        parts += axis(x, top, bottom, most, title)
        for number, row in enumerate(rows):
            y, value = top + 3 + BAR * number, factor * row[figure]
            width = value / most * COLUMN
            parts.append(f'<rect x="{x}" y="{y}" width="{width:.1f}" height="{BAR - 3}" fill="{colour}"/>')
            parts.append(text(x + width + 4, y + 11, f"{value:.1f}" if 0 < value < 10 else f"{value:.0f}", more='font-size="10"'))
    for number, row in enumerate(rows):
        parts.append(text(LEFT - 8, top + 13 + BAR * number, f"{row['form']} {row['count']}", "end"))
    return parts, bottom


def draw(rows, machine):
    where = f"{machine['cpu']}, {machine['cores']} cores"
    what = "One training step in each form; the number is that of its processes, replicas or workers"
    parts = [text(10, 18, f"{what} ({where})")]
    for column, (colour, _, what, _) in enumerate(FIGURES.values()):
        x = LEFT + column * (COLUMN + BETWEEN)
        parts += [f'<rect x="{x}" y="30" width="12" height="12" fill="{colour}"/>', text(x + 18, 40, what)]
    y = HEAD
    for network in dict.fromkeys(row["network"] for row in rows):
        parts.append(text(10, y + 12, network, more='font-weight="bold"'))
        of_network, bottom = draw_network([row for row in rows if row["network"] == network], y)
        parts += of_network
        y = bottom + FOOT
    return document(WIDTH, y - 20, parts)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    figures = json.load(open(sys.argv[1]))
    rows = [row for row in figures["results"] if row["name"] == "choosing"]
    if not rows:
        sys.exit(f"{sys.argv[1]} has no figures of choosing")
    open(sys.argv[2], "w").write(draw(rows, figures["machine"]))


if __name__ == "__main__":
    main()
