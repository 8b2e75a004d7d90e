#!/usr/bin/env bash
# Entry point of client_bench: Debian's python3, which sees its torch, in the runfiles.
PLANEWISE_LIBRARY=clients/c/libplanewise.so PYTHONPATH=clients/python \
  exec /usr/bin/python3 tests/bench/client_bench.py \
  --host tests/bench/session_host_main --cpp-trainer tests/bench/cpp_trainer_main "$@"
