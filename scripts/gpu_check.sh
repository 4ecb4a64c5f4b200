#!/usr/bin/env bash
# Checks the CUDA engine on this machine's GPU, in parts, the most telling first: the kernels' tests, the same bits as
# the CPU's, timings with an answer to each question of speed, other libraries on the same card, certificates,
# compute-sanitizer, hardware counters, choices. Run it inside a bundle (scripts/gpu_bundle.sh) or from a built tree:
#   gpu_check.sh [--part NAME]... [--fresh] [REPORT.json]
# REPORT is gpu_check.json beside this script otherwise. It is written anew after every check, so that a kill keeps what
# was done; beside it REPORT.log, what programs that failed had said, and REPORT.counters.csv. A report of the same
# commit is continued: the parts that are done in it are left out, --part does one again, --fresh all of them.
#   LOCKSTEP_GPU_SECONDS   how long all of it may take (540); each part has a limit of its own, too
#   LOCKSTEP_GPU_PYTHON    the Python that has torch, jax or diffrax (python3)
# Exit code 0: what ran passed; 1: something failed; 2: parts are left for another run, the rest passed; 3: there is no
# device to check. Then what needs none is checked all the same: that the programs run here, and what a CPU says to the
# kernels' source.
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
# Each part's own limit in seconds, in the order in which they run.
all_parts="tests bits speed peers texts certificates sanitizer counters choices"
seconds_of() {
  case $1 in
  tests) echo 200 ;; bits) echo 120 ;; speed) echo 180 ;; peers) echo 420 ;; texts) echo 300 ;; certificates) echo 90 ;;
  sanitizer) echo 300 ;; counters) echo 120 ;; choices) echo 240 ;;
  esac
}
usage() { echo "error: $1; usage: gpu_check.sh [--part NAME]... [--fresh] [REPORT.json], of the parts $all_parts"; exit 1; }
report=$here/gpu_check.json asked=() fresh=
while [ $# -gt 0 ]; do
  case $1 in
  --part)
    [[ " $all_parts " == *" ${2:-} "* ]] && [ -n "${2:-}" ] || usage "no part '${2:-}'"
    asked+=("$2")
    shift
    ;;
  --fresh) fresh=yes ;;
  -*) usage "no option $1" ;;
  *) report=$1 ;;
  esac
  shift
done
python=${LOCKSTEP_GPU_PYTHON:-python3}
limit=${LOCKSTEP_GPU_SECONDS:-540}
# Where that Python keeps NVIDIA's libraries: cuBLASLt and NVRTC may be there alone.
if [ -z "${VIRTUAL_ENV:-}${CONDA_PREFIX:-}" ] && prefix=$("$python" -c 'import sys; print(sys.prefix)' 2>/dev/null); then
  export VIRTUAL_ENV=$prefix
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rows=() failed=0 cut=
part=device part_end=$limit
# Until the end of all, or of the part.
left() {
  local end=$((part_end < limit ? part_end : limit))
  echo $((end - SECONDS > 0 ? end - SECONDS : 0))
}
# within SECONDS COMMAND...: for so long, and for the time that is left. A kernel that never ends takes no more than that.
within() {
  local most=$(($(left) < $1 ? $(left) : $1))
  timeout -k 5 $((most > 0 ? most : 1)) "${@:2}"
}
# cut_short SECONDS: whether the end of all, not the part's own, leaves it less; another run may have the time
cut_short() { [ "$limit" -ge "$part_end" ] || [ "$(left)" -ge "$1" ] || cut=yes; }
say() { printf '%s\n' "$*"; }
# has_time NAME [SECONDS]: or a row that says why not
has_time() {
  [ "$(left)" -ge "${2:-10}" ] && return
  cut_short "${2:-10}"
  row "$1" skipped "no time left for this part"
  return 1
}
# keep NAME FILE: what a program that failed had said
keep() { { echo "== $1"; tail -n 200 "$2"; echo; } >>"${report%.json}.log"; }
source "$here/gpu_report.sh"

device=none
programs="lockstep cuda_engine_test device_graph_plan_test device_plan_test gpu_peak gpu_mlp gpu_bench gpu_verdict"
for program in $programs; do
  [ -x "$bin/$program" ] || { say "error: no $program in $bin; build lockstep_cuda first, and $programs"; exit 1; }
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
solve() { within 120 "$bin/lockstep" solve "$1" --device "$2" --output "$3" --overwrite --quiet "${@:4}" 2>&1; }

example=$root/examples/lorenz/ensemble.toml
read_report
said=$(solve "$example" cuda "$work/first.h5")
first=$?
timeout -k 5 60 "$bin/gpu_peak" --device >/dev/null 2>&1  # no more than whether there is one
if [ $? = 3 ]; then
  [ ! -f "$report" ] || report=${report%.json}.no_device.json  # what a device said stays
  kept=() done_parts=
  say "no CUDA device can be used here; what needs none is checked"
  device=none
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
  for part in $all_parts; do row "$part" skipped "no device"; done
  write_report no_device
  say "results: $report"
  exit $((failed ? 1 : 3))
