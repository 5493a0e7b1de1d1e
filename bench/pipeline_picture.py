#!/usr/bin/env python3
"""Draws a trace of `lockstep bench pipeline --trace FILE` as SVG: a lane for each stage, time to the right.
Usage: pipeline_picture.py TRACE.json OUT.svg [MICRO_BATCHES]"""

import json
import sys

WIDTH, LEFT, LANE, GAP, TOP = 860, 70, 26, 44, 34
COLOURS = {"forward": "#4878a8", "backward": "#d98032"}


def rows_of(events, micro_batches):
    """(name, spans) of the rows that have so many micro-batches; all where that is not said."""
    names = {event["pid"]: event["args"]["name"] for event in events if event["ph"] == "M"}
    for pid, name in names.items():
        if micro_batches is None or name.endswith(f", {micro_batches} micro-batches"):
            yield name, [event for event in events if event["ph"] == "X" and event["pid"] == pid]


def draw(rows):
    spans_of = [(name, spans, min(s["ts"] for s in spans), max(s["ts"] + s["dur"] for s in spans)) for name, spans in rows]
    longest = max(end - begin for _, _, begin, end in spans_of)
    scale = (WIDTH - LEFT - 20) / longest
    out, y = [], TOP
    for name, spans, begin, _ in spans_of:
        out.append(f'<text x="{LEFT}" y="{y - 8}" font-weight="bold">{name}</text>')
        stages = 1 + max(span["tid"] for span in spans)
        for stage in range(stages):
            out.append(f'<text x="{LEFT - 8}" y="{y + stage * LANE + 16}" text-anchor="end">stage {stage}</text>')
        for span in spans:
            x, width = LEFT + (span["ts"] - begin) * scale, span["dur"] * scale
            top = y + span["tid"] * LANE
            out.append(
                f'<rect x="{x:.1f}" y="{top}" width="{max(width - 0.5, 0.5):.1f}" height="{LANE - 4}" fill="{COLOURS[span["cat"]]}"/>'
            )
            if width > 12:
                number = span["name"].split()[1]
                out.append(f'<text x="{x + width / 2:.1f}" y="{top + 15}" text-anchor="middle" fill="white">{number}</text>')
        y += stages * LANE + GAP
    y -= GAP - 8
    step = next(ms for ms in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10000) if longest / 1e3 / ms <= 12)
    out.append(f'<line x1="{LEFT}" y1="{y}" x2="{LEFT + longest * scale:.1f}" y2="{y}" stroke="#444"/>')
    for ms in range(0, int(longest / 1e3) + 1, step):
        x = LEFT + ms * 1e3 * scale
        out.append(f'<line x1="{x:.1f}" y1="{y}" x2="{x:.1f}" y2="{y + 4}" stroke="#444"/>')
        out.append(f'<text x="{x:.1f}" y="{y + 17}" text-anchor="middle">{ms}</text>')
    out.append(f'<text x="{WIDTH / 2}" y="{y + 34}" text-anchor="middle">milliseconds; numbers are micro-batches</text>')
    for i, (what, colour) in enumerate(COLOURS.items()):
        out.append(f'<rect x="{WIDTH - 190 + 90 * i}" y="6" width="12" height="12" fill="{colour}"/>')
        out.append(f'<text x="{WIDTH - 174 + 90 * i}" y="16">{what}</text>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + 42}" font-family="sans-serif" font-size="12">'
    return "\n".join([head, f'<rect width="{WIDTH}" height="{y + 42}" fill="white"/>', *out, "</svg>"]) + "\n"


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    events = json.load(open(sys.argv[1]))["traceEvents"]
    rows = list(rows_of(events, int(sys.argv[3]) if len(sys.argv) == 4 else None))
    if not rows:
        sys.exit(f"{sys.argv[1]}: no such row")
    open(sys.argv[2], "w").write(draw(rows))


main()
