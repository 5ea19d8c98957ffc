# SPDX-License-Identifier: MIT OR GPL-2.0-only
# A fault of kernels 6.12 to 6.16, without any module (docs/reference/kernel.md, Known faults): a CPU's fair server,
# which is no task, is counted among its tasks while it is active, and a CPU that dies then is said to be
# "not properly vacated". In the guest, by
#
#   tools/kernel/boot 6.12 kernel/fair_server.sh
#
# The server becomes active by a timer. With a short period that fires nearly always while the CPU is being
# stopped; with the usual one (a second) only when stopping takes as long.
server=/sys/kernel/debug/sched/fair_server/cpu3
cpu=/sys/devices/system/cpu/cpu3/online

now() {
    cut -d. -f1 /proc/uptime
}
go_and_come() { # go_and_come NAME RUNTIME PERIOD (ns): for half a minute; says what the kernel said
    echo "$2" >$server/runtime
    [ "$3" = 0 ] || echo "$3" >$server/period
    before=$(dmesg | grep -c 'Dying CPU not properly vacated')
    times=0 end=$(($(now) + 30))
    while [ "$(now)" -lt $end ]; do
        echo 0 >$cpu && echo 1 >$cpu && times=$((times + 1))
    done
    warnings=$(($(dmesg | grep -c 'Dying CPU not properly vacated') - before))
    echo "$1: CPU 3 went $times times, $warnings warnings"
}

[ -d $server ] || { echo "$(uname -r) has no fair server" && exit 1; }
load=
for i in 1 2 3 4; do
    sh -c 'while :; do :; done' &
    load="$load $!"
done
go_and_come "with the fair server, period 2 ms" 100000 2000000
go_and_come "without" 0 0
kill $load
echo "$(uname -r), modules loaded: $(grep -c . /proc/modules)"
