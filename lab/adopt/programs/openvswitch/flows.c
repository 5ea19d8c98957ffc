/* SPDX-License-Identifier: MIT */
/*
 * Sets flows up and takes them down in Open vSwitch's userspace datapath, as its upcall handlers
 * and revalidators do.
 *
 *     flows SECONDS
 *
 * No port and no kernel is needed. READERS threads look flows up. For SECONDS, one thread deletes
 * and puts flows, of which LIVE exist. It times each such pair, and quiesces as part of each
 * BATCH-th. That counts because what defers by callbacks wakes their thread there, and on a busy
 * machine loses the processor to it. Then STORM flows are put and deleted, and the thread waits
 * two seconds. Prints one line of JSON, and deletes the remaining flows.
 */
#include <config.h>

#include "dpif.h"
#include "odp-util.h"
#include "openvswitch/ofpbuf.h"
#include "openvswitch/vlog.h"
#include "ovs-rcu.h"
#include "ovs-thread.h"
#include "random.h"
#include "seq.h"
#include "util.h"

#include "../driver.h"

#include <sys/resource.h>

#define READERS 2
#define LIVE    2000
#define BATCH   32
#define STORM   100000
#define TIMES   (1 << 22) /* that are remembered */

static struct dpif *datapath;
static atomic_bool over = false;

struct key {
    struct ofpbuf key, mask;
    ovs_u128 id;
};

static double now_s(clockid_t clock)
{
    return (double)now_ns(clock) / 1e9;
}

/* The flow of `number`: IPv4, a destination of its own, port 1. */
static void make_key(struct key *to, uint32_t number)
{
    struct flow flow, mask;
    struct odp_flow_key_parms wanted = {
        .flow = &flow, .mask = &mask, .support = {.recirc = true}, .key_buf = NULL};

    memset(&flow, 0, sizeof flow);
    memset(&mask, 0, sizeof mask);
    flow.in_port.odp_port = ODP_PORT_C(1);
    flow.dl_type = htons(0x0800);
    flow.nw_dst = htonl(number);
    mask.in_port.odp_port = ODPP_NONE;
    mask.dl_type = OVS_BE16_MAX;
    mask.nw_dst = OVS_BE32_MAX;
    ofpbuf_clear(&to->key);
    ofpbuf_clear(&to->mask);
    odp_flow_key_from_flow(&wanted, &to->key);
    wanted.key_buf = &to->key;
    odp_flow_key_from_mask(&wanted, &to->mask);
    to->id.u64.hi = 1;
    to->id.u64.lo = number;
}

static void check(int error, const char *what)
{
    if (error)
        ovs_fatal(error, "%s", what);
}

static void put(struct key *key, uint32_t number)
{
    static const uint32_t output[2] = {OVS_ACTION_ATTR_OUTPUT << 16 | 8, 2};

    make_key(key, number);
    check(dpif_flow_put(datapath, DPIF_FP_CREATE, key->key.data, key->key.size, key->mask.data,
                        key->mask.size, (const struct nlattr *)output, sizeof output, &key->id,
                        PMD_ID_NULL, NULL),
          "dpif_flow_put");
}

static void del(struct key *key, uint32_t number)
{
    make_key(key, number);
    check(dpif_flow_del(datapath, key->key.data, key->key.size, &key->id, PMD_ID_NULL, NULL),
          "dpif_flow_del");
}

static void *read_flows(void *unused OVS_UNUSED)
{
    struct key key = {.id = {.u64 = {.hi = 1}}};
    struct ofpbuf buffer;
    bool end = false;

    ofpbuf_init(&key.key, 512);
    ofpbuf_init(&key.mask, 512);
    ofpbuf_init(&buffer, 2048);
    while (!end) {
        for (int i = 0; i < BATCH; i++) {
            struct dpif_flow found;

            make_key(&key, random_range(LIVE));
            ofpbuf_clear(&buffer);
            dpif_flow_get(datapath, key.key.data, key.key.size, &key.id, PMD_ID_NULL, &buffer,
                          &found);
        }
        ovsrcu_quiesce();
        atomic_read_relaxed(&over, &end);
    }
    return NULL;
}

static int by_time(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    float *times = xmalloc(TIMES * sizeof *times);
    double start, cpu, wall, storm_start, storm_s, peak;
    size_t count = 0, done = 0;
    pthread_t readers[READERS];
    struct key key;
    struct rusage usage;

    set_program_name(argv[0]);
    vlog_set_levels(NULL, VLF_ANY_DESTINATION, VLL_WARN);
    /* which warns when a reader does not find a flow */
    vlog_set_levels(vlog_module_from_name("dpif"), VLF_ANY_DESTINATION, VLL_OFF);
    ofpbuf_init(&key.key, 512);
    ofpbuf_init(&key.mask, 512);
    memset(times, 0, TIMES * sizeof *times);
    check(dpif_create_and_open("flows", "netdev", &datapath), "dpif_create_and_open");
    for (uint32_t i = 0; i < LIVE; i++)
        put(&key, i);
    for (int i = 0; i < READERS; i++)
        readers[i] = ovs_thread_create("reader", read_flows, NULL);

    start = now_s(CLOCK_MONOTONIC);
    cpu = now_s(CLOCK_PROCESS_CPUTIME_ID);
    do {
        for (int i = 0; i < BATCH; i++, done++) {
            double before = now_s(CLOCK_MONOTONIC);

            del(&key, done % LIVE);
            put(&key, done % LIVE);
            if (i == BATCH - 1)
                ovsrcu_quiesce();
            if (count < TIMES)
                times[count++] = (now_s(CLOCK_MONOTONIC) - before) * 1e6;
        }
        wall = now_s(CLOCK_MONOTONIC) - start;
    } while (wall < seconds);
    cpu = now_s(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    atomic_store_relaxed(&over, true);
    for (int i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    qsort(times, count, sizeof *times, by_time);

    storm_start = now_s(CLOCK_MONOTONIC);
    for (uint32_t i = 0; i < STORM; i++)
        put(&key, LIVE + i);
    for (uint32_t i = 0; i < STORM; i++) {
        del(&key, LIVE + i);
        if (i % BATCH == 0)
            ovsrcu_quiesce();
    }
    storm_s = now_s(CLOCK_MONOTONIC) - storm_start;
    getrusage(RUSAGE_SELF, &usage);
    peak = usage.ru_maxrss * 1024 / 1e6;
    ovsrcu_quiesce_start();
    sleep(2);
    printf(
        "{\"pairs\": %.1f, \"p50_us\": %.2f, \"p999_us\": %.2f, \"cpu_us\": %.3f, "
        "\"storm_s\": %.3f, \"peak_mb\": %.1f, \"after_mb\": %.1f}\n",
        done / wall, times[count / 2], times[count - 1 - count / 1000], cpu / done * 1e6, storm_s,
        peak, resident_mb());
    for (uint32_t i = 0; i < LIVE; i++)
        del(&key, i);
    return 0;
}
