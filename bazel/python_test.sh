#!/usr/bin/env bash
# Entry point of every pw_python_test: sh_test wants a script.
exec /usr/bin/python3 bazel/python_test_runner.py "$@"
