/* SPDX-License-Identifier: MIT */
/*
 * Counts used and dirty pages, and estimates how many dirty ones will be wanted again.
 *
 * Time is cut into windows of `decay`. For each kind of pages, the bytes taken within this window
 * and the last are expected to be wanted again in the next ones, but never more bytes than the peak
 * of that time exceeds the present use by. That peak is also taken over both kinds together,
 * because one kind may be about to take the bytes that the other has given up. Holes are kept as
 * well. These are dirty pages between used ones of their kind which did not fit the latest requests
 * but may fit the next; at most half of the used bytes are kept so. Dirty pages beyond all this,
 * and beyond `retain`, are in excess.
 *
 * A program that frees most of what it had has often ended a phase, and may from then on only make
 * calls that take no slow path. So what is expected counts only up to `spare` bytes: a part of the
 * use, and some megabytes, or more with a longer `decay` (ADR 174).
 *
 * That may be too little, and then purged pages are taken again soon after and have to be faulted
 * in. Each such byte is a regret, and increases the bytes kept from then on, up to the peak of the
 * use, and not beyond the bytes taken lately. Each window forgets an eighth of the regret (ADR 42).
 * Bytes beyond `spare` are regretted for longer, because a program may begin its next phase after
 * some seconds: within two seasons. Each season in which less was taken forgets half of that.
 *
 * Everything is protected by pages_lock, except the options, `due` and reads of `kept`.
 */
#include "pages/page_source.h"
#include "pages/pages.h"

struct os_lock pages_lock = OS_LOCK_INIT(OS_RANK_PAGES);

/* Policy: how many free pages are kept? */
/* Bytes that a kind may have beyond its share until the next window begins, because purging in
 * small steps costs a system call each. */
#define SLACK_BYTES ((uint64_t)256 << 10) /* bytes; more than the share, because small steps cost */
#define SLACK_SHIFT 3                     /* shift; the same, as a part of the share */

struct working_set {
    uint64_t used, dirty;
    uint64_t taken, taken_before; /* bytes handed out in this window, and in the last */
    uint64_t peak, peak_before;   /* most used bytes in these windows */
    uint64_t given, given_before; /* bytes purged in these windows and not regretted */
    uint64_t regret;              /* in bytes */
};

#define REGRET_SHIFT   3                    /* shift; of the regret, which each window forgets */
#define SPARE_PER_MS   ((uint64_t)21 << 10) /* bytes; for each ms of `decay`, some 2 MB */
#define SPARE_SHIFT    2  /* shift; of the bytes in use, kept when a program falls idle */
#define SEASON_WINDOWS 32 /* windows; of `decay`, because a phase may begin after seconds */

static struct working_set kinds[PAGE_KINDS];
static struct working_set all; /* both kinds together */
static uint64_t used_peak;
static uint64_t kept;  /* copy of all.dirty for readers without the lock; atomic */
static uint64_t spare; /* of what was used lately, most bytes that are kept; atomic */
static struct {
    uint64_t taken;               /* bytes handed out in this season */
    uint64_t owed;                /* bytes beyond `spare` that are to be purged next */
    uint64_t given, given_before; /* such bytes that were purged in this season and the last */
    uint64_t regret;              /* of these, in bytes */
    uint64_t end;                 /* ns */
} season;
static uint64_t asked;   /* requested from the system, not answered yet; counts for the limit */
static uint64_t in_hand; /* dirty bytes of huge mappings that threads hold */
static uint64_t window_end;
static uint64_t looked_at; /* end of the window in which the excess was last checked */

static uint64_t limit_bytes;
static uint64_t retain_bytes = 2 << 20;
static uint64_t decay_ns = 100000000;

/* Time of the next check for os_pages_decay, or 0 if there is nothing to check for. */
static uint64_t due;

/* -------------------------------------------------------------------------------------- windows */

static void begin_window(struct working_set *demand)
{
    demand->taken_before = demand->taken;
    demand->taken = 0;
    demand->peak_before = demand->peak;
    demand->peak = demand->used;
    demand->given_before = demand->given;
    demand->given = 0;
    demand->regret -= demand->regret >> REGRET_SHIFT;
}

static void begin_season(void)
{
    if (season.taken < season.regret)
        season.regret /= 2;
    season.taken = 0;
    season.given_before = season.given;
    season.given = 0;
}

