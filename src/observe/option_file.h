/* SPDX-License-Identifier: MIT */
/* Files that options name, opened where a signal handler may run (see option_file.c). */
#ifndef OBSERVE_OPTION_FILE_H
#define OBSERVE_OPTION_FILE_H

#include <stdbool.h>

#define OPTION_FILE_SIZE 128 /* options in the environment are at most this long */

/* Path of the file, or NULL if the option names none. Changed atomically; an old path is never
 * freed, because a handler may still read it. */
struct option_file {
    const char *path;
};

/* Sets the path; "" removes it. Returns false if the path is too long or there is no memory. */
bool option_file_set(struct option_file *file, const char *path);

enum option_file_use { OPTION_FILE_APPEND, OPTION_FILE_OVERWRITE };

/* Opens a file for writing, and creates it with mode 0600. Does not follow symbolic links of other
 * users (ELOOP, see careful_open.h). A FIFO without a reader is an error (ENXIO); the call does not
 * wait for one. A file to overwrite is emptied, and locked (flock) until closed; EWOULDBLOCK if
 * another writer has the lock. With sandbox=1 the error is EPERM. Returns the descriptor, or -1 and
 * errno. Async-signal-safe, and no cancellation point. */
int option_file_open_path(const char *path, enum option_file_use use);

/* Opens an option's path likewise, with the process's id in place of the first "%p". */
int option_file_open(const char *path, enum option_file_use use);

/* Returns the text that a message appends to an error of these two functions; "" for most
 * errors. */
const char *option_file_hint(int error);

/* Unlocks and closes the file; equally safe. */
void option_file_close(int fd);

#endif /* OBSERVE_OPTION_FILE_H */
