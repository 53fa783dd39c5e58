/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of common/net.h: a server and its client over ipc, and one eventfd that both of them
 * wake. */
#ifndef WPK_TESTS_NET_PAIR_H
#define WPK_TESTS_NET_PAIR_H

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

/* For cmocka. *state is the pair, both sides open; a test may close a side and set it to NULL. */
int wpk_net_pair_set_up(void **state);
int wpk_net_pair_tear_down(void **state);

void wpk_net_pair_wake(void *user);
/* Wait until a side wakes the pair. */
void wpk_net_pair_pause(struct wpk_net_pair *pair);
/* Wait for the server's next event; the caller frees its data. */
void wpk_net_pair_event(struct wpk_net_pair *pair, struct wpk_net_event *event);
/* Wait for the client's next reply; the caller frees *data. */
wpk_err wpk_net_pair_reply(struct wpk_net_pair *pair, int *slot, char **data);

/* Open another server or client with the options of the pair's own. */
wpk_err wpk_net_pair_listen(struct wpk_net_pair *pair, const char *url, struct wpk_net_server **out,
                            struct wpk_diag *diag);
wpk_err wpk_net_pair_connect(struct wpk_net_pair *pair, const char *url,
                             struct wpk_net_client **out, struct wpk_diag *diag);
/* Open the pair's server at its url. */
void wpk_net_pair_serve(struct wpk_net_pair *pair);

#endif
