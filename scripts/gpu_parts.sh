#!/usr/bin/env bash
# Sourced by gpu_check.sh: a function for each of its parts, and what they do it with. Each ends in rows of the report
# (gpu_report.sh).
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

# told SECONDS COMMAND...: what it says, also where it was stopped
told() {
  within "$@" 2>&1
  local code=$?
  case $code in 124 | 137) echo "not done in time" ;; esac
  return $code
}
# solve SECONDS PROBLEM DEVICE OUTPUT [FLAGS]
solve() { told "$1" "$bin/lockstep" solve "$2" --device "$3" --output "$4" --overwrite --quiet "${@:5}"; }
# The verdict, without how far a long comparison has come.
validate() { told 60 "$bin/lockstep" validate "$@" | sed '/^comparing /d'; }

judge() {
  cat "$work"/{speed,peers}.jsonl >"$work/judged.jsonl" 2>/dev/null
  "$bin/gpu_verdict" "$work/judged.jsonl" >"$work/questions.json" 2>"$work/answers.txt" ||
    echo '[]' >"$work/questions.json"
}

# rows_into FILE SECONDS PROGRAM...: its rows, each into the file and the report as it comes, so that a kill of this
# script keeps them. What a kill of the program leaves of a line is no row.
rows_into() {
  local line
  : >"$work/rows"
  within "${@:2}" 2>"$work/rows.log" | while IFS= read -r line; do
    [[ $line == '{'*'}' ]] || continue
    printf '%s\n' "$line" | tee -a "$work/rows" >>"$1"
    write_report running
  done
  return "${PIPESTATUS[0]}"
}

# measure NAME SECONDS PROGRAM...: its rows beside the others
measure() {
  has_time "$1" || return
  local code count
  rows_into "$work/speed.jsonl" "${@:2}"
  code=$?
  count=$(wc -l <"$work/rows")
  judge
  case $code in
  0) row "$1" passed "$count rows" ;;
  124 | 137) row "$1" failed "not done in time, after $count rows" ;;
  *)
    row "$1" failed "code $code: $(grep -m 1 -E '"failed": ?[1-9]|"error_text"' "$work/rows") $(tail -n 1 "$work/rows.log")"
    keep "$1" "$work/rows.log"
    ;;
  esac
}
speed() {
  local workload
  measure "the card's peaks" 60 "$bin/gpu_peak"
  measure "timings of a net" 60 "$bin/gpu_mlp"
  # On the report's disk, whatever /tmp is.
  mkdir -p "$report.files"
  for workload in lorenz neural lorenz_rk4 wide_net stiff file; do  # each by itself: an error on the device ends a process
    measure "timings: $workload" 90 "$bin/gpu_bench" --only "$workload" --folder "$report.files" \
      --model "$here/examples/lorenz/lorenz_tanh_3_100_3.safetensors"
  done
  rm -rf "$report.files"
  cat "$work/answers.txt"
}

# Other libraries on the same card, where Python has them: the rows that a question needs come first, and those that an
# earlier run made are not made again.
# other_libraries NAME
other_libraries() {
  local name=$1 seconds=$(($(left) - 15)) code
  touch "$work/peers.jsonl"
  if ! LD_LIBRARY_PATH=$theirs "$python" -c 'import numpy' 2>/dev/null; then
    row "$name" skipped "no $python with numpy, torch, jax or diffrax: set LOCKSTEP_GPU_PYTHON"
    return
  fi
  has_time "$name" 35 || return
  grep -v '"workload": "\(summary\|all\)"' "$work/peers.jsonl" >"$work/kept.jsonl"
  cp "$work/kept.jsonl" "$work/peers.jsonl"
  LD_LIBRARY_PATH=$theirs rows_into "$work/peers.jsonl" "$(left)" "$python" "$here/benchmarks/gpu_peers.py" \
    --total "$seconds" --row-limit 40 --kept "$work/kept.jsonl"
  code=$?
  judge
  if [ $code = 0 ]; then
    row "$name" passed "$(grep -c '"best"' "$work/peers.jsonl") timings, $(grep -c '"error"' "$work/peers.jsonl") failed"
  else
    row "$name" failed "code $code: $(tail -n 1 "$work/rows.log")"
    keep "$name" "$work/rows.log"
  fi
  grep -q '"all rows were tried"' "$work/peers.jsonl" || cut_short 20
}
peers() { other_libraries "other libraries"; }
more_peers() { other_libraries "other libraries, the rest"; }

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
  if within 60 "$ncu" --clock-control none --csv --page raw --kernel-name regex:evaluate --metrics "$metrics" \
    "$bin/gpu_mlp" --once >"$work/ncu.txt" 2>&1 && grep '^"' "$work/ncu.txt" >"$table"; then
    row "$name" passed "$(($(wc -l <"$table") - 2)) launches in $(basename "$table")"
  else
    row "$name" skipped "$(grep -m 1 '^==ERROR==' "$work/ncu.txt" || tail -n 1 "$work/ncu.txt")"
    rm -f "$table"
  fi
}

