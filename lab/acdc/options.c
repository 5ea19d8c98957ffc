/* SPDX-License-Identifier: MIT */
/* Short letters equal those of the public ACDC tool of 2013, for options that it has. */
#include "options.h"

#include <argp.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "draw.h"

enum {
    KEY_RECLAIMER = 256,
    KEY_DEFERRED_SHARE,
    KEY_COLLECTION,
    KEY_MULTIPLIER,
    KEY_THINK,
    KEY_ORIGINAL,
    KEY_TIMED,
    KEY_SAMPLES,
    KEY_PIN,
    KEY_JSON,
    KEY_CSV,
    KEY_CSV_SAMPLES,
    KEYS
};

static const struct argp_option all_options[] = {
    {NULL, 0, NULL, 0, "Memory model", 1},
    {"model", 'm', "NAME", 0,
     "persistent (malloc and free; default), short-term (Prudence's expiration dates), deferred "
     "(frees "
     "go through a grace period), none (no allocator: the baseline)",
     1},
    {"reclaimer", KEY_RECLAIMER, "NAME", 0, "deferred: prudence (default), or liburcu over malloc",
     1},
    {"deferred-share", KEY_DEFERRED_SHARE, "PERCENT", 0, "deferred: frees that are deferred (100)",
     1},
    {"collection", KEY_COLLECTION, "NAME", 0, "short-term: lazy (default) or eager", 1},

    {NULL, 0, NULL, 0, "Time", 2},
    {"threads", 'n', "N", 0, "Threads (1)", 2},
    {"duration", 'd', "TICKS", 0, "How often each thread's clock advances (100)", 2},
    {"time-quantum", 't', "BYTES", 0, "Bytes that a thread allocates between two ticks (256K)", 2},
    {"max-drift", 'g', "TICKS", 0,
     "How far a thread may be ahead of the slowest, or any (the longest liveness)", 2},
    {"seed", 'r', "N", 0, "Seed of all random numbers (1)", 2},
    {"pin", KEY_PIN, NULL, 0, "Bind the threads to CPUs in turn", 2},

    {NULL, 0, NULL, 0, "Objects", 3},
    {"min-size", 's', "POWER", 0, "Smallest size: 2^POWER bytes (4)", 3},
    {"max-size", 'S', "POWER", 0, "Largest size: 2^POWER bytes (8)", 3},
    {"min-liveness", 'l', "TICKS", 0, "Shortest liveness (1)", 3},
    {"max-liveness", 'L', "TICKS", 0, "Longest liveness (10)", 3},
    {"deallocation-delay", 'D', "TICKS", 0, "From the last access to the free (0)", 3},
    {"multiplier", KEY_MULTIPLIER, "N", 0, "Multiply the number of objects in a round by N (1)", 3},
    {"objects", 'F', "N", 0, "Objects in each round, instead of the formula's number", 3},
    {"original", KEY_ORIGINAL, NULL, 0,
     "The rules of the public tool: one size a round, no divisor in the formula, accesses after "
     "each round, rounds shared as a whole",
     3},
    {"list-share", 'q', "PERCENT", 0, "Groups that are lists (100)", 3},
    {"tree-share", 'b', "PERCENT", 0, "Groups that are trees (0)", 3},
    {"think", KEY_THINK, "N", 0, "Logarithms computed after each allocation (0)", 3},

    {NULL, 0, NULL, 0, "Access and sharing", 4},
    {"access", 'A', NULL, 0, "Access all live objects at each tick", 4},
    {"write-ratio", 'w', "PERCENT", 0, "Accesses that write (10)", 4},
    {"write-iterations", 'i', "N", 0, "How often each of them writes (1)", 4},
    {"shared", 'O', NULL, 0, "Share objects between threads", 4},
    {"share-ratio", 'R', "PERCENT", 0, "Objects that are shared (10)", 4},
    {"receiver-ratio", 'T', "PERCENT", 0, "Other threads that receive a shared object (100)", 4},
    {"false-sharing", 'f', NULL, 0,
     "Each receiver accesses objects of its own in a shared group, between the others'", 4},

    {NULL, 0, NULL, 0, "Results", 5},
    {"timed", KEY_TIMED, "N", 0, "Time one operation in N; 0: none (16)", 5},
    {"samples", KEY_SAMPLES, "N", 0, "Samples of memory, at most; 0: none (1000)", 5},
    {"json", KEY_JSON, "FILE", 0, "Write everything to FILE (-: standard output)", 5},
    {"csv", KEY_CSV, "FILE", 0, "Write settings and figures to FILE, as a line", 5},
    {"csv-samples", KEY_CSV_SAMPLES, "FILE", 0, "Write the samples of memory to FILE", 5},
    {"label", 'P', "NAME", 0, "Name of this run in the results", 5},
    {"verbose", 'v', NULL, 0, "Print the samples of memory behind the table", 5},
    {"quiet", 'Q', NULL, 0, "No table, no progress", 5},

    /* Options in scripts for the old tool that have no meaning here. */
    {"acdc-mode", 'a', NULL, OPTION_HIDDEN, NULL, 6},
    {"metadata-heap", 'H', "KB", OPTION_HIDDEN, NULL, 6},
    {"node-buffer", 'N', "N", OPTION_HIDDEN, NULL, 6},
    {"class-buffer", 'C', "N", OPTION_HIDDEN, NULL, 6},
    {"warm-metadata", 'W', NULL, OPTION_HIDDEN, NULL, 6},
    {0},
};

