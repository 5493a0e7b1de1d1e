"""Draws docs/images/dashboard.svg: four pictures of the page that `lockstep dash RUN --out FILE` writes.

Usage: dashboard_picture.py PAGE.html PICTURE.svg
"""

import re
import sys

WIDTH, HEIGHT, COLUMNS = 560, 320, 2
TITLES = ["Loss", "accuracy", "Learning rate", "Norm of the gradients"]
STYLE = """text{font:12px system-ui,sans-serif;fill:#555}.title{font-weight:600;font-size:14px;fill:#222}.left{text-anchor:end}.mid{text-anchor:middle}
.grid{stroke:#d9dde3}.axis{stroke:#68717d}polyline{fill:none;stroke-width:1.6}polygon{opacity:.18}
"""


def legend(html):
    """The names of a picture's curves, each with its colour and its last value."""
    out, x = "", 58
    for colour, name, value in re.findall(r"<i class='(c\d)'></i>(.*?) <b>(.*?)</b>", html):
        out += f"<rect class='key {colour}' x='{x}' y='-12' width='12' height='3'/><text x='{x + 16}' y='-7'>{name} {value}</text>"
        x += 16 + 7 * len(name + value) + 30
    return out


def main():
    page = open(sys.argv[1], encoding="utf-8").read()
    colours = "".join(f".{name} polyline{{stroke:{colour}}}.{name} polygon,.{name} circle,.key.{name}{{fill:{colour}}}"
                      for name, colour in re.findall(r"\.(c\d)\{--c:(#\w+)\}", page))
    pattern = r"<figcaption>(.*?)</figcaption><p class='legend'>(.*?)</p><svg.*?>(.*?)</svg></figure>"
    found = {title: (names, picture) for title, names, picture in re.findall(pattern, page, re.S)}
    rows = -(-len(TITLES) // COLUMNS)
    out = (f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH * COLUMNS} {HEIGHT * rows}'>"
           f"<style>{STYLE}{colours}</style><rect width='100%' height='100%' fill='#fff'/>")
    for i, title in enumerate(TITLES):
        names, picture = found[title]
        out += (f"<g transform='translate({i % COLUMNS * WIDTH},{i // COLUMNS * HEIGHT + 45})'>"
                f"<text class='title' x='58' y='-24'>{title}</text>{legend(names)}{picture}</g>")
    open(sys.argv[2], "w", encoding="utf-8").write(out + "</svg>\n")


main()