# ending CODE LOG: how a program of tests failed, and where
ending() {
  {
    case $1 in
    124 | 137) echo "not done in time: $(grep 'RUN  ' "$2" | tail -n 1)" ;;
    1) grep -m 1 -A 4 'Failure$' "$2" ;;
    *) echo "ended with $1: $(grep 'RUN  ' "$2" | tail -n 1)" ;;
    esac
    grep '^\[  FAILED  \] [^ ]* (' "$2" | head -n 3
  } | tr '\n' ' '
}
# on_the_card SECONDS PROGRAM FILTER LOG: tests in a process of their own
on_the_card() { LOCKSTEP_TEST_DEVICE=cuda within "$1" "$bin/$2" --gtest_filter="$3" >"$4" 2>&1; }

# run_tests NAME PROGRAM SECONDS FILTER: those that run on a card. Few suites to a process, whose device is lost to it
# after an error.
run_tests() {
  has_time "$1" || return
  local started=$SECONDS code
  on_the_card "$3" "$2" "$4" "$work/tests.log"
  code=$?
  if [ $code = 0 ]; then
    row "$1" passed "$(grep -c '  OK' "$work/tests.log") tests, $(grep -c 'SKIPPED \] [A-Za-z/]*\.[^ ]* (' "$work/tests.log") skipped" \
      $((SECONDS - started))
  else
    row "$1" failed "$(ending $code "$work/tests.log")"
    keep "$1" "$work/tests.log"
    one_by_one "$1" "$2" "$4"
  fi
}
# one_by_one NAME PROGRAM FILTER: after a failure, each test that the log has not as OK once more alone, for it may have
# found a device that another had lost; then the first of those that fail alone under compute-sanitizer.
one_by_one() {
  local all test code first='' pass=0 status=passed rest='' until=$((SECONDS + 45))
  all=$("$bin/$2" --gtest_list_tests --gtest_filter="$3" 2>/dev/null |
    awk '/^[^ ]/ {suite = $1} /^ / {print suite $1}' |
    grep -vxFf <(sed -n 's/^\[ *\(OK\|SKIPPED\) \] \([^ ]*\).*/\2/p' "$work/tests.log"))
  [ -n "$all" ] || return
  for test in $all; do
    if [ $SECONDS -ge $until ] || [ "$(left)" -lt 15 ]; then
      rest=", no time left from $test on"
      break
    fi
    on_the_card 15 "$2" "$test" "$work/alone.log"
    code=$?
    if [ $code = 0 ]; then
      pass=$((pass + 1))
    else
      row "alone: $test" failed "$(ending $code "$work/alone.log")"
      keep "alone: $test" "$work/alone.log"
      first=${first:-$test} status=failed
    fi
  done
  row "$1, one by one" $status "$pass of $(wc -w <<<"$all") pass alone$rest"
  [ -z "$first" ] || sanitize 40 memcheck "$2" "$first" "$first"
}
# Whether anything works here at all.
first() {
  run_tests "a few nets on the device" device_tests 25 'DevicePlanTest.has_the_bits*'
  run_tests "a few solves on the device" cuda_engine_test 25 'DeviceKernels.have_the_same_bits*'
}
tests() {
  run_tests "tests of nets on the device" device_tests 45 'DevicePlan*'
  run_tests "tests of graphs on the device" device_tests 45 'DeviceGraph.*'
  run_tests "kernel tests" cuda_engine_test 60 'DeviceKernels.*:DeviceBatches.*:DeviceErrors.*'
  run_tests "kernel tests, every method" cuda_engine_test 60 'methods/OnTheDevice.*'
  run_tests "kernel tests, tiles" cuda_engine_test 60 'TilesOnTheDevice.*'
  run_tests "kernel tests, tiles on tensor cores" cuda_engine_test 60 'TensorTiles/*:TensorModes.*'
  run_tests "tests of arrays on the device" cuda_engine_test 45 'OnDevice.*:DeviceSolverOnACard.*:OnNoDevice.*'
  run_tests "tests of cuda_gemm" cuda_engine_test 45 'GemmBounds.*:QueuedGemmOnACard.*'
}
# NVRTC compiles what these run. Those that only compile need no card and take minutes: ctest has them.
texts() {
  run_tests "tests of texts on the device" cuda_engine_test 60 'CudaSource.*:KernelSourceText.*:Nvrtc.*:OnACard.*'
  run_tests "tests of texts in modes" cuda_engine_test 90 'TextInModes.*-*are_compiled_by_nvrtc'
  run_tests "tests of texts in sums" cuda_engine_test 90 'SumsWithText.*-*are_compiled_by_nvrtc'
  run_tests "tests of resets on the device" cuda_engine_test 90 'ResetsOnDevice.*-*are_compiled_by_nvrtc'
  run_tests "tests of linearly implicit steps" cuda_engine_test 90 'ImplicitOnDevice.*-*are_compiled_by_nvrtc'
}

