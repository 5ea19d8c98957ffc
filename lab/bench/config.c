/* SPDX-License-Identifier: MIT */
/* A run's configuration as JSON: sent to the child, and in each row of the result. */
#include <string.h>

#include "arguments.h"
#include "scenario.h"

const struct scenario *const scenarios[] = {
    &scenario_endurance, &scenario_pairs,   &scenario_latency,
    &scenario_stall,     &scenario_recycle, &scenario_destroy,
    &scenario_readers,   &scenario_tree,    NULL,
};

const struct scenario *scenario_find(const char *name)
{
    for (unsigned i = 0; scenarios[i]; i++) {
        if (!strcmp(scenarios[i]->name, name))
            return scenarios[i];
    }
    return NULL;
}

const char *order_name(unsigned order)
{
    static const char *const names[] = {
        [ORDER_TIGHT] = "tight", [ORDER_IN_ORDER] = "in-order", [ORDER_RANDOM] = "random", NULL};

    return names[order];
}

json_t *config_to_json(const struct config *config)
{
    return json_pack(
        "{s:s, s:s, s:I, s:i, s:i, s:i, s:f, s:I, s:I, s:I, s:i, s:i, s:i, s:i, s:s, "
        "s:i, s:i, s:I, s:b, s:b, s:b, s:s}",
        "scenario", config->scenario, "subject", config->subject, "size", (json_int_t)config->size,
        "threads", config->threads, "readers", config->readers, "batch", config->batch, "seconds",
        config->seconds, "pairs", (json_int_t)config->pairs, "limit", (json_int_t)config->limit,
        "latent_limit", (json_int_t)config->latent_limit, "stay_ms", config->stay_ms, "cycles",
        config->cycles, "objects", config->objects, "length", config->length, "order",
        order_name(config->order), "live", config->live, "updates", config->updates, "keys",
        (json_int_t)config->keys, "demand", config->demand, "mixed", config->mixed, "progress",
        config->progress, "options", config->options);
}

static uint64_t number(json_t *json, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(json, key));
}

static int text(char *to, size_t size, json_t *json, const char *key)
{
    const char *from = json_string_value(json_object_get(json, key));

    if (!from || strlen(from) >= size)
        return -1;
    memcpy(to, from, strlen(from) + 1);
    return 0;
}

int config_from_json(struct config *config, json_t *json)
{
    const char *order = json_string_value(json_object_get(json, "order"));
    unsigned index;

    *config = (struct config){
        .size = number(json, "size"),
        .threads = (unsigned)number(json, "threads"),
        .readers = (unsigned)number(json, "readers"),
        .batch = (unsigned)number(json, "batch"),
        .seconds = json_number_value(json_object_get(json, "seconds")),
        .pairs = number(json, "pairs"),
        .limit = number(json, "limit"),
        .latent_limit = number(json, "latent_limit"),
        .stay_ms = (unsigned)number(json, "stay_ms"),
        .cycles = (unsigned)number(json, "cycles"),
        .objects = (unsigned)number(json, "objects"),
        .length = (unsigned)number(json, "length"),
        .live = (unsigned)number(json, "live"),
        .updates = (unsigned)number(json, "updates"),
        .keys = number(json, "keys"),
        .demand = json_is_true(json_object_get(json, "demand")),
        .mixed = json_is_true(json_object_get(json, "mixed")),
        .progress = json_is_true(json_object_get(json, "progress")),
    };
    if (!order || !name_parse(order, order_name, &index))
        return -1;
    config->order = (enum order)index;
    return text(config->scenario, sizeof config->scenario, json, "scenario") |
           text(config->subject, sizeof config->subject, json, "subject") |
           text(config->options, sizeof config->options, json, "options");
}
