/* SPDX-License-Identifier: Apache-2.0 */
/* A wpkd with a log follows it until it can claim it, and only then opens sockets: clients and
 * workers go on to the next of their addresses. */
#include "coordinator/service_state.h"

#include "coordinator/store/keeper.h"

#include <signal.h>

#define POLL_MS 100
#define PATIENCE_NS ((WPK_KEEPER_STALE_S + 2) * WPK_NS_PER_S) /* of a wpkd that does not stand by */

/* One look, and a try. A holder that seems silent is believed only when PostgreSQL has answered
 * since `since_ns`: it may be PostgreSQL that was away. */
static wpk_err look(struct wpk_service *service, uint64_t since_ns, struct wpk_diag *diag)
{
    bool stale_too = wpk_clock_ns() - since_ns >= WPK_KEEPER_STALE_S * WPK_NS_PER_S;
    wpk_err err = wpk_keeper_follow(service->keeper, diag);
    if (err == WPK_ENOENT && service->config->standby) {
        wpk_diag_set(diag, "the log is new: a wpkd without --standby begins it");
        return err;
    }
    return err == WPK_OK || err == WPK_ENOENT
               ? wpk_keeper_claim(service->keeper, stale_too, &service->store, diag)
               : err;
}

static wpk_err wait_for_claim(struct wpk_service *service, const sigset_t *signals,
                              struct wpk_diag *diag)
{
    const struct timespec pause = {.tv_nsec = POLL_MS * (long)WPK_NS_PER_MS};
    bool waits = service->config->standby;
    uint64_t began_ns = wpk_clock_ns();
    uint64_t since_ns = began_ns;
    wpk_err before = WPK_OK;
    while (!service->draining) {
        struct wpk_diag why = {0};
        wpk_err err = look(service, since_ns, &why);
        bool passes = err == WPK_EBUSY || (waits && (err == WPK_EIO || err == WPK_ENOENT));
        if (!passes || (!waits && wpk_clock_ns() - began_ns > PATIENCE_NS)) {
            *diag = why;
            return err;
        }
        since_ns = err == WPK_EIO ? wpk_clock_ns() : since_ns;
        wpk_notify_send(&service->notify, "WATCHDOG=1");
        if (err != before) {
            before = err;
            wpk_log(WPK_LOG_INFO, "standing_by", "reason=\"%s\"", why.text);
            wpk_notify_send(&service->notify, "READY=1\nSTATUS=standing by: %.200s", why.text);
        }
        int signal = sigtimedwait(signals, NULL, &pause);
        service->draining = signal == SIGTERM || signal == SIGINT;
    }
    return WPK_ECLOSED;
}

wpk_err wpk_standby_run(struct wpk_service *service, struct wpk_diag *diag)
{
    sigset_t signals;
    sigset_t before;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP); /* the file is read when it serves */
    pthread_sigmask(SIG_BLOCK, &signals, &before);
    wpk_err err = wpk_keeper_open(service->config->log, service->config->data_dir,
                                  wpk_sign_public_key(service->sign), &service->keeper, diag);
    err = err == WPK_OK ? wait_for_claim(service, &signals, diag) : err;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err;
}
