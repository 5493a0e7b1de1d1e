#!/usr/bin/env python3
"""Joins overlays of `lockstep predict` for the membrane data to docs/images/membrane.jpg, with names, a scale and a key of the
colours. It needs Pillow.
Usage: membrane_picture.py OUT.jpg NAME=OVERLAY.png…"""

import sys

from PIL import Image, ImageDraw, ImageFont

SIDE, GAP, HEAD, FOOT, PIXELS = 288, 6, 22, 58, 512
BAR = 128  # pixels of the micrograph
KEY = (  # the fill of a swatch, what it means
    ((226, 106, 112), "red: inside of a cell, as the U-Net predicts it"),
    ((92, 104, 106), "grey: membrane, the micrograph as it is"),
)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    panels = [argument.split("=", 1) for argument in sys.argv[2:]]
    width, height = len(panels) * (SIDE + GAP) - GAP, HEAD + SIDE + FOOT
    sheet = Image.new("RGB", (width, height), "white")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(13)
    for number, (name, file) in enumerate(panels):
        left = number * (SIDE + GAP)
        overlay = Image.open(file).convert("RGB")
        sheet.paste(overlay if overlay.size == (SIDE, SIDE) else overlay.resize((SIDE, SIDE)), (left, HEAD))
        pen.text((left, 3), f"{name}, {PIXELS} by {PIXELS} pixels", fill="black", font=font)
    x, y = 0, HEAD + SIDE + 12
    for colour, meaning in KEY:
        pen.rectangle((x, y, x + 14, y + 14), fill=colour)
        pen.text((x + 20, y - 1), meaning, fill="black", font=font)
        y += 22
    length = SIDE * BAR // PIXELS
    pen.line((width - length, HEAD + SIDE + 18, width, HEAD + SIDE + 18), fill="black", width=3)
    pen.text((width, HEAD + SIDE + 24), f"{BAR} pixels", fill="black", font=font, anchor="ra")
    sheet.save(sys.argv[1], quality=82, optimize=True)


main()
