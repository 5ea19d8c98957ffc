# SPDX-License-Identifier: MIT
"""The loads of the paper's section 5.3 and 3.4, each a fixed number of transactions, and the script by which a guest runs one.

/dev/pmem0 is the disk of tools/kernel/fetch programs, /dev/pmem1 an empty ext4 at /work, /dev/pmem2 a tar archive of a part of the kernel's source."""

import dataclasses

SETTLE_MS = 2000
SAMPLE_MS = 2
LOCKS = ("&n->list_lock", "prudence_node", "&zone->lock")  # as the kernel names them: of nodes, SLUB's and ours; of the page allocator
INSTANCES = 4    # of Postmark, and threads of the loads of our own
CLIENTS = 16     # of pgbench
LOCKDEP_LASTED = "LOCKDEP 1"  # a complaint switches it off, and later faults are not seen

LIST = 1000      # objects of a per-CPU list of slub_lists; SLUB's own are 24 to 120


@dataclasses.dataclass(frozen=True)
class Side:
    append: str         # to the kernel's command line
    setup: str = "true"


NOCBS = "rcu_nocbs=all"  # callbacks are called by threads, not by interrupts
NORMAL = "rcupdate.rcu_normal_after_boot=1"  # no expedited grace periods

SIDES = {
    "slub": Side(""),
    "prudence": Side("prudence_tree=all"),
    "kfree_rcu": Side("prudence_tree=all prudence_tree_side=kfree_rcu"),
    "slub_lists": Side("", "for cache in filp dentry inode_cache shmem_inode_cache ext4_inode_cache eventpoll_epi sock_inode_cache lsm_inode_cache "
                       f"radix_tree_node; do echo {LIST} >/sys/kernel/slab/$cache/cpu_partial || exit 1; done"),
    "no_preflush": Side("prudence_tree=all prudence.preflush=0"),
    "no_hasten": Side("prudence_tree=all prudence.hasten=0"),
    "nocbs": Side(NOCBS),
    "prudence_nocbs": Side(f"prudence_tree=all {NOCBS}"),
    "normal": Side(NORMAL),
    "prudence_normal": Side(f"prudence_tree=all {NORMAL}"),
}
PAIR = ("slub", "prudence")  # the two sides that the paper compares
HASTENED = ("no_hasten", "prudence")  # the effect of hastening on latencies
# Whose latencies are compared: SLUB as it is, or with kfree_rcu, or with RCU set otherwise; and Prudence with RCU set likewise.
PEERS = (PAIR, ("kfree_rcu", "prudence"), ("nocbs", "prudence_nocbs"), ("normal", "prudence_normal"))
# The options of tools/kernel/tree, the same for both sides. Random numbers are there from the beginning: otherwise the first program that wants
# some (ab) has the kernel collect jitter for a second, a thousand million instructions, some per cent more or fewer each time.
BOTH = "cgroup.memory=nokmem slab_nomerge rcutree.gp_preinit_delay=0 random.trust_cpu=on"


@dataclasses.dataclass(frozen=True)
class Load:
    name: str
    title: str
    transactions: int   # with a scale of 1
    unit: str
    command: str        # {n}: transactions; {share}: of each instance or client
    prepare: str = "true"
    shares: int = 1
    paper: bool = True  # its caches are compared with the paper's
    own: bool = False   # one of kernel/tree/load.c
    asked: bool = False # only if it is named, because it takes hours
    cpu_mb: int = 0     # memory of the guest, at least, for each of its CPUs
    modes: tuple = ()   # only in these


# The paper's machine ran out of its 252 GB, 4,032 MB for each of 64 CPUs, in the 196th second (Figure 3). A guest that counts instructions has a
# thousand million of them in a second, whatever its CPUs; opening and closing a file takes SLUB 4,307.
PAPER_MB = 252 * 1024 // 64
PAPER_SECONDS = 196
OPEN_CLOSE_NS = 4307

