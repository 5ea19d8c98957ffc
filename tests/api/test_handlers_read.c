/* SPDX-License-Identifier: MIT */
/*
 * Signal handlers at each instruction of what readers call (support/handler_steps.h): sections of
 * all kinds of domain, also of the 1,025th and higher, for which the thread's table of slots grows;
 * pins of epochs, hazard pointers, and small functions that a handler may call.
 *
 * ctest: cost 20
 * ctest: needs steps
 */
#define _GNU_SOURCE
#pragma GCC optimize("O2") /* the inlined functions, as in programs */
#include <errno.h>
#include <fcntl.h>

#include <prudence/bindings.h>
#include <prudence/call.h>
#include <prudence/epoch.h>
#include <prudence/hazard.h>
#include <prudence/stats.h>
#include <prudence/structure.h>

#include "toolkit/domains/hazard_slots.h"
#include "support/handler_steps.h"

#define MANY 1100 /* domains; more than a first table has room for */

static struct prudence_domain *many[MANY], *srcu, *qsbr[2], *manual;
static void *object, *shared;

static void enter(unsigned depth)
{
    (void)depth;
    prudence_read_lock();
    prudence_read_unlock();
}

static void nest(unsigned depth)
{
    bool outer = prudence_is_reading();

    HANDLER_CHECK(depth || !outer);
    prudence_read_lock();
    prudence_read_lock();
    HANDLER_CHECK(prudence_is_reading() && prudence_read_lock_held());
    prudence_read_unlock();
    prudence_read_unlock();
    HANDLER_CHECK(prudence_read_lock_held() == outer);
}

static void check(unsigned depth)
{
    (void)depth;
    prudence_check_reader(object);
}

static void enter_in(struct prudence_domain *domain)
{
    prudence_domain_read_lock(domain);
    prudence_domain_read_unlock(domain);
}

/* The handler is the first that reads in the last domain, and the interrupted thread in another. */
static void domain(unsigned depth)
{
    enter_in(many[5]);
    if (depth)
        enter_in(many[MANY - 1]);
}

static void held(unsigned depth)
{
    bool outer = prudence_domain_read_lock_held(many[5]);

    HANDLER_CHECK(depth || !outer);
    prudence_domain_read_lock(many[5]);
    HANDLER_CHECK(prudence_domain_read_lock_held(many[5]));
    prudence_domain_read_unlock(many[5]);
    HANDLER_CHECK(prudence_domain_read_lock_held(many[5]) == outer);
}

static void srcu_section(unsigned depth)
{
    (void)depth;
    prudence_srcu_read_unlock(srcu, prudence_srcu_read_lock(srcu));
}

static void srcu_nest(unsigned depth)
{
    int index = prudence_srcu_read_lock(srcu);

    (void)depth;
    enter_in(srcu);
    prudence_srcu_read_unlock(srcu, index);
}

static void srcu_hand(unsigned depth)
{
    (void)depth;
    prudence_srcu_up_read(srcu, prudence_srcu_down_read(srcu));
}

/* Being online does not nest, so the handler is so in another domain. */
static void online(unsigned depth)
{
    prudence_qsbr_online(qsbr[depth]);
    prudence_qsbr_offline(qsbr[depth]);
    HANDLER_CHECK(!prudence_domain_read_lock_held(qsbr[depth]));
}

static void quiescent(unsigned depth)
{
    prudence_qsbr_online(qsbr[depth]);
    prudence_qsbr_quiescent(qsbr[depth]);
    prudence_qsbr_announce(qsbr[depth]);
    enter_in(qsbr[depth]);
    prudence_qsbr_offline(qsbr[depth]);
}

static void record(unsigned depth)
{
    HANDLER_CHECK(prudence_epoch_record(many[5]) == prudence_epoch_record(many[5]));
    if (depth)
        HANDLER_CHECK(prudence_epoch_record(many[MANY - 1]));
}

static void pin(unsigned depth)
{
    struct prudence_reader *self = prudence_epoch_record(manual);
    bool outer = prudence_epoch_is_pinned(self);

    (void)depth;
    prudence_epoch_pin(self);
    HANDLER_CHECK(prudence_epoch_repin(self) == !outer);
    HANDLER_CHECK(prudence_epoch_is_pinned(self));
    prudence_epoch_unpin(self);
    HANDLER_CHECK(prudence_epoch_is_pinned(self) == outer);
}

static void outlive(unsigned depth)
{
    prudence_epoch_outlive();
    enter(depth);
}

