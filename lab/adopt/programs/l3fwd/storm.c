/* SPDX-License-Identifier: MIT */
/*
 * Drives l3fwd between two ports of net_null: fills in packets and changes routes.
 *
 *     STORM_SECONDS=N [STORM_CHECKS=1] l3fwd ...
 *
 * Received packets get addresses at random, from KEPT networks of 24 bits, whose routes stay, and
 * from ROUTES of 28 bits in networks of their own, whose routes a control thread adds and deletes.
 * Packets to the former are checked again when they are sent: their port must be that of the
 * route. Loads follow each other:
 *
 * still:  no update, for N / 2 seconds.
 * storm:  all updates, one after the other, for N seconds.
 * slow:   the same for N / 2 seconds, while another reader reports every SLOW_US only, as an lcore
 *         does that is busy with something else.
 * rest:   no update, for REST_US.
 *
 * A route that cannot be added (no room) counts as refused, and is tried again in the next round.
 * Packets are counted for a second of the lcore's CPU time.
 *
 * Prints one line of JSON, or the checks in lines of TAP; what l3fwd prints goes to standard error.
 */
#include "storm.h"

#include "../driver.h"

#include <pthread.h>
#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_lcore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define KEPT      512
#define ROUTES    200
#define KEPT_IP   RTE_IPV4(10, 1, 0, 0)
#define ROUTES_IP RTE_IPV4(10, 64, 0, 0)
#define SLOW_US   20000
#define REST_US   2000000
#define TIMES     (1 << 20) /* updates of a load that are remembered */
#define SLOW_ID   RTE_MAX_LCORE

extern volatile bool force_quit;

struct load {
    double packets_s, updates_s,
        cpu_us; /* packets: for a second of CPU time; the last: an update */
    uint64_t updates, refused, adds, count;
    uint32_t times[TIMES]; /* ns */
};

static struct load still, storm, slow;
static struct rte_rcu_qsbr *readers;
static uint64_t received, misrouted;
static bool slow_over;
static pthread_t control;
static clockid_t lcore_clock;
static double peak_mb, after_mb;
static int output; /* the former standard output */

static void die(const char *what)
{
    fprintf(stderr, "storm: %s\n", what);
    exit(1);
}

/* Before l3fwd prints anything. */
__attribute__((constructor)) static void keep_output(void)
{
    output = dup(STDOUT_FILENO);
    if (output < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        die("standard output cannot be moved");
}

struct rte_rcu_qsbr *storm_readers(void)
{
    if (readers)
        return readers;
    readers = aligned_alloc(RTE_CACHE_LINE_SIZE, rte_rcu_qsbr_get_memsize(SLOW_ID + 1));
    if (!readers || rte_rcu_qsbr_init(readers, SLOW_ID + 1))
        die("no quiescent-state variable");
    return readers;
}

/* ----------------------------------------------------------------------------------- traffic */

static int port_of(uint32_t ip)
{
    return ip >> 8 & 1;
}

static uint32_t random_ip(void)
{
    static __thread uint64_t state = 88172645463325252u;
    uint64_t number = next_random(&state);

    return number & 1 ? KEPT_IP + (number >> 8) % (KEPT << 8)
                      : ROUTES_IP + ((number >> 16) % ROUTES << 8) + (number >> 8 & 15);
}

static void fill_in(struct rte_mbuf *packet)
{
    struct rte_ether_hdr *ether = rte_pktmbuf_mtod(packet, struct rte_ether_hdr *);
    struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(ether + 1);

    ether->ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4);
    ip->version_ihl = RTE_IPV4_VHL_DEF;
    ip->time_to_live = 64;
    ip->total_length = rte_cpu_to_be_16(packet->data_len - sizeof *ether);
    ip->dst_addr = rte_cpu_to_be_32(random_ip());
    packet->packet_type = RTE_PTYPE_L3_IPV4;
}