static void begin_windows(void)
{
    for (unsigned kind = 0; kind < PAGE_KINDS; kind++)
        begin_window(&kinds[kind]);
    begin_window(&all);
}

/* Begins a time that lasts for `lasts`, if *end has come, and two if no call came for a whole
 * one. */
static void look_at_end(uint64_t *end, uint64_t lasts, uint64_t now, void (*begin)(void))
{
    if (now < *end && *end - now <= lasts) /* else the option was shortened */
        return;
    begin();
    if (now > *end && now - *end >= lasts)
        begin();
    *end = now + lasts;
}

static void look_at_clock(void)
{
    uint64_t decay = load_relaxed(&decay_ns), now = posix_clock_coarse_ns();

    look_at_end(&window_end, decay, now, begin_windows);
    look_at_end(&season.end, decay * SEASON_WINDOWS, now, begin_season);
}

static uint64_t peak_of(const struct working_set *demand)
{
    return max_u64(demand->peak, demand->peak_before) - demand->used;
}

/* Returns the bytes of a kind that are expected to be wanted, without the holes. */
static uint64_t working_set_wanted(const struct working_set *demand)
{
    return min_u64(demand->taken + demand->taken_before, peak_of(demand));
}

static uint64_t holes(const struct working_set *demand)
{
    return min_u64(min_u64(demand->used / 2 + demand->regret, demand->dirty),
                   demand->taken + demand->taken_before);
}

/* Takes up to `bytes` off *given, and returns how many. */
static uint64_t take_off(uint64_t *given, uint64_t bytes)
{
    uint64_t taken = min_u64(bytes, *given);

    *given -= taken;
    return taken;
}

/* Returns how many of the clean pages that were taken should have been kept, which are as many as
 * were purged lately. */
static uint64_t regretted(uint64_t clean, uint64_t *given, uint64_t *given_before)
{
    uint64_t again = take_off(given, clean);

    return again + take_off(given_before, clean - again);
}

static void regret(struct working_set *demand, uint64_t clean)
{
    uint64_t more = regretted(clean, &demand->given, &demand->given_before);

    demand->regret = min_u64(demand->regret + more, max_u64(demand->peak, demand->peak_before));
}

/* The same for pages that were purged beyond `spare`. */
static void regret_season(uint64_t clean)
{
    uint64_t more = regretted(clean, &season.given, &season.given_before);

    season.regret = min_u64(season.regret + more, used_peak);
}

/* Called when everything was purged, because memory is wanted elsewhere. */
void working_set_trimmed(void)
{
    for (unsigned kind = 0; kind < PAGE_KINDS; kind++)
        kinds[kind].given = kinds[kind].given_before = kinds[kind].regret = 0;
    season.owed = season.given = season.given_before = season.regret = 0;
}

/* ----------------------------------------------------------------------------------- accounting */

/* Called after each change of the bytes. */
static void note_kept(void)
{
    store_relaxed(&kept, all.dirty);
    store_relaxed(&spare, (all.used >> SPARE_SHIFT) + season.regret);
}

static uint64_t spare_by_decay(void)
{
    return load_relaxed(&decay_ns) / 1000000 * SPARE_PER_MS;
}

uint64_t os_pages_spare(void)
{
    return load_relaxed(&spare) + spare_by_decay();
}

uint64_t os_pages_kept(void)
{
    return load_relaxed(&kept);
}

static void use(struct working_set *demand, size_t bytes, size_t dirty)
{
    demand->used += bytes;
    demand->taken += bytes;
    demand->dirty -= dirty;
    demand->peak = max_u64(demand->peak, demand->used);
}

void working_set_took(enum page_kind kind, size_t bytes, size_t dirty)
{
    look_at_clock();
    regret(&kinds[kind], bytes - dirty);
    regret_season(bytes - dirty);
    season.taken += bytes;
    use(&kinds[kind], bytes, dirty);
    use(&all, bytes, dirty);
    used_peak = max_u64(used_peak, all.used);
    note_kept();
}

void working_set_freed(enum page_kind kind, size_t bytes)
{
    kinds[kind].used -= bytes;
    kinds[kind].dirty += bytes;
    all.used -= bytes;
    all.dirty += bytes;
    note_kept();
}

