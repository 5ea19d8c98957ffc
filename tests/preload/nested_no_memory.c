/* SPDX-License-Identifier: MIT */
/* Replaces nested_stub.S: mmap() allocates, and then fails. */
#include <errno.h>
#include <sys/mman.h>

void *nested_interposed(void);
extern const char nested_name[];
extern const int nested_has_no_memory;
const char nested_name[] = "mmap";
const int nested_has_no_memory = 1;

void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    (void)address, (void)bytes, (void)protection, (void)flags, (void)fd, (void)offset;
    nested_interposed();
    errno = ENOMEM;
    return MAP_FAILED;
}