/* Options that have no effect without another one, and may not be given without it. */
struct given {
    bool key[KEYS];
};

struct parsing {
    struct options *options;
    struct given given;
    unsigned list_share;
};

static unsigned percent(struct argp_state *state, int key, const char *text)
{
    return (unsigned)argument_number(state, key, text, 0, 100);
}

/* Parses an exponent: "3", or "2^3". */
static unsigned power(struct argp_state *state, int key, const char *text)
{
    return (unsigned)argument_number(state, key, strncmp(text, "2^", 2) ? text : text + 2, 0,
                                     MOST_SIZE);
}

static bool parse_model(int key, const char *text, struct argp_state *state,
                        struct settings *settings)
{
    switch (key) {
    case 'm':
        settings->model = (enum memory_model)argument_name(state, key, text, model_text);
        return true;
    case KEY_RECLAIMER:
        settings->reclaimer = (enum reclaimer)argument_name(state, key, text, reclaimer_text);
        return true;
    case KEY_DEFERRED_SHARE:
        settings->deferred_share = percent(state, key, text);
        return true;
    case KEY_COLLECTION:
        settings->collection = (enum collection)argument_name(state, key, text, collection_text);
        return true;
    default:
        return false;
    }
}

static bool parse_time(int key, const char *text, struct argp_state *state,
                       struct settings *settings)
{
    switch (key) {
    case 'n':
        settings->threads = (unsigned)argument_number(state, key, text, 1, MOST_THREADS);
        return true;
    case 'd':
        settings->duration = argument_number(state, key, text, 1, MOST_DURATION);
        return true;
    case 't':
        settings->time_quantum = argument_number(state, key, text, 1, INT64_MAX);
        return true;
    case 'g':
        settings->max_drift =
            strcmp(text, "any") ? argument_number(state, key, text, 0, MOST_DURATION) : ANY_DRIFT;
        return true;
    case 'r':
        settings->seed = argument_number(state, key, text, 0, INT64_MAX);
        return true;
    case KEY_PIN:
        settings->pinned = true;
        return true;
    default:
        return false;
    }
}

static bool parse_objects(int key, const char *text, struct argp_state *state,
                          struct parsing *parsing)
{
    struct settings *settings = &parsing->options->settings;

    switch (key) {
    case 's':
        settings->min_size = power(state, key, text);
        return true;
    case 'S':
        settings->max_size = power(state, key, text);
        return true;
    case 'l':
        settings->min_liveness = argument_number(state, key, text, 1, MOST_LIVENESS);
        return true;
    case 'L':
        settings->max_liveness = argument_number(state, key, text, 1, MOST_LIVENESS);
        return true;
    case 'D':
        settings->deallocation_delay = argument_number(state, key, text, 0, MOST_LIVENESS);
        return true;
    case KEY_MULTIPLIER:
        settings->multiplier = argument_number(state, key, text, 1, MOST_MULTIPLIER);
        return true;
    case 'F':
        settings->objects = argument_number(state, key, text, 1, MOST_OBJECTS);
        return true;
    case KEY_ORIGINAL:
        settings->original = true;
        return true;
    case 'q':
        parsing->list_share = percent(state, key, text);
        return true;
    case 'b':
        settings->tree_share = percent(state, key, text);
        return true;
    case KEY_THINK:
        settings->think = argument_number(state, key, text, 0, 1000000);
        return true;
    default:
        return false;
    }
}

static bool parse_access(int key, const char *text, struct argp_state *state,
                         struct settings *settings)
{
    switch (key) {
    case 'A':
        settings->access = true;
        return true;
    case 'w':
        settings->write_ratio = percent(state, key, text);
        return true;
    case 'i':
        settings->write_iterations = (unsigned)argument_number(state, key, text, 1, 1000000);
        return true;
    case 'O':
        settings->shared = true;
        return true;
    case 'R':
        settings->share_ratio = percent(state, key, text);
        return true;
    case 'T':
        settings->receiver_ratio = percent(state, key, text);
        return true;
    case 'f':
        settings->false_sharing = true;
        return true;
    default:
        return false;
    }
}

/* Checks the label, which is printed in a table, in JSON and in CSV. */
static const char *label(struct argp_state *state, const char *text)
{
    json_t *string = json_string(text);

    if (!string || !*text)
        argp_error(state, "--label: '%s' is %s", text, *text ? "not UTF-8" : "empty");
    for (const char *at = text; *at; at++)
        if ((unsigned char)*at < ' ' || *at == ',' || *at == '"')
            argp_error(state, "--label: '%s' has a comma, a quote or a control character in it",
                       text);
    json_decref(string);
    return text;
}

