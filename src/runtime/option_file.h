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

enum option_file_use { OPTION_FILE_APPEND, OPTION_FILE_OVERWRITE };

/* Opens a file for writing; it is made with mode 0600. Symbolic links of other users are not followed (ELOOP, see careful_open.h). A FIFO
 * that nobody reads is an error (ENXIO), not waited for. A file to overwrite is emptied, and locked (flock) until it is closed; while another one has it locked, EWOULDBLOCK. Returns the descriptor,
 * or -1 and errno. Async-signal-safe, and no cancellation point. */
int option_file_open_path(const char *path, enum option_file_use use);

/* The same of a path of an option: with the process's id instead of the first "%p". */
int option_file_open(const char *path, enum option_file_use use);

/* What a message says of an error of these two, after its number; "" of most. */
const char *option_file_hint(int error);

/* Unlocks and closes it; as safe. */
void option_file_close(int fd);

#endif /* RUNTIME_OPTION_FILE_H */
