/* SPDX-License-Identifier: MIT */
/*
 * A region for each request, in docs/how-to/short-term-memory.md.
 *
 * ctest: not-with thread (one thread)
 */
#include <prudence/scm.h>
#include <stdio.h>
#include <stdlib.h>

struct header {
    size_t length;
};

int main(void)
{
    struct scm_region *request = scm_region_create();

    if (!request)
        abort();
    scm_region_refresh(request, 0); /* all of it is needed until the next tick */
    char *name = scm_region_alloc(request, 40);
    struct header *header = scm_region_alloc(request, sizeof *header);
    if (!name || !header)
        abort();

    header->length = (size_t)snprintf(name, 40, "index.html");
    scm_tick(); /* the request is done, and the region has ended */
    return 0;
}
