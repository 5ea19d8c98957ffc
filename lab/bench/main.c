/* SPDX-License-Identifier: MIT */
/* prudence-bench: parses the command line, and makes the rows to measure. */
#define _GNU_SOURCE
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arguments.h"
#include "caches.h"
#include "choice.h"
#include "document.h"
#include "floors.h"
#include "others.h"
#include "runner.h"
#include "scm.h"
#include "steps.h"

#define MOST_SECONDS 86400
/* bytes of struct config's options for the typed ones; the subject's use the rest */
#define OPTIONS_TYPED 96

struct request {
    const struct scenario *scenario;
    struct config config; /* the fields that do not vary */
    struct numbers sizes, threads, readers, batches, latent_limits, stays, orders, lives, updates;
    const char *patterns; /* subjects, with commas between */
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
     "Retire the object just allocated, or one of --live objects", 0},
    {"live", 'V', "N,...", 0, "Objects that each thread keeps, of --order (1024)", 0},
    {"stay", 'y', "MS,...", 0, "Milliseconds that the reader stays", 0},
    {"demand", 'd', NULL, 0, "Retire a batch and want it back, instead of a storm", 0},
    {"cycles", 'c', "N", 0, "Caches made and destroyed, at most", 0},
    {"objects", 'o', "N", 0, "Objects in each of them", 0},
    {"length", 'L', "N", 0, "Entries of each thread's list", 0},
    {"updates", 'u', "PERCENT,...", 0, "Share of updates among the operations on the tree", 0},
    {"keys", 'k', "N", 0, "Keys that may be in the tree; half of them are", 0},
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

/* Appends `option` to the list in `options`. Returns false if there is no room. */
static bool append_option(char *options, size_t size, const char *option)
{
    size_t used = strlen(options);
    int added = snprintf(options + used, size - used, "%s%s", used ? "," : "", option);

    return (size_t)added < size - used;
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
        request->sizes = argument_numbers(state, key, text, least_size, MAX_SIZE);
        break;
    case 't':
        request->threads = argument_numbers(state, key, text, counts_readers ? 0 : 1, MAX_THREADS);
        break;
    case 'r':
        request->readers = argument_numbers(state, key, text, 0, MAX_THREADS);
        break;
    case 'b':
        request->batches = argument_numbers(state, key, text, 1, 1 << 20);
        break;
    case 'e':
        request->orders = argument_names(state, key, text, order_name);
        break;
    case 'V':
        request->lives = argument_numbers(state, key, text, 1, MAX_LIVE);
        break;
    case 'y':
        request->stays = argument_numbers(state, key, text, 1, 60000);
        break;
    case 'l':
        request->latent_limits = argument_numbers(state, key, text, 1, UINT64_MAX >> 1);
        break;
    case 'n':
        config->pairs = argument_number(state, key, text, 1, UINT64_MAX >> 1);
        break;
    case 'c':
        config->cycles = (unsigned)argument_number(state, key, text, 1, 1 << 30);
        break;
    case 'o':
        config->objects = (unsigned)argument_number(state, key, text, 1, 1 << 24);
        break;
    case 'L':
        config->length = (unsigned)argument_number(state, key, text, 1, 1 << 24);
        break;
    case 'u':
        request->updates = argument_numbers(state, key, text, 0, 100);
        break;
    case 'k':
        config->keys = argument_number(state, key, text, 2, UINT64_C(1) << 31);
        break;
    case 'R':
        request->repeat = argument_number(state, key, text, 1, 1000);
        break;
    case 'm':
        config->limit = argument_number(state, key, text, 1 << 20, UINT64_MAX >> 1);
        break;
    case 'T':
        config->seconds = argument_real(state, key, text, MOST_SECONDS);
        break;
    case 'S':
        request->patterns = text;
        break;
    case 'O':
        if (!strchr(text, '='))
            argument_refuse(state, key, text, "NAME=VALUE");
        if (!append_option(config->options, OPTIONS_TYPED, text))
            argp_error(state, "--option: too long");
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
        if (strcmp(text, "mixed") != 0)
            argument_refuse(state, key, text, "'mixed'");
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
    request->updates = one_number(defaults->updates);
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

    for (unsigned i = 0; i < count; i++) {
        const char *why = choice_missing(&table[i]);

        printf("%-22s %s over %s%s%s%s\n", table[i].name, table[i].family->library,
               table[i].allocator->name, why ? " (skipped: " : "", why ? why : "", why ? ")" : "");
    }
}

