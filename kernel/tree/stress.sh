#!/bin/busybox sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# What `tools/kernel/tree stress` runs in its guest, by busybox's sh: the kernel's own test of XArrays (a module), its selftests, and
# Debian's stress-ng, fio and dbench on tmpfs and on ext4. Prints "STRESS NAME STATUS" for each, and the end of what a failed one said.
#
# /dev/vda is the disk of `tools/kernel/fetch stress`, /dev/vdb an empty ext4. SECONDS_EACH is how long a group of stress-ng's stressors runs.

mkdir /guest && mount -t ext4 -o ro /dev/vda /guest && mount -t ext4 /dev/vdb /guest/work || exit 1
for place in tmp run; do mount -t tmpfs none /guest/$place || exit 1; done
mkdir -p /dev/shm /dev/pts /dev/mqueue
mount -t tmpfs none /dev/shm
mount -t devpts none /dev/pts
mount -t mqueue none /dev/mqueue
chmod 1777 /guest/tmp /dev/shm
ip link set lo up
for place in dev proc sys; do mount -o rbind /$place /guest/$place || exit 1; done
tar -xf /selftests.tar -C /guest/tmp

run() { # run NAME COMMAND...: in Debian's system
    name=$1
    shift
    PATH=/usr/sbin:/usr/bin:/sbin:/bin /bin/busybox timeout 600 /bin/busybox chroot /guest "$@" >/tmp/said 2>&1 </dev/null
    status=$?
    echo "STRESS $name $status"
    # A test that was skipped, and one that only some systems can run, say so by 3 and 4.
    case $status in 0 | 3 | 4) ;; *) tail -n 8 /tmp/said | sed 's/^/    /; s/not ok/not so/' ;; esac
}

stress() { # stress NAME PLACE STRESSOR...: all of them at once, two of each
    name=$1 place=$2
    shift 2
    options=
    for stressor in "$@"; do options="$options --$stressor 2"; done
    # shellcheck disable=SC2086 # several words
    run "stress-ng-$name" stress-ng --temp-path "$place" --timeout "$SECONDS_EACH" --verify --oomable $options
}

for module in /test_*.ko; do
    insmod "$module"
    echo "STRESS $(basename "$module" .ko) $?"
done

for place in /tmp /work; do
    stress "names$place" $place dentry dir dirmany rename symlink link open mknod touch
    stress "events$place" $place inotify dnotify fanotify filename getdent access chmod flock lease
    stress "bytes$place" $place hdd iomix fallocate copy-file fpunch seek
    run "fio$place" fio --name=verify --directory=$place --size=8M --numjobs=4 --rw=randrw --bs=512-64k --verify=crc32c --do_verify=1 \
        --verify_fatal=1 --fallocate=none --ioengine=psync --group_reporting
    run "dbench$place" dbench -D $place -t "$SECONDS_EACH" 4
done
stress sockets /tmp epoll eventfd poll pipe sock sockfd sockpair sockmany udp timerfd
stress processes /tmp fork vfork clone pthread exec daemon zombie spawn
stress areas /tmp mmap mmapfork mmapmany mremap munmap brk madvise mprotect
stress proc /tmp procfs get
stress cpus /tmp cpu-online open epoll dentry
# Caches that are shrunk while they are used.
while [ ! -e /tmp/end ]; do
    echo 3 >/proc/sys/vm/drop_caches
    sleep 1
done &
run stress-ng-shrunk stress-ng --temp-path /work --timeout "$SECONDS_EACH" --verify --oomable --vm 2 --vm-bytes 40% --dentry 2 --open 2 --epoll 2 --mmapmany 2
touch /tmp/end
wait
# Some tests depend on time, which an emulator on a busy machine does not keep: so each may try three times.
for test in /guest/tmp/selftests/*; do
    test=$(basename "$test")
    for _ in 1 2 3; do
        run "selftest-$test" /bin/sh -c "cd /tmp/selftests && ./$test"
        [ $status -ne 0 ] || break
    done
done

umount /guest/work
echo "STRESS umount $?"
[ ! -e /sys/kernel/debug/prudence/slabinfo ] || cat /sys/kernel/debug/prudence/slabinfo
# One complaint switches lockdep off, and what comes later is not seen.
[ ! -e /proc/lockdep_stats ] || grep 'debug_locks:' /proc/lockdep_stats