fi
device=$(LD_LIBRARY_PATH=$theirs nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1)
device=${device:-unknown}
say "device: $device"
forget device
[ $first = 0 ] || row "a first solve on the device" failed "$said"

judge() {
  local files=()
  for file in "$work"/{peak,mlp,bench,peers}.jsonl; do [ ! -f "$file" ] || files+=("$file"); done
  "$bin/gpu_verdict" ${files[@]+"${files[@]}"} >"$work/questions.json"
}
[ ! -s "$work/measured" ] || judge 2>/dev/null

# measure NAME FILE PROGRAM...: rows into FILE.jsonl
measure() {
  has_time "$1" || return
  within 180 "${@:3}" >"$work/$2.jsonl" 2>"$work/$2.log"
  case $? in
  0) row "$1" passed "$(wc -l <"$work/$2.jsonl") rows" ;;
  124 | 137) row "$1" failed "not done in time, after $(wc -l <"$work/$2.jsonl") rows" ;;
  *)
    row "$1" failed "$(grep error_text "$work/$2.jsonl" | head -n 1) $(tail -n 1 "$work/$2.log")"
    keep "$1" "$work/$2.log"
    ;;
  esac
}
speed() {
  measure "the card's peaks" peak "$bin/gpu_peak"
  measure "timings of a net" mlp "$bin/gpu_mlp"
  # On the report's disk, whatever /tmp is.
  mkdir -p "$report.files"
  measure "timings" bench "$bin/gpu_bench" --folder "$report.files" \
    --model "$root/examples/lorenz/lorenz_tanh_3_100_3.safetensors"
  rm -rf "$report.files"
  judge
}

# Other libraries on the same card, where Python has them: the rows that a question needs come first.
peers() {
  local name="other libraries" seconds=$(($(left) - 15)) peers=$root/benchmarks/gpu_peers.py
  if ! LD_LIBRARY_PATH=$theirs "$python" -c 'import numpy' 2>/dev/null; then
    row "$name" skipped "no $python with numpy, torch, jax or diffrax: set LOCKSTEP_GPU_PYTHON"
  elif [ "$seconds" -lt 20 ]; then
    row "$name" skipped "no time left for this part"
  elif LD_LIBRARY_PATH=$theirs timeout -k 10 "$(left)" "$python" "$peers" --total "$seconds" \
    >"$work/peers.jsonl" 2>"$work/peers.log"; then
    row "$name" passed "$(grep -c '"best"' "$work/peers.jsonl") timings, $(grep -c '"error"' "$work/peers.jsonl") failed"
  else
    row "$name" failed "$(tail -n 1 "$work/peers.log")"
    keep "$name" "$work/peers.log"
  fi
  cut_short 20
  judge
}

