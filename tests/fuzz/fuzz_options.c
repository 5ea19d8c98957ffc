/* SPDX-License-Identifier: MIT */
/*
 * The input is a text of entries name=value, separated by commas as in PRUDENCE_OPTIONS. The
 * library first reads the text as the environment; then each entry is passed to
 * prudence_option_set(). A second, simple parser of the grammar in docs/reference/options.md says
 * which entries must be accepted and which refused. The library must report refused entries on
 * standard error, here a file in memory.
 *
 * The process makes no cache, because options that are read at the start would be refused
 * afterwards. So this target does not allocate.
 */
#define _GNU_SOURCE /* memfd_create */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <prudence/prudence.h>
#include <prudence/stats.h>

#include "fuzz/fuzz.h"
#include "report.h"
#include "process/options.h"

__extension__ typedef unsigned __int128 wide;

enum kind { BYTES, TIME, SWITCH, MODE, TRACE, GUARD, EXTENSION, COLLECTION, EXPIRED };

static const struct known {
    const char *name;
    enum kind kind;
    const char *usual; /* value for the rest of the process */
} known[] = {
    {"limit", BYTES, "0"},
    {"latent_limit", BYTES, "32M"},
    {"wait_max", TIME, "500ms"},
    {"stall_timeout", TIME, "10s"},
    {"retain", BYTES, "2M"},
    {"decay", TIME, "100ms"},
    {"huge_pages", SWITCH, "0"},
    {"background", SWITCH, "0"},
    {"preflush", SWITCH, "1"},
    {"stats", SWITCH, "0"},
    {"reader_mode", MODE, "auto"},
    {"check", SWITCH, "0"},
    {"trace", TRACE, "12"},
    {"zero_on_free", SWITCH, "0"},
    {"guard", GUARD, "0"},
    {"quarantine", BYTES, "0"},
    {"annotate", SWITCH, "1"},
    {"rseq", SWITCH, "1"},
    {"membarrier", SWITCH, "1"},
    {"scm_max_extension", EXTENSION, "4095"},
    {"scm_collection", COLLECTION, "lazy"},
    {"scm_expired", EXPIRED, "free"},
    {"drop_deepbind", SWITCH, "1"},
};

#define KNOWN     (sizeof known / sizeof known[0])
#define ENTRY_MAX 127 /* characters of an entry in the environment */

static int standard_error = -1, memory = -1;

static void divert(void)
{
    if (memory < 0)
        memory = memfd_create("stderr", MFD_CLOEXEC);
    fcntl(memory, F_SETFL, O_APPEND); /* else the library takes it for data of the program's */
    posix_report_limited = false;
    standard_error = dup(STDERR_FILENO);
    EXPECT(memory >= 0 && standard_error >= 0, "errno %d", errno);
    dup2(memory, STDERR_FILENO);
}

static void restore(void)
{
    dup2(standard_error, STDERR_FILENO);
    close(standard_error);
}

/* Returns the reports since the last call. */
static const char *reported(void)
{
    static char text[512];
    ssize_t length = pread(memory, text, sizeof text - 1, 0);

    text[length > 0 ? length : 0] = '\0';
    EXPECT(!ftruncate(memory, 0) && lseek(memory, 0, SEEK_SET) == 0, "errno %d", errno);
    return text;
}

/* Reads the number at the beginning of `text`. Returns false if there is none, or one above
 * `max`. */
static bool number(const char **text, uint64_t max, uint64_t *value)
{
    wide sum = 0;

    if (!isdigit((unsigned char)**text))
        return false;
    for (; isdigit((unsigned char)**text); (*text)++) {
        sum = sum * 10 + (unsigned)(**text - '0');
        if (sum > max)
            return false;
    }
    *value = (uint64_t)sum;
    return true;
}

static bool scaled(uint64_t *value, uint64_t unit)
{
    wide product = (wide)*value * unit;

    *value = (uint64_t)product;
    return product <= INT64_MAX;
}

static bool is_bytes(const char *text, uint64_t *value)
{
    if (!number(&text, UINT64_MAX, value))
        return false;
    if (!*text)
        return scaled(value, 1);
    if (text[1])
        return false;
    return *text == 'K'   ? scaled(value, 1 << 10)
           : *text == 'M' ? scaled(value, 1 << 20)
           : *text == 'G' ? scaled(value, 1 << 30)
                          : false;
}

