/* SPDX-License-Identifier: MIT */
/*
 * Clocks that follow real time. When a call reads a clock, thousands of dates may have passed.
 * `now` follows at once. The lists with earlier dates are swept bit by bit, a few at each check,
 * and those whose date has passed expire. Until a list is swept it stays in the ring, and the first
 * page says which date it has. A thread that needs the place for a later date sweeps the list
 * first.
 *
 * Units are counted from the start of the machine's monotonic clock, so the same period has the
 * same units on every clock.
 *
 * A tick and scm_collect use the precise time. Every other call that collects uses the
 * coarse time, which the system updates at timer interrupts (every 1 to 10 ms). The fast paths of
 * threads without such clocks have no test for this, because the expired list of a thread that has
 * some is never NULL; `first` is something_to_do (thread_state.c) when the list is empty. Each call
 * reads a few of the thread's clocks, in turn.
 *
 * The dates of clocks of ended threads go, list by list, to the clock of a class. There is a class
 * for each power of two of milliseconds, and a clock's class is the largest not above the period. A
 * date expires at most one unit of the class later. So there are at most CLASSES rings, however
 * many threads have come and gone. They, and the clocks that wait to be merged, belong to the
 * holder of scm_lock, and every tick of any thread does a step.
 */
#include "shortterm/scm.h"

uint64_t (*scm_real_time)(void) = os_clock_ns;

#define CLOCKS_PER_LOOK 2
#define MS              UINT64_C(1000000)
#define CLASSES         27 /* 1 ms to 2^26 ms; the longest period is 86400000 ms */

static struct scm_clock *classes[CLASSES];         /* NULL if no object has such dates */
static struct list waiting = {&waiting, &waiting}; /* clocks of ended threads */

static void follow_from(struct scm_clock *clock, uint64_t ns)
{
    clock->now = ns / clock->period;
    clock->due = (clock->now + 1) * clock->period;
}

void real_time_start(struct scm_thread *self, struct scm_clock *clock, uint64_t period)
{
    clock->period = period;
    follow_from(clock, scm_real_time());
    thread_state_watch(self);
}

/* ------------------------------------------------------------------------------------- sweeping */

/* Advances to the present. The last `behind` dates before `now` remain to be swept; one round of
 * the ring covers all. */
static void real_time_advance(struct scm_clock *clock, uint64_t ns)
{
    uint64_t before = clock->now;

    if (ns < clock->due)
        return;
    follow_from(clock, ns);
    clock->behind = min_size(clock->behind + (clock->now - before), clock->mask + 1);
}

static bool has_passed(const struct scm_clock *clock, uint64_t place)
{
    return (int64_t)(clock->ring[place].first->date - clock->now) < 0;
}

/* Sweeps to the next list that is not empty. */
static void sweep_step(struct scm_thread *self, struct scm_clock *clock)
{
    uint64_t from = clock->now - clock->behind, place = clock_first(clock, from);
    uint64_t passed = ((place - from) & clock->mask) + 1;

    if (place > clock->mask || passed > clock->behind) {
        clock->behind = 0;
        return;
    }
    clock->behind -= passed;
    count_add(&self->counts.steps, 1);
    if (has_passed(clock, place))
        clock_expire(self, clock, place);
}

/* Advances to the present unit, and sweeps up to `lists` lists. */
void real_time_follow(struct scm_thread *self, struct scm_clock *clock, uint64_t ns, uint64_t lists)
{
    uint64_t expired = self->counts.expired;

    for (real_time_advance(clock, ns); clock->behind && lists; lists--)
        sweep_step(self, clock);
    clock->dates -= self->counts.expired - expired;
}

/* Makes room for a date that is `units` ahead. Returns false if there is no memory. */
bool real_time_make_room(struct scm_thread *self, struct scm_clock *clock, uint64_t units)
{
    uint64_t place;

    if (!clock_reach(clock, units))
        return false;
    place = (clock->now + units) & clock->mask;
    if (clock->ring[place].first && has_passed(clock, place)) {
        clock->dates -= list_dates(&clock->ring[place]);
        clock_expire(self, clock, place);
    }
    return true;
}

/* Reads a few of the thread's clocks and lists, or all of them. */
static void look_at_clocks(struct scm_thread *self, uint64_t ns, bool at_all)
{
    struct list *first = NULL;

    for (unsigned i = 0; at_all || i < CLOCKS_PER_LOOK; i++) {
        struct list *item = self->real.next;

        if (item == &self->real || item == first)
            return;
        real_time_follow(self, list_entry(item, struct scm_clock, link), ns,
                         at_all ? UINT64_MAX : LISTS_PER_CALL);
        list_remove(item);
        list_append(&self->real, item);
        first = first ? first : item;
    }
}

