#!/usr/bin/env bash
# Looks for data races: builds tests/threads/ with ThreadSanitizer into build-thread/ and runs it: threads that share
# plans, and load, lower, evaluate, differentiate and fail side by side.
#   usage: scripts/thread_check.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

stage "ThreadSanitizer build, into build-thread/"
launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
cmake -S tests/threads -B build-thread -G Ninja "${launcher[@]}" >/dev/null
ninja -C build-thread -j"$jobs"

stage "threads that share plans, under ThreadSanitizer"
code=0
TSAN_OPTIONS="halt_on_error=1 exitcode=66" build-thread/thread_check testdata/lorenz_tanh_3_100_3.safetensors \
  build-thread/thread_check.plan >build-thread/log.txt 2>&1 || code=$?
if grep -q "FATAL: ThreadSanitizer: unexpected memory mapping" build-thread/log.txt; then
  say "left out: ThreadSanitizer cannot run under this kernel's address randomisation"
  exit 0
fi
if [ $code -ne 0 ]; then
  cat build-thread/log.txt
  fail "threads disturb each other"
fi
say "$(cat build-thread/log.txt); no race found"
