/* SPDX-License-Identifier: MIT */
/* prudence-bench: the command line, and from it the rows to measure. */
#define _GNU_SOURCE
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <prudence/prudence.h>

#include "choice.h"
#include "document.h"
#include "numbers.h"
#include "runner.h"
#include "scm.h"

#define OPTIONS_TYPED 96 /* of struct config's options; the rest is for those of the subject */

struct request {
    const struct scenario *scenario;
    struct config config; /* what does not vary */
    struct numbers sizes, threads, readers, batches, latent_limits, stays, orders, lives;
    const char *patterns; /* of subjects, with commas between */
    const char *json;
    uint64_t repeat;
    bool list;
};

/* ------------------------------------------------------------------------------ the options */

static const struct argp_option all_options[] = {
    {"size", 's', "BYTES,...", 0, "Sizes of the objects", 0},
    {"sizes", 'x', "mixed", 0, "Objects of 16 sizes, 32 to 6,144 bytes, instead of --size", 0},
    {"threads", 't', "N,...", 0, "Threads that allocate and retire", 0},
    {"readers", 'r', "N,...", 0, "Threads that only read", 0},
    {"subject", 'S', "NAME,...", 0,
     "Who is measured; * and ? match, !NAME leaves out, NAME/N: in batches of N (see --list)", 0},
    {"seconds", 'T', "SECONDS", 0, "Length of a run", 0},
    {"pairs", 'n', "N", 0, "Length of a run in pairs of each thread, instead of time", 0},
    {"batch", 'b', "N,...", 0, "Objects allocated before as many are retired", 0},
    {"order", 'e', "tight|in-order|random,...", 0,
     "Retire what was just allocated, or one of --live objects", 0},
    {"live", 'V', "N,...", 0, "Objects that each thread keeps, of --order (1024)", 0},
    {"stay", 'y', "MS,...", 0, "Milliseconds that the reader stays", 0},
    {"demand", 'd', NULL, 0, "Retire a batch and want it back, instead of a storm", 0},
    {"cycles", 'c', "N", 0, "Caches made and destroyed, at most", 0},
    {"objects", 'o', "N", 0, "Objects in each of them", 0},
    {"length", 'L', "N", 0, "Entries of each thread's list", 0},
    {"repeat", 'R', "N", 0, "Runs of each row, interleaved; medians are shown", 0},
    {"limit", 'm', "BYTES", 0, "Resident memory of a run; more is out of memory", 0},
    {"latent-limit", 'l', "BYTES,...", 0, "Prudence's option latent_limit", 0},
    {"option", 'O', "NAME=VALUE", 0, "Another option of Prudence; may be repeated", 0},
    {"json", 'j', "FILE", 0, "Write all results to FILE", 0},
    {"progress", 'p', NULL, 0, "Show each run while it runs", 0},
    {"list", 'i', NULL, 0, "List the subjects and end", 0},
    {0},
};

static const char common_options[] = "strSTRmlOjpi";

static void want(bool good, struct argp_state *state, const char *option, const char *text,
                 const char *wanted)
{
    if (!good)
        argp_error(state, "--%s: '%s' is not %s", option, text, wanted);
}

/* Appends `option` to the list in `options`. False: there is no room. */
static bool append_option(char *options, size_t size, const char *option)
{
    size_t used = strlen(options);
    int added = snprintf(options + used, size - used, "%s%s", used ? "," : "", option);

    return (size_t)added < size - used;
}

static void add_option(struct request *request, const char *text, struct argp_state *state)
{
    want(strchr(text, '='), state, "option", text, "NAME=VALUE");
    if (!append_option(request->config.options, OPTIONS_TYPED, text))
        argp_error(state, "--option: too long");
}

static void want_numbers(struct argp_state *state, const char *option, const char *text,
                         uint64_t least, uint64_t most, struct numbers *numbers)
{
    char wanted[80];

    snprintf(wanted, sizeof wanted, "a list of numbers from %llu to %llu",
             (unsigned long long)least, (unsigned long long)most);
    want(numbers_parse(text, least, most, numbers), state, option, text, wanted);
}

static uint64_t want_number(struct argp_state *state, const char *option, const char *text,
                            uint64_t least, uint64_t most)
{
    uint64_t value = least;
    char wanted[80];

    snprintf(wanted, sizeof wanted, "a number from %llu to %llu", (unsigned long long)least,
             (unsigned long long)most);
    want(number_parse(text, least, most, &value), state, option, text, wanted);
    return value;
}

