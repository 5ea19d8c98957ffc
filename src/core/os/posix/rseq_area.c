/* SPDX-License-Identifier: MIT */
/*
 * Finds glibc's constants __rseq_offset and __rseq_size. They are weak here, because older versions
 * of glibc do not have them.
 *
 * The dynamic loader defines them, and libc.so only names the loader as a library that may be
 * needed. mold (1.10) does not check there for a weak variable, and binds it to 0, although the
 * process has it. So if the reference is 0, the loader is asked by name. It is asked only if glibc
 * is new enough to have the names: a look-up that fails would allocate its message, perhaps inside
 * the program's first malloc, and replace the error that the program may still ask dlerror() for.
 * A static program has the names.
 */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include <dlfcn.h>

#include "os/os.h"
#include "rseq_area.h"

struct rseq_area posix_rseq_area READ_MOSTLY = {.known = false};

extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));
/* Weak, because other C libraries do not have it. <gnu/libc-version.h> would not exist there. */
extern const char *gnu_get_libc_version(void) __attribute__((weak));

#define FIRST_MINOR 35u /* of glibc 2 */

/* Reads "2.36", without strtoul, which a program may replace by one that allocates. */
static bool is_new_glibc(const char *version)
{
    unsigned minor = 0;

    if (version[0] != '2' || version[1] != '.')
        return version[0] > '2' && version[0] <= '9';
    for (version += 2; *version >= '0' && *version <= '9'; version++)
        minor = minor * 10 + (unsigned)(*version - '0');
    return minor >= FIRST_MINOR;
}

static void ask_loader(void)
{
    const ptrdiff_t *offset = dlsym(RTLD_DEFAULT, "__rseq_offset");
    const unsigned *size = dlsym(RTLD_DEFAULT, "__rseq_size");

    if (offset && size)
        posix_rseq_area = (struct rseq_area){.known = true, .size = *size, .offset = *offset};
}

COLD void posix_rseq_area_start(void)
{
    if (&__rseq_offset && &__rseq_size)
        posix_rseq_area =
            (struct rseq_area){.known = true, .size = __rseq_size, .offset = __rseq_offset};
    else if (gnu_get_libc_version && is_new_glibc(gnu_get_libc_version()))
        ask_loader();
}