/* Returns a time that is cheaper and up to one timer interrupt late. */
static uint64_t coarse_time(void)
{
    return scm_real_time == os_clock_ns ? os_clock_coarse_ns() : scm_real_time();
}

void real_time_look(struct scm_thread *self, bool at_all)
{
    if (!list_is_empty(&self->real))
        look_at_clocks(self, scm_real_time(), at_all);
}

void real_time_glance(struct scm_thread *self)
{
    if (!list_is_empty(&self->real))
        look_at_clocks(self, coarse_time(), false);
}

/* ------------------------------------------------------------ clocks of threads that have ended */

/* Retires a clock of an ended thread. Called under scm_lock. */
void real_time_leave(struct scm_clock *clock)
{
    clock_retire(clock);
    if (clock_is_empty(clock))
        clock_unmake_locked(clock);
    else
        list_append(&waiting, &clock->link);
}

static unsigned real_time_class(uint64_t period)
{
    return 63 - (unsigned)__builtin_clzll(period / MS);
}

/* Returns the clock of a class, made at the present time. Returns NULL if there is no memory. */
static struct scm_clock *class_clock(unsigned class, uint64_t ns)
{
    struct scm_clock *clock = classes[class];

    if (clock)
        return clock;
    clock = scm_meta_alloc(sizeof *clock);
    if (!clock)
        return NULL;
    if (!clock_init(clock)) {
        scm_meta_free(clock, sizeof *clock);
        return NULL;
    }
    clock->kind = REAL_TIME_CLOCK;
    clock->period = MS << class;
    follow_from(clock, ns);
    classes[class] = clock;
    return clock;
}

static void class_clock_end(unsigned class)
{
    clock_release(classes[class]);
    scm_meta_free(classes[class], sizeof *classes[class]);
    classes[class] = NULL;
}

/* Expires the list at that place of an ended thread's clock, or moves it to the class. Returns
 * false if there is no memory. */
static bool merge_list(struct scm_thread *self, struct scm_clock *clock, uint64_t place,
                       uint64_t ns)
{
    uint64_t over = (clock->ring[place].first->date + 1) * clock->period, date;
    struct scm_clock *class;

    if (over <= ns) {
        clock_expire(self, clock, place);
        return true;
    }
    class = class_clock(real_time_class(clock->period), ns);
    if (!class)
        return false;
    real_time_follow(self, class, ns, 0);
    date = (over + class->period - 1) / class->period - 1;
    if (!real_time_make_room(self, class, date - class->now))
        return false;
    clock_give(self, clock, place, class, date);
    return true;
}

/* Merges a list of the clock that has waited longest. Returns false if nothing can be done. */
static bool merge_step(struct scm_thread *self, uint64_t ns)
{
    struct scm_clock *clock = list_first(&waiting, struct scm_clock, link);

    if (!clock || !merge_list(self, clock, clock_first(clock, 0), ns))
        return false;
    count_add(&self->counts.steps, 1);
    if (clock_is_empty(clock))
        clock_unmake_locked(clock);
    return true;
}

static void class_step(struct scm_thread *self, unsigned class, uint64_t ns, bool all)
{
    real_time_follow(self, classes[class], ns, all ? UINT64_MAX : 1);
    if (clock_is_empty(classes[class]))
        class_clock_end(class);
}

/* Merges a few lists, or all. Expired lists of classes go to the thread. Called under scm_lock. */
void real_time_left_step(struct scm_thread *self, bool all)
{
    uint64_t ns;

    if (!real_time_left())
        return;
    ns = coarse_time();
    for (unsigned i = 0; (all || i < LISTS_PER_CALL) && merge_step(self, ns); i++)
        ;
    for (unsigned class = 0; class < CLASSES; class ++)
        if (classes[class])
            class_step(self, class, ns, all);
}

/* Return whether there is anything for real_time_left_step, and whether clocks wait to be merged.
 * Called under scm_lock. */
bool real_time_left(void)
{
    bool any = real_time_merges();

    for (unsigned class = 0; class < CLASSES && !any; class ++)
        any = classes[class] != NULL;
    return any;
}

bool real_time_merges(void)
{
    return !list_is_empty(&waiting);
}