# What the card itself counts in the kernels of a net: instructions, clocks, and accesses to shared memory with those that
# wait for a bank, beside what docs/cuda.md counted. Into a table beside the report.
counters() {
  local name="hardware counters" ncu table=${report%.json}.counters.csv
  has_time "$name" 30 || return
  ncu=$(PATH=$PATH:/usr/local/cuda/bin command -v ncu || ls /opt/nvidia/nsight-compute/*/ncu 2>/dev/null | tail -n 1)
  [ -n "$ncu" ] || { row "$name" skipped "no ncu"; return; }
  local metrics=smsp__inst_executed.sum,gpc__cycles_elapsed.max,l1tex__data_pipe_lsu_wavefronts_mem_shared.sum
  metrics+=,l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum
  # The card's clocks are left as they are.
  if within 90 "$ncu" --clock-control none --csv --page raw --kernel-name regex:evaluate --launch-count 40 --metrics "$metrics" \
    "$bin/gpu_mlp" >"$work/ncu.txt" 2>&1 && grep '^"' "$work/ncu.txt" >"$table"; then
    row "$name" passed "$(($(wc -l <"$table") - 2)) launches in $(basename "$table")"
  else
    row "$name" skipped "$(grep -m 1 '^==ERROR==' "$work/ncu.txt" || tail -n 1 "$work/ncu.txt")"
    rm -f "$table"
  fi
}

# run_tests NAME PROGRAM SECONDS [FILTER]: those that run on a card; others of the program run as everywhere
run_tests() {
  has_time "$1" || return
  local started=$SECONDS code
  LOCKSTEP_TEST_DEVICE=cuda within "$3" "$bin/$2" --gtest_filter="${4:-*}" >"$work/tests.log" 2>&1
  code=$?
  if [ $code = 0 ]; then
    row "$1" passed "$(grep -c '  OK' "$work/tests.log") tests, $(grep -c 'SKIPPED \] [A-Za-z/]*\.[^ ]* (' "$work/tests.log") skipped" \
      $((SECONDS - started))
  else
    case $code in 124 | 137) code="not done in time: $(grep 'RUN  ' "$work/tests.log" | tail -n 1) " ;; *) code= ;; esac
    row "$1" failed "$code$(grep -m 3 -E 'FAILED|Failure' "$work/tests.log" | tr '\n' ' ')"
    keep "$1" "$work/tests.log"
  fi
}
tests() {
  run_tests "tests of nets on the device" device_plan_test 60
  run_tests "tests of graphs on the device" device_graph_plan_test 60
  run_tests "kernel tests" cuda_engine_test 150 "-$text_tests:ChoiceOfEngine.*:QueuedGemm.*:QueuedByName.*:GemmEngine.*:GemmModes.*:Compaction.*"
}
# NVRTC compiles some twenty kernels.
text_tests='CudaSource.*:KernelSourceText.*:Nvrtc.*:Compiling.*:OnACard.*:TextInModes.*:SumsWithText.*'
texts() { run_tests "tests of texts on the device" cuda_engine_test 300 "$text_tests"; }

# compare NAME PROBLEM: the CPU's file and the GPU's
compare() {
  has_time "same bits: $1" || return
  local said
  said=$(solve "$2" cpu "$work/cpu.h5") || { row "same bits: $1" failed "cpu: $said"; return; }
  if ! said=$(solve "$2" cuda "$work/cuda.h5"); then
    if [[ $said == *NVRTC*not\ on* ]]; then row "same bits: $1" skipped "$said"; else row "same bits: $1" failed "cuda: $said"; fi
    return
  fi
  said=$("$bin/lockstep" validate "$work/cpu.h5" "$work/cuda.h5" 2>&1)
  if [[ $said == "same bits"* ]]; then
    row "same bits: $1" passed
  else
    row "same bits: $1" failed "$(printf '%s' "$said" | head -n 2)"
  fi
}
cp "$root"/examples/lorenz/*.safetensors "$work/"
same_bits() {
  local precision system
  for precision in f32 f64; do
    sed "s/^precision.*/precision = \"$precision\"/" "$example" >"$work/net.toml"
    compare "lorenz net, $precision" "$work/net.toml"
    for system in lorenz kepler van_der_pol lorenz96 pleiades henon_heiles; do
      problem "$system" "$system" "$precision" 1000
      compare "$system, $precision" "$work/$system.toml"
    done
    # An event by an expression, with a system and with equations: compiled by NVRTC.
    problem event lorenz "$precision" 1000 'initial_state = { box = { low = [-10, -10, 10], high = [10, 10, 30] } }'
    printf '[event]\nfunction = "x^2 + y^2 - 400 - exp(t)"\n' >>"$work/event.toml"
    compare "lorenz with an event, $precision" "$work/event.toml"
    problem equations - "$precision" 1000 'initial_state = { box = { low = [0.5, -1], high = [1.5, 1] } }'
    sed -i 's/^system.*/equations = { x = "v", v = "-sin(x) - 0.1 * v * t" }/' "$work/equations.toml"
    printf '[event]\nfunction = "x^2 + v^2 - 0.9 * exp(-t)"\n' >>"$work/equations.toml"
    compare "equations with an event, $precision" "$work/equations.toml"
  done
}

# The engine cuda_gemm and the modes of tensor cores have bits of their own: the certificate decides.
# certify NAME PROBLEM ENGINE MODE
certify() {
  local said name="certificate: $1 by $3, $4"
  has_time "$name" || return
  said=$(solve "$2" cpu "$work/cpu.h5") || { row "$name" failed "cpu: $said"; return; }
  if ! said=$(solve "$2" cuda "$work/cuda.h5" --engine "$3" --matrix-precision "$4"); then
    if [[ $said == *cuBLASLt* ]]; then row "$name" skipped "$said"; else row "$name" failed "$said"; fi
    return
  fi
  local result=passed
  said=$("$bin/lockstep" validate "$work/cpu.h5" "$work/cuda.h5" 2>&1) || result=failed
  row "$name" $result "$(printf '%s' "$said" | head -n 2)"
}
certificates() {
  local precision mode engine
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
}

# A net inside the kernels of a program of its own, as an exported header and by the library: the CPU's checksum.
ocean() { within 120 "$bin/ocean_column_cuda" "$@" 2>&1; }
oceans() {
  local form said name expected model
  expected=$(CUDA_VISIBLE_DEVICES='' ocean 64 32 24 | grep checksum)
  for form in header library; do
    name="same bits: an ocean with a net, by $form" model=()
    has_time "$name" || continue
    [ $form = header ] || model=("$root/examples/ocean_column/closure.safetensors")
    said=$(ocean 64 32 24 ${model[@]+"${model[@]}"})
    if [ -n "$expected" ] && [[ $said == *"on the card"*"$expected"* ]]; then
      row "$name" passed "$(ocean 1024 1024 24 ${model[@]+"${model[@]}"} | grep 'on the card')"
    else
      row "$name" failed "$(printf '%s' "$said" | tail -n 1)"
    fi
  done
}
bits() { same_bits; oceans; }

# What NVIDIA's sanitizer sees: accesses out of bounds, races in shared memory, barriers that threads miss.
# sanitize TOOL PROGRAM TESTS
sanitize() {
  local name="compute-sanitizer: $1 of $2" code
  has_time "$name" 30 || return
  LOCKSTEP_TEST_DEVICE=cuda within 90 "$sanitizer" --tool "$1" --error-exitcode 9 \
    "$bin/$2" --gtest_filter="$3" >"$work/sanitizer.log" 2>&1
  code=$?
  case $code in
  0) row "$name" passed "$(grep -m 1 'ERROR SUMMARY\|RACECHECK SUMMARY' "$work/sanitizer.log")" ;;
  124 | 137) row "$name" skipped "not done in time" ;;
  *)
    row "$name" failed "$(grep '^=========' "$work/sanitizer.log" | head -n 3 | tr '\n' ' ')"
    keep "$name" "$work/sanitizer.log"
    ;;
  esac
}
sanitizer() {
  local sanitizer tool
  sanitizer=$(PATH=$PATH:/usr/local/cuda/bin command -v compute-sanitizer)
  if [ -n "$sanitizer" ]; then
    for tool in memcheck racecheck synccheck; do
      sanitize "$tool" cuda_engine_test '*Device*.*for_every_count_of_trajectories'
      sanitize "$tool" device_plan_test 'DevicePlanTest.has_the_bits*:DevicePlanTest.stays_within*'
      sanitize "$tool" device_graph_plan_test 'DeviceGraph.takes_every_batch*'
    done
    sanitize memcheck cuda_engine_test 'TextInModes.a_text_stops*'  # cuda_gemm and tiles, with NVRTC
    sanitize memcheck cuda_engine_test 'QueuedGemmOnACard.*'        # graphs that repeat themselves
  else
    row "compute-sanitizer" skipped "not installed"
  fi
}

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
  has_time "choice: $1, $3" 30 || return
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
choices() {
  local figures trajectories said
  for figures in "built-in figures" "calibrated"; do
    if [ "$figures" = calibrated ]; then
      has_time "calibrate" 30 || continue
      said=$(within 120 "$bin/lockstep" calibrate 2>&1) || { row "calibrate" failed "$said"; continue; }
      row "calibrate" passed
    fi
    for trajectories in 100 10000 1000000; do
      problem choice lorenz f64 "$trajectories"
      choice "lorenz, $trajectories" "$work/choice.toml" "$figures"
      sed "s/^trajectories.*/trajectories = $trajectories/; s/^save.*/save = 2/" "$example" >"$work/choice_net.toml"
      choice "a net, $trajectories" "$work/choice_net.toml" "$figures"
    done
  done
}