/* A byte is regretted as one of a season, or as one of a window, which keeps holes, too. */
void working_set_purged(enum page_kind kind, size_t bytes)
{
    uint64_t beyond = take_off(&season.owed, bytes);

    season.given += beyond;
    kinds[kind].dirty -= bytes;
    kinds[kind].given += bytes - beyond;
    all.dirty -= bytes;
    note_kept();
}

void working_set_dirtied(enum page_kind kind, size_t bytes)
{
    kinds[kind].dirty += bytes;
    all.dirty += bytes;
    note_kept();
}

bool working_set_fits(size_t bytes)
{
    uint64_t limit = load_relaxed(&limit_bytes);

    return !limit || all.used + all.dirty + asked + bytes <= limit;
}

bool working_set_ask(size_t bytes)
{
    bool fits = working_set_fits(bytes);

    asked += fits ? bytes : 0;
    return fits;
}

void working_set_answered(size_t bytes)
{
    asked -= bytes;
}

void working_set_in_hand(size_t bytes, bool taken)
{
    in_hand = taken ? in_hand + bytes : in_hand - bytes;
}

bool working_set_is_in_hand(void)
{
    return in_hand != 0;
}

/* Forgets the bytes that other threads requested or held, because these do not exist in the
 * child. */
void working_set_fork_child(void)
{
    asked = 0;
    working_set_purged(HUGE_MAPPINGS, in_hand);
    in_hand = 0;
}

/* --------------------------------------------------------------------------------------- excess */

/*
 * Computes the bytes to purge. Returns false if there are none, or too few to be worth purging
 * before the next window. `all_of_it` counts even a few.
 */
bool working_set_excess(struct excess *excess, bool all_of_it)
{
    uint64_t retain = load_relaxed(&retain_bytes), most = os_pages_spare();
    uint64_t wanted, keep, beyond, huge_mappings_keep, huge_mappings;
    const struct working_set *run = &kinds[RUNS], *huge = &kinds[HUGE_MAPPINGS];
    bool now;

    look_at_clock();
    now = all_of_it || looked_at != window_end || !load_relaxed(&decay_ns);
    looked_at = window_end;
    store_relaxed(&due, all.dirty > retain ? window_end : 0);
    if (all.dirty <= retain)
        return false;
    huge_mappings_keep = working_set_wanted(huge) + holes(huge);
    wanted = min_u64(working_set_wanted(run) + working_set_wanted(huge), peak_of(&all));
    keep = max_u64(min_u64(wanted, most) + holes(run) + holes(huge), retain);
    if (all.dirty <= keep + (now ? 0 : SLACK_BYTES + (keep >> SLACK_SHIFT)))
        return false;
    beyond = all.dirty - keep;
    season.owed = min_u64(beyond, wanted - min_u64(wanted, most));
    /* Purge huge mappings that will not be wanted first, then runs, then other huge mappings. */
    huge_mappings = min_u64(beyond, huge->dirty - min_u64(huge->dirty, huge_mappings_keep));
    excess->bytes[RUNS] = min_u64(beyond - huge_mappings, run->dirty);
    excess->bytes[HUGE_MAPPINGS] = beyond - excess->bytes[RUNS];
    return true;
}

bool os_pages_decaying(void)
{
    return load_relaxed(&due) != 0;
}

bool working_set_is_due(void)
{
    uint64_t when = load_relaxed(&due);

    return when && posix_clock_coarse_ns() >= when;
}

void working_set_stats(struct os_pages_stats *stats)
{
    stats->used = all.used;
    stats->used_peak = used_peak;
    stats->retained = all.dirty;
}

const struct pages_words pages_words = {
    .used = &all.used, .used_peak = &used_peak, .retained = &all.dirty};

/* -------------------------------------------------------------------------------------- options */

void os_pages_set_limit(uint64_t bytes)
{
    store_relaxed(&limit_bytes, bytes);
}

uint64_t os_pages_limit(void)
{
    return load_relaxed(&limit_bytes);
}

void os_pages_set_retain(uint64_t bytes)
{
    store_relaxed(&retain_bytes, bytes);
}

uint64_t os_pages_retain(void)
{
    return load_relaxed(&retain_bytes);
}

void os_pages_set_decay(uint64_t nanoseconds)
{
    store_relaxed(&decay_ns, nanoseconds);
    if (load_relaxed(&due))
        store_relaxed(&due, 1);
}
