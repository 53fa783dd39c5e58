/* SPDX-License-Identifier: Apache-2.0 */
/* wpkd's inside, shared by the files it is made of: service.c turns the loop, service_open.c
 * opens and closes what it holds, service_life.c leads it from start to end. Only the loop's
 * thread touches it. */
#ifndef WPK_COORDINATOR_SERVICE_STATE_H
#define WPK_COORDINATOR_SERVICE_STATE_H

#include "common/loop.h"
#include "common/notify.h"
#include "coordinator/api/api_front.h"
#include "coordinator/effects/executor.h"
#include "coordinator/service.h"
#include "coordinator/store/sign.h"

struct wpk_service {
    const struct wpk_service_options *options;
    const struct wpk_config *config; /* what holds now: options->config, or `reloaded` */
    struct wpk_config *reloaded;     /* owned; NULL before the first reload */
    struct wpk_notify notify;
    int lock_fd;
    struct wpk_loop *loop;
    struct wpk_store *store;
    struct wpk_sign *sign;
    struct wpk_index *index;
    struct wpk_api_front *front;
    struct wpk_net_server *net;
    struct wpk_http_server *http;
    struct wpk_auth *auth;
    struct wpk_executor *executor;
    uint64_t active_ns; /* last time there was a job or a request */
    uint64_t answered;  /* requests of clients, as last seen */
    uint64_t refused[WPK_NET_REFUSAL_COUNT]; /* by the worker port, as last seen */
    uint64_t commits;   /* turns that the store has taken, or could not: it answered */
    uint64_t advanced_commits;
    uint64_t advanced_ns; /* when they were last seen to grow, and how many there were then */
    uint64_t fed_commits;
    uint64_t fed_ns; /* last time the watchdog was fed, and how many commits there were then */
    uint64_t status_ns;
    uint64_t measured_ns;
    char status[256]; /* what the service manager was told last */
    bool draining;
    uint64_t drain_end_ns;
    uint64_t drain_mark; /* batches given to the writer before, and 1; 0: not looked at yet */
    wpk_err err;        /* why the loop was stopped */
    struct wpk_diag diag;
};

/* What the executor lets go; `user` is the service. */
void wpk_service_reply(void *user, const struct wpk_net_address *address, const void *frame,
                       size_t size);
void wpk_service_respond(void *user, uint64_t request, const struct wpk_api_answer *answer);

/* Take what came in, step it, commit; `user` is the service. */
void wpk_service_turn(void *user);
/* Let time pass: leases expire, silent workers are let go. */
void wpk_service_tick(struct wpk_service *service);
/* Tell the state what the configuration says of owners; `user` is the service. */
void wpk_service_set_owners(void *user);
/* Owners that the configuration `before` named have the default share, until they are set again. */
void wpk_service_forget_owners(struct wpk_service *service, const struct wpk_config *before);

/* Set the gauges: it looks at every job, search and worker, so not too often. */
void wpk_service_measure(struct wpk_service *service);

/* Take lock, store and sockets; what it says is what wpk_service_run() says. */
WPK_MUST_CHECK wpk_err wpk_service_open(struct wpk_service *service, struct wpk_diag *diag);
/* Also what was opened in part. */
void wpk_service_close(struct wpk_service *service);
/* Let the sockets have what `next` says of them. What cannot be read leaves them as they were; past
 * that only a port that cannot be listened at again fails, when clients' have it and workers' not.
 */
WPK_MUST_CHECK wpk_err wpk_service_reload_sockets(struct wpk_service *service,
                                                  const struct wpk_config *next,
                                                  struct wpk_diag *diag);

#endif
