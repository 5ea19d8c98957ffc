/* SPDX-License-Identifier: MIT */
/* Grace periods of memb and qsbr that end at once (see at_once.c). */
#ifndef GP_USER_AT_ONCE_H
#define GP_USER_AT_ONCE_H

#include "gp/user/domain.h"

bool at_once_end(struct prudence_domain *domain, gp_cookie cookie);
enum gp_tried at_once_ask_if_due(struct prudence_domain *domain, gp_cookie cookie);

#endif /* GP_USER_AT_ONCE_H */
