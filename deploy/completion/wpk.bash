# SPDX-License-Identifier: Apache-2.0
# Completion for wpkctl, wpkd, wpk-worker and wpk-evaluate in bash. It asks the program for its
# --help, so it knows what the program knows. Installed once for each of them.

# The help of what is typed so far: of wpkctl's command, where there is one.
_wpk_help() {
    local program=$1 command=$2
    if [[ -n $command ]]; then
        "$program" help "$command" 2>/dev/null
    else
        "$program" --help 2>/dev/null
    fi
}

# Options at the beginning of lines: "  -o, --output FILE" and "  --help, --version".
_wpk_options() {
    sed -n 's/^  \(-[-a-z].*\)$/\1/p' | sed 's/  .*//' | tr ' ,' '\n\n' | grep -E '^--?[a-z]'
}

# What the option takes: FILE, DIR, a|b or a name of something else; nothing for a switch.
_wpk_argument() {
    sed -n "s/^  \(.*[ ,]\)\{0,1\}$1 \([^ ][^ ]*\)\(  .*\)\{0,1\}\$/\2/p" | head -n 1
}

# Ids and names that a running wpkd knows, for the operand of a command; nothing where none runs.
_wpk_known() {
    local program=$1 command=$2 kind i
    local where=()
    case $command in
    status | watch | cancel | trials | jobs) kind=jobs ;;
    kernels) kind=kernels ;;
    workers) kind=workers ;;
    get | genes | run | lookup) kind=names ;;
    *) return ;;
    esac
    for ((i = 1; i + 1 < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --data | --server | --token-file | --ca)
            where+=("${COMP_WORDS[i]}" "${COMP_WORDS[i + 1]}")
            ;;
        esac
    done
    "$program" complete $kind "${where[@]}" 2>/dev/null
}

_wpk() {
    local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} command= help argument i
    local previous=${COMP_WORDS[COMP_CWORD - 1]}
    COMPREPLY=()
    if [[ ${program##*/} == wpkctl ]]; then
        for ((i = 1; i < COMP_CWORD; i++)); do
            [[ ${COMP_WORDS[i]} != -* ]] && command=${COMP_WORDS[i]} && break
        done
    fi
    help=$(_wpk_help "$program" "$command")
    if [[ $previous == -* ]]; then
        argument=$(_wpk_argument "$previous" <<<"$help")
    fi
    case $argument in
    FILE | DIR | PATH)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        ;;
    *\|*)
        mapfile -t COMPREPLY < <(compgen -W "${argument//|/ }" -- "$word")
        ;;
    ?*) ;; # a number, a name: nobody but the user knows
    *)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "$(_wpk_options <<<"$help")" -- "$word")
        elif [[ ${program##*/} == wpkctl && (-z $command || $previous == help) ]]; then
            help=$(_wpk_help "$program" "")
            mapfile -t COMPREPLY < <(compgen -W "$(sed -n 's/^  \([a-z][a-z]*\) .*/\1/p' <<<"$help")" \
                -- "$word")
        else
            # Words that the usage gives as alternatives, drain|quarantine, come first; then files.
            argument=$(sed -n '1s/.*[ []\([a-z][a-z]*\(|[a-z]*\)\{1,\}\).*/\1/p' <<<"$help")
            if [[ -n $argument && $previous == "$command" ]]; then
                mapfile -t COMPREPLY < <(compgen -W "${argument//|/ }" -- "$word")
            else
                mapfile -t COMPREPLY < <(compgen -W "$(_wpk_known "$program" "$command")" -- "$word")
                if ((${#COMPREPLY[@]} == 0)); then
                    compopt -o filenames 2>/dev/null
                    mapfile -t COMPREPLY < <(compgen -f -- "$word")
                fi
            fi
        fi
        ;;
    esac
}

complete -F _wpk wpkctl wpkd wpk-worker wpk-evaluate
