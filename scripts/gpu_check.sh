#!/usr/bin/env bash
# Checks the CUDA engine on this machine's GPU, in parts, the most telling first: a first few tests, timings with an
# answer to each question of speed, other libraries on the same card as far as a question needs them, the kernels' tests,
# the same bits as the CPU's, certificates, kernels that come as text, memory under compute-sanitizer, races, hardware
# counters, choices, the rest of the other libraries. Run it in a bundle (scripts/gpu_bundle.sh):
#   gpu_check.sh [--part NAME]... [--fresh] [REPORT.json]
# REPORT is gpu_check.json beside this script otherwise. It is written anew after every check, so that a kill keeps what
# was done; beside it REPORT.log, what programs that failed had said, REPORT.clocks.csv, the card's clocks and power all
# the while, and REPORT.counters.csv. A report of the same commit and card is continued: the parts that are done in it
# are left out, --part does one again, --fresh all of them.
#   LOCKSTEP_GPU_SECONDS   how long all of it may take (540); each part has a limit of its own, too
#   LOCKSTEP_GPU_PYTHON    the Python that has torch, jax or diffrax (python3)
# Exit code 0: what ran passed; 1: something failed; 2: parts are left for another run, the rest passed; 3: there is no
# device to check. Then what needs none is checked all the same: that the programs run here, and what a CPU says to the
# kernels' source.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
theirs=${LD_LIBRARY_PATH:-}  # for programs that are not the bundle's
bin=$here/bin
programs="lockstep cuda_engine_test device_tests gpu_peak gpu_mlp gpu_bench gpu_verdict ocean_column_cuda"
for program in $programs; do
  [ -x "$bin/$program" ] || { echo "error: no $program in $bin; make a bundle with scripts/gpu_bundle.sh"; exit 1; }
done
export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
# The machine's own libstdc++ where it is new enough: the bundle's asks for a newer C library than the programs do.
"$bin/lockstep" --version >/dev/null 2>&1 || export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$here/lib/c++
export LOCKSTEP_TEST_BODIES=$bin
# Each part's own limit in seconds, in the order in which they run.
all_parts="first speed peers tests bits certificates texts memory races counters choices more_peers"
seconds_of() {
  case $1 in
  first) echo 60 ;; speed) echo 180 ;; peers) echo 90 ;; tests) echo 240 ;; bits) echo 150 ;; certificates) echo 90 ;;
  texts) echo 150 ;; memory) echo 100 ;; races) echo 200 ;; counters) echo 60 ;; choices) echo 240 ;;
  more_peers) echo 150 ;;
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
if [ -z "${VIRTUAL_ENV:-}${CONDA_PREFIX:-}" ] && prefix=$(LD_LIBRARY_PATH=$theirs "$python" -c 'import sys; print(sys.prefix)' 2>/dev/null); then
  export VIRTUAL_ENV=$prefix
fi
work=$(mktemp -d)
clocks=
trap 'rm -rf "$work"; [ -z "$clocks" ] || kill "$clocks" 2>/dev/null' EXIT
rows=() failed=0 cut=
device=none part=device part_end=$limit
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
# cut_short SECONDS: whether the end of all, not the part's own, leaves it less; another run may have the time, but for the
# first part, which had all that a run has
cut_short() {
  [ "$part" != "${asked[0]:-}" ] && [ "$limit" -lt "$part_end" ] && [ "$(left)" -lt "$1" ] && cut=yes
}
say() { printf '%s\n' "$*"; }
# has_time NAME [SECONDS]: or a row that says why not
has_time() {
  [ "$(left)" -ge "${2:-10}" ] && return
  cut_short "${2:-10}"
  row "$1" skipped "no time left for this part"
  return 1
}
# keep NAME FILE: what a program that failed had said, its beginning and its end
keep() {
  local most=200000
  {
    echo "== $1"
    if [ "$(wc -c <"$2")" -le $((2 * most)) ]; then cat "$2"; else head -c $most "$2"; printf '\n[...]\n'; tail -c $most "$2"; fi
    echo
  } >>"${report%.json}.log"
}
source "$here/gpu_report.sh"
source "$here/gpu_parts.sh"

example=$here/examples/lorenz/ensemble.toml
timeout -k 5 60 "$bin/gpu_peak" --device >"$work/device.log" 2>&1  # whether there is one: 0, or 3
answer=$?
if [ $answer != 0 ]; then
  [ ! -f "$report" ] || report=${report%.json}.no_device.json  # what a device said stays
  say "no CUDA device can be used here; what needs none is checked"
  if [ $answer = 3 ]; then
    row "device" skipped "$(solve 25 "$example" cuda "$work/first.h5")"
  else
    row "device" failed "gpu_peak --device ended with $answer: $(tail -n 1 "$work/device.log")"
  fi
  # part NAME PROGRAM...: one that measures a device says so where there is none, and ends with 3
  part() {
    local told
    told=$(timeout 60 "${@:2}" 2>&1)
    if [ $? = 3 ]; then row "$1" skipped "$told"; else row "$1" failed "ended otherwise: $told"; fi
  }
  part "the card's peaks" "$bin/gpu_peak"
  part "timings of a net" "$bin/gpu_mlp"
  part "timings" "$bin/gpu_bench" --folder "$work" --model "$here/examples/lorenz/lorenz_tanh_3_100_3.safetensors"
  # on_cpu NAME COMMAND...
  on_cpu() {
    if timeout "$(left)" "${@:2}" >"$work/cpu.log" 2>&1; then
      row "$1" passed
    else
      row "$1" failed "$(tail -n 3 "$work/cpu.log")"
    fi
  }
  on_cpu "tests of nets and graphs on the device, by the CPU" "$bin/device_tests" --gtest_filter='Device*'
  on_cpu "kernel tests, by the CPU" "$bin/cuda_engine_test" --gtest_filter='DeviceKernels.*:DeviceErrors.*:GemmErrors.*'
  on_cpu "an ocean with a net, by the CPU" "$bin/ocean_column_cuda" 64 32 24
  said=$(solve 60 "$example" cpu "$work/first.h5") && said=$(solve 60 "$example" cpu "$work/again.h5" --threads 1) &&
    said=$(validate --bits "$work/first.h5" "$work/again.h5")
  if [ $? = 0 ]; then row "solves by the CPU" passed "${said%%$'\n'*}"; else row "solves by the CPU" failed "$said"; fi
  for part in $all_parts; do row "$part" skipped "no device"; done
  write_report no_device
  say "results: $report"
  exit $((failed ? 1 : 3))
fi
device=$(LD_LIBRARY_PATH=$theirs nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1)
device=${device:-$(sed -n 's/.*"name": "\([^"]*\)".*/\1/p' "$work/device.log")}
device=${device:-unknown}
say "device: $device"
read_report
forget device
said=$(solve 60 "$example" cuda "$work/first.h5") || row "a first solve on the device" failed "$said"
# Read, never set. Ends by itself, should this script be killed.
if command -v nvidia-smi >/dev/null; then
  LD_LIBRARY_PATH=$theirs timeout $((limit + 60)) nvidia-smi --format=csv -lms 500 \
    --query-gpu=timestamp,clocks.sm,clocks.mem,power.draw,temperature.gpu,clocks_event_reasons.active \
    >>"${report%.json}.clocks.csv" 2>&1 </dev/null &
  clocks=$!
fi

if [ ${#asked[@]} = 0 ]; then
  for part in $all_parts; do [[ " $done_parts " == *" $part "* ]] || asked+=("$part"); done
fi
judge
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
  cut=''
  "$part"
  cut_short 1
  if [ -n "$cut" ]; then
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
