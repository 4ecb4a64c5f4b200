#!/usr/bin/env python3
"""Writes the tables of docs/accuracy.md from what math_check prints.

    cmake --build build --target math_check
    build/bin/math_check float32 > float32.md      all 2^32 floats: about an hour and a half of one core
    build/bin/math_check float64 1e7 > float64.md
    chrt -f 50 taskset -c 1 build/bin/math_check time > time.md
    python3 scripts/accuracy_table.py float32.md float64.md time.md docs/accuracy.md

The text between the two marks in docs/accuracy.md is replaced. A function that occurs twice in a file counts with its
later line, so that one measured again can be appended; of several timings in time.md the shortest counts.
"""

import sys
from pathlib import Path

BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"
EXACT = {"identity", "relu", "square"}


def rows(path):
    """{function: cells of its line}, in order; header and rule left out."""
    result = {}
    for line in Path(path).read_text().splitlines():
        if line.startswith("| ") and not line.startswith("| function"):
            name, *cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            result[name] = shorter(result.get(name, cells), cells) if "time" in Path(path).name else cells
    return result


def shorter(a, b):
    """Of two lines of timings the smaller of each number of nanoseconds."""
    return [min(x, y, key=float) if "," not in x else x for x, y in zip(a, b)]


def short(number):
    return f"{float(number):.6g}"


def errors_table(float32, float64, time):
    lines = [
        "| function | float32, ulp | at x | above 1 ulp | float64, ulp | at x | above 1 ulp | operations | ns, AVX-512 | ns, AVX2 |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, single in float32.items():
        if name in EXACT or name.startswith("d ") and name[2:] in EXACT:
            continue
        double, cost = float64[name], time[name]
        if single[4] or double[4]:  # held to an absolute bound
            ulps = ["-"] * 6
        else:
            ulps = [single[0], short(single[1]), single[2], double[0], short(double[1]), double[2]]
        counts = [text.replace(", 0", "").replace(", 1", ", 1 division").replace(", 2", ", 2 divisions") for text in (cost[0], cost[4])]
        cells = [name, *ulps, f"{counts[0]} / {counts[1]}", f"{cost[3]} / {cost[7]}", f"{cost[2]} / {cost[6]}"]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def absolute_table(float32, float64):
    lines = [
        "| function | float32, 2^-24 max(1, abs x) | at x | float64, 2^-53 max(1, abs x) | at x | bound |",
        "|---|---|---|---|---|---|",
    ]
    for name, single in float32.items():
        double = float64[name]
        if not (single[4] or double[4]):
            continue
        error = [cells[4].split(" ")[0] if cells[4] else "below 8 ulp" for cells in (single, double)]
        where = [short(cells[5]) if cells[5] else "" for cells in (single, double)]
        bound = (single[4] or double[4]).split("bound ")[1].rstrip(")")
        lines.append(f"| {name} | {error[0]} | {where[0]} | {error[1]} | {where[1]} | {bound} |")
    return lines


def main(float32_path, float64_path, time_path, document):
    float32, float64, time = rows(float32_path), rows(float64_path), rows(time_path)
    differ = [name for table in (float32, float64) for name, cells in table.items() if cells[-1] != "0"]
    if differ:
        sys.exit(f"bits differ between instruction sets: {', '.join(differ)}")
    counts = f"Arguments: {float32['exp'][-2]} in float32, {float64['exp'][-2]} in float64."
    body = [counts, "", *errors_table(float32, float64, time), "", "Held to an absolute bound:", ""]
    body += absolute_table(float32, float64)
    text = Path(document).read_text()
    before, rest = text.split(BEGIN)
    Path(document).write_text(before + BEGIN + "\n" + "\n".join(body) + "\n" + END + rest.split(END)[1])


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
