"""Line charts with two logarithmic axes, as SVG text."""

import math

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 76, 130, 44, 52
COLOURS = ["#1f6fb4", "#d9822b", "#2f7d4f", "#b3413b", "#7a4fa3", "#6b6b6b", "#1a9a9a", "#a8862a"]
STYLE = ("text{font:12px system-ui,sans-serif;fill:#1d2733}.title{font-size:15px;font-weight:600}"
         ".grid{stroke:#e3e8ee}.frame{fill:#fff;stroke:#d5dce4}")


def escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def short(value):
    """1000000 -> 1M"""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:g}{unit}"
    return f"{value:g}"


class Axis:
    """From powers of ten to pixels."""

    def __init__(self, values, begin, end):
        low, high = math.log10(min(values)), math.log10(max(values))
        self.low, self.high = math.floor(low + 1e-9), math.ceil(high - 1e-9)
        if self.low == self.high:
            self.high += 1
        self.begin, self.end = begin, end

    def at(self, value):
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)

    def ticks(self):
        return [10.0 ** power for power in range(self.low, self.high + 1)]


def spread(places, gap):
    """Moves labels apart that would lie on each other; keeps their order."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    moved = list(places)
    for before, this in zip(order, order[1:]):
        moved[this] = max(moved[this], moved[before] + gap)
    return moved


def chart(title, x_label, y_label, lines):
    """lines: name -> [(x, y)], in the order of their colours."""
    lines = {name: [(x, y) for x, y in points if x > 0 and y > 0] for name, points in lines.items()}
    lines = {name: points for name, points in lines.items() if points}
    xs = [x for points in lines.values() for x, _ in points]
    ys = [y for points in lines.values() for _, y in points]
    if not xs:
        return ""
    x_axis = Axis(xs, LEFT, WIDTH - RIGHT)
    y_axis = Axis(ys, HEIGHT - BOTTOM, TOP)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           f'width="{WIDTH}" height="{HEIGHT}" role="img">',
           f"<title>{escaped(title)}</title><style>{STYLE}</style>",
           f'<rect class="frame" x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="6"/>',
           f'<text class="title" x="{LEFT}" y="26">{escaped(title)}</text>']
    for tick in x_axis.ticks():
        at = x_axis.at(tick)
        out.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" '
                   f'y2="{HEIGHT - BOTTOM}"/><text x="{at:.1f}" y="{HEIGHT - BOTTOM + 18}" '
                   f'text-anchor="middle">{short(tick)}</text>')
    for tick in y_axis.ticks():
        at = y_axis.at(tick)
        out.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" '
                   f'y2="{at:.1f}"/><text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">'
                   f"{short(tick)}</text>")
    middle = (TOP + HEIGHT - BOTTOM) / 2
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 14}" text-anchor="middle">'
               f"{escaped(x_label)}</text>"
               f'<text x="18" y="{middle}" text-anchor="middle" '
               f'transform="rotate(-90 18 {middle})">{escaped(y_label)}</text>')
    labels = spread([y_axis.at(points[-1][1]) for points in lines.values()], 15)
    for (name, points), colour, label in zip(lines.items(), COLOURS, labels):
        path = " ".join(f"{x_axis.at(x):.1f},{y_axis.at(y):.1f}" for x, y in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for x, y in points:
            out.append(f'<circle cx="{x_axis.at(x):.1f}" cy="{y_axis.at(y):.1f}" r="3" '
                       f'fill="{colour}"><title>{escaped(name)}: {x:,.0f}: {y:,.4g}</title></circle>')
        out.append(f'<text x="{WIDTH - RIGHT + 10}" y="{label + 4:.1f}" style="fill:{colour}">'
                   f"{escaped(name)}</text>")
    return "\n".join([*out, "</svg>", ""])