static bool parse_results(int key, const char *text, struct argp_state *state,
                          struct options *options)
{
    switch (key) {
    case KEY_TIMED:
        options->settings.timed = argument_number(state, key, text, 0, 1000000);
        return true;
    case KEY_SAMPLES:
        options->settings.samples = argument_number(state, key, text, 0, 10000000);
        return true;
    case KEY_JSON:
        options->json = text;
        return true;
    case KEY_CSV:
        options->csv = text;
        return true;
    case KEY_CSV_SAMPLES:
        options->csv_samples = text;
        return true;
    case 'P':
        options->settings.label = label(state, text);
        return true;
    case 'v':
        options->verbose = true;
        return true;
    case 'Q':
        options->quiet = true;
        return true;
    default:
        return key && key < 256 && strchr("aHNCW", key);
    }
}

/* -------------------------------------------------------------------- options that fit together */

static void needs(struct argp_state *state, const struct given *given, int key, bool there,
                  const char *needed)
{
    if (given->key[key] && !there)
        argp_error(state, "--%s needs %s", argument_option(state, key), needed);
}

static void check_needs(struct argp_state *state, const struct given *given,
                        const struct settings *settings)
{
    bool deferred = settings->model == MODEL_DEFERRED;

    needs(state, given, KEY_RECLAIMER, deferred, "--model deferred");
    needs(state, given, KEY_DEFERRED_SHARE, deferred, "--model deferred");
    needs(state, given, KEY_COLLECTION, settings->model == MODEL_SHORT_TERM, "--model short-term");
    if (!settings->original) { /* scripts for the public tool set these without their switch */
        needs(state, given, 'w', settings->access, "--access");
        needs(state, given, 'i', settings->access, "--access");
        needs(state, given, 'R', settings->shared, "--shared");
        needs(state, given, 'T', settings->shared, "--shared");
    }
    if (given->key['v'] && given->key['Q'])
        argp_error(state, "--verbose and --quiet: only one of them can be");
    needs(state, given, 'f', settings->shared && settings->access, "--shared and --access");
    if (given->key[KEY_MULTIPLIER] && given->key['F'])
        argp_error(state, "--multiplier and --objects: only one of them says how many");
}

/* Computes one share from the other. */
static void settle_shares(struct argp_state *state, struct parsing *parsing)
{
    struct settings *settings = &parsing->options->settings;
    bool lists = parsing->given.key['q'], trees = parsing->given.key['b'];

    if (lists && trees && parsing->list_share + settings->tree_share != 100)
        argp_error(state, "--list-share %u and --tree-share %u do not add up to 100",
                   parsing->list_share, settings->tree_share);
    if (lists)
        settings->tree_share = 100 - parsing->list_share;
}

static void check_outputs(struct argp_state *state, const struct options *options)
{
    const char *files[] = {options->json, options->csv, options->csv_samples};
    unsigned to_standard_output = 0;

    for (unsigned i = 0; i < sizeof files / sizeof *files; i++)
        to_standard_output += files[i] && !strcmp(files[i], "-");
    if (to_standard_output > 1)
        argp_error(state, "--json, --csv, --csv-samples: only one of them can be -");
}

static void finish(struct argp_state *state, struct parsing *parsing)
{
    char why[256];

    settle_shares(state, parsing);
    if (!parsing->given.key['g'])
        parsing->options->settings.max_drift = parsing->options->settings.max_liveness;
    check_needs(state, &parsing->given, &parsing->options->settings);
    check_outputs(state, parsing->options);
    if (!settings_check(&parsing->options->settings, why, sizeof why))
        argp_error(state, "%s", why);
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct parsing *parsing = state->input;
    struct settings *settings = &parsing->options->settings;

    if (key == ARGP_KEY_END) {
        finish(state, parsing);
        return 0;
    }
    if (key == ARGP_KEY_ARG)
        argp_error(state, "'%s' is not an option", text);
    if (!parse_model(key, text, state, settings) && !parse_time(key, text, state, settings) &&
        !parse_objects(key, text, state, parsing) && !parse_access(key, text, state, settings) &&
        !parse_results(key, text, state, parsing->options))
        return ARGP_ERR_UNKNOWN;
    parsing->given.key[key] = true;
    return 0;
}

void options_parse(int argc, char **argv, struct options *options)
{
    static const struct argp argp = {
        .options = all_options,
        .parser = parse_option,
        .doc =
            "Measure an allocator with the workload of ACDC.\v"
            "The allocator is that of the program: preload another one (LD_PRELOAD). Numbers may "
            "be "
            "written as 64K or 2^16.",
    };
    struct parsing parsing = {.options = options};

    *options = (struct options){.json = NULL};
    settings_defaults(&options->settings);
    argp_parse(&argp, argc, argv, 0, NULL, &parsing);
}
