#!/usr/bin/env python3
"""Draws a trace of `lockstep bench pipeline --trace FILE` as SVG: a lane for each stage, time to the right.
Usage: pipeline_picture.py TRACE.json OUT.svg [MICRO_BATCHES]"""

import json
import sys

from plot import AXIS, document, even, line, text

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
    parts, y = [], TOP
    for name, spans, begin, _ in spans_of:
        parts.append(text(LEFT, y - 8, name, more='font-weight="bold"'))
        stages = 1 + max(span["tid"] for span in spans)
        parts += [text(LEFT - 8, y + stage * LANE + 16, f"stage {stage}", "end") for stage in range(stages)]
        for span in spans:
            x, width = LEFT + (span["ts"] - begin) * scale, span["dur"] * scale
            top = y + span["tid"] * LANE
            size = f'width="{max(width - 0.5, 0.5):.1f}" height="{LANE - 4}"'
            parts.append(f'<rect x="{x:.1f}" y="{top}" {size} fill="{COLOURS[span["cat"]]}"/>')
            if width > 12:
                parts.append(text(x + width / 2, top + 15, span["name"].split()[1], "middle", 'fill="white"'))
        y += stages * LANE + GAP
    y -= GAP - 8
    parts.append(line(LEFT, y, LEFT + longest * scale, y, AXIS))
    for ms in even(longest / 1e3, 12):
        x = LEFT + ms * 1e3 * scale
        parts += [line(x, y, x, y + 4, AXIS), text(x, y + 17, f"{ms:g}", "middle")]
    parts.append(text(WIDTH / 2, y + 34, "milliseconds; numbers are micro-batches", "middle"))
    for i, (what, colour) in enumerate(COLOURS.items()):
        parts.append(f'<rect x="{WIDTH - 190 + 90 * i}" y="6" width="12" height="12" fill="{colour}"/>')
        parts.append(text(WIDTH - 174 + 90 * i, 16, what))
    return document(WIDTH, y + 42, parts)


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    events = json.load(open(sys.argv[1]))["traceEvents"]
    rows = list(rows_of(events, int(sys.argv[3]) if len(sys.argv) == 4 else None))
    if not rows:
        sys.exit(f"{sys.argv[1]}: no such row")
    open(sys.argv[2], "w").write(draw(rows))


main()
