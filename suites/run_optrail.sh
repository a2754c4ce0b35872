#!/usr/bin/env bash
# Runs the command line from the runfiles of a target that `bazel run` started.
set -euo pipefail
exec cli/optrail "$@"
