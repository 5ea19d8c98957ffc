/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Runs in the guest of lab/reproduce/kernel-evaluate. Provides loads for which Debian has no
 * program, and measures any load.
 *
 *     load open_close THREADS OPERATIONS    section 3.4's attack: opens and closes a file, no pause
 *     load tcp_crr THREADS OPERATIONS       like netperf's TCP_CRR: connects to 127.0.0.1, sends a
 *                                           byte, receives one, closes
 *     load epoll THREADS OPERATIONS         makes an eventfd, adds it to a set, closes it
 *     load names THREADS OPERATIONS         makes and removes a file without opening it, to leave
 *                                           alone the cache under attack
 *     load names_storm THREADS OPERATIONS   the same, with eight opens and closes after each
 *     load latency NAME OPERATIONS          runs one of these in a thread, timing each operation
 *     load measure SAMPLE_MS SETTLE_MS COMMAND...
 *
 * Threads share the operations. The program exits with 1 if one fails.
 *
 * `latency` prints "LATENCY p50_ns N p90_ns N ... most_ns N". The times include interruptions, such
 * as callbacks in a softirq, and the reading of the clock.
 *
 * `measure` waits SETTLE_MS before the command and, for deferred work to finish, after it. Before
 * and after it prints all figures of the watched caches, of Prudence's caches and in total ("SLUB
 * before NAME FIGURE VALUE...", "CACHE", "TOTALS"), and the frees of SLUB's other caches. "LOAD
 * wall_ns N busy_ns N status N" follows the command; busy_ns is the time of all CPUs less their
 * idle time, in ticks of 10 ms, including the settling after the command. If SAMPLE_MS is not 0,
 * `measure` samples slabs and memory that often and prints "PEAK NAME kb N PLACE N..." for the
 * watched caches, the memory of their slabs and where Prudence's objects were then, and "PEAK
 * memory kb N", what both allocators have from the page allocator. A cache's slabs are those of
 * both allocators, counted at the same moments.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 64
#define STORM       8
#define NS          1000000000ull
#ifndef SLUB /* folders of figures, which a test has elsewhere */
#define SLUB     "/sys/kernel/slab"
#define PRUDENCE "/sys/kernel/debug/prudence"
#endif

static void check(long result, const char *what)
{
    if (result >= 0)
        return;
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---------------------------------------------------------------------------------------- loads */

static atomic_long left; /* operations not yet begun */

static bool another(void)
{
    return atomic_fetch_sub(&left, 1) > 0;
}

static unsigned long long now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (unsigned long long)time.tv_sec * NS + (unsigned long long)time.tv_nsec;
}

struct worker {
    int set; /* an epoll set */
    char name[32];
};

static void open_close(struct worker *unused)
{
    int file = open("file", O_RDONLY);

    check(file, "open");
    close(file);
    (void)unused;
}

static void names(struct worker *worker)
{
    check(mknod(worker->name, S_IFREG | 0600, 0), "mknod");
    check(unlink(worker->name), "unlink");
}

static void names_storm(struct worker *worker)
{
    names(worker);
    for (unsigned i = 0; i < STORM; i++)
        open_close(worker);
}

static void epoll(struct worker *worker)
{
    struct epoll_event event = {.events = EPOLLIN};
    int file = eventfd(0, 0);

    check(file, "eventfd");
    check(epoll_ctl(worker->set, EPOLL_CTL_ADD, file, &event), "EPOLL_CTL_ADD");
    close(file);
}

static struct sockaddr_in address = {.sin_family = AF_INET};
static int listener;

/* Thread of the server. Answers one byte on each connection, until the program ends. */
static void *serve(void *unused)
{
    for (;;) {
        int file = accept(listener, NULL, NULL);
        char byte;

        check(file, "accept");
        check(read(file, &byte, 1), "read");
        check(write(file, &byte, 1), "write");
        close(file);
    }
    return unused;
}

/* Closes with a reset, because ports in TIME_WAIT would run out after 28,000 connections. */
static void tcp_crr(struct worker *unused)
{
    struct linger reset = {.l_onoff = 1};
    int file = socket(AF_INET, SOCK_STREAM, 0);
    char byte = 'x';

    check(file, "socket");
    check(setsockopt(file, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), "SO_LINGER");
    check(connect(file, (struct sockaddr *)&address, sizeof address), "connect");
    check(write(file, &byte, 1), "write");
    check(read(file, &byte, 1), "read");
    close(file);
    (void)unused;
}

