#!/usr/bin/env bash
# Checks the CUDA engine on this machine's GPU: timings with an answer to each question of speed, every test of the
# kernels, the same bits as the CPU over problems in both precisions, compute-sanitizer and other libraries where they
# are installed. Run it inside a bundle (scripts/gpu_bundle.sh) or from a built tree. Writes gpu_check.json beside
# itself, or where the first argument says: after the first minute already, and again at the end.
#   LOCKSTEP_GPU_SECONDS   how long all of it may take (540): what no longer fits is left out, and named
#   LOCKSTEP_GPU_PYTHON    the Python that has torch, jax or diffrax (python3)
# Exit code 0: all passed; 1: something failed; 3: there is no device to check. Then what needs none is checked all the
# same: that the programs run here, and what a CPU says to the kernels' source.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
theirs=${LD_LIBRARY_PATH:-}  # for programs that are not the bundle's
if [ -x "$here/bin/lockstep" ]; then
  root=$here
  export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  bin=$here/bin
  # The machine's own libstdc++ where it is new enough: the bundle's asks for a newer C library than the programs do.
  "$bin/lockstep" --version >/dev/null 2>&1 || export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$here/lib/c++
  export LOCKSTEP_TEST_BODIES=$bin
else
  root=$(cd "$here/.." && pwd)
  bin=${LOCKSTEP_BUILD:-$root/build}/bin
fi
report=${1:-$here/gpu_check.json}
python=${LOCKSTEP_GPU_PYTHON:-python3}
limit=${LOCKSTEP_GPU_SECONDS:-540}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rows=() failed=0
left() { echo $((limit - SECONDS)); }

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
    printf '{"device": "%s", "seconds": %d, "commit": "%s", "date": "%s", "result": "%s",\n "rows": [\n' "$(text "$device")" "$SECONDS" \
      "$(cat "$root/commit" 2>/dev/null || git -C "$root" rev-parse HEAD 2>/dev/null || echo unknown)" \
      "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$1"
    local separator=
    for line in "${rows[@]+"${rows[@]}"}"; do printf '%s  %s' "$separator" "$line"; separator=$',\n'; done
    printf '\n ],\n "questions": %s,\n "measured": [' "$(cat "$work/questions.json" 2>/dev/null || echo '[]')"
    cat "$work"/{peak,mlp,bench,peers}.jsonl 2>/dev/null | sed -n '/^{.*}$/p' | sed '$!s/$/,/; s/^/\n  /'
    printf ' ]}\n'
  } >"$report" || { say "error: cannot write $report"; exit 1; }
  say "results: $report"
}

device=none
for program in lockstep cuda_engine_test device_graph_plan_test device_plan_test gpu_peak gpu_mlp gpu_bench gpu_verdict; do
  [ -x "$bin/$program" ] && continue
  say "error: no $program in $bin; build lockstep_cuda and these first:"
  say "  lockstep cuda_engine_test device_graph_plan_test device_plan_test gpu_peak gpu_mlp gpu_bench gpu_verdict"
  exit 1
done

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

# solve PROBLEM DEVICE OUTPUT [FLAGS]: prints what the tool says
solve() { "$bin/lockstep" solve "$1" --device "$2" --output "$3" --overwrite --quiet "${@:4}" 2>&1; }

example=$root/examples/lorenz/ensemble.toml
said=$(solve "$example" cuda "$work/first.h5")
if [ $? -ne 0 ]; then
  say "no CUDA device can be used here; what needs none is checked"
  row "device" skipped "$said"
  # part NAME PROGRAM...: one that measures a device says so where there is none, and ends with 3
  part() {
    local told
    told=$(timeout 60 "${@:2}" 2>&1)
    if [ $? = 3 ]; then row "$1" skipped "$told"; else row "$1" failed "ended otherwise: $told"; fi
  }
  part "the card's peaks" "$bin/gpu_peak"
  part "timings of a net" "$bin/gpu_mlp"
  part "timings" "$bin/gpu_bench" --folder "$work" --model "$root/examples/lorenz/lorenz_tanh_3_100_3.safetensors"
  # on_cpu NAME COMMAND...
  on_cpu() {
    if timeout "$(left)" "${@:2}" >"$work/cpu.log" 2>&1; then
      row "$1" passed
    else
      row "$1" failed "$(tail -n 3 "$work/cpu.log")"
    fi
  }
  on_cpu "tests of nets on the device, by the CPU" "$bin/device_plan_test"
  on_cpu "tests of graphs on the device, by the CPU" "$bin/device_graph_plan_test"
  on_cpu "kernel tests, by the CPU" "$bin/cuda_engine_test" --gtest_filter='DeviceKernels.*:DeviceErrors.*:GemmErrors.*'
  on_cpu "an ocean with a net, by the CPU" "$bin/ocean_column_cuda" 64 32 24
  said=$(solve "$example" cpu "$work/first.h5") && said=$(solve "$example" cpu "$work/again.h5" --threads 1) &&
    said=$("$bin/lockstep" validate --bits "$work/first.h5" "$work/again.h5" 2>&1)
  if [ $? = 0 ]; then row "solves by the CPU" passed "${said%%$'\n'*}"; else row "solves by the CPU" failed "$said"; fi
  for name in "same bits" "certificates" compute-sanitizer choices "other libraries"; do
    row "$name" skipped "no device"
  done
  finish no_device
  exit $((failed ? 1 : 3))
