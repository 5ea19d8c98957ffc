/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Runs in the guest of reproduce/kernel-evaluate. Provides loads for which Debian has no program,
 * and measures any load.
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
 * The files of the watched caches stay open from before the load until the last figures are
 * printed, because opening a file is the operation that is measured. They count as live objects of
 * either allocator.
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

#define WATCHED       (sizeof watched / sizeof *watched)
#define FIGURES       (sizeof slub_figures / sizeof *slub_figures)
#define PRUDENCE_MAX  128
#define PAGE_KB       4
#define OBJS_PER_SLAB 1 /* indices of these figures */
#define ORDER         2
#define TOTAL_OBJECTS 3

static int slub_files[WATCHED][FIGURES]; /* -1 if there is no such file */
static int meminfo, totals;
static struct {
    char name[64];
    int file;
} prudence_files[PRUDENCE_MAX];
static size_t prudence_count;

/* Returns the file's text from the start, or "" if there is no file. */
static char *text_of(int file)
{
    static char text[8192];
    ssize_t length = file < 0 ? -1 : pread(file, text, sizeof text - 1, 0);

    text[length > 0 ? length : 0] = '\0';
    return text;
}

static int open_in(const char *folder, const char *name, const char *figure)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s%s%s", folder, name, *figure ? "/" : "", figure);
    return open(path, O_RDONLY);
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

static void open_prudence(const char *name, const char *unused)
{
    (void)unused;
    if (!strcmp(name, "slabinfo") || !strcmp(name, "totals") || prudence_count == PRUDENCE_MAX)
        return;
    snprintf(prudence_files[prudence_count].name, sizeof prudence_files->name, "%.63s", name);
    prudence_files[prudence_count++].file = open_in(PRUDENCE, name, "");
}

static void open_figures(void)
{
    meminfo = open("/proc/meminfo", O_RDONLY);
    check(meminfo, "/proc/meminfo");
    totals = open_in(PRUDENCE, "totals", "");
    for (size_t i = 0; i < WATCHED; i++)
        for (size_t j = 0; j < FIGURES; j++)
            slub_files[i][j] = open_in(SLUB, watched[i], slub_figures[j]);
    for_each_in(PRUDENCE, open_prudence, NULL);
}

static void print_words(char *text)
{
    for (char *word = strtok(text, " \n"); word; word = strtok(NULL, " \n"))
        printf(" %s", word);
    printf("\n");
}

/* SLUB's files begin with the sum over all CPUs and nodes. Prudence's have lines "figure value". */
static void print_watched(const char *when)
{
    for (size_t i = 0; i < WATCHED; i++) {
        printf("SLUB %s %s", when, watched[i]);
        for (size_t j = 0; j < FIGURES; j++)
            if (slub_files[i][j] >= 0)
                printf(" %s %llu", slub_figures[j], strtoull(text_of(slub_files[i][j]), NULL, 10));
        printf("\n");
    }
    for (size_t i = 0; i < prudence_count; i++) {
        printf("CACHE %s %s", when, prudence_files[i].name);
        print_words(text_of(prudence_files[i].file));
    }
    printf("TOTALS %s", when);
    print_words(text_of(totals));
    fflush(stdout);
}

/* Prints the frees of a cache that is not watched, for Figure 12. */
static void print_frees(const char *name, const char *when)
{
    static const char *const figures[] = {"free_fastpath", "free_slowpath"};

    for (size_t i = 0; i < WATCHED; i++)
        if (!strcmp(name, watched[i]))
            return;
    printf("SLUB %s %s", when, name);
    for (size_t i = 0; i < 2; i++) {
        int file = open_in(SLUB, name, figures[i]);

        if (file >= 0) {
            printf(" %s %llu", figures[i], strtoull(text_of(file), NULL, 10));
            close(file);
        }
    }
    printf("\n");
}

/* ---------------------------------------------------------------------------------------- peaks */

static unsigned long long peaks[WATCHED], peak_kb; /* KB */

/* Where Prudence's objects of a watched cache were at its peak. */
static const char *const places[] = {"\nobjects_live", "\nobjects_latent", "\nobjects_cached"};
#define PLACES (sizeof places / sizeof *places)
static unsigned long long at_peak[WATCHED][PLACES];

/* Of each watched cache, constant: objects in a slab of SLUB's and its KB, and where Prudence's
 * figures are, or -1. */
static struct {
    unsigned long long objects, kb;
    int prudence_file;
} of_slab[WATCHED];

/* Returns the number that follows `word`, or 0. */
static unsigned long long number_after(const char *text, const char *word)
{
    const char *at = strstr(text, word);

    return at ? strtoull(at + strlen(word), NULL, 10) : 0;
}

static unsigned long long slub_figure(size_t cache, size_t figure)
{
    return strtoull(text_of(slub_files[cache][figure]), NULL, 10);
}

static void prepare_samples(void)
{
    for (size_t i = 0; i < WATCHED; i++) {
        of_slab[i].objects = slub_figure(i, OBJS_PER_SLAB);
        of_slab[i].kb = (unsigned long long)PAGE_KB << slub_figure(i, ORDER);
        of_slab[i].prudence_file = -1;
        for (size_t j = 0; j < prudence_count; j++)
            if (!strcmp(watched[i], prudence_files[j].name))
                of_slab[i].prudence_file = prudence_files[j].file;
    }
}

/* Returns the memory of the slabs that both allocators have now for a watched cache. */
static unsigned long long kb_of(size_t cache)
{
    unsigned long long objects = of_slab[cache].objects, kb = 0;
    const char *text;

    if (objects)
        kb = slub_figure(cache, TOTAL_OBJECTS) / objects * of_slab[cache].kb;
    text = text_of(of_slab[cache].prudence_file);
    return kb + number_after(text, "\nslabs_now") * number_after(text, "\nslab_size") / 1024;
}

static void sample(void)
{
    unsigned long long kb = number_after(text_of(meminfo), "\nSlab:");

    kb += number_after(text_of(totals), "page_bytes") / 1024;
    if (kb > peak_kb)
        peak_kb = kb;
    for (size_t i = 0; i < WATCHED; i++) {
        unsigned long long now_kb = kb_of(i);
        const char *text;

        if (now_kb <= peaks[i])
            continue;
        peaks[i] = now_kb;
        text = text_of(of_slab[i].prudence_file);
        for (size_t j = 0; j < PLACES; j++)
            at_peak[i][j] = number_after(text, places[j]);
    }
}

static void print_peaks(void)
{
    for (size_t i = 0; i < WATCHED; i++) {
        printf("PEAK %s kb %llu", watched[i], peaks[i]);
        for (size_t j = 0; j < PLACES; j++)
            printf(" %s %llu", places[j] + 1, at_peak[i][j]);
        printf("\n");
    }
    printf("PEAK memory kb %llu\n", peak_kb);
}

/* -------------------------------------------------------------------------------------- measure */

static unsigned long long idle(int stat_file)
{
    unsigned long long idled = 0, waited = 0;

    sscanf(text_of(stat_file), "cpu %*u %*u %*u %llu %llu", &idled, &waited);
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
    open_figures();
    for_each_in(SLUB, print_frees, "before");
    nap(settle_ms);
    print_watched("before");
    prepare_samples();
    if (sample_ms)
        sample();
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