static void make_file(unsigned threads)
{
    int file = open("file", O_RDWR | O_CREAT, 0600);

    check(file, "file");
    close(file);
    (void)threads;
}

static void start_servers(unsigned threads)
{
    socklen_t length = sizeof address;
    pthread_t server;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    check(listener, "socket");
    check(bind(listener, (struct sockaddr *)&address, sizeof address), "bind");
    check(getsockname(listener, (struct sockaddr *)&address, &length), "getsockname");
    check(listen(listener, 128), "listen");
    for (unsigned i = 0; i < threads; i++)
        check(-pthread_create(&server, NULL, serve, NULL), "pthread_create");
}

static const struct load {
    const char *name;
    void (*prepare)(unsigned threads); /* NULL if nothing to prepare */
    void (*once)(struct worker *worker);
} loads[] = {
    {"open_close", make_file, open_close}, {"tcp_crr", start_servers, tcp_crr},
    {"epoll", NULL, epoll},                {"names", NULL, names},
    {"names_storm", make_file, names_storm},
};

static const struct load *load_of(const char *name)
{
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++)
        if (!strcmp(name, loads[i].name))
            return &loads[i];
    fprintf(stderr, "load: no load is named '%s'\n", name);
    exit(2);
}

static void worker_init(struct worker *worker)
{
    worker->set = epoll_create1(0);
    check(worker->set, "epoll_create1");
    snprintf(worker->name, sizeof worker->name, "name-%d", (int)gettid());
}

static void *work(void *argument)
{
    const struct load *load = argument;
    struct worker worker;

    worker_init(&worker);
    while (another())
        load->once(&worker);
    close(worker.set);
    return NULL;
}

static void run(const struct load *load, unsigned threads, long operations)
{
    pthread_t ids[THREADS_MAX];

    atomic_store(&left, operations);
    if (load->prepare)
        load->prepare(threads);
    for (unsigned i = 0; i < threads; i++)
        check(-pthread_create(&ids[i], NULL, work, (void *)load), "pthread_create");
    for (unsigned i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
}

/* -------------------------------------------------------------------------------------- latency */

static int compare(const void *one, const void *other)
{
    unsigned long long a = *(const unsigned long long *)one;
    unsigned long long b = *(const unsigned long long *)other;

    return (a > b) - (a < b);
}

static void latency(const struct load *load, long operations)
{
    static const struct {
        const char *name;
        double share;
    } shown[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}, {"p9999", 0.9999}};
    unsigned long long *took = calloc((size_t)operations, sizeof *took);
    struct worker worker;

    check(took ? 0 : -1, "memory");
    memset(took, 1, (size_t)operations * sizeof *took); /* avoids page faults later */
    if (load->prepare)
        load->prepare(1);
    worker_init(&worker);
    for (long i = 0; i < operations; i++) {
        unsigned long long begin = now();

        load->once(&worker);
        took[i] = now() - begin;
    }
    qsort(took, (size_t)operations, sizeof *took, compare);
    printf("LATENCY");
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        printf(" %s_ns %llu", shown[i].name, took[(size_t)((double)operations * shown[i].share)]);
    printf(" most_ns %llu\n", took[operations - 1]);
}

/* -------------------------------------------------------------------------------------- figures */

/*
 * A file of figures keeps a buffer in the kernel from its first read until it is closed, mostly a
 * page of kmalloc's. So only those that are sampled stay open: a buffer for each watched cache on
 * either side, and three more.
 */
static const char *const watched[] = {
    "filp",
    "dentry",
    "inode_cache",
    "shmem_inode_cache",
    "ext4_inode_cache",
    "eventpoll_epi",
    "sock_inode_cache",
    "lsm_inode_cache",
    "avc_node",
    "maple_node",
    "radix_tree_node",
    "kmalloc-64",
};
static const char *const slub_figures[] = {
    "object_size",        "objs_per_slab",  "order",         "total_objects",
    "alloc_fastpath",     "alloc_slowpath", "free_fastpath", "free_slowpath",
    "alloc_from_partial", "alloc_slab",     "free_slab",     "cpu_partial_drain",
};

#define WATCHED (sizeof watched / sizeof *watched)
#define FIGURES (sizeof slub_figures / sizeof *slub_figures)
#define PAGE_KB 4

static char text[65536]; /* of the file that was read last */

