/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Which limit of deferred bytes is in force (ADR 34).
 *
 * latent_limit holds with a reader that blocks or stays. While the blocking reader merely waits
 * for a CPU, as with more threads than CPUs, holding writers back gains little, so the limit in
 * force rises, in steps, up to latent_ceiling. It follows the readers (ceiling_follow): a thread
 * that found no room asks how they fare. One that stays ends the rise at once, and
 * CEILING_GRACE_PERIODS without a further rise do.
 *
 * Invariant: the limit in force is never above the ceiling, whatever order options, rises and falls
 * come in, because each reader of `ceiling_risen` takes the smaller one.
 *
 * Words are atomic and there is no lock: a rise is a compare-and-swap of the limit that the thread
 * found full. The remembered pace and reason are hints.
 */
#include "slab/reclaim/ceiling.h"

#include "gp/gp_wait.h"
#include "os/os.h"

/* Policy: how far may latent_limit rise? */
#define MOST_BY_DEFAULT (UINT64_C(256) << 20) /* bytes; most by default, with much memory */
#define PART_OF_MEMORY  64 /* part; of what the process may use, the most by default */
#define UNSET           UINT64_MAX

#define STEP_PART 16      /* part; of latent_limit, the first step and the least */
#define STEP_NS   4000000 /* ns; a step should last for as long, at the pace of the last one */

uint64_t slab_latent_limit READ_MOSTLY = UINT64_C(32) << 20;

static uint64_t set_ceiling READ_MOSTLY = UNSET;    /* the option */
static uint64_t part_of_memory READ_MOSTLY = UNSET; /* found out at the first need */
static bool limit_is_default READ_MOSTLY = true;

static uint64_t risen_at_ended; /* grace periods that had ended at the last rise */
static uint64_t risen_at, step; /* ns, and bytes, of the last rise */
static uint32_t state_seen;     /* enum gp_reader_state, at the last check */
uint64_t ceiling_rises;
uint64_t ceiling_risen;

/* Returns the ceiling that is known without asking the system. */
static uint64_t known_most(void)
{
    uint64_t limit = load_relaxed(&slab_latent_limit), most = load_relaxed(&set_ceiling);

    if (most == UNSET)
        most = load_relaxed(&limit_is_default) ? load_relaxed(&part_of_memory) : limit;
    return limit && most != UNSET ? max_size(limit, most) : limit;
}

/* Returns the ceiling in bytes, 0 if there is no limit. May read files. */
uint64_t ceiling_most(void)
{
    if (load_relaxed(&part_of_memory) == UNSET && load_relaxed(&limit_is_default)) {
        uint64_t allowed = os_memory_allowed();

        if (allowed)
            store_relaxed(&part_of_memory,
                          (uint64_t)min_size(MOST_BY_DEFAULT, allowed / PART_OF_MEMORY));
    }
    return load_relaxed(&state_seen) == GP_READER_UNKNOWN ? load_relaxed(&slab_latent_limit)
                                                          : known_most();
}

/* Has latent_limit in force again. */
void ceiling_fall(void)
{
    store_relaxed(&ceiling_risen, (uint64_t)0);
}

/* Returns the limit in force in bytes; 0: none. Any context. */
uint64_t ceiling_in_force(void)
{
    uint64_t limit = load_relaxed(&slab_latent_limit), up = load_relaxed(&ceiling_risen);

    if (likely(up <= limit) || !limit)
        return limit;
    if (gp_ended() - load_relaxed(&risen_at_ended) < CEILING_GRACE_PERIODS)
        return min_size(up, known_most());
    /* Unless another thread has raised it since. */
    compare_exchange(&ceiling_risen, &up, (uint64_t)0);
    return limit;
}

/* Returns whether a check of the readers may raise the limit in force, or end a rise. */
bool ceiling_may_rise(void)
{
    return ceiling_most() > load_relaxed(&slab_latent_limit) || load_relaxed(&ceiling_risen) ||
           load_relaxed(&state_seen) == GP_READER_UNKNOWN;
}

/* Returns the bytes of the next step. The last one was used up since; it should have lasted for
 * STEP_NS, so that checks are as rare with fast writers as with slow ones. */
static uint64_t next_step(uint64_t now, uint64_t limit)
{
    uint64_t least = max_size(limit / STEP_PART, 1);
    uint64_t last = clamp_size(load_relaxed(&step), least, limit);
    uint64_t lasted = max_size(now - load_relaxed(&risen_at), 1);

    if (lasted < STEP_NS)
        return min_size(2 * last, limit);
    return max_size(least, last / (lasted / STEP_NS));
}

/*
 * Called by a thread that found the limit in force full, with nothing held, and how the blocking
 * readers fare. Returns whether the limit rose. Of several threads that found the same limit, one
 * raises it.
 */
bool ceiling_follow(enum gp_reader_state state)
{
    uint64_t limit = load_relaxed(&slab_latent_limit), in_force = ceiling_in_force();
    uint64_t was = load_relaxed(&ceiling_risen), now = os_clock_ns(), more;

    store_relaxed(&state_seen, (uint32_t)state);
    if (state == GP_READER_STAYS || state == GP_READER_UNKNOWN)
        ceiling_fall();
    if (state != GP_READER_LACKS_CPU || !limit || in_force >= ceiling_most())
        return false;
    more = next_step(now, limit);
    /* Before the rise, which readers would otherwise take for an old one. */
    store_relaxed(&risen_at_ended, gp_ended());
    if (!compare_exchange(&ceiling_risen, &was,
                          (uint64_t)min_size(in_force + more, ceiling_most())))
        return true;
    store_relaxed(&risen_at, now);
    store_relaxed(&step, more);
    add_relaxed(&ceiling_rises, 1);
    return true;
}

/* ------------------------------------------------------------------------------------- options */

void ceiling_set(uint64_t bytes)
{
    store_relaxed(&set_ceiling, bytes);
}

void ceiling_is_the_limit(void)
{
    store_relaxed(&limit_is_default, false);
}

static bool is_below(uint64_t most, uint64_t limit)
{
    return most != UNSET && limit && most < limit;
}

/* Returns whether a new latent_limit is not above the ceiling that the user set. */
bool ceiling_allows_limit(uint64_t bytes)
{
    return !is_below(load_relaxed(&set_ceiling), bytes);
}

/* Returns whether a new ceiling is not below latent_limit. */
bool ceiling_is_possible(uint64_t bytes)
{
    return !is_below(bytes, load_relaxed(&slab_latent_limit));
}

/* Replaces a ceiling below the limit by the limit, and returns false then. */
bool ceiling_check(void)
{
    if (ceiling_is_possible(load_relaxed(&set_ceiling)))
        return true;
    ceiling_set(UNSET);
    ceiling_is_the_limit();
    return false;
}

/* ------------------------------------------------------------------------------------- messages */

/* Returns why the limit in force is what it is, for a dump. */
const char *ceiling_why(void)
{
    static const char *const why[] = {
        [GP_READER_NONE] = "no reader was blocking",
        [GP_READER_LACKS_CPU] = "blocking readers wait for a CPU",
        [GP_READER_NEW] = "the blocking reader has not been there for long",
        [GP_READER_UNKNOWN] =
            "the system or the domain does not say whether readers wait for a CPU",
        [GP_READER_STAYS] = "the blocking reader sleeps, or stays",
    };

    if (ceiling_in_force() > load_relaxed(&slab_latent_limit))
        return why[GP_READER_LACKS_CPU];
    return why[load_relaxed(&state_seen)];
}