/* A single lcore has all ports. */
static uint16_t receive_filled(uint16_t port, uint16_t queue, struct rte_mbuf **packets,
                               uint16_t count, uint16_t most, void *unused)
{
    (void)port, (void)queue, (void)most, (void)unused;
    for (uint16_t i = 0; i < count; i++)
        fill_in(packets[i]);
    __atomic_store_n(&received, received + count, __ATOMIC_RELAXED);
    return count;
}

static uint16_t send_checked(uint16_t port, uint16_t queue, struct rte_mbuf **packets,
                             uint16_t count, void *unused)
{
    (void)queue, (void)unused;
    for (uint16_t i = 0; i < count; i++) {
        const struct rte_ipv4_hdr *header = rte_pktmbuf_mtod_offset(
            packets[i], struct rte_ipv4_hdr *, sizeof(struct rte_ether_hdr));
        uint32_t ip = rte_be_to_cpu_32(header->dst_addr);

        misrouted += ip - KEPT_IP < KEPT << 8 && port_of(ip) != port;
    }
    return count;
}

/* ----------------------------------------------------------------------------------- updates */

static void record(struct load *load, uint64_t begin)
{
    if (load->count < TIMES)
        load->times[load->count++] = now_ns(CLOCK_MONOTONIC) - begin;
    load->updates++;
}

static void add_route(struct load *load, unsigned i, bool *there)
{
    uint32_t ip = ROUTES_IP + (i << 8);
    uint64_t begin = now_ns(CLOCK_MONOTONIC);
    int error = lpm_route_add(ip, 28, port_of(ip));

    load->adds++;
    load->refused += error != 0;
    there[i] = !error;
    if (!error)
        record(load, begin);
}

static void delete_route(struct load *load, unsigned i, bool *there)
{
    uint64_t begin = now_ns(CLOCK_MONOTONIC);

    if (!there[i])
        return;
    if (lpm_route_delete(ROUTES_IP + (i << 8), 28))
        die("a route cannot be deleted");
    there[i] = false;
    record(load, begin);
}

static void update(struct load *load)
{
    static bool there[ROUTES];

    for (unsigned i = 0; i < ROUTES; i++)
        add_route(load, i, there);
    for (unsigned i = 0; i < ROUTES; i++)
        delete_route(load, i, there);
}

/* `change`: update(), or NULL. */
static void run(struct load *load, double seconds, void (*change)(struct load *))
{
    uint64_t begin = now_ns(CLOCK_MONOTONIC);
    uint64_t packets = __atomic_load_n(&received, __ATOMIC_RELAXED), lcore = now_ns(lcore_clock);
    uint64_t own = now_ns(CLOCK_THREAD_CPUTIME_ID);

    while (now_ns(CLOCK_MONOTONIC) < begin + seconds * 1e9)
        if (change)
            change(load);
        else
            usleep(1000);
    load->updates_s = load->updates * 1e9 / (now_ns(CLOCK_MONOTONIC) - begin);
    load->cpu_us =
        (now_ns(CLOCK_THREAD_CPUTIME_ID) - own) / 1e3 / (load->updates ? load->updates : 1);
    load->packets_s = (__atomic_load_n(&received, __ATOMIC_RELAXED) - packets) * 1e9 /
                      (now_ns(lcore_clock) - lcore);
}

static void *run_slow_reader(void *unused)
{
    (void)unused;
    rte_rcu_qsbr_thread_register(readers, SLOW_ID);
    rte_rcu_qsbr_thread_online(readers, SLOW_ID);
    while (!__atomic_load_n(&slow_over, __ATOMIC_ACQUIRE)) {
        usleep(SLOW_US);
        rte_rcu_qsbr_quiescent(readers, SLOW_ID);
    }
    rte_rcu_qsbr_thread_offline(readers, SLOW_ID);
    rte_rcu_qsbr_thread_unregister(readers, SLOW_ID);
    return NULL;
}

static unsigned wrong_routes(void)
{
    unsigned wrong = 0;

    for (unsigned i = 0; i < KEPT; i++)
        wrong += lpm_route_find(KEPT_IP + (i << 8) + 1) != port_of(KEPT_IP + (i << 8));
    for (unsigned i = 0; i < ROUTES; i++)
        wrong += lpm_route_find(ROUTES_IP + (i << 8) + 1) != -1;
    return wrong;
}

