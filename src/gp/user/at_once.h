/* SPDX-License-Identifier: MIT */
/* Grace periods of memb and qsbr that end at once (see at_once.c). */
#ifndef GP_USER_AT_ONCE_H
#define GP_USER_AT_ONCE_H

#include "gp/user/domain.h"

bool memb_at_once(struct prudence_domain *domain, gp_cookie cookie);
enum gp_tried memb_ask(struct prudence_domain *domain, gp_cookie cookie);

#endif /* GP_USER_AT_ONCE_H */
