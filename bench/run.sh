#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The commands of `make bench` and `make bench-tune`.
#
#     bench/run.sh compare [options of bench-compare]
#     bench/run.sh tune ["1 2 3"]     seeds, default 1; results in bench/tuned/
#
# Both read from the environment: ACCURACY (standard) and CONDITIONS (warm); JOBS ("any-1 fixed-1 any-2
# fixed-2"), layouts and threads; PIN, e.g. algorithm=direct, for kernels that are kept apart; OPS
# (bench/ops.json), the operators, e.g. bench/products.json; CANDIDATES (200) of each.
# compare takes the kernels of seed 1, or of $SEED, and without any the peers alone.
# Tuning is long: 18 operators x 200 candidates for each of layouts any and fixed and 1 and 2
# threads. Earlier measurements are not repeated, so it may be interrupted.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
venv=.deps/bench-venv
data=$root/bench/data
ops=${OPS:-bench/ops.json}
name=$(basename "$ops" .json)
models=$data/models-$name
accuracy=${ACCURACY:-standard}
conditions=${CONDITIONS:-warm}
pin=${PIN:-}
# Of the results in bench/tuned/: any-1-standard-warm-seed1.json.
key=$accuracy-$conditions${pin:+-$(echo "$pin" | tr -c '[:alnum:]\n' -)}
[ "$name" = ops ] || key=$name-$key

make_models() {
    if [ ! -e "$models/stamp" ] || [ "$ops" -nt "$models/stamp" ] ||
        [ bench/models.py -nt "$models/stamp" ]; then
        "$venv/bin/python" bench/models.py "$ops" "$models"
        touch "$models/stamp"
    fi
}

compare() {
    # The peers are built only where their libraries are.
    if [ ! -e build/bench/bench-peer-ncnn ] ||
        { [ -e "$venv/debian/stamp" ] && [ ! -e build/bench/bench-peer-onednn2 ]; }; then
        meson setup --reconfigure build >.deps/configure.log 2>&1 || {
            cat .deps/configure.log >&2
            exit 1
        }
    fi
    ninja -C build --quiet
    mkdir -p bench/results
    seed=${SEED:-1}
    for job in ${JOBS:-any-1 fixed-1 any-2 fixed-2}; do
        result=bench/tuned/$job-$key-seed$seed.json
        [ -e "$result" ] || continue
        set -- "$@" --tuned "${job%-*}:${job#*-}:$result"
    done
    build/bench/bench-compare --ops "$ops" --models "$models" --accuracy "$accuracy" --conditions "$conditions" \
        --json "bench/results/$(date -u +%Y-%m-%dT%H%M%SZ).json" "$@"
}

tune() {
    mkdir -p bench/tuned
    for seed in ${1:-1}; do
        for job in ${JOBS:-any-1 fixed-1 any-2 fixed-2}; do
            out=bench/tuned/$job-$key-seed$seed.json
            build/bin/wpkctl tune "$models/$job.json" --json --seed "$seed" --candidates "${CANDIDATES:-200}" \
                --accuracy "$accuracy" --conditions "$conditions" ${pin:+--pin "$pin"} \
                --seconds 36000 --data "$data/history-$key-seed$seed" >"$out.part"
            mv "$out.part" "$out"
        done
    done
}

case ${1:-} in
compare | tune) ;;
*)
    sed -n '5,6s/^# */usage: /p' "$0" >&2
    exit 2
    ;;
esac
bench/setup.sh
make_models
"$@"