fi
device=$(LD_LIBRARY_PATH=$theirs nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1)
device=${device:-unknown}
say "device: $device"

# Speed first, so that the shortest visit to a card brings the figures home.
if "$bin/gpu_peak" >"$work/peak.jsonl" 2>"$work/peak.log"; then
  row "the card's peaks" passed "$(grep -o '"tflops": [0-9.]*' "$work/peak.jsonl" | tr '\n' ' ')"
else
  row "the card's peaks" failed "$(tail -n 1 "$work/peak.log")"
fi
if timeout 60 "$bin/gpu_mlp" >"$work/mlp.jsonl" 2>"$work/mlp.log"; then
  row "timings of a net" passed "$(wc -l <"$work/mlp.jsonl") rows"
else
  row "timings of a net" failed "$(tail -n 1 "$work/mlp.log")"
fi
if timeout "$(left)" "$bin/gpu_bench" --folder "$(dirname "$report")" \
  --model "$root/examples/lorenz/lorenz_tanh_3_100_3.safetensors" >"$work/bench.jsonl" 2>"$work/bench.log"; then
  row "timings" passed "$(wc -l <"$work/bench.jsonl") rows"
else
  row "timings" failed "$(grep error_text "$work/bench.jsonl" | head -n 1) $(tail -n 1 "$work/bench.log")"
fi
judge() {
  local files=()
  for file in "$work"/{peak,mlp,bench,peers}.jsonl; do [ ! -f "$file" ] || files+=("$file"); done
  "$bin/gpu_verdict" "${files[@]}" >"$work/questions.json"
}
judge
finish first_minute

# tests NAME PROGRAM: those that run on a card; others of the program run as everywhere
tests() {
  local started
  started=$(date +%s.%N)
  if LOCKSTEP_TEST_DEVICE=cuda timeout "$(left)" "$bin/$2" >"$work/tests.log" 2>&1; then
    row "$1" passed "$(grep -c '  OK' "$work/tests.log") tests, $(grep -c 'SKIPPED \] [A-Za-z/]*\.[^ ]* (' "$work/tests.log") skipped" \
      "$(echo "$(date +%s.%N) $started" | awk '{print $1 - $2}')"
  else
    row "$1" failed "$(grep -m 3 -E 'FAILED|Failure' "$work/tests.log" | tr '\n' ' ')"
  fi
}
tests "kernel tests" cuda_engine_test
tests "tests of nets on the device" device_plan_test
tests "tests of graphs on the device" device_graph_plan_test

