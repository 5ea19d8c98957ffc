/* SPDX-License-Identifier: MIT */
/* A small program for test_options_at_load.py, which uses everything that options change. */
#include <stdlib.h>

#include <prudence/prudence.h>
#include <prudence/rcu.h>

int main(void)
{
    for (size_t size = 1; size < 200000; size += size / 2 + 7) {
        void *volatile object = malloc(size);

        free(object);
        prudence_read_lock();
        prudence_free_deferred(prudence_malloc(size));
        prudence_read_unlock();
    }
    return 0;
}
