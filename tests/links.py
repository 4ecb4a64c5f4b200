"""Every relative link in the repository's Markdown files must lead to a file.  usage: links.py ROOT"""
import os
import re
import subprocess
import sys

root = sys.argv[1]
pages = subprocess.run(["git", "-C", root, "ls-files", "*.md"], capture_output=True, text=True).stdout.split("\n")
pages = [page for page in pages if page]
if not pages:  # an unpacked archive has no git
    pages = [os.path.relpath(os.path.join(folder, name), root) for folder in (root, os.path.join(root, "docs"))
             for name in os.listdir(folder) if name.endswith(".md")]
checked, broken = 0, []
for page in pages:
    with open(os.path.join(root, page), encoding="utf-8") as f:
        prose = re.sub(r"```[^`]*```|`[^`]*`|^    [^\n]*$", "", f.read(), flags=re.MULTILINE)
        for target in re.findall(r"\]\(([^)#\s]+)", prose):
            if "://" in target:
                continue
            checked += 1
            if not os.path.exists(os.path.join(root, os.path.dirname(page), target)):
                broken.append(f"{page}: {target}")
print(f"{checked} links in {len(pages)} pages", *broken, sep="\n")
sys.exit(1 if broken or checked < 10 else 0)
