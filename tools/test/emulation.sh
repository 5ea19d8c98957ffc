# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Sourced by tools/test/aarch64 and tools/test/ports: test programs under QEMU's user emulation, which has no rseq.
#
#   emulation_leaves_out FOLDER COMMAND...   asks the emulator (the command) by FOLDER/bin/guest_emulator; prints a pattern of the
#                                            programs that are not run
#   emulation_runs FOLDER COMMAND...         runs the lines of standard input, each a program of FOLDER/bin with its arguments, by the
#                                            command, or without one; adds to `ran`, `skipped` and `failed`

# What is not run under user emulation, for each thing that QEMU may do wrong there. tests/guests/guest_emulator.c asks
# this QEMU, without the library; what it does right keeps no test away.
declare -A spoiled=(
    [threads-after-fork]='api_test_(bare_fork|call|call_fork|fork|fork_handlers|helper_starts|helper_under_load|urcu_compat|urcu_tables_fork)|gp_test_(asking|urcu)|preload_test_(fork|fork_deadlock)|torture_(everything|fork|heap_walk)'
    [own-threads]='api_test_main_leaves|gp_test_idle|heap_test_background|preload_test_(life|tidy_thread|unshare)' # they are counted, and wake up
    [seccomp]='heap_test_hopeless_sizes|os_test_fallbacks'
    [fault-kind]='heap_test_guard'
    [mremap-left]='(heap|preload)_test_boundary_sizes(_prefixed)?|heap_test_(page_sizes|realloc)|torture_pages' # moved blocks fault, or are not zero
    [address-limit]='os_test_(page_refusals|small_regions)|slab_test_window'
    [advice]='api_test_fork_state|heap_test_(export|hardened_misuse)|os_test_(huge_pages|mapping_calls_of_guards)' # DONTFORK, GUARD_INSTALL, HUGEPAGE
    [own-name]='heap_test_(dump|stats_walks)'
    [root-folder]='heap_test_(careful_open|profile)' # it is that of the packages
)
# These fail there for reasons that are not known; under kernels they pass.
not_under_user='heap_test_output_harms_nobody'

emulation_leaves_out() {
    local folder=$1 answer name pattern=$not_under_user
    shift
    # QEMU itself writes there, too.
    "$@" "$folder/bin/guest_emulator" 2>"$folder/guest_emulator.log" |
        grep -E '^(right|wrong) ' >"$folder/guest_emulator.answers" || true
    while read -r answer name; do
        if [ "$answer" = wrong ]; then pattern+="|${spoiled[$name]:?}"; fi
    done <"$folder/guest_emulator.answers"
    echo "$pattern"
}

# Whether guest_emulator has asked all.
emulation_has_answers() {
    [ "$(wc -l <"$1/guest_emulator.answers")" -eq ${#spoiled[@]} ]
}

emulation_runs() {
    local folder=$1 program arguments name log status
    shift
    while read -r program arguments; do
        name=$program${arguments:+ ${arguments%% *}}
        log=$folder/${name//[ \/]/_}.log
        ran=$((ran + 1))
        status=0
        # shellcheck disable=SC2086 # words
        (cd tests/fuzz && timeout 300 "$@" "$folder/bin/$program" $arguments >"$log" 2>&1 </dev/null) || status=$?
        case $status in
        0) echo "ok   $name" ;;
        77) skipped=$((skipped + 1)) && echo "skip $name: $(tail -n 1 "$log")" ;;
        *)
            failed=$((failed + 1))
            echo "FAIL $name: $log"
            tail -n 12 "$log"
            ;;
        esac
    done
}
