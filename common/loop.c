/* SPDX-License-Identifier: Apache-2.0 */
/* The few functions of libuv that a daemon needs. Every handle lies in struct wpk_loop, so that
 * nothing is allocated after opening. Closing runs the loop once more, because libuv releases a
 * handle only inside the loop. */
#include "common/loop.h"

#include "common/fs.h"

#include <stdlib.h>
#include <uv.h>

struct watch {
    uv_signal_t signal;
    wpk_loop_fn fn;
    void *user;
};

struct wpk_loop {
    uv_loop_t uv;
    uv_async_t wake;
    uv_timer_t timer;
    wpk_loop_fn wake_fn;
    void *wake_user;
    wpk_loop_fn timer_fn;
    void *timer_user;
    struct watch watches[WPK_LOOP_WATCHES_MAX];
    int watch_count;
};

static void on_wake(uv_async_t *async)
{
    struct wpk_loop *loop = async->data;
    if (loop->wake_fn != NULL) {
        loop->wake_fn(loop->wake_user);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct wpk_loop *loop = timer->data;
    loop->timer_fn(loop->timer_user);
}

static void on_signal(uv_signal_t *handle, int signal_number WPK_UNUSED)
{
    struct watch *watch = handle->data;
    watch->fn(watch->user);
}

static wpk_err fail(int uv_code, const char *what, struct wpk_diag *diag)
{
    wpk_diag_set(diag, "%s: %s%s", what, uv_strerror(uv_code), wpk_fs_advice(-uv_code));
    return uv_code == UV_ENOMEM ? WPK_ENOMEM : WPK_ESYSTEM;
}

wpk_err wpk_loop_open(struct wpk_loop **out, struct wpk_diag *diag)
{
    struct wpk_loop *loop = calloc(1, sizeof *loop);
    if (loop == NULL) {
        return WPK_ENOMEM;
    }
    int code = uv_loop_init(&loop->uv);
    if (code != 0) {
        free(loop);
        return fail(code, "event loop", diag);
    }
    code = uv_timer_init(&loop->uv, &loop->timer);
    WPK_ASSERT(code == 0); /* it only fills the struct */
    loop->timer.data = loop;
    code = uv_async_init(&loop->uv, &loop->wake, on_wake);
    if (code != 0) {
        uv_close((uv_handle_t *)&loop->timer, NULL);
        uv_run(&loop->uv, UV_RUN_DEFAULT);
        uv_loop_close(&loop->uv);
        free(loop);
        return fail(code, "event loop", diag);
    }
    loop->wake.data = loop;
    *out = loop;
    return WPK_OK;
}

void wpk_loop_close(struct wpk_loop *loop)
{
    if (loop == NULL) {
        return;
    }
    for (int i = 0; i < loop->watch_count; i++) {
        uv_close((uv_handle_t *)&loop->watches[i].signal, NULL);
    }
    uv_close((uv_handle_t *)&loop->timer, NULL);
    uv_close((uv_handle_t *)&loop->wake, NULL);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    int code = uv_loop_close(&loop->uv);
    WPK_ASSERT(code == 0);
    free(loop);
}

void wpk_loop_run(struct wpk_loop *loop)
{
    uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void wpk_loop_stop(struct wpk_loop *loop)
{
    uv_stop(&loop->uv);
}

void wpk_loop_on_wake(struct wpk_loop *loop, wpk_loop_fn fn, void *user)
{
    loop->wake_fn = fn;
    loop->wake_user = user;
}

void wpk_loop_wake(struct wpk_loop *loop)
{
    /* Fails only on a handle of another kind. */
    int code = uv_async_send(&loop->wake);
    WPK_ASSERT(code == 0);
}

wpk_err wpk_loop_on_signal(struct wpk_loop *loop, int signal_number, wpk_loop_fn fn, void *user)
{
    WPK_ASSERT(fn != NULL);
    if (loop->watch_count == WPK_LOOP_WATCHES_MAX) {
        return WPK_ENOSPC;
    }
    struct watch *watch = &loop->watches[loop->watch_count];
    if (uv_signal_init(&loop->uv, &watch->signal) != 0) {
        return WPK_ESYSTEM;
    }
    loop->watch_count++; /* libuv holds its handle */
    watch->fn = fn;
    watch->user = user;
    watch->signal.data = watch;
    return uv_signal_start(&watch->signal, on_signal, signal_number) == 0 ? WPK_OK : WPK_ESYSTEM;
}

void wpk_loop_set_timer(struct wpk_loop *loop, uint64_t after_ms, wpk_loop_fn fn, void *user)
{
    if (after_ms == UINT64_MAX) {
        uv_timer_stop(&loop->timer);
        return;
    }
    WPK_ASSERT(fn != NULL);
    loop->timer_fn = fn;
    loop->timer_user = user;
    /* libuv counts from the start of the turn, which a long call may have left behind. */
    uv_update_time(&loop->uv);
    uv_timer_start(&loop->timer, on_timer, after_ms, 0);
}