static bool is_time(const char *text)
{
    uint64_t value;

    if (!number(&text, UINT64_MAX, &value))
        return false;
    if (!*text || !strcmp(text, "ms"))
        return scaled(&value, 1000000);
    if (!strcmp(text, "us"))
        return scaled(&value, 1000);
    return !strcmp(text, "s") && scaled(&value, 1000000000);
}

static bool is_count(const char *text, uint64_t max)
{
    uint64_t value;

    return number(&text, max, &value) && !*text;
}

static bool is_valid(enum kind kind, const char *text)
{
    uint64_t value;

    switch (kind) {
    case BYTES:
        return is_bytes(text, &value);
    case TIME:
        return is_time(text);
    case SWITCH:
        return !strcmp(text, "0") || !strcmp(text, "1");
    case MODE:
        return !strcmp(text, "auto") || !strcmp(text, "fenced") || !strcmp(text, "free");
    case TRACE:
        return is_count(text, 32);
    case GUARD:
        return is_count(text, UINT32_MAX);
    case EXTENSION:
        return is_count(text, 1 << 20);
    case COLLECTION:
        return !strcmp(text, "lazy") || !strcmp(text, "eager");
    case EXPIRED:
        return !strcmp(text, "free") || !strcmp(text, "deferred");
    }
    return false;
}

static const struct known *find(const char *name)
{
    for (unsigned i = 0; i < KNOWN; i++)
        if (!strcmp(known[i].name, name))
            return &known[i];
    return NULL;
}

static int expected(const char *name, const char *value)
{
    const struct known *option = find(name);

    return !option ? ENOENT : is_valid(option->kind, value) ? 0 : EINVAL;
}

static uint64_t limit_now(void)
{
    struct prudence_stats stats;

    EXPECT(!prudence_stats(&stats), "no statistics");
    return stats.limit;
}

static void check_limit(const char *name, const char *value)
{
    uint64_t bytes;

    if (!strcmp(name, "limit") && is_bytes(value, &bytes))
        EXPECT(limit_now() == bytes, "limit=%s is %llu", value, (unsigned long long)limit_now());
}

static void set(const char *name, const char *value)
{
    int error;
    const char *text;

    divert();
    error = prudence_option_set(name, value);
    restore();
    text = reported();
    EXPECT(error == expected(name, value), "%s=%s gives error %d", name, value, error);
    EXPECT(!error == !*text, "error %d is reported as '%s'", error, text);
    EXPECT(!*text || !strncmp(text, "prudence: ", 10), "reported as '%s'", text);
    check_limit(name, value);
}

/* Cuts `text` into entries, and calls `act` for all except those longer than `longest`, which must
 * be refused. Returns the number of entries that must be refused. */
static unsigned for_each(char *text, size_t longest,
                         void (*act)(const char *name, const char *value))
{
    unsigned refused = 0;
    char *entry;

    while ((entry = strsep(&text, ","))) {
        char *value = strchr(entry, '=');

        if (!*entry)
            continue;
        if (strlen(entry) > longest) {
            refused++;
            continue;
        }
        if (value)
            *value++ = '\0';
        else
            value = "";
        refused += expected(entry, value) != 0;
        act(entry, value);
    }
    return refused;
}

static const char *last_limit;

static void note_limit(const char *name, const char *value)
{
    if (!strcmp(name, "limit") && !expected(name, value))
        last_limit = value;
}

static void read_as_environment(char *text)
{
    const char *output;
    unsigned refused;

    setenv("PRUDENCE_OPTIONS", text, 1);
    divert();
    options_read_environment();
    restore();
    unsetenv("PRUDENCE_OPTIONS");
    output = reported();
    last_limit = NULL;
    refused = for_each(text, ENTRY_MAX, note_limit);
    EXPECT(!refused == !*output, "%u must be refused, reported: '%s'", refused, output);
    if (last_limit)
        check_limit("limit", last_limit);
}

/* Sets all options by prudence_option_set(), so that they take effect. */
static void usual_options(void)
{
    for (unsigned i = 0; i < KNOWN; i++)
        set(known[i].name, known[i].usual);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (!text)
        return 0;
    usual_options();
    memcpy(text, data, size);
    text[size] = '\0';
    read_as_environment(text);
    usual_options();
    memcpy(text, data, size);
    text[size] = '\0';
    for_each(text, SIZE_MAX, set);
    usual_options();
    free(text);
    return 0;
}
