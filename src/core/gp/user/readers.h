/* SPDX-License-Identifier: MIT */
/* This thread's slots (see readers.c). */
#ifndef GP_USER_READERS_H
#define GP_USER_READERS_H

#include "gp/user/domain.h"

/* This copy's own thread-local pointers. The exported names, which inline readers use, may belong
 * to another copy of the library (readers_are_superseded, ADR 26). */
extern __thread struct prudence_reader *reader_self __attribute__((tls_model("initial-exec")));
extern __thread struct prudence_reader *reader_qsbr_self __attribute__((tls_model("initial-exec")));
extern __thread struct prudence_reader *reader_lasting_self
    __attribute__((tls_model("initial-exec")));
bool readers_are_superseded(void);
/* Makes `domain` live as long as the process, as the default one does. At most one domain, before
 * any thread knows the domain. Its readers find their words by a pointer of their own,
 * reader_lasting_self. */
void readers_make_lasting(const struct prudence_domain *domain);
/* Also true for the default domain. */
bool readers_are_lasting(const struct prudence_domain *domain);
struct reader_slot *
readers_slot(struct prudence_domain *domain); /* this thread's; NULL: no memory */
struct reader_slot *readers_slot_if_any(const struct prudence_domain *domain);
struct reader_slot *readers_slot_or_panic(struct prudence_domain *domain);
/* of this thread; without one, only the default domain can have a slot of the thread */
bool readers_has_table(void);
/* The program keeps a pointer to a slot of this thread (epoch.c). */
void readers_note_record(void);
void readers_thread_ends(bool last);
/* Lets the section of the default domain that this thread is in when it ends stay for ever. */
void readers_outlive(void);
/* Has `kick` (NULL: nothing) called when this thread, whose slot it is, is blocking. Calls of the
 * function before are over on return. The end of the thread is noticed (reader_exit.c). */
void readers_kick_by(struct reader_slot *slot, const struct prudence_kick *kick);
bool readers_left_inside(void); /* a thread may have ended inside since the last call */
void readers_fork_child(void);
/* Frees, in the child of a fork, the slots of threads that only the parent has
 * (os_thread_lives_in_child). */
void readers_forget_others(struct prudence_domain *domain, bool whole);
extern struct list readers_domains; /* all except the default one; guarded by readers_lock */

#endif /* GP_USER_READERS_H */
