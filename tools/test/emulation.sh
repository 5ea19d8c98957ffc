# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Sourced by tools/test/aarch64 and tools/test/ports: test programs under QEMU's user emulation, which has no rseq, or as they are.
#
#   leaves_out REASON PATTERN             programs that are not run from now on, but counted as skipped
#   emulation_leaves_out FOLDER COMMAND...   asks the emulator (the command) by FOLDER/bin/guest_emulator, and leaves out what it spoils
#   emulation_runs FOLDER COMMAND...      runs the lines of standard input, each a program of FOLDER/bin with its arguments, by the
#                                         command, or without one
#   counts_left_out                       counts the skipped lines of standard input, and prints the others
#   counts_result NAME STATUS LOG         counts a run that ended so, and prints a line
#   counts_say NAME                       prints what was counted, and counts anew
#
# These count in `ran` (failed, too), `failed` and `skipped`, each skipped one by its reason.

# What is not run under user emulation, for each thing that QEMU may do wrong there. tests/guests/guest_emulator.c asks
# this QEMU, without the library; what it does right keeps no test away.
declare -A spoiled=(
    [threads-after-fork]='api_test_(call|call_fork|fork|fork_handlers|helper_starts|helper_under_load|urcu_compat|urcu_tables_fork)|gp_test_asking|toolkit_test_(urcu|destructor_hands)|preload_test_fork_deadlock|rust_fork|torture_(everything|heap_walk)'
    [own-threads]='api_test_main_leaves|gp_test_idle|heap_test_background|preload_test_(life|tidy_thread|unshare)' # they are counted, and wake up
    [seccomp]='shortterm_test_hopeless_sizes|os_test_fallbacks'
    [fault-kind]='guard_test_guard'
    [mremap-left]='(shortterm|preload)_test_boundary_sizes(_prefixed)?|shortterm_test_aligned_realloc|heap_test_(page_sizes|realloc)|torture_pages' # moved blocks fault, or are not zero
    [address-limit]='os_test_(page_refusals|small_regions)|slab_test_window'
    [advice]='api_test_fork_state|heap_test_export|os_test_huge_pages' # DONTFORK, HUGEPAGE
    [own-name]='observe_test_(dump|stats_walks)'
    [root-folder]='observe_test_(careful_open|output_harms_nobody|profile)' # it is that of the packages; output_harms_nobody also dies of SIGXFSZ there, for a reason not known
)

ran=0 failed=0 skipped=0
declare -A left_out=() reasons=()

leaves_out() {
    left_out[$1]=$2
}

emulation_leaves_out() {
    local folder=$1 answer name
    shift
    # QEMU itself writes there, too.
    "$@" "$folder/bin/guest_emulator" 2>"$folder/guest_emulator.log" |
        grep -E '^(right|wrong) ' >"$folder/guest_emulator.answers" || true
    while read -r answer name; do
        if [ "$answer" = wrong ]; then leaves_out "QEMU: $name" "${spoiled[$name]:?}"; fi
    done <"$folder/guest_emulator.answers"
    [ "$(wc -l <"$folder/guest_emulator.answers")" -ne ${#spoiled[@]} ] || return 0
    ran=$((ran + 1)) failed=$((failed + 1))
    echo "FAIL guest_emulator: it did not ask all: $folder/guest_emulator.log"
}

# Prints why a program is skipped, or nothing if it is not.
reason_to_leave_out() {
    local reason
    for reason in "${!left_out[@]}"; do
        if [[ $1 =~ ^(inline_)?(${left_out[$reason]})$ ]]; then echo "$reason" && return; fi
    done
}

counts_skip() {
    skipped=$((skipped + 1))
    reasons[$2]=$((${reasons[$2]:-0} + 1))
    echo "skip $1: $2"
}

counts_result() {
    case $2 in
    0) ran=$((ran + 1)) && echo "ok   $1" ;;
    77) counts_skip "$1" "$(tail -n 1 "$3")" ;;
    *)
        ran=$((ran + 1)) failed=$((failed + 1))
        echo "FAIL $1: $3"
        tail -n 12 "$3"
        ;;
    esac
}

counts_left_out() {
    local program arguments reason
    while read -r program arguments; do
        reason=$(reason_to_leave_out "$program")
        if [ -n "$reason" ]; then
            counts_skip "$program" "$reason" >&2
        else
            echo "$program${arguments:+ $arguments}"
        fi
    done
}

counts_say() {
    local reason list=''
    while read -r reason; do
        if [ -n "$reason" ]; then list+="${list:+, }$reason: ${reasons[$reason]}"; fi
    done < <(printf '%s\n' "${!reasons[@]}" | LC_ALL=C sort)
    echo "$1: $ran run, $failed failed, $skipped skipped${list:+ ($list)}"
    ran=0 failed=0 skipped=0 left_out=() reasons=()
}

emulation_runs() {
    local folder=$1 program arguments name log reason status
    shift
    while read -r program arguments; do
        name=$program${arguments:+ ${arguments%% *}}
        reason=$(reason_to_leave_out "$program")
        if [ -n "$reason" ]; then counts_skip "$name" "$reason" && continue; fi
        log=$folder/${name//[ \/]/_}.log
        status=0
        # shellcheck disable=SC2086 # words
        (cd tests/fuzz && timeout 900 "$@" "$folder/bin/$program" $arguments >"$log" 2>&1 </dev/null) || status=$?
        counts_result "$name" $status "$log"
    done
}
