#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Shows whether a change of search/ or target/ has changed the code of the bench's kernels: bench/gate.c
# builds the candidates of bench/gate.txt and compares hashes.
#
#     bench/gate.sh [--only c8] [--count 2]    exit code 0: all are the same, 1: some differ, 2: not compared
#     bench/gate.sh --schedule LINE            print the schedule of a line of bench/gate.txt
#     bench/gate.sh --again                    write bench/gate.txt anew, with the same candidates
#     bench/gate.sh --make                     choose candidates and write bench/gate.txt anew
set -eu

cd "$(dirname "$0")/.."
ninja -C build --quiet bench/bench-gate >&2 || {
    echo "bench/gate.sh: bench-gate cannot be built in build/; it needs Halide: make setup, then make" >&2
    exit 2
}
exec build/bench/bench-gate "$@" bench/ops.json bench/gate.txt
