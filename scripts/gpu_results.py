#!/usr/bin/env python3
"""One table of what gpu_check.sh's reports of one card and commit say, for benchmarks/results/:
gpu_results.py REPORT.json... >benchmarks/results/CARD-DATE.json"""
import json
import sys


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    reports = []
    for path in sys.argv[1:]:
        with open(path) as file:
            reports.append(json.load(file))
    of = {(report["device"], report["commit"]) for report in reports}
    if len(of) != 1:
        sys.exit(f"error: reports of more than one card or commit: {sorted(of)}")
    device, commit = of.pop()
    first = max(reports, key=lambda report: len(report["measured"]))
    heads = {"device": device, "commit": commit, "date": max(report["date"] for report in reports)}
    lists = {"rows": [row for report in reports for row in report["rows"]], "questions": first["questions"],
             "measured": first["measured"]}
    print("{")
    for key, value in heads.items():
        print(f" {json.dumps(key)}: {json.dumps(value)},")
    for key, rows in lists.items():
        lines = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in rows)
        print(f' {json.dumps(key)}: [\n{lines}\n ]{"," if key != "measured" else ""}')
    print("}")


if __name__ == "__main__":
    main()
