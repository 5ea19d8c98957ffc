/* SPDX-License-Identifier: MIT */
/* Slots of readers (see slots.c). */
#ifndef GP_USER_SLOTS_H
#define GP_USER_SLOTS_H

#include "gp/user/domain.h"

extern struct os_lock readers_lock;
struct reader_slot *slot_claim(struct prudence_domain *domain, bool nested); /* NULL: no memory */
void slot_release(struct prudence_domain *domain, struct reader_slot *slot, int thread);
void slot_forget(struct reader_slot *slot);
bool slots_any_inside(const struct prudence_domain *domain);
bool slots_reap_one(struct prudence_domain *domain, struct reader_slot *slot, uint64_t now,
                    uint64_t stayed);
#define READERS_A_FEW 64
#define READERS_ALL   UINT32_MAX
unsigned slots_reap(struct prudence_domain *domain, bool thoroughly, unsigned at_most);
void slots_release_chunks(struct prudence_domain *domain); /* under readers_lock */

/* Visits each slot in use, newest chunk first; `slot` is evaluated only while in use. Slots at or
 * past `used` were never claimed, or just now: a registering thread raises `used` before the fence
 * (readers.c). */
#define for_each_slot(chunk, slot, domain)                                                         \
    for ((chunk) = load_acquire(&(domain)->chunks); (chunk); (chunk) = (chunk)->next)              \
        for ((slot) = (chunk)->slots; (slot) < (chunk)->slots + load_acquire(&(chunk)->used);      \
             (slot)++)                                                                             \
            if (load_acquire(&(slot)->thread))

#endif /* GP_USER_SLOTS_H */