/* Reads the file into `text` from the start; "" if there is no file. */
static const char *read_text(int file)
{
    ssize_t more, length = 0;

    while (file >= 0 && length < (ssize_t)sizeof text - 1 &&
           (more = pread(file, text + length, sizeof text - 1 - (size_t)length, length)) > 0)
        length += more;
    text[length] = '\0';
    return text;
}

static int open_in(const char *folder, const char *name, const char *figure)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s%s%s", folder, name, *figure ? "/" : "", figure);
    return open(path, O_RDONLY);
}

static const char *text_in(const char *folder, const char *name, const char *figure)
{
    int file = open_in(folder, name, figure);

    read_text(file);
    if (file >= 0)
        close(file);
    return text;
}

static void for_each_in(const char *folder, void (*visit)(const char *name, const char *argument),
                        const char *argument)
{
    DIR *found = opendir(folder);
    struct dirent *entry;

    if (!found)
        return;
    while ((entry = readdir(found)))
        if (entry->d_name[0] != '.' && entry->d_name[0] != ':')
            visit(entry->d_name, argument);
    closedir(found);
}

static void print_words(void)
{
    for (char *word = strtok(text, " \n"); word; word = strtok(NULL, " \n"))
        printf(" %s", word);
    printf("\n");
}

static void print_figure(const char *cache, const char *figure)
{
    if (*text_in(SLUB, cache, figure))
        printf(" %s %llu", figure, strtoull(text, NULL, 10));
}

static void print_prudence(const char *name, const char *when)
{
    if (!strcmp(name, "slabinfo") || !strcmp(name, "totals"))
        return;
    printf("CACHE %s %s", when, name);
    text_in(PRUDENCE, name, "");
    print_words();
}

/* SLUB's files begin with the sum over all CPUs and nodes. Prudence's have lines "figure value". */
static void print_watched(const char *when)
{
    for (size_t i = 0; i < WATCHED; i++) {
        printf("SLUB %s %s", when, watched[i]);
        for (size_t j = 0; j < FIGURES; j++)
            print_figure(watched[i], slub_figures[j]);
        printf("\n");
    }
    for_each_in(PRUDENCE, print_prudence, when);
    printf("TOTALS %s", when);
    text_in(PRUDENCE, "totals", "");
    print_words();
    fflush(stdout);
}

/* Prints the frees of a cache that is not watched, for Figure 12. */
static void print_frees(const char *name, const char *when)
{
    for (size_t i = 0; i < WATCHED; i++)
        if (!strcmp(name, watched[i]))
            return;
    printf("SLUB %s %s", when, name);
    print_figure(name, "free_fastpath");
    print_figure(name, "free_slowpath");
    printf("\n");
}

/* ---------------------------------------------------------------------------------------- peaks */

/* The figures of a watched cache. */
static struct {
    int total_objects;                              /* SLUB's file */
    unsigned long long objects_in_slab, kb_of_slab; /* SLUB's */
    unsigned long long peak_kb;
    unsigned long long live, latent, cached; /* Prudence's objects at the peak */
} caches[WATCHED];
static int meminfo, totals, slabinfo;
static unsigned long long peak_kb;

/* Returns the number that follows `word` in `text`, or 0. */
static unsigned long long number_after(const char *word)
{
    const char *at = strstr(text, word);

    return at ? strtoull(at + strlen(word), NULL, 10) : 0;
}

static void open_samples(void)
{
    meminfo = open("/proc/meminfo", O_RDONLY);
    check(meminfo, "/proc/meminfo");
    totals = open_in(PRUDENCE, "totals", "");
    slabinfo = open_in(PRUDENCE, "slabinfo", "");
    for (size_t i = 0; i < WATCHED; i++) {
        caches[i].objects_in_slab = strtoull(text_in(SLUB, watched[i], "objs_per_slab"), NULL, 10);
        caches[i].kb_of_slab = (unsigned long long)PAGE_KB
                               << strtoull(text_in(SLUB, watched[i], "order"), NULL, 10);
        caches[i].total_objects = open_in(SLUB, watched[i], "total_objects");
    }
}

/* Samples the slabs that both allocators have for a cache. `line` is what Prudence's slabinfo has
 * about it after the name, or NULL. */
