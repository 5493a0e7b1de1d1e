"""Compares our resized pixels with Pillow's, and may draw where they differ.

Usage: pillow.py LIST [PICTURE.png]. LIST is of JSON lines: photo, path (its name), box (left, top, right, bottom),
resized (width, height), window (left, top, right, bottom), pixels: a file of the window's R G B.
"""

import collections
import json
import pathlib
import sys

import numpy
from PIL import Image, ImageDraw

SHARE = 0.999  # of the values are to be within a level


def pillows(row):
    image = Image.open(row["photo"]).convert("RGB")
    return image.crop(row["box"]).resize(row["resized"], Image.Resampling.BILINEAR).crop(row["window"])


def ours(row, size):
    return Image.frombytes("RGB", size, pathlib.Path(row["pixels"]).read_bytes())


def draw(examples, file):
    """Where one example of each path differs: grey, white by a level, red by more. The photographs stay out of it."""
    side, gap, head = 224, 8, 16
    sheet = Image.new("RGB", (len(examples) * (side + gap) + gap, side + 2 * gap + head), "white")
    pen = ImageDraw.Draw(sheet)
    for number, (path, off) in enumerate(examples.items()):
        left = gap + number * (side + gap)
        off = off.max(axis=2)
        shown = numpy.full((*off.shape, 3), 90, numpy.uint8)
        shown[off == 1] = 255
        shown[off > 1] = (255, 0, 0)
        pen.text((left, gap), f"{path}: {(off == 1).mean():.2%} of pixels by a level", fill="black")
        sheet.paste(Image.fromarray(shown), (left, gap + head))
    sheet.quantize(8).save(file, optimize=True)


def main():
    counts, examples = {}, {}
    for line in pathlib.Path(sys.argv[1]).read_text().splitlines():
        row = json.loads(line)
        right = pillows(row)
        left = ours(row, right.size)
        off = numpy.abs(numpy.asarray(left, int) - numpy.asarray(right, int))
        counts.setdefault(row["path"], collections.Counter()).update(dict(zip(*numpy.unique(off, return_counts=True))))
        examples.setdefault(row["path"], off)
    failed = not counts
    for path, found in counts.items():
        total = sum(found.values())
        within = (found[0] + found[1]) / total
        print(f"{path}: {total} values, {found[0] / total:.4%} equal, {within:.4%} within a level, at most {max(found)} off")
        failed = failed or within < SHARE
    if len(sys.argv) > 2:
        draw(examples, sys.argv[2])
    sys.exit(1 if failed else 0)


main()