static void *run_control(void *argument)
{
    double seconds = *(double *)argument;
    struct rusage usage;
    pthread_t reader;

    run(&still, seconds / 2, NULL);
    run(&storm, seconds, update);
    if (pthread_create(&reader, NULL, run_slow_reader, NULL))
        die("no thread");
    run(&slow, seconds / 2, update);
    __atomic_store_n(&slow_over, true, __ATOMIC_RELEASE);
    pthread_join(reader, NULL);
    usleep(REST_US);
    after_mb = resident_mb();
    getrusage(RUSAGE_SELF, &usage);
    peak_mb = usage.ru_maxrss * 1024 / 1e6;
    force_quit = true;
    return NULL;
}

/* The calling thread will be the lcore. */
void storm_start(void)
{
    static double seconds;
    const char *word = getenv("STORM_SECONDS");

    seconds = word ? atof(word) : 0;
    if (seconds <= 0)
        die("STORM_SECONDS is not set to a number of seconds");
    for (unsigned i = 0; i < KEPT; i++)
        if (lpm_route_add(KEPT_IP + (i << 8), 24, port_of(KEPT_IP + (i << 8))))
            die("a route of 24 bits cannot be added");
    for (uint16_t port = 0; port < 2; port++)
        if (!rte_eth_add_rx_callback(port, 0, receive_filled, NULL) ||
            !rte_eth_add_tx_callback(port, 0, send_checked, NULL))
            die("no callbacks of the ports");
    memset(storm.times, 1, sizeof storm.times); /* resident from the start */
    memset(slow.times, 1, sizeof slow.times);
    if (pthread_getcpuclockid(pthread_self(), &lcore_clock))
        die("no clock of the lcore");
    if (rte_ctrl_thread_create(&control, "routes", NULL, run_control, &seconds))
        die("no control thread");
}

/* ------------------------------------------------------------------------------------ the end */

static double p999_us(struct load *load)
{
    qsort(load->times, load->count, sizeof *load->times, by_value);
    return load->count ? load->times[load->count * 999 / 1000] / 1e3 : 0;
}

static double refused_percent(const struct load *load)
{
    return load->adds ? 100.0 * load->refused / load->adds : 0;
}

static void print_figures(void)
{
    dprintf(output,
            "{\"still\": %.0f, \"packets\": %.0f, \"updates\": %.0f, \"cpu_us\": %.2f, "
            "\"p999_us\": %.2f, \"refused\": %.2f, \"slow_updates\": %.0f, \"slow_p999_us\": %.2f, "
            "\"slow_refused\": %.2f, \"peak_mb\": %.1f, \"after_mb\": %.1f}\n",
            still.packets_s, storm.packets_s, storm.updates_s, storm.cpu_us, p999_us(&storm),
            refused_percent(&storm), slow.updates_s, p999_us(&slow), refused_percent(&slow),
            peak_mb, after_mb);
}

/* Returns whether all are so. */
static bool check(void)
{
    const struct {
        const char *title;
        bool is_so;
    } checks[] = {
        {"packets leave by the port of their route while others change", !misrouted},
        {"routes are those that were set, at the end", !wrong_routes()},
        {"no object is left", !lpm_routes_end()},
    };
    bool all = true;

    for (unsigned i = 0; i < sizeof checks / sizeof *checks; i++) {
        dprintf(getenv("STORM_CHECKS") ? output : STDERR_FILENO, "%sok %u - %s\n",
                checks[i].is_so ? "" : "not ", i + 1, checks[i].title);
        all = all && checks[i].is_so;
    }
    return all;
}

int storm_end(void)
{
    bool all_is_so;

    pthread_join(control, NULL);
    all_is_so = check();
    if (getenv("STORM_CHECKS"))
        return 0;
    print_figures();
    return !all_is_so;
}
