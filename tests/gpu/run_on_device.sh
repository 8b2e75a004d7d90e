#!/usr/bin/env bash
# Runs what tools/gpu_suite packed, on a machine with a GPU: the tests, the tests
# again under compute-sanitizer, the benchmark. Exits with 1 if a test failed.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
export PLANEWISE_GOLDEN_DIR="$here/golden"
failed=0

run() {
  echo "== $*"
  "$@" || { echo "FAILED: $*"; failed=1; }
}

run "$here/gpu_suite" --gtest_brief=0
if command -v compute-sanitizer >/dev/null; then
  # The launch sweep is left out: it would take minutes, and every shape and kind
  # of input is in the other tests.
  for tool in memcheck racecheck synccheck initcheck; do
    run compute-sanitizer --tool "$tool" --error-exitcode 1 "$here/gpu_suite" \
      --gtest_brief=1 --gtest_filter='Mxfp8QuantizeGolden*:*EveryKindOfInput'
  done
else
  echo "compute-sanitizer is not installed: memory and race checks were not run"
fi
run "$here/gpu_bench"

if ((failed)); then echo "FAILED"; else echo "PASSED"; fi
exit "$failed"
