/* SPDX-License-Identifier: MIT */
/*
 * The first program in docs/how-to/short-term-memory.md.
 *
 * ctest: not-with thread (one thread)
 */
#include <prudence/scm.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    for (int request = 0; request < 1000000; request++) {
        char *reply = scm_malloc(200);

        if (!reply)
            abort();
        scm_refresh(reply, 1); /* needed until the next request is done */
        snprintf(reply, 200, "reply %d", request);
        scm_tick(); /* a request is done */
    }
}
