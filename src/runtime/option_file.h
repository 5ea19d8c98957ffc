/* SPDX-License-Identifier: MIT */
/* Files that options name, opened where a signal handler may be (see option_file.c). */
#ifndef RUNTIME_OPTION_FILE_H
#define RUNTIME_OPTION_FILE_H

#include <stdbool.h>

#define OPTION_FILE_SIZE 128 /* an option of the environment is no longer */

/* NULL: none. Never freed, because a handler may read the one before. Atomic. */
struct option_file {
    const char *path;
};

/* "": none. False: it is too long, or there is no memory. */
bool option_file_set(struct option_file *file, const char *path);

/* Opens `path`, with the process's id instead of the first "%p", for writing, with `flags` as open() has them. It is
 * made with mode 0600. Returns the descriptor, or -1 and errno. Async-signal-safe, and no cancellation point. */
int option_file_open(const char *path, int flags);

/* The same of close(). */
void option_file_close(int fd);

#endif /* RUNTIME_OPTION_FILE_H */
