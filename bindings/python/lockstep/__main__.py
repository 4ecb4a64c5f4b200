"""The command line tool: `lockstep ...` of an installed wheel, and `python -m lockstep ...`."""

from __future__ import annotations

import sys

from . import _lockstep


def main() -> int:
    return _lockstep.run_tool(["lockstep", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
