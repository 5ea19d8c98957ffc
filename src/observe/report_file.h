/* SPDX-License-Identifier: MIT */
/* The option report_file: where messages go when descriptor 2 is a file of the program's. */
#ifndef OBSERVE_REPORT_FILE_H
#define OBSERVE_REPORT_FILE_H

#include <stdbool.h>

/* Sets the file; "" stands for none. Returns false if the path is too long or there is no memory.
 */
bool report_file_set(const char *path);

/* Returns a descriptor for text that was asked for and that names no file of its own: 2, or that of
 * the option's file, or -1, which is counted. report_file_close closes it, unless it is 2. Both are
 * async-signal-safe. */
int report_file_open(void);
void report_file_close(int fd);

#endif /* OBSERVE_REPORT_FILE_H */