LOADS = {load.name: load for load in (
    Load("postmark", f"Postmark, {INSTANCES} instances of 500 files in 100 directories on ext4", 8000, "transaction",
         f"for i in $(seq {INSTANCES}); do mkdir /work/$i; printf 'set location /work/%s\\nset number 500\\nset subdirectories 100\\n"
         "set transactions {share}\\nset seed %s\\nrun\\nquit\\n' $i $i | postmark >/work/$i.log & done; wait; "
         f"for i in $(seq {INSTANCES}); do case $(cat /work/$i.log) in *Data:*) ;; *) exit 1 ;; esac; done", shares=INSTANCES),
    Load("open_close", f"the attack of 3.4: {INSTANCES} threads open a file and close it", 200000, "open and close",
         f"cd /tmp && ./load open_close {INSTANCES} {{n}}", own=True),
    Load("untar", "a part of the kernel's source: untar onto ext4, remove", 3, "round",
         "for i in $(seq {n}); do tar xf /dev/pmem2 -C /work && rm -rf /work/include || exit 1; done"),
    Load("tcp_crr", f"TCP connect, request, response on the loopback: {INSTANCES} clients and servers of our own, in place of netperf", 20000,
         "connection", f"/tmp/load tcp_crr {INSTANCES} {{n}}", own=True),
    Load("ab", "ApacheBench, 128 at once, against nginx", 6000, "request",
         "ab -q -n {n} -c 128 http://127.0.0.1:8080/index.html >/tmp/ab.log && case $(cat /tmp/ab.log) in *'Failed requests:        0'*) ;; *) exit 1 ;; esac",
         "mkdir -p /work/www /var/lib/nginx && head -c 4000 /dev/zero | tr '\\0' x >/work/www/index.html && "
         "printf 'user root; pid /tmp/nginx.pid; error_log /tmp/nginx.log; events { worker_connections 1024; } http { access_log off; "
         "server { listen 127.0.0.1:8080; root /work/www; } }\\n' >/tmp/nginx.conf && nginx -c /tmp/nginx.conf"),
    Load("epoll", f"{INSTANCES} threads: make an eventfd, add it to an epoll set, close it", 100000, "eventfd",
         f"/tmp/load epoll {INSTANCES} {{n}}", own=True),
    # dbench repeats its lines for a time. So the last one is an error: to close a file that no line has opened. The message has the number of
    # that line.
    Load("dbench", f"dbench, {INSTANCES} instances of the first lines of its own load, on ext4", 20000, "line",
         f"for i in $(seq {INSTANCES}); do dbench -t 1000000 -c /tmp/lines -D /work/$i 1 >/work/$i.log 2>&1 & done; wait; for i in $(seq {INSTANCES}); do "
         "case $(cat /work/$i.log) in *'('$(({share} + 1))') ERROR: handle 99999 was not found'*) ;; *) exit 1 ;; esac; done",
         f"for i in $(seq {INSTANCES}); do mkdir /work/$i || exit 1; done; "
         "{ head -n {share} /usr/share/dbench/client.txt && echo 'Close 99999 NT_STATUS_OK'; } >/tmp/lines", shares=INSTANCES),
    Load("pgbench", f"pgbench, {CLIENTS} clients, against PostgreSQL on ext4", 800, "transaction",
         f"$PG/pgbench -h /tmp -U postgres -n -c {CLIENTS} -j 4 -t {{share}} postgres",
         "install -d -o postgres /work/pg && as='setpriv --reuid 101 --regid 101 --clear-groups' && "
         "$as $PG/initdb -D /work/pg -A trust --locale=C --no-sync >/tmp/initdb.log && "
         "$as $PG/pg_ctl -D /work/pg -w -t 600 -l /tmp/pg.log -o '-c listen_addresses= -c unix_socket_directories=/tmp' start >/tmp/start.log && "
         "$PG/pgbench -h /tmp -U postgres -i -q -s 1 postgres 2>/tmp/init.log", shares=CLIENTS),
    Load("names", f"{INSTANCES} threads: make a name on tmpfs, remove it", 25000, "name", f"cd /tmp && ./load names {INSTANCES} {{n}}", paper=False, own=True),
    Load("names_storm", "the same, with the attack of 3.4 between: eight times open and close after each", 25000, "name",
         f"cd /tmp && ./load names_storm {INSTANCES} {{n}}", paper=False, own=True),
    Load("attack", f"the attack of 3.4, as long as the paper's Figure 3 and with its memory: {PAPER_SECONDS} s, {PAPER_MB:,} MB for each CPU",
         PAPER_SECONDS * 10**9 // OPEN_CLOSE_NS, "open and close", f"cd /tmp && ./load open_close {INSTANCES} {{n}}", paper=False, asked=True,
         cpu_mb=PAPER_MB, modes=("counts",)),
)}
PAPER = {name: load for name, load in LOADS.items() if load.paper}
# Does a storm in one cache (files) disturb others (those of a name)? A load alone, the load during the storm, and the storm alone, each as long.
DISTURBANCE = ("names", "names_storm", "open_close")


def transactions_of(load, scale):
    """A multiple of the shares, at least one for each."""
    return max(1, round(load.transactions * scale / load.shares)) * load.shares


def count_locks(command):
    """Returns the command, and counts of the locks that it takes until its deferred work has finished, without those of the reading of figures."""
    return f"""\
echo 0 >/proc/lock_stat
({command})
status=$?
sleep {SETTLE_MS / 1000:g}
cat /proc/lock_stat >/tmp/lock_stat
exit $status"""


def script_of(load, side, scale, mode):
    """For busybox's sh in the guest."""
    count = transactions_of(load, scale)
    command = f"cd /tmp && ./load latency {load.name} {{n}}" if mode.startswith("latency") else load.command
    prepare, command = (text.replace("{n}", str(count)).replace("{share}", str(count // load.shares)) for text in (load.prepare, command))
    names = "\\|".join(LOCKS)
    show = {
        "locks": f"sed -n 's/^ *\\({names}\\): */LOCK \\1 /p' /guest/tmp/lock_stat",
        "checked": "sed -n 's/^ *debug_locks: */LOCKDEP /p' /proc/lockdep_stats",
    }.get(mode, "true")
    if mode == "locks":
        command = count_locks(command)
    return f"""\
dmesg -n 5
mkdir /guest && mount -t ext4 -o ro /dev/pmem0 /guest && mount -t ext4 /dev/pmem1 /guest/work || exit 1
for place in tmp run var/lib; do mount -t tmpfs none /guest/$place || exit 1; done
mkdir -p /dev/shm && mount -t tmpfs none /dev/shm; chmod 1777 /guest/tmp /dev/shm; ip link set lo up
for place in dev proc sys; do mount -o rbind /$place /guest/$place || exit 1; done
cp load /guest/tmp/
{SIDES[side].setup}
cat >/guest/tmp/prepare <<'END'
{prepare}
END
cat >/guest/tmp/command <<'END'
{command}
END
export PG=/usr/lib/postgresql/15/bin PATH=/usr/sbin:/usr/bin:/sbin:/bin
/bin/chroot /guest /bin/sh /tmp/prepare || {{ /bin/tail -n 5 /guest/tmp/*.log; echo 'FAILED prepare'; exit 1; }}
/bin/chroot /guest /tmp/load measure {SAMPLE_MS if mode == "counts" else 0} {SETTLE_MS} /bin/sh /tmp/command
status=$?
{show}
[ $status = 0 ] || {{ /bin/tail -n 5 /guest/tmp/*.log /guest/work/*.log; echo 'FAILED command'; }}
exit $status
"""
