/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of common/net.h: a server and a client of it over ipc, and one descriptor that both
 * wake. */
#ifndef WPK_COMMON_NET_PAIR_H
#define WPK_COMMON_NET_PAIR_H

#include "common/net.h"

#define WPK_NET_PAIR_SIZE_MAX 65536 /* bytes of a message */
#define WPK_NET_PAIR_UNAUTHENTICATED_MS 300

struct wpk_net_pair {
    char directory[64];
    char url[128];
    int fd; /* written to by wpk_net_pair_wake */
    struct wpk_net_server *server;
    struct wpk_net_client *client; /* of three slots */
};

/* Of cmocka: *state is the pair, both sides of it open; a test may close either and set it NULL. */
int wpk_net_pair_set_up(void **state);
int wpk_net_pair_tear_down(void **state);

void wpk_net_pair_wake(void *user);
/* Until somebody wakes; five seconds at most. */
void wpk_net_pair_pause(struct wpk_net_pair *pair);
/* The next of the server's; the caller frees its data. */
void wpk_net_pair_event(struct wpk_net_pair *pair, struct wpk_net_event *event);
/* The next of the client's; the caller frees *data. */
wpk_err wpk_net_pair_reply(struct wpk_net_pair *pair, int *slot, char **data);

/* As the pair's own sides are opened. */
wpk_err wpk_net_pair_listen(struct wpk_net_pair *pair, const char *url, struct wpk_net_server **out,
                            struct wpk_diag *diag);
wpk_err wpk_net_pair_connect(struct wpk_net_pair *pair, const char *url,
                             struct wpk_net_client **out, struct wpk_diag *diag);
/* The pair's server, at its url. */
void wpk_net_pair_serve(struct wpk_net_pair *pair);

#endif