static void use(struct prudence_hazard *hazard)
{
    void *found = object;

    HANDLER_CHECK(hazard && !hazard->name);
    HANDLER_CHECK(prudence_hazard_protect(hazard, &shared) == object && hazard->name == object);
    prudence_hazard_reset(hazard);
    HANDLER_CHECK(prudence_hazard_try_protect(hazard, &found, &shared));
    prudence_hazard_set(hazard, &found);
}

static void hazard(unsigned depth)
{
    struct prudence_hazard *one = prudence_hazard_acquire();

    if (depth)
        use(one);
    prudence_hazard_release(one);
}

static void hazard_movable(unsigned depth)
{
    struct prudence_hazard *one = prudence_hazard_acquire_movable();

    if (depth)
        use(one);
    prudence_hazard_release(one);
}

static void hazard_use(unsigned depth)
{
    struct prudence_hazard *one = prudence_hazard_acquire();

    (void)depth;
    use(one);
    prudence_hazard_release(one);
}

/* The handler needs more slots than a record has. */
static void hazard_row(unsigned depth)
{
    const unsigned count = depth ? PRUDENCE_HAZARDS : 2;
    struct prudence_hazard *row = prudence_hazard_acquire_row(count);

    for (unsigned i = 0; i < count; i++)
        prudence_hazard_release(row + i);
}

static void words(unsigned depth)
{
    void *place;

    (void)depth;
    prudence_assign_pointer_at(&place, object);
    HANDLER_CHECK(prudence_dereference_at(&place) == object && prudence_version()[0]);
    HANDLER_CHECK(prudence_domain_kind_of(srcu) == PRUDENCE_DOMAIN_SRCU);
}

static void sizes(unsigned depth)
{
    (void)depth;
    HANDLER_CHECK(prudence_sizeof("prudence_head") == sizeof(struct prudence_head));
    HANDLER_CHECK(prudence_alignof("prudence_head") == 8);
}

static int nowhere;

static void dump(unsigned depth)
{
    (void)depth;
    HANDLER_CHECK(prudence_dump(nowhere) == 0);
    HANDLER_CHECK(prudence_profile_dump("/dev/null") == ENODATA);
}

const struct handler_body handler_bodies[] = {
    BODY(enter),         BODY(nest),      BODY(check),     BODY(domain),         BODY(held),
    MOVES(srcu_section), BODY(srcu_nest), BODY(srcu_hand), BODY(online),         BODY(quiescent),
    BODY(record),        BODY(pin),       BODY(hazard),    BODY(hazard_movable), BODY(hazard_use),
    BODY(hazard_row),    BODY(words),     BODY(sizes),     BODY(dump),           BODY(outlive)};
const unsigned handler_body_count = sizeof handler_bodies / sizeof handler_bodies[0];

/* --------------------------------------------------------------------------------- afterwards */

static bool grace_period_ends(struct prudence_domain *domain)
{
    prudence_gp_t cookie = prudence_domain_start_poll(domain);

    for (unsigned i = 0; i < 4; i++)
        if (prudence_domain_poll_state(domain, cookie))
            return true;
    return false;
}

/* No thread is inside, and the thread that ended has no slot. */
void handler_steps_check(void)
{
    struct prudence_domain *const used[] = {
        prudence_default_domain(), many[5], many[MANY - 1], srcu, qsbr[0], qsbr[1]};
    bool only_own;

    for (unsigned i = 0; i < sizeof used / sizeof used[0]; i++)
        HANDLER_CHECK(grace_period_ends(used[i]));
    HANDLER_CHECK(hazard_slots_records(&only_own) == 0);
}

static void set_up(void)
{
    nowhere = open("/dev/null", O_WRONLY);
    object = prudence_malloc(64);
    shared = object;
    for (unsigned i = 0; i < MANY; i++)
        many[i] = prudence_domain_create("many", PRUDENCE_DOMAIN_MEMB, NULL);
    srcu = prudence_domain_create("srcu", PRUDENCE_DOMAIN_SRCU, NULL);
    qsbr[0] = prudence_domain_create("qsbr", PRUDENCE_DOMAIN_QSBR, NULL);
    qsbr[1] = prudence_domain_create("qsbr", PRUDENCE_DOMAIN_QSBR, NULL);
    manual = prudence_domain_create("manual", PRUDENCE_DOMAIN_MANUAL, NULL);
}

TEST(handlers_come_between_any_two_instructions)
{
    set_up();
    handler_steps_all(true);
}

SUITE()