# compare NAME PROBLEM: the CPU's file and the GPU's
compare() {
  local said
  said=$(solve "$2" cpu "$work/cpu.h5") || { row "same bits: $1" failed "cpu: $said"; return; }
  said=$(solve "$2" cuda "$work/cuda.h5") || { row "same bits: $1" failed "cuda: $said"; return; }
  said=$("$bin/lockstep" validate "$work/cpu.h5" "$work/cuda.h5" 2>&1)
  if [[ $said == "same bits"* ]]; then
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

# The engine cuda_gemm and the modes of tensor cores have bits of their own: the certificate decides.
# certify NAME PROBLEM ENGINE MODE
certify() {
  local said name="certificate: $1 by $3, $4"
  said=$(solve "$2" cpu "$work/cpu.h5") || { row "$name" failed "cpu: $said"; return; }
  if ! said=$(solve "$2" cuda "$work/cuda.h5" --engine "$3" --matrix-precision "$4"); then
    if [[ $said == *cuBLASLt* ]]; then row "$name" skipped "$said"; else row "$name" failed "$said"; fi
    return
  fi
  if said=$("$bin/lockstep" validate "$work/cpu.h5" "$work/cuda.h5" 2>&1); then
    row "$name" passed "$(printf '%s' "$said" | head -n 1)"
  else
    row "$name" failed "$(printf '%s' "$said" | head -n 2)"
  fi
}
for precision in f32 f64; do
  sed "s/^precision.*/precision = \"$precision\"/" "$example" >"$work/net.toml"
  certify "lorenz net in $precision" "$work/net.toml" cuda_gemm f32
done
# Saved before what such a mode rounds has driven trajectories far apart.
sed 's/^span.*/span = [0, 0.04]/; s/^save.*/save = 5/; s/^initial_state.*/initial_state = { normal = { mean = [1, 1, 25], std = 5 } }/
  s/^precision.*/precision = "f32"/' "$example" >"$work/early.toml"
for mode in tf32 bf16 fp16; do
  for engine in cuda_fused cuda_gemm; do certify "lorenz net" "$work/early.toml" "$engine" "$mode"; done
done

# A net inside the kernels of a program of its own, as an exported header and by the library: the CPU's checksum.
ocean() { timeout "$(left)" "$bin/ocean_column_cuda" "$@" 2>&1; }
expected=$(CUDA_VISIBLE_DEVICES='' ocean 64 32 24 | grep checksum)
for form in header library; do
  model=()
  [ $form = header ] || model=("$root/examples/ocean_column/closure.safetensors")
  said=$(ocean 64 32 24 "${model[@]}")
  if [ -n "$expected" ] && [[ $said == *"on the card"*"$expected"* ]]; then
    row "same bits: an ocean with a net, by $form" passed "$(ocean 1024 1024 24 "${model[@]}" | grep 'on the card')"
  else
    row "same bits: an ocean with a net, by $form" failed "$(printf '%s' "$said" | tail -n 1)"
  fi
done

if command -v compute-sanitizer >/dev/null; then
  if LOCKSTEP_TEST_DEVICE=cuda timeout 120 compute-sanitizer --error-exitcode 9 "$bin/cuda_engine_test" \
    --gtest_filter='DeviceKernels.have_the_same_bits_for_every_count*' >"$work/sanitizer.log" 2>&1; then
    row "compute-sanitizer" passed
  else
    row "compute-sanitizer" failed "$(tail -n 3 "$work/sanitizer.log" | tr '\n' ' ')"
  fi
else
  row "compute-sanitizer" skipped "not installed"
fi

# Does `auto` take the faster engine? A wrong choice may cost no more than twice the time of the right one. First by the
# figures that are built in, then by those of this machine.
solve_seconds() {
  local began
  began=$(date +%s.%N)
  solve "$1" "$2" "$work/choice.h5" >/dev/null || { echo none; return; }
  echo "$(date +%s.%N) $began" | awk '{print $1 - $2}'
}
# choice NAME PROBLEM FIGURES
choice() {
  [ "$(left)" -ge 60 ] || { row "choice: $1, $3" skipped "no time left"; return; }
  local cpu cuda chosen
  cpu=$(solve_seconds "$2" cpu) cuda=$(solve_seconds "$2" cuda)
  chosen=$("$bin/lockstep" explain "$2" 2>/dev/null | sed -n 's/^engine *\([a-z_]*\).*/\1/p')
  if [ "$cpu" = none ] || [ "$cuda" = none ] || [ -z "$chosen" ]; then
    row "choice: $1, $3" failed "cpu $cpu s, cuda $cuda s, auto takes ${chosen:-nothing}"
  elif echo "$cpu $cuda $chosen" | awk '{own = $3 == "cpu" ? $1 : $2; other = $3 == "cpu" ? $2 : $1; exit own > 2 * other}'; then
    row "choice: $1, $3" passed "cpu $cpu s, cuda $cuda s, auto takes $chosen"
  else
    row "choice: $1, $3" failed "cpu $cpu s, cuda $cuda s, auto takes $chosen"
  fi
}
export XDG_CACHE_HOME=$work/cache
for figures in "built-in figures" "calibrated"; do
  if [ "$figures" = calibrated ]; then
    said=$(timeout "$(left)" "$bin/lockstep" calibrate 2>&1) || { row "calibrate" failed "$said"; continue; }
    row "calibrate" passed
  fi
  for trajectories in 100 10000 1000000; do
    problem choice lorenz f64 "$trajectories"
    choice "lorenz, $trajectories" "$work/choice.toml" "$figures"
    sed "s/^trajectories.*/trajectories = $trajectories/; s/^save.*/save = 2/" "$example" >"$work/choice_net.toml"
    choice "a net, $trajectories" "$work/choice_net.toml" "$figures"
  done
done

# Other libraries on the same card, where Python has them.
peers=$root/benchmarks/gpu_peers.py
if ! LD_LIBRARY_PATH=$theirs "$python" -c 'import numpy' 2>/dev/null; then
  row "other libraries" skipped "no $python with numpy, torch, jax or diffrax: set LOCKSTEP_GPU_PYTHON"
elif [ "$(left)" -lt 30 ]; then
  row "other libraries" skipped "no time left: raise LOCKSTEP_GPU_SECONDS"
elif LD_LIBRARY_PATH=$theirs "$python" "$peers" --total $(($(left) - 20)) >"$work/peers.jsonl" 2>"$work/peers.log"; then
  row "other libraries" passed "$(grep -c '"best"' "$work/peers.jsonl") timings, $(grep -c '"error"' "$work/peers.jsonl") failed"
else
  row "other libraries" failed "$(tail -n 1 "$work/peers.log")"
fi
judge

if [ $failed = 0 ]; then finish passed; else finish failed; fi
exit $failed