/* ------------------------------------------------------------------------------ the rows */

static uint64_t pick(const struct numbers *numbers, unsigned *rest)
{
    uint64_t value = numbers->value[*rest % numbers->count];

    *rest /= numbers->count;
    return value;
}

/* Makes the configuration of that number; sizes change last. Returns false if there are no more. */
static bool configure(const struct request *request, unsigned index, struct config *config)
{
    *config = request->config;
    config->latent_limit = pick(&request->latent_limits, &index);
    config->batch = (unsigned)pick(&request->batches, &index);
    config->live = (unsigned)pick(&request->lives, &index);
    config->order = (enum order)pick(&request->orders, &index);
    config->stay_ms = (unsigned)pick(&request->stays, &index);
    config->updates = (unsigned)pick(&request->updates, &index);
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

/* Returns whether the choice runs with this configuration: a subject that an option does not
 * concern runs once, with the option's first value. */
static bool runs_with(const struct choice *choice, const struct request *request,
                      const struct config *config)
{
    bool first_limit = config->latent_limit == request->latent_limits.value[0];
    bool first_batch = config->batch == request->batches.value[0];
    bool first_live = config->live == request->lives.value[0];

    if (choice->subject->family->floor && config->order != ORDER_TIGHT)
        return false;
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

static void skip(const struct subject *subject, const char *why, void *document)
{
    fprintf(stderr, "prudence-bench: %s is skipped: %s\n", subject->name, why);
    document_skip(document, subject, why);
}

static unsigned measure(struct row *rows, unsigned count, uint64_t repeat, bool compares,
                        json_t *document)
{
    unsigned failed = runner_run(rows, count, (unsigned)repeat);

    rows_merge(rows, count);
    if (compares)
        floors_divide(rows, count);
    document_add(document, rows, count);
    for (unsigned i = 0; i < count; i++)
        table_row(&rows[i]);
    if (compares && count)
        floors_print(rows, count);
    for (unsigned i = 0; i < count; i++) {
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
    struct others others;
    unsigned failed = 0;

    if (refuse_any(request) || !choices_make(&choices, patterns, request->scenario))
        return EXIT_FAILURE;
    choices_skip_missing(&choices, skip, document);
    table_head(request->scenario);
    others_begin(&others);
    for (unsigned i = 0; configure(request, i, &config); i++)
        failed += measure(rows, make_rows(request, &config, &choices, rows), request->repeat,
                          request->scenario->compares, document);
    json_object_set_new(document, "others_cpus",
                        json_real(others_report(&others, "prudence-bench")));
    if (request->json && document_write(document, request->json))
        return EXIT_FAILURE;
    json_decref(document);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Runs `malloc`, a script next to the sources, because it runs other programs and does
 * statistics. */
static int malloc_bench(int argc, char **argv)
{
    static char script[] = PRUDENCE_SOURCE_DIR "/lab/run/malloc";

    (void)argc;
    setenv("PRUDENCE_BUILD_DIR", PRUDENCE_BINARY_DIR, 1);
    argv[0] = script;
    execv(script, argv);
    fprintf(stderr, "prudence-bench: cannot run %s: %s\n", script, strerror(errno));
    return EXIT_FAILURE;
}

/* Runs `rcu` and `variants`, one program, which measures grace periods and no objects. The
 * user's arguments come after those that the command stands for, so they override them. */
static int variants_bench(int argc, char **argv)
{
    static char program[] = PRUDENCE_BINARY_DIR "/bin/prudence-variants";
    bool rcu = !strcmp(argv[0], "rcu");
    char **arguments = calloc((size_t)argc + 3, sizeof *arguments);

    if (!arguments)
        abort();
    arguments[0] = program;
    arguments[1] =
        strdup(rcu ? "--variant=memb,qsbr,urcu-memb,urcu-mb,urcu-qsbr" : "--variant=all");
    arguments[2] = strdup(rcu ? "--load=read,synchronize,call,poll,update,deferred"
                              : "--load=switch,synchronize,call,storm");
    memcpy(arguments + 3, argv + 1, (size_t)(argc - 1) * sizeof *arguments);
    execv(program, arguments);
    fprintf(stderr, "prudence-bench: cannot run %s: %s\n", program, strerror(errno));
    return EXIT_FAILURE;
}

static const struct {
    const char *name;
    const char *summary; /* NULL if only this program and its children use it */
    int (*run)(int argc, char **argv);
} commands[] = {
    {"malloc", "patterns and whole programs under Prudence and under other allocators",
     malloc_bench},
    {"rcu",
     "reading, waiting, callbacks, polling, updates compared with liburcu "
     "(docs/explanation/rcu-variants.md)",
     variants_bench},
    {"variants", "compare with the historical implementations of RCU", variants_bench},
    {"scm", "cost of the calls of short-term memory", scm_bench},
    {"steps", "cost of an allocation that hits, merges, refills or grows", steps_bench},
    {"caches", "cost of a pair, and memory in use, with many caches", caches_bench},
    {"run", NULL, child_run},
    {"probe", NULL, child_probe},
};

#define COMMANDS (sizeof commands / sizeof *commands)

static int measure_scenario(const struct scenario *scenario, int argc, char **argv)
{
    struct request request;

    set_defaults(&request, scenario);
    parse_request(&request, argc, argv);
    if (request.list)
        return list_subjects(), EXIT_SUCCESS;
    return carry_out(&request);
}

/* ------------------------------------------------------------ a command line without a scenario */

static error_t parse_general(int key, char *text, struct argp_state *state)
{
    switch (key) {
    case 'i':
        list_subjects();
        exit(EXIT_SUCCESS);
    case ARGP_KEY_ARG:
        argp_failure(state, EXIT_FAILURE, 0, "unknown scenario '%s' (--help shows all)", text);
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_state_help(state, stderr, ARGP_HELP_SHORT_USAGE | ARGP_HELP_LONG | ARGP_HELP_DOC);
        exit(EXIT_FAILURE);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Handles --help, --version, --list, or a mistake. Does not return. Each line of the help is a
 * group, so that argp does not sort them. */
static void explain(int argc, char **argv)
{
    struct argp_option options[32] = {{"list", 'i', NULL, 0, "List the subjects and end", 1}};
    const struct argp argp = {options,
                              parse_general,
                              "SCENARIO [OPTION...]",
                              "Compare Prudence with other allocators and reclaimers.\v"
                              "prudence-bench SCENARIO --help shows the options of a scenario.",
                              NULL,
                              NULL,
                              NULL};
    int line = 1, flags = OPTION_DOC | OPTION_NO_USAGE;

    for (unsigned i = 0; scenarios[i]; i++, line++)
        options[line] = (struct argp_option){scenarios[i]->name,    0,       NULL, flags,
                                             scenarios[i]->summary, line + 1};
    for (unsigned i = 0; commands[i].summary; i++, line++)
        options[line] =
            (struct argp_option){commands[i].name, 0, NULL, flags, commands[i].summary, line + 1};
    argp_parse(&argp, argc, argv, 0, NULL, NULL);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";

    for (unsigned i = 0; i < COMMANDS; i++) {
        if (!strcmp(commands[i].name, name))
            return commands[i].run(argc - 1, argv + 1);
    }
    if (scenario_find(name))
        return measure_scenario(scenario_find(name), argc - 1, argv + 1);
    explain(argc, argv);
    return EXIT_FAILURE;
}