# compare NAME PROBLEM: the CPU's file and the GPU's. A solve takes a second or two: one that never ends takes no more of
# the part than 25.
compare() {
  has_time "same bits: $1" || return
  local said
  said=$(solve 25 "$2" cpu "$work/cpu.h5") || { row "same bits: $1" failed "cpu: $said"; return; }
  if ! said=$(solve 25 "$2" cuda "$work/cuda.h5"); then
    if [[ $said == *NVRTC*not\ on* ]]; then row "same bits: $1" skipped "$said"; else row "same bits: $1" failed "cuda: $said"; fi
    return
  fi
  said=$(validate "$work/cpu.h5" "$work/cuda.h5")
  if [[ $said == "same bits"* ]]; then
    row "same bits: $1" passed
  else
    row "same bits: $1" failed "$(printf '%s' "$said" | head -n 2)"
  fi
}
cp "$here"/examples/lorenz/*.safetensors "$work/"
same_bits() {
  local precision system
  for precision in f32 f64; do
    sed "s/^precision.*/precision = \"$precision\"/" "$example" >"$work/net.toml"
    compare "lorenz net, $precision" "$work/net.toml"
    # More than a card holds at once: threads and tiles whose trajectories have ended take the next.
    problem many lorenz "$precision" 200000
    sed -i 's/^save.*/save = 3/' "$work/many.toml"
    compare "200,000 trajectories of lorenz, $precision" "$work/many.toml"
    sed 's/^trajectories.*/trajectories = 40000/; s/^save.*/save = 3/; s/^name.*/name = "dop853"/
      s/^span.*/span = { start = 0, end = { linspace = { low = 0.1, high = 0.5 } } }/' "$work/net.toml" >"$work/tiles.toml"
    compare "40,000 trajectories of the net in tiles, $precision" "$work/tiles.toml"
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
  said=$(solve 25 "$2" cpu "$work/cpu.h5") || { row "$name" failed "cpu: $said"; return; }
  if ! said=$(solve 25 "$2" cuda "$work/cuda.h5" --engine "$3" --matrix-precision "$4"); then
    if [[ $said == *cuBLASLt* ]]; then row "$name" skipped "$said"; else row "$name" failed "$said"; fi
    return
  fi
  local result=passed
  said=$(validate "$work/cpu.h5" "$work/cuda.h5") || result=failed
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
ocean() { told 25 "$bin/ocean_column_cuda" "$@"; }
oceans() {
  local form said name expected model
  # 162 tiles of 128 columns: the size of tile that large batches take.
  expected=$(CUDA_VISIBLE_DEVICES='' ocean 144 144 2 | grep checksum)
  for form in header library; do
    name="same bits: an ocean with a net, by $form" model=()
    has_time "$name" || continue
    [ $form = header ] || model=("$here/examples/ocean_column/closure.safetensors")
    said=$(ocean 144 144 2 ${model[@]+"${model[@]}"})
    if [ -n "$expected" ] && [[ $said == *"on the card"*"$expected"* ]]; then
      row "$name" passed "$(ocean 1024 1024 24 ${model[@]+"${model[@]}"} | grep 'on the card')"
    else
      row "$name" failed "$(printf '%s' "$said" | tail -n 1)"
    fi
  done
}
bits() { same_bits; oceans; }

