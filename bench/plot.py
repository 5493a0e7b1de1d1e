"""Parts of SVG pictures: a panel with axes, ticks, their titles and curves, a legend, and the document around them."""

import html
import math

COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b", "#17becf")
AXIS, GRID = "#444", "#ddd"


def text(x, y, what, anchor="start", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more and " " + more}>{html.escape(what)}</text>'


def line(x1, y1, x2, y2, colour, more=""):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{more and " " + more}/>'


def linear(low, high):
    """Maps low..high to 0..1."""
    return lambda value: (value - low) / max(1e-9, high - low)


def logarithmic(low, high):
    """Maps low..high to 0..1, equal ratios to equal lengths."""
    return lambda value: (math.log(value) - math.log(low)) / max(1e-9, math.log(high) - math.log(low))


def decades(low, high):
    """1, 2 and 5 times powers of ten within the range: the ticks of a logarithmic axis."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [f * 10.0**p for p in powers for f in (1, 2, 5) if low <= f * 10.0**p <= high]


def even(high, most):
    """0 and the multiples of 1, 2 or 5 times a power of ten up to `high`, at most `most` of them after 0."""
    step = next(f * 10.0**p for p in range(-3, 12) for f in (1, 2, 5) if high / (f * 10.0**p) <= most)
    return [step * i for i in range(int(high / step + 1e-9) + 1)]


class Panel:
    """A rectangle with axes. `across` and `up` map values to 0..1 of its width and height; `parts` is its SVG."""

    def __init__(self, left, top, width, height, across, up):
        self.left, self.top, self.width, self.height = left, top, width, height
        self.right, self.bottom = left + width, top + height
        self.across, self.up = across, up
        self.parts = []

    def x(self, value):
        return self.left + self.width * self.across(value)

    def y(self, value):
        return self.bottom - self.height * self.up(value)

    def axes(self, x_title, x_ticks, y_title, y_ticks):
        """Ticks are (value, label); the lines of the grid belong to the y axis. Draws below what is drawn afterwards."""
        for value, label in y_ticks:
            y = self.y(value)
            self.parts += [line(self.left, y, self.right, y, GRID), line(self.left - 4, y, self.left, y, AXIS)]
            self.parts.append(text(self.left - 7, y + 4, label, "end"))
        for value, label in x_ticks:
            x = self.x(value)
            self.parts += [line(x, self.bottom, x, self.bottom + 4, AXIS), text(x, self.bottom + 17, label, "middle")]
        self.parts.append(line(self.left, self.top, self.left, self.bottom, AXIS))
        self.parts.append(line(self.left, self.bottom, self.right, self.bottom, AXIS))
        self.parts.append(text((self.left + self.right) / 2, self.bottom + 36, x_title, "middle"))
        turned = f"translate({self.left - 50:.0f} {(self.top + self.bottom) / 2:.0f}) rotate(-90)"
        self.parts.append(f'<text transform="{turned}" text-anchor="middle">{html.escape(y_title)}</text>')

    def curve(self, points, colour, width=1.3):
        shown = " ".join(f"{self.x(a):.1f},{self.y(b):.1f}" for a, b in points)
        self.parts.append(f'<polyline points="{shown}" fill="none" stroke="{colour}" stroke-width="{width}"/>')

    def dots(self, points, colour, radius, more=""):
        for a, b in points:
            at = f'cx="{self.x(a):.1f}" cy="{self.y(b):.1f}"'
            self.parts.append(f'<circle {at} r="{radius}" fill="{colour}"{more and " " + more}/>')


def legend(x, y, entries, dot=None):
    """One entry a line: a stroke of its colour (and a dot of radius `dot` on it), then its name in black."""
    parts = []
    for number, (name, colour) in enumerate(entries):
        at = y + 20 * number
        parts += [line(x, at, x + 22, at, colour, 'stroke-width="2"'), text(x + 30, at + 4, name)]
        if dot:
            parts.append(f'<circle cx="{x + 11}" cy="{at}" r="{dot}" fill="{colour}"/>')
    return parts


def document(width, height, parts):
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
    return "\n".join([head, f'<rect width="{width}" height="{height}" fill="white"/>', *parts, "</svg>"]) + "\n"
