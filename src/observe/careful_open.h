/* SPDX-License-Identifier: MIT */
/* Opens a file for writing without following symbolic links of other users (careful_open.c). */
#ifndef OBSERVE_CAREFUL_OPEN_H
#define OBSERVE_CAREFUL_OPEN_H

#include <sys/types.h>

#define CAREFUL_LINKS 40   /* links followed on one path, as in the kernel */
#define CAREFUL_TEXT  2048 /* bytes for the target of a link and the path after the link */

/* Opens like open(2) with O_CLOEXEC. Returns the descriptor, or -1 and errno: ELOOP if a link on
 * the way belongs to another user, or if there are too many links; ENAMETOOLONG if a name, or the
 * target of a link with the rest of the path, is too long. Async-signal-safe, and no cancellation
 * point. Needs 3 KB of stack. */
int careful_open(const char *path, int flags, mode_t mode);

#endif /* OBSERVE_CAREFUL_OPEN_H */