# What NVIDIA's sanitizer sees: accesses out of bounds, races in shared memory, barriers that threads miss.
# sanitize SECONDS TOOL PROGRAM TESTS OF-WHAT
sanitize() {
  local name="compute-sanitizer: $2 of $5" code program options=()
  has_time "$name" 30 || return
  program=$(PATH=$PATH:/usr/local/cuda/bin command -v compute-sanitizer) || { row "$name" skipped "not installed"; return; }
  # Calls that fail on purpose are answered by the tests.
  [ "$2" != memcheck ] || options=(--report-api-errors no)
  LOCKSTEP_TEST_DEVICE=cuda within "$1" "$program" --tool "$2" ${options[@]+"${options[@]}"} --error-exitcode 9 \
    "$bin/$3" --gtest_filter="$4" >"$work/sanitizer.log" 2>&1
  code=$?
  case $code in
  0) row "$name" passed "$(grep -m 1 'ERROR SUMMARY\|RACECHECK SUMMARY' "$work/sanitizer.log")" ;;
  9)
    row "$name" failed "$(grep '^=========' "$work/sanitizer.log" | head -n 3 | tr '\n' ' ')"
    keep "$name" "$work/sanitizer.log"
    ;;
  124 | 137) row "$name" skipped "not done in time" ;;
  *)  # it found nothing, and cannot run this program here: the tests by themselves say whether they pass
    row "$name" skipped "no verdict, ended with $code: $(grep -m 1 -i 'error\|not supported' "$work/sanitizer.log")"
    keep "$name" "$work/sanitizer.log"
    ;;
  esac
}
nets='DevicePlanTest.has_the_bits*:DevicePlanTest.stays_within*'
memory() {
  sanitize 90 memcheck device_tests "$nets" nets
  sanitize 90 memcheck cuda_engine_test '*Device*.*for_every_count_of_trajectories' solves
  sanitize 90 memcheck device_tests 'DeviceGraph.takes_every_batch*' graphs
}
races() {
  local tool
  sanitize 90 racecheck device_tests "$nets" nets
  sanitize 90 memcheck cuda_engine_test 'QueuedGemmOnACard.*' "graphs that repeat themselves"
  sanitize 90 memcheck cuda_engine_test 'TextInModes.a_text_stops*' texts  # cuda_gemm and tiles, with NVRTC
  for tool in racecheck synccheck; do
    sanitize 90 $tool cuda_engine_test '*Device*.*for_every_count_of_trajectories' solves
    sanitize 90 $tool device_tests 'DeviceGraph.takes_every_batch*' graphs
  done
  sanitize 90 synccheck device_tests "$nets" nets
}

# Does `auto` take the faster engine? A wrong choice may cost no more than twice the time of the right one. First by the
# figures that are built in, then by those of this machine.
solve_seconds() {
  local began
  began=$(date +%s.%N)
  solve 120 "$1" "$2" "$work/choice.h5" >/dev/null || { echo none; return; }
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
      said=$(told 120 "$bin/lockstep" calibrate) || { row "calibrate" failed "$said"; continue; }
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
