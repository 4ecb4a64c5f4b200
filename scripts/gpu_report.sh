#!/usr/bin/env bash
# Sourced by gpu_check.sh: its report, written after every row, and what an earlier run left of it. Reads and sets that
# script's variables: report, work, here, device, part, fresh, failed.
text() { printf '%s' "$1" | tr '[:cntrl:]' ' ' | sed 's/\\/\\\\/g; s/"/\\"/g'; }  # inside a JSON string
# row NAME STATUS [DETAIL [SECONDS]]. What seems to have failed when the end of a run cuts its part short may only have
# been stopped: another run does it again.
row() {
  if [ "$2" = failed ] && cut_short 1; then set -- "$1" skipped "stopped: ${3:-}"; fi
  rows+=("$(printf '{"part": "%s", "name": "%s", "status": "%s", "detail": "%s", "seconds": %s}' \
    "$part" "$(text "$1")" "$2" "$(text "${3:-}")" "${4:-null}")")
  printf '%-8s %-44s %s\n' "$2" "$1" "${3:-}"
  [ "$2" != failed ] || failed=1
  write_report running
}
commit=$(cat "$here/commit" 2>/dev/null || echo unknown)
# The report, a row a line, so that read_report finds them again.
write_report() {
  {
    printf '{"device": "%s", "seconds": %d, "commit": "%s", "date": "%s", "result": "%s", "done": "%s",\n "rows": [\n' \
      "$(text "$device")" "$((before + SECONDS))" "$commit" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$1" "$done_parts"
    printf '%s\n' "${kept[@]+"${kept[@]}"}" "${rows[@]+"${rows[@]}"}" | sed '/^$/d; s/^/  /; $!s/$/,/'
    printf ' ],\n "questions": %s,\n "measured": [\n' "$(cat "$work/questions.json" 2>/dev/null || echo '[]')"
    cat "$work"/{speed,peers}.jsonl 2>/dev/null | sed -n '/^{.*}$/p' | sed '$!s/$/,/; s/^/  /'
    printf ' ]}\n'
  } >"$report.new" && mv "$report.new" "$report" || { say "error: cannot write $report"; exit 1; }
}
# What an earlier run left: its rows, and what they measured. Nothing of another commit or card; that is put aside.
kept=() done_parts='' before=0
read_report() {
  [ -f "$report" ] || return 0
  if [ -n "$fresh" ] || ! head -n 1 "$report" | grep -F "\"commit\": \"$commit\"" | grep -qF "{\"device\": \"$(text "$device")\""; then
    say "$report begins anew; what it was is now ${report%.json}.old.json"
    mv "$report" "${report%.json}.old.json"
    return 0
  fi
  done_parts=$(sed -n '1s/.*"done": "\([a-z_ ]*\)".*/\1/p' "$report")
  before=$(sed -n '1s/.*"seconds": \([0-9]*\).*/\1/p' "$report")
  before=${before:-0}
  mapfile -t kept < <(sed -n 's/^  \({"part": .*}\),\{0,1\}$/\1/p' "$report")
  # Only other libraries' rows have a "peer" or are their summary.
  sed -n '/"measured": \[/,$s/^  \({.*}\),\{0,1\}$/\1/p' "$report" >"$work/measured"
  grep -E '"peer"|"workload": "summary"' "$work/measured" >"$work/peers.jsonl"
  grep -vE '"peer"|"workload": "summary"' "$work/measured" >"$work/speed.jsonl"
}
# forget PART: before it is done again. Other libraries' rows stay until all were tried or their time was spent; then the
# rest of them is to be done again as well.
forget() {
  local line name others=() names=
  case $1 in
  speed) rm -f "$work/speed.jsonl" ;;
  peers)
    if [[ " $done_parts " == *" peers "* ]]; then
      rm -f "$work/peers.jsonl"
      forget more_peers
    fi
    ;;
  esac
  for line in "${kept[@]+"${kept[@]}"}"; do [[ $line == '{"part": "'$1'"'* ]] || others+=("$line"); done
  kept=("${others[@]+"${others[@]}"}")
  for name in $done_parts; do [ "$name" = "$1" ] || names+="${names:+ }$name"; done
  done_parts=$names
}
