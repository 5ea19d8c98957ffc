/* SPDX-License-Identifier: MIT */
#include "draw.h"

uint64_t objects_of(const struct settings *settings, const struct draw *draw)
{
    uint64_t size_impact = settings->max_size - draw->size_class + 1;
    uint64_t liveness_impact = settings->max_liveness - draw->liveness + 1;
    wide_t objects = (wide_t)(size_impact * size_impact) * (liveness_impact * liveness_impact) *
                     settings->multiplier;

    if (settings->objects)
        return settings->objects;
    objects /= settings->threads * settings->max_liveness;
    return objects > UINT64_MAX ? UINT64_MAX : (uint64_t)objects;
}
