/* SPDX-License-Identifier: MIT */
/*
 * prudence-alignment: the cost of a pair with the code in eight places.
 *
 * The library and the loops around it are linked eight times, each 16 bytes further on. One process
 * loads all eight and runs them in turn, 1,024 pairs at a time. The fastest run of each counts,
 * because other work of the machine only adds time. The result repeats to about one part in a
 * hundred even on a loaded machine, so a larger difference comes from the code: its speed depends
 * on its address.
 */
#define _GNU_SOURCE
#include <argp.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "alignment.h"
#include "arguments.h"
#include "document.h"
#include "measure.h"

#define MAX_LOOPS 16

/* Room for the thread-local variables of eight libraries. */
#define TUNABLES      "GLIBC_TUNABLES"
#define ROOM_FOR_EACH "glibc.rtld.optional_static_tls=65536"

struct request {
    uint64_t size, rounds;
    const char *json;
};

static const struct aligned_loop *loops[PLACES];
static uint64_t fastest[PLACES][MAX_LOOPS]; /* ns for PAIRS pairs */

static void die(const char *what, const char *why)
{
    fprintf(stderr, "prudence-alignment: %s: %s\n", what, why);
    exit(EXIT_FAILURE);
}

/* Sets the tunable before anything is loaded, because ld.so reads tunables once, when a program
 * starts. */
static void make_room(char **argv)
{
    const char *tunables = getenv(TUNABLES);

    if (tunables && strstr(tunables, ROOM_FOR_EACH))
        return;
    setenv(TUNABLES, ROOM_FOR_EACH, 1);
    execv("/proc/self/exe", argv);
    die("cannot start again", strerror(errno));
}

static void load(unsigned place, size_t size)
{
    aligned_loops_function *function;
    char path[512];
    void *module;

    snprintf(path, sizeof path, PLACES_DIR "/prudence-loops-%u.so", place);
    module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module)
        die("cannot load a place", dlerror());
    *(void **)&function = dlsym(module, "aligned_loops");
    if (!function)
        die("cannot load a place", dlerror());
    loops[place] = function(size);
    for (unsigned i = 0; i < MAX_LOOPS; i++)
        fastest[place][i] = UINT64_MAX;
}

static void time_loop(unsigned place, unsigned loop)
{
    uint64_t begin, took;

    loops[place][loop].run(); /* brings the code and objects into the CPU's caches */
    begin = now_ns();
    loops[place][loop].run();
    took = now_ns() - begin;
    if (took < fastest[place][loop])
        fastest[place][loop] = took;
}

static void measure(const struct request *request)
{
    bool terminal = isatty(STDERR_FILENO);

    for (uint64_t round = 0; round < request->rounds; round++) {
        if (terminal && round % 64 == 0)
            fprintf(stderr, "\r\033[Kround %llu of %llu", (unsigned long long)round,
                    (unsigned long long)request->rounds);
        for (unsigned i = 0; i < PLACES; i++) {
            unsigned place = (unsigned)((i + round) % PLACES);

            for (unsigned loop = 0; loops[place][loop].name; loop++)
                time_loop(place, loop);
        }
    }
    if (terminal)
        fputs("\r\033[K", stderr);
}

static double ns(unsigned place, unsigned loop)
{
    return (double)fastest[place][loop] / PAIRS;
}

static json_t *report_loop(unsigned loop)
{
    double least = ns(0, loop), most = least;
    json_t *places = json_array();

    for (unsigned place = 0; place < PLACES; place++) {
        least = ns(place, loop) < least ? ns(place, loop) : least;
        most = ns(place, loop) > most ? ns(place, loop) : most;
        json_array_append_new(places, json_real(ns(place, loop)));
    }
    printf("%-38s %7.2f %7.2f %6.2f  ", loops[0][loop].name, least, most, most / least);
    for (unsigned place = 0; place < PLACES; place++)
        printf(" %.2f", ns(place, loop));
    putchar('\n');
    return json_pack("{s:s, s:f, s:f, s:f, s:o}", "loop", loops[0][loop].name, "ns_min", least,
                     "ns_max", most, "spread", most / least, "ns_by_place", places);
}

static json_t *report(const struct request *request)
{
    json_t *document = document_begin("prudence-alignment"), *rows = json_array();

    printf("ns of a pair of %llu bytes, the fastest run at each place\n%-38s %7s %7s %6s   %s\n",
           (unsigned long long)request->size, "loop", "min", "max", "ratio", "by place");
    for (unsigned loop = 0; loops[0][loop].name; loop++)
        json_array_append_new(rows, report_loop(loop));
    json_object_update_new(document,
                           json_pack("{s:s, s:I, s:[], s:o}", "scenario", "alignment", "size",
                                     (json_int_t)request->size, "skipped", "rows", rows));
    return document;
}

static const struct argp_option options[] = {
    {"size", 's', "BYTES", 0, "Size of the objects (64)", 0},
    {"rounds", 'n', "N", 0, "Runs at each place (2000)", 0},
    {"json", 'j', "FILE", 0, "Write the results to FILE", 0},
    {0},
};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct request *request = state->input;

    switch (key) {
    case 's':
        request->size = argument_number(state, key, text, 1, 32768);
        return 0;
    case 'n':
        request->rounds = argument_number(state, key, text, 1, 1000000);
        return 0;
    case 'j':
        request->json = text;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected '%s'", text);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int main(int argc, char **argv)
{
    const struct argp argp = {
        options, parse, NULL, "Measure the cost of a pair with the code in 8 places.",
        NULL,    NULL,  NULL};
    struct request request = {.size = 64, .rounds = 2000};
    json_t *document;

    make_room(argv);
    argp_parse(&argp, argc, argv, 0, NULL, &request);
    pin_to_present_cpu();
    for (unsigned place = 0; place < PLACES; place++)
        load(place, request.size);
    measure(&request);
    document = report(&request);
    if (request.json && document_write(document, request.json))
        return EXIT_FAILURE;
    json_decref(document);
    return EXIT_SUCCESS;
}