static void sample_cache(size_t i, const char *line)
{
    unsigned long long objects = strtoull(read_text(caches[i].total_objects), NULL, 10), kb = 0;
    unsigned long long live = 0, pages = 0, slabs = 0, latent = 0, cached = 0;

    if (caches[i].objects_in_slab)
        kb = objects / caches[i].objects_in_slab * caches[i].kb_of_slab;
    if (line)
        sscanf(line,
               " %llu %*u %*u %*u %llu : tunables %*u %*u %*u : slabdata %*u %llu %*u : prudence "
               "%llu %llu",
               &live, &pages, &slabs, &latent, &cached);
    kb += slabs * pages * PAGE_KB;
    if (kb <= caches[i].peak_kb)
        return;
    caches[i].peak_kb = kb;
    caches[i].live = live;
    caches[i].latent = latent;
    caches[i].cached = cached;
}

static void sample(void)
{
    static char lines[sizeof text];
    unsigned long long kb;

    read_text(meminfo);
    kb = number_after("\nSlab:");
    read_text(totals);
    kb += number_after("page_bytes") / 1024;
    if (kb > peak_kb)
        peak_kb = kb;
    strcpy(lines, read_text(slabinfo));
    for (size_t i = 0; i < WATCHED; i++) {
        char name[64];
        const char *line;

        snprintf(name, sizeof name, "\n%s ", watched[i]);
        line = strstr(lines, name);
        sample_cache(i, line ? line + strlen(name) : NULL);
    }
}

static void print_peaks(void)
{
    for (size_t i = 0; i < WATCHED; i++)
        printf("PEAK %s kb %llu objects_live %llu objects_latent %llu objects_cached %llu\n",
               watched[i], caches[i].peak_kb, caches[i].live, caches[i].latent, caches[i].cached);
    printf("PEAK memory kb %llu\n", peak_kb);
}

/* -------------------------------------------------------------------------------------- measure */

static unsigned long long idle(int stat_file)
{
    unsigned long long idled = 0, waited = 0;

    sscanf(read_text(stat_file), "cpu %*u %*u %*u %llu %llu", &idled, &waited);
    return (idled + waited) * (NS / 100);
}

static void nap(unsigned ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l}, NULL);
}

static int wait_and_sample(pid_t child, unsigned sample_ms)
{
    int status;

    while (waitpid(child, &status, sample_ms ? WNOHANG : 0) == 0) {
        sample();
        nap(sample_ms);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static int measure(unsigned sample_ms, unsigned settle_ms, char **command)
{
    unsigned long long begin, idled, wall, total;
    unsigned long long cpus = (unsigned long long)sysconf(_SC_NPROCESSORS_ONLN);
    int status, stat_file = open("/proc/stat", O_RDONLY);
    pid_t child;

    check(stat_file, "/proc/stat");
    for_each_in(SLUB, print_frees, "before");
    nap(settle_ms);
    print_watched("before");
    if (sample_ms) {
        open_samples();
        sample();
    }
    begin = now();
    idled = idle(stat_file);
    child = fork();
    check(child, "fork");
    if (!child) {
        execvp(*command, command);
        check(-1, *command);
    }
    status = wait_and_sample(child, sample_ms);
    wall = now() - begin;
    nap(settle_ms);
    if (sample_ms)
        sample();
    total = (now() - begin) * cpus;
    printf("LOAD wall_ns %llu busy_ns %llu status %d\n", wall, total - (idle(stat_file) - idled),
           status);
    print_watched("after");
    if (sample_ms)
        print_peaks();
    for_each_in(SLUB, print_frees, "after");
    return status;
}

static int usage(void)
{
    fprintf(stderr, "usage: load NAME THREADS OPERATIONS, load latency NAME OPERATIONS, or load "
                    "measure SAMPLE_MS SETTLE_MS COMMAND...\n");
    return 2;
}

int main(int count, char **arguments)
{
    unsigned long threads = count == 4 ? strtoul(arguments[2], NULL, 0) : 0;
    long operations = count == 4 ? strtol(arguments[3], NULL, 0) : 0;

    if (count > 4 && !strcmp(arguments[1], "measure"))
        return measure((unsigned)strtoul(arguments[2], NULL, 0),
                       (unsigned)strtoul(arguments[3], NULL, 0), arguments + 4);
    if (operations >= 1 && !strcmp(arguments[1], "latency"))
        latency(load_of(arguments[2]), operations);
    else if (operations >= 1 && threads >= 1 && threads <= THREADS_MAX)
        run(load_of(arguments[1]), (unsigned)threads, operations);
    else
        return usage();
    return 0;
}