static void add_orders(struct request *request, const char *text, struct argp_state *state)
{
    char *copy = strdup(text), *rest = copy, *name;
    struct numbers *orders = &request->orders;
    enum order order;

    orders->count = 0;
    while ((name = strsep(&rest, ","))) {
        want(orders->count < NUMBERS && order_find(name, &order), state, "order", name,
             "tight, in-order or random");
        orders->value[orders->count++] = order;
    }
    free(copy);
}

static struct numbers one_number(uint64_t value)
{
    return (struct numbers){.value = {value}, .count = 1};
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct request *request = state->input;
    struct config *config = &request->config;
    bool counts_readers = request->scenario->counted & COUNTS(LOOP_READ);
    size_t least_size = request->scenario->min_size ? request->scenario->min_size : MIN_SIZE;

    switch (key) {
    case 's':
        want_numbers(state, "size", text, least_size, MAX_SIZE, &request->sizes);
        break;
    case 't':
        want_numbers(state, "threads", text, counts_readers ? 0 : 1, MAX_THREADS,
                     &request->threads);
        break;
    case 'r':
        want_numbers(state, "readers", text, 0, MAX_THREADS, &request->readers);
        break;
    case 'b':
        want_numbers(state, "batch", text, 1, 1 << 20, &request->batches);
        break;
    case 'e':
        add_orders(request, text, state);
        break;
    case 'V':
        want_numbers(state, "live", text, 1, MAX_LIVE, &request->lives);
        break;
    case 'y':
        want_numbers(state, "stay", text, 1, 60000, &request->stays);
        break;
    case 'l':
        want_numbers(state, "latent-limit", text, 1, UINT64_MAX >> 1, &request->latent_limits);
        break;
    case 'n':
        config->pairs = want_number(state, "pairs", text, 1, UINT64_MAX >> 1);
        break;
    case 'c':
        config->cycles = (unsigned)want_number(state, "cycles", text, 1, 1 << 30);
        break;
    case 'o':
        config->objects = (unsigned)want_number(state, "objects", text, 1, 1 << 24);
        break;
    case 'L':
        config->length = (unsigned)want_number(state, "length", text, 1, 1 << 24);
        break;
    case 'R':
        request->repeat = want_number(state, "repeat", text, 1, 1000);
        break;
    case 'm':
        config->limit = want_number(state, "limit", text, 1 << 20, UINT64_MAX >> 1);
        break;
    case 'T':
        want(seconds_parse(text, &config->seconds), state, "seconds", text,
             "a number above 0, up to 86400");
        break;
    case 'S':
        request->patterns = text;
        break;
    case 'O':
        add_option(request, text, state);
        break;
    case 'j':
        request->json = text;
        break;
    case 'p':
        config->progress = true;
        break;
    case 'd':
        config->demand = true;
        break;
    case 'x':
        want(!strcmp(text, "mixed"), state, "sizes", text, "'mixed'");
        config->mixed = true;
        break;
    case 'i':
        request->list = true;
        break;
    case ARGP_KEY_END:
        if (request->lives.count && request->orders.count == 1 &&
            request->orders.value[0] == ORDER_TIGHT)
            argp_error(state, "--live is for --order in-order or random");
        if (!request->lives.count)
            request->lives = one_number(1024);
        break;
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected '%s'", text);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static void set_defaults(struct request *request, const struct scenario *scenario)
{
    const struct config *defaults = &scenario->defaults;

    *request = (struct request){.scenario = scenario, .config = *defaults, .repeat = 1};
    snprintf(request->config.scenario, sizeof request->config.scenario, "%s", scenario->name);
    request->config.limit = UINT64_C(2) << 30;
    request->config.cycles = 1000;
    request->config.objects = 1000;
    request->config.length = 64;
    request->sizes = one_number(defaults->size);
    request->threads = one_number(defaults->threads);
    request->readers = one_number(defaults->readers);
    request->batches = one_number(1);
    request->latent_limits = one_number(0);
    request->stays = one_number(defaults->stay_ms);
    request->orders = one_number(ORDER_TIGHT);
}

static void parse_request(struct request *request, int argc, char **argv)
{
    struct argp_option options[sizeof all_options / sizeof *all_options] = {{0}};
    const struct argp argp = {options, parse_option, NULL, request->scenario->summary,
                              NULL,    NULL,         NULL};
    static char name[64];
    unsigned count = 0;

    for (const struct argp_option *option = all_options; option->name; option++) {
        if (strchr(common_options, option->key) || strchr(request->scenario->options, option->key))
            options[count++] = *option;
    }
    snprintf(name, sizeof name, "prudence-bench %s", request->scenario->name);
    argv[0] = name;
    argp_parse(&argp, argc, argv, 0, NULL, request);
}

/* ----------------------------------------------------------------------------- the subjects */

static void list_subjects(void)
{
    unsigned count;
    const struct subject *table = subjects(&count);

    for (unsigned i = 0; i < count; i++)
        printf("%-22s %s over %s%s\n", table[i].name, table[i].family->library,
               table[i].allocator->name,
               runner_has(table[i].allocator) ? "" : " (not installed: skipped)");
}

/* ------------------------------------------------------------------------------ the rows */

static uint64_t pick(const struct numbers *numbers, unsigned *rest)
{
    uint64_t value = numbers->value[*rest % numbers->count];

    *rest /= numbers->count;
    return value;
}

/* The configuration of that number; sizes change last. False: there are no more. */
static bool configure(const struct request *request, unsigned index, struct config *config)
{
    *config = request->config;
    config->latent_limit = pick(&request->latent_limits, &index);
    config->batch = (unsigned)pick(&request->batches, &index);
    config->live = (unsigned)pick(&request->lives, &index);
    config->order = (enum order)pick(&request->orders, &index);
    config->stay_ms = (unsigned)pick(&request->stays, &index);
    config->readers = (unsigned)pick(&request->readers, &index);
    config->threads = (unsigned)pick(&request->threads, &index);
    config->size = pick(&request->sizes, &index);
    return index == 0;
}

static void make_row(struct row *row, const struct config *config, const struct subject *subject)
{
    char *options = row->config.options, limit[48];
    size_t size = sizeof row->config.options;

    *row = (struct row){.config = *config, .subject = subject, .repeats = json_array()};
    snprintf(row->config.subject, sizeof row->config.subject, "%s", subject->name);
    if (subject->options)
        append_option(options, size, subject->options);
    if (!subject->family->latent_limited)
        row->config.latent_limit = 0;
    if (!row->config.latent_limit)
        return;
    snprintf(limit, sizeof limit, "latent_limit=%llu", (unsigned long long)config->latent_limit);
    append_option(options, size, limit);
}

/* Whether it is this configuration that measures it: what an option does not concern runs once, with
 * the first value of that option. */
static bool runs_with(const struct choice *choice, const struct request *request,
                      const struct config *config)
{
    bool first_limit = config->latent_limit == request->latent_limits.value[0];
    bool first_batch = config->batch == request->batches.value[0];
    bool first_live = config->live == request->lives.value[0];

    return (first_limit || choice->subject->family->latent_limited) &&
           (first_batch || !choice->batch) && (first_live || config->order != ORDER_TIGHT) &&
           choice_has_batches(choice, choice->batch ? choice->batch : config->batch);
}

static unsigned make_rows(const struct request *request, const struct config *config,
                          const struct choices *choices, struct row *rows)
{
    unsigned made = 0;

    for (unsigned i = 0; i < choices->count; i++) {
        const struct choice *choice = &choices->choice[i];
        struct config own = *config;

        if (!runs_with(choice, request, config))
            continue;
        if (choice->batch)
            own.batch = choice->batch;
        if (own.order == ORDER_TIGHT)
            own.live = 0;
        make_row(&rows[made++], &own, choice->subject);
    }
    return made;
}

static void skip(const struct subject *subject, void *document)
{
    fprintf(stderr, "prudence-bench: %s is skipped: %s is not installed\n", subject->name,
            subject->allocator->preload);
    document_skip(document, subject, "its allocator is not installed");
}

static unsigned measure(struct row *rows, unsigned count, uint64_t repeat, json_t *document)
{
    unsigned failed = runner_run(rows, count, (unsigned)repeat);

    rows_merge(rows, count);
    document_add(document, rows, count);
    for (unsigned i = 0; i < count; i++) {
        table_row(&rows[i]);
        json_decref(rows[i].repeats);
        json_decref(rows[i].merged);
    }
    return failed;
}

static int refuse_any(const struct request *request)
{
    struct config config;

    for (unsigned i = 0; configure(request, i, &config); i++) {
        const char *why = request->scenario->refuse ? request->scenario->refuse(&config) : NULL;

        if (!why)
            continue;
        fprintf(stderr, "prudence-bench: %s\n", why);
        return -1;
    }
    return 0;
}

static int carry_out(const struct request *request)
{
    const char *patterns = request->patterns ? request->patterns : request->scenario->subjects;
    json_t *document = document_create(request->scenario);
    static struct row rows[MAX_CHOICES];
    static struct choices choices;
    struct config config;
    unsigned failed = 0;

    if (refuse_any(request) || !choices_make(&choices, patterns, request->scenario))
        return EXIT_FAILURE;
    choices_skip_missing(&choices, skip, document);
    table_head(request->scenario);
    for (unsigned i = 0; configure(request, i, &config); i++)
        failed +=
            measure(rows, make_rows(request, &config, &choices, rows), request->repeat, document);
    if (request->json && document_write(document, request->json))
        return EXIT_FAILURE;
    json_decref(document);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static void usage(FILE *file)
{
    fputs(
        "Usage: prudence-bench SCENARIO [OPTION...]\n"
        "Measure Prudence beside other allocators and reclaimers.\n\n",
        file);
    for (unsigned i = 0; scenarios[i]; i++)
        fprintf(file, "  %-11s%s\n", scenarios[i]->name, scenarios[i]->summary);
    fputs(
        "  malloc     patterns and whole programs under Prudence and under other allocators\n"
        "  rcu        reading, waiting, callbacks, polling, updates beside liburcu "
        "(docs/explanation/rcu-variants.md)\n"
        "  flavours   the same beside the historical implementations of RCU\n"
        "  scm        what the calls of short-term memory cost\n"
        "\n  prudence-bench SCENARIO --help   its options\n"
        "  prudence-bench --list            the subjects\n"
        "  prudence-bench --version\n",
        file);
}

/* `malloc` runs other programs and does statistics: it is a script beside the sources. */
static int malloc_bench(char **argv)
{
    static char script[] = PRUDENCE_SOURCE_DIR "/tools/bench-malloc";

    setenv("PRUDENCE_BUILD_DIR", PRUDENCE_BINARY_DIR, 1);
    argv[1] = script;
    execv(script, argv + 1);
    fprintf(stderr, "prudence-bench: cannot run %s: %s\n", script, strerror(errno));
    return EXIT_FAILURE;
}

/* `rcu` and `flavours` are one program: it measures grace periods, not objects. What is typed behind the
 * command comes after what the command stands for, so it counts. */
static int flavours_bench(int argc, char **argv, const char *names, const char *loads)
{
    static char program[] = PRUDENCE_BINARY_DIR "/bin/prudence-flavours";
    char **arguments = calloc((size_t)argc + 4, sizeof *arguments);

    if (!arguments)
        abort();
    arguments[0] = program;
    arguments[1] = strdup("--flavour");
    arguments[2] = strdup(names);
    arguments[3] = strdup("--load");
    arguments[4] = strdup(loads);
    memcpy(arguments + 5, argv + 2, (size_t)(argc - 2) * sizeof *arguments);
    execv(program, arguments);
    fprintf(stderr, "prudence-bench: cannot run %s: %s\n", program, strerror(errno));
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";
    struct request request;

    if (!strcmp(command, "run") && argc == 3)
        return child_run(argv[2]);
    if (!strcmp(command, "malloc"))
        return malloc_bench(argv);
    if (!strcmp(command, "rcu"))
        return flavours_bench(argc, argv, "memb,qsbr,urcu-memb,urcu-mb,urcu-qsbr",
                              "read,synchronize,call,poll,update,deferred");
    if (!strcmp(command, "flavours"))
        return flavours_bench(argc, argv, "all", "switch,synchronize,call,storm");
    if (!strcmp(command, "scm"))
        return scm_bench(argc - 1, argv + 1);
    if (!strcmp(command, "probe"))
        return child_probe();
    if (!strcmp(command, "--list"))
        return list_subjects(), EXIT_SUCCESS;
    if (!strcmp(command, "--version"))
        return printf("prudence-bench %s\n", prudence_version()), EXIT_SUCCESS;
    if (!strcmp(command, "--help"))
        return usage(stdout), EXIT_SUCCESS;
    if (!scenario_find(command)) {
        if (*command)
            fprintf(stderr, "prudence-bench: unknown scenario '%s'\n", command);
        usage(stderr);
        return EXIT_FAILURE;
    }
    set_defaults(&request, scenario_find(command));
    parse_request(&request, argc - 1, argv + 1);
    if (request.list)
        return list_subjects(), EXIT_SUCCESS;
    return carry_out(&request);
}
