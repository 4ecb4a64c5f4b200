#!/usr/bin/env python3
"""Whether each source of a build compiles by itself, without what its neighbours include before it.

usage: check_sources.py FOLDER JOBS
FOLDER is configured with LOCKSTEP_TOGETHER=OFF and CMAKE_EXPORT_COMPILE_COMMANDS=ON; nothing in it is built.
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor


def checked(entry):
    """What the compiler says of one source; nothing where that is well."""
    command = [word for word in shlex.split(entry["command"]) if not re.match("-O|-W", word)]
    at = command.index("-o")
    command[at:at + 2] = ["-fsyntax-only", "-w"]
    run = subprocess.run(command, cwd=entry["directory"], capture_output=True, text=True, check=False)
    return "" if run.returncode == 0 else run.stderr or f"{entry['file']}: {command[0]} ended with {run.returncode}"


def main():
    folder, jobs = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    sources = {entry["file"]: entry for entry in json.loads((folder / "compile_commands.json").read_text())}
    # Of the libraries, the tool and the bindings: those that the build writes, and examples that read such, are not there.
    root = pathlib.Path(__file__).resolve().parent.parent
    own = (f"{root}/lockstep/", f"{root}/bindings/")
    sources = {file: entry for file, entry in sources.items() if file.startswith(own)}
    with ThreadPoolExecutor(jobs) as pool:
        faults = [fault for fault in pool.map(checked, sources.values()) if fault]
    print("".join(faults), end="")
    if faults or not sources:
        sys.exit(f"{len(faults)} of {len(sources)} sources do not compile by themselves")
    print(f"   {len(sources)} sources compile by themselves")


main()
