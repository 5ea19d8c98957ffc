# SPDX-License-Identifier: MIT OR GPL-2.0-only
# Run in the guest by tools/kernel/test: load, test, torture, unload. Lines that begin with :: are shown.
bad=0
check() { # check NAME COMMAND...: one more line of the report
    name=$1
    shift
    if "$@"; then
        echo "ok - $name"
    else
        echo "not ok - $name"
        bad=1
    fi
}
figure() { # figure FILE NAME
    sed -n "s/^$2 *//p" "/sys/kernel/debug/prudence/$1"
}

# Leaks of the kernel's own boot are not counted.
leaks=/sys/kernel/debug/kmemleak
[ ! -e $leaks ] || echo clear >$leaks

load_and_unload() {
    i=0
    while [ $i -lt 20 ]; do
        insmod prudence.ko && rmmod prudence || return 1
        i=$((i + 1))
    done
}
check "load and unload, 20 times" load_and_unload

# Kernel 6.12 counts the fair server, which is no task, among the tasks of a dying CPU, and then complains
# of them (docs/reference/kernel.md, Known faults). How often that is all there is to complain of is shown at the end.
events=/sys/kernel/tracing
known=$events/events/kprobes/fair_server_counted
watch_the_fair_server() {
    rq='dl_se->rq'
    echo "p:fair_server_counted dl_server_stop all=$rq->nr_running:u32 deadline=$rq->dl.dl_nr_running:u32" \
        "fair=$rq->cfs.h_nr_queued:u32 pinned=$rq->nr_pinned:u32" >$events/kprobe_events
    echo 'all == 2 && deadline == 1 && fair == 0 && pinned == 0 && comm ~ "migration/*"' >$known/filter
    echo 1 >$known/enable
}
case $(uname -r) in
6.12.*) [ ! -e $events/kprobe_events ] || watch_the_fair_server ;;
esac

insmod prudence.ko || exit 1
echo 16384 >$events/buffer_size_kb # so that no event is overwritten by the many after it
echo 1 >$events/events/prudence/enable
insmod prudence_test.ko || exit 1
[ "$(cat /sys/module/prudence_test/parameters/failed)" = 0 ] || bad=1
rmmod prudence_test
for event in refill flush merge close overflow premovement grow shrink; do
    check "tracepoint $event" grep -q "prudence_$event:" $events/trace
done
check "tracepoints have the fields of the kernel's own" grep -q 'prudence_merge: name=[^ ]* nr_objects=[1-9]' $events/trace
echo ":: events overwritten: $(sed -n 's/^overrun: //p' $events/per_cpu/cpu*/stats | paste -sd ' ')"
echo 0 >$events/events/prudence/enable
[ -d $known ] || echo 1408 >$events/buffer_size_kb
slabinfo_is_like_the_kernels() {
    head -n 2 /sys/kernel/debug/prudence/slabinfo | cut -d: -f1-3 | sed 's/ $//' >/tmp/ours
    head -n 2 /proc/slabinfo >/tmp/theirs
    cmp /tmp/ours /tmp/theirs
}
[ ! -e /proc/slabinfo ] || check "slabinfo begins as the kernel's does" slabinfo_is_like_the_kernels
check "debugfs has a file for each size" test "$(figure size-64 object_size)" = 64
check "slabinfo has a line for each cache" test "$(grep -c '^size-' /sys/kernel/debug/prudence/slabinfo)" = 12
check "slabinfo can be read a little at a time" test "$(dd bs=64 if=/sys/kernel/debug/prudence/slabinfo 2>/dev/null | grep -c '^size-')" = 12
sed 's/^/:: /' /sys/kernel/debug/prudence/totals

# Limits that are changed while the module is there.
parameters=/sys/module/prudence/parameters
limit_is_refused() { # limit_is_refused TEXT
    ! echo "$1" 2>/dev/null >$parameters/latent_limit_kb && test "$(cat $parameters/latent_limit_kb)" = 0
}
check "a latent limit that is no number is refused" limit_is_refused 12x
check "a latent limit below zero is refused" limit_is_refused -1
check "a latent limit without end is refused" limit_is_refused 99999999999999999

# Mechanisms that are switched while the module is there.
is_switched() { # is_switched PARAMETER VALUE
    echo "$2" >$parameters/$1 && test "$(cat $parameters/$1)" = "$2"
}
for parameter in preflush spare_latent; do
    value=$(cat $parameters/$parameter)
    for new in Y N "$value"; do
        check "parameter $parameter is set to $new" is_switched $parameter $new
    done
done

# Pages that are free, cached or latent go when the kernel asks for memory, all of them.
given_back() { # given_back COMMAND...
    tries=0
    until [ "$(figure totals 'page_bytes ')" != 0 ]; do # on a slow machine decay may be sooner
        [ $tries -lt 20 ] || return 1
        insmod prudence_test.ko only=every_size_is_aligned_and_apart && rmmod prudence_test || return 1
        tries=$((tries + 1))
    done
    tries=0
    until [ "$(figure totals 'page_bytes ')" = 0 ]; do
        [ $tries -lt 200 ] || return 1
        "$@"
        sleep 0.1 # a grace period
        tries=$((tries + 1))
    done
}
shrink_everything() {
    echo 2 >/proc/sys/vm/drop_caches
}
check "the shrinker gives everything back" given_back shrink_everything

