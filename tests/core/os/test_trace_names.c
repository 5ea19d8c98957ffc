/* SPDX-License-Identifier: MIT */
/*
 * Descriptions of calls say what the loader would say, without waiting for its lock: the module,
 * the place in it, and the function, if the module exports it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "os/os.h"
#include "support/suite.h"

/* Returns the loader's description of the code at an address. */
static const char *expected(uintptr_t code)
{
    static char line[OS_TRACE_LINE];
    Dl_info found;

    if (!dladdr((const void *)code, &found))
        snprintf(line, sizeof line, "  #7 %#tx", code);
    else if (found.dli_sname)
        snprintf(line, sizeof line, "  #7 %#tx in %s+%#tx (%s+%#tx)", code, found.dli_sname,
                 code - (uintptr_t)found.dli_saddr, found.dli_fname,
                 code - (uintptr_t)found.dli_fbase);
    else
        snprintf(line, sizeof line, "  #7 %#tx (%s+%#tx)", code, found.dli_fname,
                 code - (uintptr_t)found.dli_fbase);
    return line;
}

static void expect_same(uintptr_t code)
{
    char line[OS_TRACE_LINE];

    os_trace_describe(7, (const void *)(code + 1), line);
    assert_string_equal(line, expected(code));
}

TEST(as_the_loader_says)
{
    uintptr_t functions[] = {(uintptr_t)qsort,          (uintptr_t)getenv,  (uintptr_t)mmap,
                             (uintptr_t)_assert_true,   (uintptr_t)fopen,   (uintptr_t)dlopen,
                             (uintptr_t)pthread_create, (uintptr_t)expected};

    for (unsigned i = 0; i < sizeof functions / sizeof *functions; i++)
        for (unsigned offset = 0; offset < 40; offset += 13)
            expect_same(functions[i] + offset);
}

TEST(code_that_no_file_has)
{
    char *page = mmap(NULL, os_page_size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(page, MAP_FAILED);
    expect_same((uintptr_t)page + 100);
    munmap(page, os_page_size);
}

SUITE()
