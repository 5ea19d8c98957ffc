/* SPDX-License-Identifier: MIT */
/* Places where a thread may not wait for callbacks or destructors (see may_wait.c). */
#ifndef TOOLKIT_CALLBACKS_MAY_WAIT_H
#define TOOLKIT_CALLBACKS_MAY_WAIT_H

#include "gp/user/wait_request.h"

/* Returns 0 if this thread may wait for code of the program, or else the error, as
 * wait_request_readers() does. */
int may_wait_for_code(const struct wait_request *request);

#endif /* TOOLKIT_CALLBACKS_MAY_WAIT_H */
