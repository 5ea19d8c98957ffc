# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Sourced by scripts that run programs in an arm64 guest: its init, its boot, and what came of the runs.
#
#   guest_image TREE IMAGE          packs an initramfs. TREE has bin/busybox, programs in test/, and `runs`: one run a line, a
#                                   program and its arguments, behind settings of the environment (NAME=value) if any; a file
#                                   `environment` has settings for all of them
#   guest_boot VMLINUZ IMAGE LOG MEMORY CPUS SECONDS
#                                   boots it; the console goes to LOG, the results of runs to standard output as well
#   guest_results LOG               sets `ran`, `skipped` (exit status 77) and `failed`; fails if the guest has no end
#   guest_boots VMLINUZ TREE NAME MEMORY CPUS SECONDS
#                                   does all of it, in as many boots as it takes: none is longer than SECONDS. Image and logs are
#                                   NAME.gz and NAME.1.log, NAME.2.log, ... Adds to `ran`, `skipped` and `failed`. A run during
#                                   which the guest was cut off counts as failed, and the next boot goes on behind it

guest_image() {
    local tree=$1 image=$2
    mkdir -p "$tree"/{bin,proc,sys,dev,tmp,test}
    cat >"$tree/init" <<'EOF'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin:/test PRUDENCE_EMULATED=1
[ ! -e /environment ] || export $(cat /environment)
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
echo 1 >/proc/sys/debug/exception-trace
mkdir -p /dev/shm && mount -t tmpfs shm /dev/shm
echo "guest: $(uname -srm), $(grep -c ^processor /proc/cpuinfo) CPUs"
longest=600 last=
[ ! -e /times ] || read -r longest last </times
while read -r run; do
    begun=$(cut -d. -f1 /proc/uptime)
    [ "${last:-$begun}" -ge "$begun" ] || break
    timeout "$longest" env $run >/tmp/log 2>&1 </dev/null
    status=$?
    case $status in
    0) result=ok ;;
    77) result=skip ;;
    *) result="FAIL ($status)" ;;
    esac
    sed 's/^/  /' /tmp/log | tail -n 40
    echo "guest-$result $run $(($(cut -d. -f1 /proc/uptime) - begun)) s"
done </runs
echo guest-end
poweroff -f
EOF
    chmod +x "$tree/init"
    (cd "$tree" && find . | cpio -o -H newc --quiet | gzip -1) >"$image"
}

guest_boot() {
    timeout "$6" qemu-system-aarch64 -nodefaults -no-user-config -display none -serial stdio -monitor none -no-reboot \
        -machine virt -cpu neoverse-n1 -accel tcg,thread=multi -m "$4" -smp "$5" -kernel "$1" -initrd "$2" \
        -append "console=ttyAMA0 panic=-1 loglevel=7" </dev/null | sed -u 's,\r,,' | tee "$3" |
        sed -un 's/^guest-//p; /^guest:/p' || true
}

guest_results() {
    ran=$(grep -cE '^guest-(ok|skip|FAIL)' "$1" || true)
    skipped=$(grep -c '^guest-skip' "$1" || true)
    failed=$(grep -c '^guest-FAIL' "$1" || true)
    grep -q '^guest-end' "$1"
}

# Prints how long a run may take in a boot of the given seconds, and when the last one may begin, so that it ends in time.
guest_times() {
    local longest=$(($1 / 3 < 600 ? $1 / 3 : 600))
    echo "$longest $(($1 - longest - $1 / 10))"
}

guest_boots() {
    local vmlinuz=$1 tree=$2 name=$3 seconds=$6 all=0 boot=0 done=0 log ended sums=("$ran" "$skipped" "$failed")
    local -a runs
    mapfile -t runs <"$tree/runs"
    all=${#runs[@]}
    guest_times "$seconds" >"$tree/times"
    rm -f "$name".*.log
    while [ $done -lt "$all" ]; do
        boot=$((boot + 1)) log=$name.$boot.log ended=yes
        printf '%s\n' "${runs[@]:done}" >"$tree/runs"
        guest_image "$tree" "$name.gz"
        echo "==> ${name##*/}, boot $boot: $((all - done)) of $all runs remain"
        guest_boot "$vmlinuz" "$name.gz" "$log" "$4" "$5" "$seconds"
        guest_results "$log" || ended=no
        done=$((done + ran))
        sums=($((sums[0] + ran)) $((sums[1] + skipped)) $((sums[2] + failed)))
        if [ $ended = yes ] && [ "$ran" -gt 0 ]; then continue; fi
        echo "FAIL boot $boot of ${name##*/} was cut off during '${runs[done]:-its end}': $log"
        sums=($((sums[0] + 1)) "${sums[1]}" $((sums[2] + 1)))
        grep -q '^guest:' "$log" || break # nothing runs in this guest
        done=$((done + 1))
    done
    ran=${sums[0]} skipped=${sums[1]} failed=${sums[2]}
}
