"""One page of SVG for the results of report.py."""
import math
from xml.sax.saxutils import escape

WIDTH = 860
LEFT = 330
OURS, FLOOR, OTHER, BAD = "#2166ac", "#777777", "#b8860b", "#b2182b"

LATENCIES = [  # item, label, color
    ("floor/ping_pong", "AF_UNIX ping-pong", FLOOR),
    ("floor/ping_pong_two_cores", "the same, a core each", FLOOR),
    ("floor/ping_pong_after_pause", "the same after 10 ms of rest", FLOOR),
    ("call/ready", "execute 1+1, a spare ready", OURS),
    ("call/snippets", "execute, 30 unseen snippets", OURS),
    ("call/numpy", "execute, numpy preloaded and used", OURS),
    ("call/pandas", "execute, pandas preloaded and used", OURS),
    ("floor/bare_fork_reaped", "bare fork, confine, eval 1+1, exit, reap", FLOOR),
    ("call/none_ready", "execute 1+1, none ready", OURS),
    ("run/bare", "true", FLOOR),
    ("run/timeout", "timeout 5 true", FLOOR),
    ("run/pyplaypen", "pyplaypen run -- true", OURS),
    ("run/pyplaypen_confine_writes", "pyplaypen run --confine-writes -- true", OURS),
    ("run/pyplaypen_unshare_all", "run --unshare all true", OURS),
    ("run/bwrap", "bwrap true", OTHER),
    ("run/bwrap_unshare_all", "bwrap --unshare-all true", OTHER),
    ("run/nsjail", "nsjail true", OTHER),
    ("run/firejail", "firejail true", OTHER),
    ("floor/python_c", "python3 -c '1 + 1'", OTHER),
    ("peer/execute", "execute of the Python package pyplaypen_sandbox", OTHER),
]
RATES = [("floor/bare_fork_rate/1", "bare fork, eval, exit; 1 process", FLOOR),
         ("floor/bare_fork_rate/2", "bare fork, eval, exit; 2 processes", FLOOR)]
RATES += [(f"sustained/poll/{n}", f"execute, {n} at a time, one thread", OURS) for n in (1, 2, 4, 8)]
RATES += [(f"sustained/threads/{n}", f"execute, {n} threads", OURS) for n in (1, 2, 4, 8)]


class Page:
    def __init__(self):
        self.parts = []
        self.y = 20

    def text(self, x, y, text, size=12, anchor="start", color="#222222", weight="normal"):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
                          f'fill="{color}" font-weight="{weight}">{escape(text)}</text>')

    def line(self, x1, y1, x2, y2, color="#dddddd", width=1.0):
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
                          f'stroke="{color}" stroke-width="{width}"/>')

    def rectangle(self, x, y, width, height, color):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
                          f'fill="{color}"/>')

    def curve(self, points, color):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.6"/>')

    def heading(self, text):
        self.y += 30
        self.text(20, self.y, text, 15, weight="bold")
        self.y += 10

    def finish(self):
        height = self.y + 20
        return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
                f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">\n'
                f'<rect width="{WIDTH}" height="{height}" fill="white"/>\n' + "\n".join(self.parts) + "\n</svg>\n")


def duration(us):
    if us < 1000:
        return f"{us:.0f} us"
    return f"{us / 1000:.1f} ms" if us < 100_000 else f"{us / 1000:.0f} ms"


def draw_goals(page, goals):
    page.heading("Goals: ratios within this run")
    for goal in goals:
        page.y += 17
        color = OURS if goal["met"] else BAD
        page.text(20, page.y, "pass" if goal["met"] else "miss", color=color, weight="bold")
        page.text(65, page.y, goal["goal"])
        page.text(600, page.y, f"{goal['ratio']:.2f}", anchor="end", weight="bold")
        page.text(610, page.y, f"{'≤' if goal['at_most'] else '≥'} {goal['bound']}")
        page.text(660, page.y, goal["note"], 10, color="#666666")


def draw_latencies(page, items):
    page.heading("One call or command: p50 (bar), p99 (whisker); logarithmic")
    rows = [row for row in LATENCIES if row[0] in items]
    if not rows:
        return
    low = math.log10(min(items[name]["p50"] for name, _, _ in rows) / 2)
    high = math.log10(max(items[name]["p99"] for name, _, _ in rows) * 1.5)
    x = lambda us: LEFT + (math.log10(us) - low) / (high - low) * (WIDTH - LEFT - 90)
    top = page.y + 6
    bottom = top + 18 * len(rows)
    for power in range(math.ceil(low), math.floor(high) + 1):
        page.line(x(10 ** power), top, x(10 ** power), bottom)
        page.text(x(10 ** power), bottom + 12, duration(10 ** power), 10, "middle", "#666666")
    for name, label, color in rows:
        item = items[name]
        page.y += 18
        page.text(LEFT - 8, page.y + 3, label, anchor="end")
        page.rectangle(LEFT, page.y - 6, x(item["p50"]) - LEFT, 11, color)
        page.line(x(item["p50"]), page.y, x(item["p99"]), page.y, color, 1.5)
        page.text(WIDTH - 15, page.y + 3, duration(item["p50"]), 11, "end")
    page.y = bottom + 16


