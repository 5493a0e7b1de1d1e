#!/usr/bin/env python3
"""Draws what `./run bench choosing --json` measured as SVG: samples a second and memory of each form, by network.
Usage: choosing_picture.py FIGURES.json OUT.svg"""

import json
import sys

WIDTH, LEFT, BAR, GAP, HEAD = 860, 150, 16, 40, 30
COLOURS = {"samples_per_second": "#4878a8", "pss_mb_all": "#d98032"}
COLUMN = (WIDTH - LEFT - 40) / 2


def draw(rows):
    out, y = [], HEAD
    for i, (figure, label) in enumerate({"samples_per_second": "samples/s", "pss_mb_all": "memory of all, MB"}.items()):
        x = LEFT + i * (COLUMN + 30)
        out.append(f'<text x="{x:.0f}" y="18" fill="{COLOURS[figure]}" font-weight="bold">{label}</text>')
    for network in dict.fromkeys(row["network"] for row in rows):
        own = [row for row in rows if row["network"] == network]
        out.append(f'<text x="10" y="{y + 12}" font-weight="bold">{network}</text>')
        y += 18
        for row in own:
            out.append(f'<text x="{LEFT - 8}" y="{y + 12}" text-anchor="end">{row["form"]} {row["count"]}</text>')
            for i, (figure, colour) in enumerate(COLOURS.items()):
                x, most = LEFT + i * (COLUMN + 30), max(each[figure] for each in own)
                width = row[figure] / most * (COLUMN - 50)
                out.append(f'<rect x="{x:.0f}" y="{y}" width="{width:.1f}" height="{BAR - 3}" fill="{colour}"/>')
                out.append(f'<text x="{x + width + 4:.0f}" y="{y + 11}" font-size="10">{row[figure]:.0f}</text>')
            y += BAR
        y += GAP - 18
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" font-family="sans-serif" font-size="12">'
    return "\n".join([head, f'<rect width="{WIDTH}" height="{y}" fill="white"/>', *out, "</svg>"]) + "\n"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    rows = [row for row in json.load(open(sys.argv[1]))["results"] if row["name"] == "choosing"]
    if not rows:
        sys.exit(f"{sys.argv[1]} has no figures of choosing")
    open(sys.argv[2], "w").write(draw(rows))


main()
