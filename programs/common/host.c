/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "host.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

/* Finds the first line of a file that begins with `key`, and copies the text after its colon;
 * with "" the whole line. */
static void file_value(const char *path, const char *key, char *value, size_t size)
{
    FILE *file = fopen(path, "re");
    char line[512];

    snprintf(value, size, "unknown");
    while (file && fgets(line, sizeof line, file)) {
        const char *from = *key ? strchr(line, ':') : line;

        if (strncmp(line, key, strlen(key)) || !from)
            continue;
        from += strspn(from, ": \t");
        snprintf(value, size, "%.*s", (int)strcspn(from, "\n"), from);
        break;
    }
    if (file)
        fclose(file);
}

json_t *host_description(void)
{
    char processor[128], huge_pages[128];
    struct utsname name;
    cpu_set_t set;

    uname(&name);
    sched_getaffinity(0, sizeof set, &set);
    file_value("/proc/cpuinfo", "model name", processor, sizeof processor);
    file_value("/sys/kernel/mm/transparent_hugepage/enabled", "", huge_pages, sizeof huge_pages);
    return json_pack("{s:s, s:s, s:s, s:i, s:s, s:s, s:s}", "system", name.sysname, "kernel",
                     name.release, "cpu", processor, "cpus", CPU_COUNT(&set), "libc",
                     gnu_get_libc_version(), "compiler", __VERSION__, "huge_pages", huge_pages);
}

const char *host_allocator_file(void)
{
    Dl_info info;

    return dladdr(dlsym(RTLD_DEFAULT, "malloc"), &info) ? info.dli_fname : "unknown";
}

/* ---------------------------------------------------- each allocator has its own way to say it */

/* Sets the function pointer `function` (of any type: POSIX lets an object pointer hold it). */
static bool find(const char *name, void *function)
{
    void *found = dlsym(RTLD_DEFAULT, name);

    memcpy(function, &found, sizeof found);
    return found;
}

static bool jemalloc_version(char *text, size_t size)
{
    int (*control)(const char *, void *, size_t *, void *, size_t);
    const char *version;
    size_t length = sizeof version;

    if (!find("mallctl", &control) || control("version", &version, &length, NULL, 0))
        return false;
    snprintf(text, size, "%.*s", (int)strcspn(version, "-"), version);
    return true;
}

/* Decodes 209 as 2.0.9; newer ones use 30403 for 3.4.3. */
static bool mimalloc_version(char *text, size_t size)
{
    int (*version)(void);
    int number, step;

    if (!find("mi_version", &version))
        return false;
    number = version();
    step = number < 10000 ? 10 : 100;
    snprintf(text, size, "%d.%d.%d", number / step / step, number / step % step, number % step);
    return true;
}

static bool tcmalloc_version(char *text, size_t size)
{
    const char *(*version)(int *, int *, const char **);

    if (!find("tc_version", &version))
        return false;
    snprintf(text, size, "%s", version(NULL, NULL, NULL));
    return true;
}

static bool tbbmalloc_version(char *text, size_t size)
{
    snprintf(text, size, "unknown");
    return dlsym(RTLD_DEFAULT, "scalable_msize");
}

static bool scudo_version(char *text, size_t size)
{
    snprintf(text, size, "unknown");
    return dlsym(RTLD_DEFAULT, "__scudo_print_stats");
}

/* The library itself has no malloc, so the file's name identifies it. */
static bool prudence_malloc_version(char *text, size_t size)
{
    const char *(*version)(void);

    if (!strstr(host_allocator_file(), "libprudence-malloc"))
        return false;
    snprintf(text, size, "%s", find("prudence_version", &version) ? version() : "unknown");
    return true;
}

static bool glibc_version(char *text, size_t size)
{
    snprintf(text, size, "%s", gnu_get_libc_version());
    return true;
}

static const struct {
    const char *name;
    bool (*version)(char *text, size_t size); /* false if the allocator is another one */
} allocators[] = {
    {"prudence", prudence_malloc_version},
    {"jemalloc", jemalloc_version},
    {"mimalloc", mimalloc_version},
    {"tcmalloc", tcmalloc_version},
    {"tbbmalloc", tbbmalloc_version},
    {"scudo", scudo_version},
    {"glibc", glibc_version},
};

json_t *host_allocator(void)
{
    const char *file = host_allocator_file();
    const char *slash = strrchr(file, '/');
    char version[64];
    unsigned i = 0;

    while (!allocators[i].version(version, sizeof version))
        i++;
    return json_pack("{s:s, s:s, s:s}", "name", allocators[i].name, "version", version, "file",
                     slash ? slash + 1 : file);
}
