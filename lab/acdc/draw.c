/* SPDX-License-Identifier: MIT */
#include "draw.h"

/* The public tool links its objects as trees, so none is smaller. */
#define LEAST_ORIGINAL ((size_t)16)

/* Returns the largest class that is drawn. */
static unsigned largest_class(const struct settings *settings)
{
    bool lacks_last = settings->original && settings->max_size > settings->min_size;

    return settings->max_size - lacks_last;
}

static void draw_original(const struct settings *settings, struct chance *chance, struct draw *draw)
{
    size_t size;

    if (settings->objects) {
        draw->size_class = settings->min_size;
        draw->liveness = settings->min_liveness;
    }
    size = settings->objects ? (size_t)1 << settings->min_size
                             : draw_size(settings, draw->size_class, chance);
    draw->size = size < LEAST_ORIGINAL ? LEAST_ORIGINAL : size;
    draw->shared_once = settings->shared && chance_percent(chance, settings->share_ratio);
}

struct draw draw_round(const struct settings *settings, struct chance *chance)
{
    struct draw draw = {.size = 0};

    draw.size_class = (unsigned)chance_between(chance, settings->min_size, largest_class(settings));
    draw.liveness = chance_between(chance, settings->min_liveness, settings->max_liveness);
    draw.tree = chance_percent(chance, settings->tree_share);
    if (settings->original)
        draw_original(settings, chance, &draw);
    return draw;
}

uint64_t objects_of(const struct settings *settings, const struct draw *draw)
{
    uint64_t size_impact = settings->max_size - draw->size_class + 1;
    uint64_t liveness_impact = settings->max_liveness - draw->liveness + 1;
    wide_t objects = (wide_t)(size_impact * size_impact) * (liveness_impact * liveness_impact) *
                     settings->multiplier;

    if (settings->objects)
        return settings->objects;
    if (!settings->original)
        objects /= settings->threads * settings->max_liveness;
    return objects > UINT64_MAX ? UINT64_MAX : (uint64_t)objects;
}
