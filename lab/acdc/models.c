/* SPDX-License-Identifier: MIT */
#include "model.h"

#include <stdio.h>

const struct model *model_find(const struct settings *settings, char *why, size_t size)
{
    switch (settings->model) {
    case MODEL_PERSISTENT:
        return &model_persistent;
    case MODEL_NONE:
        return &model_none;
    case MODEL_SHORT_TERM:
        return &model_short_term;
    case MODEL_DEFERRED:
        if (settings->reclaimer == RECLAIMER_PRUDENCE)
            return &model_deferred_prudence;
#if ACDC_LIBURCU
        return &model_deferred_liburcu;
#endif
    }
    snprintf(why, size, "this acdc was built without --reclaimer liburcu");
    return NULL;
}
