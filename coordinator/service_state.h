/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the service, shared by its files: service.c takes the turns of the loop,
 * service_open.c opens and closes what it holds, service_life.c leads it from start to end,
 * service_metrics.c sets owners and gauges. Only the loop's thread touches it. */
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
    const struct wpk_config *config; /* in force: options->config, or `reloaded` */
    struct wpk_config *reloaded;     /* owned; NULL before the first reload */
    struct wpk_notify notify;
    int lock_fd;
    struct wpk_loop *loop;
    struct wpk_store *store;
    struct wpk_keeper *keeper; /* NULL: the history has no log */
    struct wpk_sign *sign;
    struct wpk_index *index;
    struct wpk_api_front *front;
    struct wpk_net_server *net;
    struct wpk_http_server *http;
    struct wpk_auth *auth;
    struct wpk_executor *executor;
    uint64_t active_ns;                      /* when there was a job or a request last */
    uint64_t answered;                       /* requests of clients, as last seen */
    uint64_t refused[WPK_NET_REFUSAL_COUNT]; /* by the workers' port, as last seen */
    uint64_t commits;                        /* wpk_executor_commits(), as last seen */
    uint64_t advanced_commits;               /* `commits` when it was last seen to grow */
    uint64_t advanced_ns;                    /* the time of that */
    uint64_t fed_commits;                    /* `commits` when the watchdog was fed last */
    uint64_t fed_ns;                         /* the time of that */
    uint64_t status_ns;                      /* when the status was considered last */
    uint64_t measured_ns;                    /* when gauges were set last */
    char status[256];                        /* as the service manager was told last */
    bool draining;
    uint64_t drain_end_ns;
    uint64_t drain_mark; /* 1 + batches given to the writer when draining began; 0: not set */
    wpk_err err;         /* why the loop was stopped */
    struct wpk_diag diag;
};

/* Output of the executor: a reply to a worker, an answer to a request. `user`: the service. */
void wpk_service_reply(void *user, const struct wpk_net_address *address, const void *frame,
                       size_t size);
void wpk_service_respond(void *user, uint64_t request, struct wpk_api_answer *answer);

/* A turn of the loop: step what came in, and commit. `user`: the service. */
void wpk_service_turn(void *user);
/* A tick: step it and commit, probe the writer, end slow connections, count refused ones. */
void wpk_service_tick(struct wpk_service *service);
/* Set the owners' weights and quotas from the configuration. `user`: the service. */
void wpk_service_set_owners(void *user);
/* Set the owners that the configuration `before` named to the default weight and quota. */
void wpk_service_forget_owners(struct wpk_service *service, const struct wpk_config *before);

/* Set the gauges. It looks at every job, search and worker: call it once a second at most. */
void wpk_service_measure(struct wpk_service *service);

/* Follow the log until it is claimed; service->store is open then. In standby.c.
 *   errors  WPK_ECLOSED  a signal has come, and service->draining is set; those of keeper.h */
wpk_err wpk_standby_run(struct wpk_service *service, struct wpk_diag *diag);

/* Take lock, store and sockets. Errors are those of wpk_service_run(). */
wpk_err wpk_service_open(struct wpk_service *service, struct wpk_diag *diag);
/* Close all that is open, after a failed wpk_service_open() too. */
void wpk_service_close(struct wpk_service *service);
/* Give the sockets their certificates, peers and hosts of `next`. If a file cannot be read, no
 * socket changes. After that, only listening again can fail: then clients' ports may have changed,
 * and workers' not. */
wpk_err wpk_service_reload_sockets(struct wpk_service *service, const struct wpk_config *next,
                                   struct wpk_diag *diag);

#endif
