/* SPDX-License-Identifier: MIT */
/* An object that needs more than a free, in docs/how-to/rcu.md. */
#include <prudence/call.h>
#include <prudence/prudence.h>
#include <stddef.h>
#include <unistd.h>

struct route {
    struct prudence_head head; /* anywhere in it; needs no preparation */
    int socket;
};

static void route_end(struct prudence_head *head)
{
    struct route *route = (struct route *)((char *)head - offsetof(struct route, head));

    close(route->socket);
    prudence_free(route);
}

int main(void)
{
    struct route *route = prudence_malloc(sizeof *route);
    int ends[2];

    if (!route || pipe(ends))
        return 1;
    route->socket = ends[1];
    prudence_call(&route->head, route_end); /* after it is unlinked */
    prudence_barrier();
    return read(ends[0], ends, 1) != 0; /* no thread holds the other end */
}
