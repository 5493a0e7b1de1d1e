#!/usr/bin/env python3
"""Draws what `./run bench scaling --json` measured as SVG: images a second as ranks divide a batch (strong scaling), and efficiency
as each rank has one (weak scaling), with what the cost model foretells for clusters. The figures of docs/choosing.md are kept in
bench/figures/scaling.json.
Usage: scaling_picture.py FIGURES.json OUT.svg"""

import json
import sys

import scaling
from plot import COLOURS, Panel, document, even, legend, linear, logarithmic, text

WIDTH, PANEL, LEFT, BETWEEN = 900, 330, 80, 130
HEIGHT, HEAD, FOOT = 150, 100, 85
OURS, PEER, FORETOLD, BOUND = (*COLOURS[:3], "#999")
CLUSTER_TICKS = (1, 2, 4, 8, 64, 512, 4096)


def strong(rows, cores, left, top):
    bound = [(row["ranks"], rows[0]["ours"] * min(row["ranks"], cores)) for row in rows]
    most = 1.05 * max(max(row[who] or 0 for row in rows for who in ("ours", "peer")), bound[-1][1])
    panel = Panel(left, top, PANEL, HEIGHT, logarithmic(1, rows[-1]["ranks"]), linear(0, most))
    ranks = [(row["ranks"], str(row["ranks"])) for row in rows]
    panel.axes("ranks (one batch)", ranks, "images/s", [(value, f"{value:g}") for value in even(most, 5)])
    panel.curve(bound, BOUND, 1)
    for who, colour in (("ours", OURS), ("peer", PEER)):
        points = [(row["ranks"], row[who]) for row in rows if row[who]]
        panel.curve(points, colour)
        panel.dots(points, colour, 3)
    return panel.parts


def weak(rows, foretold, cores, left, top):
    panel = Panel(left, top, PANEL, HEIGHT, logarithmic(1, CLUSTER_TICKS[-1]), linear(0, 1.1))
    ticks = [(value, f"{value:,}") for value in CLUSTER_TICKS]
    panel.axes("ranks (a batch each)", ticks, "of perfect scaling", [(i / 5, f"{20 * i} %") for i in range(6)])
    panel.curve([(row["ranks"], min(row["ranks"], cores) / row["ranks"]) for row in rows], BOUND, 1)
    for who, colour in (("ours", OURS), ("peer", PEER)):
        shares = [(row["ranks"], scaling.efficiency(row, rows, who)) for row in rows]
        points = [(ranks, min(1.1, share)) for ranks, share in shares if share is not None]
        panel.curve(points, colour)
        panel.dots(points, colour, 3)
    panel.curve(list(zip(scaling.CLUSTERS, foretold)), FORETOLD)
    panel.dots(list(zip(scaling.CLUSTERS, foretold)), FORETOLD, 3)
    return panel.parts


def draw(rows, machine):
    on_gpus = any(row["host_to_device_ms"] is not None for row in rows)
    cores = max(row["ranks"] for row in rows) if on_gpus else machine["cores"]
    where = f"{machine['cpu']}, {machine['cores']} cores"
    parts = [text(10, 18, f"Images a second at 1 to 8 ranks on {where}, and foretold for clusters")]
    names = ("Lockstep", "PyTorch's DDP", "Lockstep on nodes of 8 such ranks, a core each, 100 Gbit/s a node (cost model)")
    bound = f"Lockstep if its ranks had not to wait for each other, but for the {cores} cores"
    parts += legend(LEFT, 38, [*zip(names, (OURS, PEER, FORETOLD)), (bound, BOUND)], 3)
    foretold, top = dict(scaling.foretold(rows)), HEAD + 30
    for network in dict.fromkeys(row["network"] for row in rows):
        of = {kind: [row for row in rows if (row["network"], row["kind"]) == (network, kind)] for kind in ("strong", "weak")}
        parts.append(text(10, top - 8, network, more='font-weight="bold"'))
        parts += strong(of["strong"], cores, LEFT, top)
        parts += weak(of["weak"], foretold[network], cores, LEFT + PANEL + BETWEEN, top)
        top += HEIGHT + FOOT
    return document(WIDTH, top - 20, parts)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    figures = json.load(open(sys.argv[1]))
    rows = [row for row in figures["results"] if row["name"] == scaling.NAME]
    if not rows:
        sys.exit(f"{sys.argv[1]} has no figures of {scaling.NAME}")
    open(sys.argv[2], "w").write(draw(rows, figures["machine"]))


if __name__ == "__main__":
    main()
