/* SPDX-License-Identifier: Apache-2.0 */
/* wpkd's inside, shared by the two files it is made of: service.c turns the loop, service_life.c
 * opens, reloads, drains and closes. Only the loop's thread touches it. */
#ifndef WPK_COORDINATOR_SERVICE_STATE_H
#define WPK_COORDINATOR_SERVICE_STATE_H

#include "common/loop.h"
#include "coordinator/performer.h"
#include "coordinator/service.h"

struct wpk_service {
    const struct wpk_config *config; /* what holds now; after a reload the new one */
    int lock_fd;
    struct wpk_loop *loop;
    struct wpk_store *store;
    struct wpk_net_server *net;
    struct wpk_http_server *http;
    struct wpk_auth *auth;
    struct wpk_performer *performer;
    uint64_t active_ns; /* last time there was a job or a request */
    wpk_err err;        /* why the loop was stopped */
    struct wpk_diag diag;
};

/* What the performer lets go; `user` is the service. */
void wpk_service_reply(void *user, const struct wpk_net_address *address, const void *frame,
                       size_t size);
void wpk_service_respond(void *user, uint64_t request, const struct wpk_api_answer *answer);

/* Take what came in, step it, commit; `user` is the service. */
void wpk_service_turn(void *user);
/* Let time pass: leases expire, slow connections end. */
void wpk_service_tick(struct wpk_service *service, uint64_t now_ns);

#endif