if [ ${#asked[@]} = 0 ]; then
  for part in $all_parts; do [[ " $done_parts " == *" $part "* ]] || asked+=("$part"); done
fi
unfinished=
export XDG_CACHE_HOME=$work/cache  # nothing compiled or calibrated before counts
for part in "${asked[@]+"${asked[@]}"}"; do
  part_end=$((SECONDS + $(seconds_of "$part")))
  if [ "$(left)" -lt 30 ]; then
    say "left for another run: $part"
    unfinished=yes
    continue
  fi
  say "== $part, at most $(left) s"
  forget "$part"
  cut= failed_before=$failed first_row=${#rows[@]}
  "$part"
  cut_short 1
  if [ -n "$cut" ] && [ "$part" != "${asked[0]}" ]; then  # the first had all the time that a run has
    # What seems to have failed may only have been stopped; where it was not, it fails again.
    failed=$failed_before
    for ((i = first_row; i < ${#rows[@]}; ++i)); do
      rows[i]=${rows[i]/'"status": "failed"'/'"status": "skipped"'}
    done
    say "left for another run: the rest of $part"
    unfinished=yes
  else
    done_parts+="${done_parts:+ }$part"
  fi
  write_report running
done
part=end result=passed
[ -z "$unfinished" ] || result=unfinished
if [ $failed = 1 ] || printf '%s\n' "${kept[@]+"${kept[@]}"}" | grep -q '"status": "failed"'; then result=failed; fi
write_report "$result"
say "results: $report ($result)"
[ $failed = 0 ] || exit 1
[ -z "$unfinished" ] || exit 2
