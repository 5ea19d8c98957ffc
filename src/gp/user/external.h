/* SPDX-License-Identifier: MIT */
/* Domains that another library drives (see external.c). */
#ifndef GP_USER_EXTERNAL_H
#define GP_USER_EXTERNAL_H

#include "gp/user/domain.h"

bool external_reader_is_here(const struct prudence_domain *domain); /* this thread is a reader */
bool external_is_inside(const struct prudence_domain *only); /* inside `only`; NULL: inside any */
void external_start_in_child(void);                          /* without any lock held */

#endif /* GP_USER_EXTERNAL_H */
