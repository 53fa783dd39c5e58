#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Start Slurm jobs while wpkd wants more workers than there are: usage: scaler.sh [option of sbatch ...]
# One of it serves one kind of workers. Workers leave by themselves; jobs that still wait when no work is left are
# cancelled.
#   WPK_COORDINATOR, WPK_WORKER  as worker.sbatch takes them
#   WPK_URL          wpkd for clients: unix:PATH or https://HOST:PORT; WPK_TOKEN_FILE and WPK_CA as for wpkctl
#   WPK_DEVICE       cpu, cuda or a device class (cpu)
#   WPK_WORKERS_MAX  at most so many at a time (16); WPK_EVERY_S: seconds between two looks (10)
set -u
: "${WPK_URL:?wpkd for clients}" "${WPK_COORDINATOR:?wpkd for workers}"
export WPK_DEVICE="${WPK_DEVICE:-cpu}" # for worker.sbatch
name=wpk-worker-$(printf %s "$WPK_DEVICE" | tr -c 'a-zA-Z0-9\n' _)
here=$(dirname "$0")

ask() {
    set -- -sSf -m 10 -G --data-urlencode "device=$WPK_DEVICE"
    [ -z "${WPK_CA:-}" ] || set -- "$@" --cacert "$WPK_CA"
    case $WPK_URL in
    unix:*) set -- "$@" --unix-socket "${WPK_URL#unix:}" http://localhost/v1/demand ;;
    *) set -- "$@" "$WPK_URL/v1/demand" ;;
    esac
    # The token is not an argument, which others could see.
    { [ -z "${WPK_TOKEN_FILE:-}" ] || printf 'Authorization: Bearer %s\n' "$(cat "$WPK_TOKEN_FILE")"; } |
        curl -H @- "$@" | sed -n 's/.*"workers":\([0-9]*\)}$/\1/p'
}

while :; do
    wanted=$(ask)
    if there=$(squeue -h -r -n "$name" -u "$(id -un)" -o %i) && [ -n "$wanted" ]; then
        wanted=$((wanted < ${WPK_WORKERS_MAX:-16} ? wanted : ${WPK_WORKERS_MAX:-16}))
        missing=$((wanted - $(printf %s "$there" | grep -c .)))
        [ "$missing" -le 0 ] || sbatch --job-name="$name" --array="1-$missing" "$@" "$here/worker.sbatch"
        [ "$wanted" -gt 0 ] || [ -z "$there" ] || scancel -t PENDING -n "$name" -u "$(id -un)"
    fi
    sleep "${WPK_EVERY_S:-10}"
done
