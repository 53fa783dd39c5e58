# SPDX-License-Identifier: Apache-2.0
# Progress messages of the set-up scripts, on standard error. The script that reads this file sets
# `who`, its name.

say() {
    echo "$who: $*" >&2
}

fail() {
    say "$*"
    exit 1
}

# Say what is done, and until `finished` that it goes on: in a line that is redrawn on a terminal,
# elsewhere every 15 s. It ends with this script at the latest.
begin() {
    say "$*"
    (
        seconds=0
        while sleep 1 && kill -0 $$ 2>/dev/null; do
            seconds=$((seconds + 1))
            if [ -t 2 ]; then
                printf '\r\033[K%s: %d s' "$who" $seconds >&2
            elif [ $((seconds % 15)) = 0 ]; then
                say "$*, $seconds s"
            fi
        done
    ) &
    ticker=$!
}

finished() {
    kill $ticker
    wait $ticker 2>/dev/null || true
    [ ! -t 2 ] || printf '\r\033[K' >&2
}