memory_goes_and_comes() {
    for state in /sys/devices/system/memory/memory*/state; do
        [ "$(cat "$state")" = online ] && echo offline >"$state" || continue
        gone=$((gone + 1))
        echo online >"$state"
    done 2>/dev/null
}
gone=0
memory_goes_and_comes
if [ $gone -gt 0 ]; then
    check "memory that goes offline takes everything along" given_back memory_goes_and_comes
else
    echo "ok - memory that goes offline # SKIP no block of this kernel can"
fi

# Torture, with small objects, and with large ones under a small limit. At the same time memory goes offline and comes back, as CPUs do.
memory_storm() {
    gone=0
    while [ -e /tmp/storm ]; do
        memory_goes_and_comes
        echo $gone >/tmp/storm.gone
    done
}
for size in 64 1024; do
    [ $size = 64 ] || echo 512 >$parameters/latent_limit_kb
    touch /tmp/storm
    [ $gone = 0 ] || memory_storm &
    insmod prudence_torture.ko "seconds=$seconds" "size=$size" || exit 1
    [ "$(cat /sys/module/prudence_torture/parameters/failed)" = 0 ] || bad=1
    rm /tmp/storm
    wait
    rmmod prudence_torture
    [ $gone = 0 ] || check "memory went and came during torture ($(cat /tmp/storm.gone) blocks)" test "$(cat /tmp/storm.gone)" -gt 0
done
held_back=$(figure totals throttle_waits)
check "torture was held back under a small limit ($held_back times)" test "$held_back" -gt 10
echo 0 >$parameters/latent_limit_kb

# Memory to the edge, while a process is there to be killed.
wait_max=$(cat $parameters/wait_max_ms)
for stays in N Y; do
    [ $stays = N ] || echo 500 >$parameters/wait_max_ms
    insmod prudence_pressure.ko "seconds=$seconds" stays=$stays || exit 1
    [ "$(cat /sys/module/prudence_pressure/parameters/failed)" = 0 ] || bad=1
    rmmod prudence_pressure
done
echo "$wait_max" >$parameters/wait_max_ms

# A hash table whose old entries are deferred, used by many processes.
demo() { # demo DEVICE
    device=/dev/$1
    insmod "$1.ko" || return 1
    process=0
    while [ $process -lt 12 ]; do
        (
            i=0
            while [ $i -lt 8 ]; do
                echo "set $i $process" >"$device" && echo "get $i" >"$device" &&
                    echo "work 500" >"$device" || exit 1
                i=$((i + 1))
            done
            echo "del $process" >"$device" 2>/dev/null
        ) &
        process=$((process + 1))
    done
    wait
    sed "s/^/:: $1: /" "$device"
    grep -q 'torn 0$' "$device" || return 1
    echo "get 5000" >"$device" 2>/dev/null && return 1
    rmmod "$1"
}
check "demo with kfree_rcu" demo prudence_demo_rcu
check "demo with deferred frees" demo prudence_demo

# Before the module goes, and what was traced with it.
[ ! -d $known ] || echo ":: fair server counted: $(grep -c 'fair_server_counted: ' $events/trace)"

check "everything can be given back" rmmod prudence

unload_while_an_interrupt_has_deferred() {
    insmod prudence.ko && insmod prudence_unload.ko && rmmod prudence || return 1
    # What is late would come now, by timers that wait until their CPU is awake.
    for cpu in $(grep ^processor /proc/cpuinfo | cut -d: -f2); do
        taskset "$(printf %x $((1 << cpu)))" timeout 3 sh -c 'while :; do :; done' &
    done
    wait
    rmmod prudence_unload
}
[ "$(grep -c ^processor /proc/cpuinfo)" = 1 ] ||
    check "unload while an interrupt has deferred" unload_while_an_interrupt_has_deferred

no_leaks() {
    echo scan >$leaks
    sleep 6 # it reports what is older than five seconds
    echo scan >$leaks
    cat $leaks
    test "$(grep -c unreferenced $leaks)" = 0
}
[ ! -e $leaks ] || check "kmemleak finds nothing" no_leaks

# Torture while the kernel itself makes allocations fail that must not sleep.
injected=/sys/kernel/debug/fail_page_alloc
if [ -d $injected ]; then
    insmod prudence.ko kasan=0 || exit 1 # the fast paths, under KASAN all the same
    echo 0 >$injected/min-order
    for kind in $injected /sys/kernel/debug/failslab; do
        echo Y >$kind/ignore-gfp-wait
        echo 0 >$kind/verbose
        echo -1 >$kind/times
        echo 30 >$kind/probability
    done
    tries=0
    until insmod prudence_torture.ko "seconds=$seconds" inject=0; do # its cache fails to be made, too
        tries=$((tries + 1))
        [ $tries -lt 30 ] || exit 1
    done
    [ "$(cat /sys/module/prudence_torture/parameters/failed)" = 0 ] || bad=1
    rmmod prudence_torture
    for kind in $injected /sys/kernel/debug/failslab; do
        echo 0 >$kind/probability
    done
    check "everything can be given back after injected failures" rmmod prudence
fi
exit $bad
