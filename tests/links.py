"""Every relative link in the repository's Markdown files must lead to a file, and #this-part to a heading of its page.
usage: links.py ROOT"""
import functools
import os
import re
import subprocess
import sys

root = sys.argv[1]
try:
    listed = subprocess.run(["git", "-C", root, "ls-files", "*.md"], capture_output=True, text=True).stdout
except FileNotFoundError:  # a machine may have none
    listed = ""
pages = [page for page in listed.split("\n") if page]
if not pages:  # an unpacked archive has no git
    pages = [os.path.relpath(os.path.join(folder, name), root) for folder in (root, os.path.join(root, "docs"))
             for name in os.listdir(folder) if name.endswith(".md")]


@functools.cache
def anchors(path):
    """What GitHub makes of a page's headings: words in lower case joined by hyphens, without other marks."""
    with open(path, encoding="utf-8") as f:
        text = re.sub(r"^```.*?^```", "", f.read(), flags=re.MULTILINE | re.DOTALL)
    found, times = set(), {}
    for heading in re.findall(r"^#+ +(.*?) *$", text, re.MULTILINE):
        anchor = re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", heading).lower()).replace(" ", "-")
        times[anchor] = times.get(anchor, -1) + 1
        found.add(f"{anchor}-{times[anchor]}" if times[anchor] else anchor)
    return found


checked, broken = 0, []
for page in pages:
    with open(os.path.join(root, page), encoding="utf-8") as f:
        prose = re.sub(r"```[^`]*```|`[^`]*`|^    [^\n]*$", "", f.read(), flags=re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)", prose):
        if "://" in target:
            continue
        checked += 1
        file, _, part = target.partition("#")
        path = os.path.join(root, os.path.dirname(page), file) if file else os.path.join(root, page)
        if not os.path.exists(path) or (part and path.endswith(".md") and part not in anchors(path)):
            broken.append(f"{page}: {target}")
print(f"{checked} links in {len(pages)} pages", *broken, sep="\n")
sys.exit(1 if broken or checked < 10 else 0)
