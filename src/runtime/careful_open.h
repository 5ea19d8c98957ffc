/* SPDX-License-Identifier: MIT */
/* Opens a file for writing without following symbolic links of other users (careful_open.c). */
#ifndef RUNTIME_CAREFUL_OPEN_H
#define RUNTIME_CAREFUL_OPEN_H

#include <sys/types.h>

#define CAREFUL_LINKS 40   /* followed on one path, as in the kernel */
#define CAREFUL_TEXT  2048 /* bytes: what a link says, and the path that is left behind it */

/* As open(2), close-on-exec. Returns the descriptor, or -1 and errno: ELOOP if a link on the way belongs to another user, or if
 * there are too many links; ENAMETOOLONG if there is a link, and the path has more than CAREFUL_TEXT bytes with it.
 * Async-signal-safe, and no cancellation point. Needs 3 KB of stack. */
int careful_open(const char *path, int flags, mode_t mode);

#endif /* RUNTIME_CAREFUL_OPEN_H */
