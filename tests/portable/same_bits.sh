#!/usr/bin/env bash
# Result files of another machine against this one's: each problem here is solved by the tool, its problem carried to
# portable_solve (on the other machine, or under an emulator), the solution carried back into a result file, and
# `lockstep validate` compares the two.
#   usage: same_bits.sh BIN_FOLDER OUTPUT_FOLDER SOLVER...     SOLVER: portable_solve, or an emulator and portable_solve
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=$1
out=$2
shift 2
mkdir -p "$out"
for problem in "$here"/*.toml; do
  name=$(basename "$problem" .toml)
  "$bin/lockstep" solve "$problem" --output "$out/$name.h5" --overwrite --quiet
  "$bin/portable_carry" out "$out/$name.h5" "$out/$name.problem.rec"
  "$@" "$out/$name.problem.rec" "$out/$name.solution.rec"
  "$bin/portable_carry" back "$out/$name.h5" "$out/$name.solution.rec" "$out/$name.other.h5"
  verdict=$("$bin/lockstep" validate --bits "$out/$name.h5" "$out/$name.other.h5") || {
    printf '%s\n' "$verdict"
    exit 1
  }
  target=$(sed -n 's/^ *cpu_target *//p' <<<"$verdict")
  printf '%s: %s%s\n' "$name" "$(head -n 1 <<<"$verdict")" "${target:+; $target}"
done