def draw_rates(page, items):
    page.heading("Calls per second, sustained")
    rows = [row for row in RATES if row[0] in items]
    if not rows:
        return
    most = max(items[name]["p50"] for name, _, _ in rows)
    for name, label, color in rows:
        page.y += 18
        page.text(LEFT - 8, page.y + 3, label, anchor="end")
        page.rectangle(LEFT, page.y - 6, items[name]["p50"] / most * (WIDTH - LEFT - 90), 11, color)
        page.text(WIDTH - 15, page.y + 3, f"{items[name]['p50']:,.0f}", 11, "end")
    page.y += 10


def draw_growth(page, growth):
    if len(growth) < 2:
        return
    page.heading(f"{growth[-1]['calls']:,} calls in a row: time, memory")
    top, height, left, width = page.y + 10, 110, 70, WIDTH - 330
    calls = growth[-1]["calls"]
    for row, (key, label, color, shape) in enumerate((
                                     ("p50_us", "time of a call (p50)", OURS, duration),
                                     ("host_kb", "host, resident", "#1b7837", lambda kb: f"{kb / 1024:.1f} MB"),
                                     ("zygote_kb", "zygote, resident", OTHER, lambda kb: f"{kb / 1024:.1f} MB"))):
        values = [at[key] for at in growth]
        most = max(values) * 1.25 or 1
        points = [(left + at["calls"] / calls * width, top + height - at[key] / most * height) for at in growth]
        page.curve(points, color)
        page.text(left + width + 12, top + 20 + 18 * row, f"{label}: {shape(values[0])} → {shape(values[-1])}",
                  11, color=color)
    page.line(left, top + height, left + width, top + height, "#888888")
    page.line(left, top, left, top + height, "#888888")
    page.text(left, top + height + 13, "0", 10, "middle", "#666666")
    page.text(left + width, top + height + 13, f"{calls:,}", 10, "middle", "#666666")
    page.y = top + height + 18


def draw_sweeps(page, items):
    page.heading("A call by the size of its output, value and code; logarithmic")
    curves = {}
    for name, item in items.items():
        if name.startswith("sweep/") and name.rpartition("/")[2].isdigit():
            _, kind, size = name.split("/")
            curves.setdefault(kind, []).append((int(size), item["p50"]))
    if not curves:
        return
    top, height, left, width = page.y + 10, 150, 70, WIDTH - 250
    sizes = [size for points in curves.values() for size, _ in points]
    times = [time for points in curves.values() for _, time in points]
    log = math.log10
    low_x, high_x = log(min(sizes)), log(max(sizes))
    low_y, high_y = log(min(times)) - 0.2, log(max(times)) + 0.1
    x = lambda size: left + (log(size) - low_x) / (high_x - low_x) * width
    y = lambda time: top + height - (log(time) - low_y) / (high_y - low_y) * height
    for power in range(math.ceil(low_x), math.floor(high_x) + 1):
        page.line(x(10 ** power), top, x(10 ** power), top + height)
        page.text(x(10 ** power), top + height + 13, f"{10 ** power:,} B", 10, "middle", "#666666")
    for power in range(math.ceil(low_y), math.floor(high_y) + 1):
        page.line(left, y(10 ** power), left + width, y(10 ** power))
        page.text(left - 6, y(10 ** power) + 4, duration(10 ** power), 10, "end", "#666666")
    for (kind, points), color in zip(sorted(curves.items()), ("#1b7837", OURS, OTHER)):
        points.sort()
        page.curve([(x(size), y(time)) for size, time in points], color)
        page.text(x(points[-1][0]) + 6, y(points[-1][1]) + 4, kind, 11, color=color)
    page.y = top + height + 18


def page(results):
    machine = results["machine"]
    drawing = Page()
    drawing.text(20, drawing.y + 6, f"pyplaypen {results['version']}: speed", 19, weight="bold")
    drawing.y += 26
    drawing.text(20, drawing.y, f"{machine['cpu'] or machine['architecture']}, {machine['cores']} cores, "
                 f"Linux {machine['kernel']}, Python {results['python']}, commit {results.get('commit', '?')}"
                 f"{', quick run' if results['quick'] else ''}", 11, color="#666666")
    draw_goals(drawing, results["goals"])
    draw_latencies(drawing, results["items"])
    draw_rates(drawing, results["items"])
    draw_growth(drawing, results["growth"])
    draw_sweeps(drawing, results["items"])
    return drawing.finish()
