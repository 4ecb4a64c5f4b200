#!/usr/bin/env bash
# Checks the CUDA engine on this machine's GPU: every test of the kernels, the same bits as the CPU over problems in
# both precisions, compute-sanitizer where it is installed, and timings. Run it inside a bundle (scripts/gpu_bundle.sh)
# or from a built tree. Writes gpu_check.json beside itself, or where the first argument says.
# Exit code 0: all passed; 1: something failed; 3: there is no device to check.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ -x "$here/bin/lockstep" ]; then
  root=$here
  export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  bin=$here/bin
else
  root=$(cd "$here/.." && pwd)
  bin=${LOCKSTEP_BUILD:-$root/build}/bin
fi
report=${1:-$here/gpu_check.json}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rows=() failed=0

say() { printf '%s\n' "$*"; }
text() { printf '%s' "$1" | tr '\n\t' '  ' | sed 's/\\/\\\\/g; s/"/\\"/g'; }  # inside a JSON string
# row NAME STATUS [DETAIL [SECONDS]]
row() {
  rows+=("$(printf '{"name": "%s", "status": "%s", "detail": "%s", "seconds": %s}' \
    "$(text "$1")" "$2" "$(text "${3:-}")" "${4:-null}")")
  printf '%-8s %-44s %s\n' "$2" "$1" "${3:-}"
  [ "$2" != failed ] || failed=1
}
finish() {
  {
    printf '{"device": "%s", "commit": "%s", "date": "%s", "result": "%s",\n "rows": [\n' "$(text "$device")" \
      "$(cat "$root/commit" 2>/dev/null || git -C "$root" rev-parse HEAD 2>/dev/null || echo unknown)" \
      "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$1"
    local separator=
    for line in "${rows[@]+"${rows[@]}"}"; do printf '%s  %s' "$separator" "$line"; separator=$',\n'; done
    printf '\n ]}\n'
  } >"$report" || { say "error: cannot write $report"; exit 1; }
  say "results: $report"
}

device=none
[ -x "$bin/lockstep" ] && [ -x "$bin/cuda_engine_test" ] || {
  say "error: no programs in $bin; build lockstep, lockstep_cuda and cuda_engine_test first"
  exit 1
}

# problem NAME SYSTEM PRECISION TRAJECTORIES [ENSEMBLE-LINE]: a file in $work, trajectories of different lengths
problem() {
  cat >"$work/$1.toml" <<TOML
[rhs]
system = "$2"
[ensemble]
trajectories = $4
${5:-}
[time]
span = { start = 0, end = { linspace = { low = 0.5, high = 2 } } }
save = 11
[method]
precision = "$3"
TOML
}

# solve PROBLEM DEVICE OUTPUT: prints what the tool says
solve() { "$bin/lockstep" solve "$1" --device "$2" --output "$3" --overwrite --quiet 2>&1; }

example=$root/examples/lorenz/ensemble.toml
said=$(solve "$example" cuda "$work/first.h5")
if [ $? -ne 0 ]; then
  say "no CUDA device can be used here; nothing was checked"
  say "  $said"
  row "device" skipped "$said"
  finish no_device
  exit 3
fi
device=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1)
device=${device:-unknown}
say "device: $device"

started=$(date +%s.%N)
if LOCKSTEP_TEST_DEVICE=cuda "$bin/cuda_engine_test" >"$work/tests.log" 2>&1; then
  row "kernel tests" passed "$(grep -c '  OK' "$work/tests.log") tests" "$(echo "$(date +%s.%N) $started" | awk '{print $1 - $2}')"
else
  row "kernel tests" failed "$(grep -m 3 -E 'FAILED|Failure' "$work/tests.log" | tr '\n' ' ')"
fi

# compare NAME PROBLEM: the CPU's file and the GPU's
compare() {
  local said
  said=$(solve "$2" cpu "$work/cpu.h5") || { row "same bits: $1" failed "cpu: $said"; return; }
  said=$(solve "$2" cuda "$work/cuda.h5") || { row "same bits: $1" failed "cuda: $said"; return; }
  said=$("$bin/lockstep" validate "$work/cpu.h5" "$work/cuda.h5" 2>&1)
  if printf '%s' "$said" | grep -q 'same bits'; then
    row "same bits: $1" passed
  else
    row "same bits: $1" failed "$(printf '%s' "$said" | head -n 2)"
  fi
}
cp "$root"/examples/lorenz/*.safetensors "$work/"
for precision in f32 f64; do
  sed "s/^precision.*/precision = \"$precision\"/" "$example" >"$work/net.toml"
  compare "lorenz net, $precision" "$work/net.toml"
  for system in lorenz kepler van_der_pol lorenz96 pleiades henon_heiles; do
    problem "$system" "$system" "$precision" 1000
    compare "$system, $precision" "$work/$system.toml"
  done
done

if command -v compute-sanitizer >/dev/null; then
  if LOCKSTEP_TEST_DEVICE=cuda compute-sanitizer --error-exitcode 9 "$bin/cuda_engine_test" \
    --gtest_filter='DeviceKernels.have_the_same_bits_for_every_count*' >"$work/sanitizer.log" 2>&1; then
    row "compute-sanitizer" passed
  else
    row "compute-sanitizer" failed "$(tail -n 3 "$work/sanitizer.log" | tr '\n' ' ')"
  fi
else
  row "compute-sanitizer" skipped "not installed"
fi

# Timings: whole solves, device start and file included; the better of three.
for precision in f32 f64; do
  problem "time_$precision" lorenz "$precision" 524288 'initial_state = { box = { low = [-10, -10, 10], high = [10, 10, 30] } }'
  for where in cpu cuda; do
    best=
    for _ in 1 2 3; do
      started=$(date +%s.%N)
      said=$(solve "$work/time_$precision.toml" "$where" "$work/time.h5") || { row "time: lorenz $precision, $where" failed "$said"; break; }
      best=$(echo "$(date +%s.%N) $started $best" | awk '{t = $1 - $2; print ($3 == "" || t < $3) ? t : $3}')
    done
    [ -z "$best" ] || row "time: lorenz $precision, 524288 trajectories, $where" passed "$best s" "$best"
  done
done
# Other libraries on the same card, where their script is given and Python has them.
if [ -n "${LOCKSTEP_GPU_PEERS:-}" ]; then
  if python3 "$LOCKSTEP_GPU_PEERS" >"$work/peers.jsonl" 2>"$work/peers.log"; then
    row "peers" passed "$(wc -l <"$work/peers.jsonl") rows in gpu_peers.jsonl"
    cp "$work/peers.jsonl" "$(dirname "$report")/gpu_peers.jsonl"
  else
    row "peers" failed "$(tail -n 1 "$work/peers.log")"
  fi
else
  row "peers" skipped "set LOCKSTEP_GPU_PEERS to a script that prints timings of other libraries"
fi

if [ $failed = 0 ]; then finish passed; else finish failed; fi
exit $failed
