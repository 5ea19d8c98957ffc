/* SPDX-License-Identifier: MIT */
/*
 * Sessions under ids, and references to sessions, in docs/how-to/structures.md.
 *
 * ctest: not-with thread (one thread)
 */
#include <prudence/id_table.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/ref.h>

struct session {
    uint32_t id;
    int user;
    struct prudence_ref references;
};

static int user_of(struct prudence_id_table *sessions, uint32_t id)
{
    const struct session *session;
    int user = -1;

    prudence_read_lock();
    session = prudence_id_table_lookup(sessions, id);
    if (session)
        user = session->user;
    prudence_read_unlock();
    return user;
}

static struct session *find_session(struct prudence_id_table *sessions, uint32_t id)
{
    struct session *session;

    prudence_read_lock();
    session = prudence_id_table_lookup(sessions, id);
    if (session && !prudence_ref_get_unless_zero(&session->references))
        session = NULL;
    prudence_read_unlock();
    return session;
}

static void leave_session(struct session *session)
{
    if (prudence_ref_put(&session->references))
        prudence_free_deferred(session);
}

int main(void)
{
    struct prudence_id_table *sessions = prudence_id_table_create("sessions", NULL);
    struct session *session = prudence_malloc(sizeof *session);
    void *erased;
    uint32_t id;

    session->user = 7;
    prudence_ref_init(&session->references, 1);
    int error = prudence_id_table_add(sessions, session, &session->id);
    if (error)
        return 1;
    id = session->id;
    if (user_of(sessions, id) != 7 || find_session(sessions, id) != session)
        return 1;
    if (prudence_id_table_erase(sessions, id, &erased) || erased != session)
        return 1;
    leave_session(session);
    if (find_session(sessions, id))
        return 1;
    leave_session(session);
    return prudence_id_table_destroy(sessions, NULL, NULL);
}
