/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop of the daemons: signals, one timer, and a wake-up for other threads.
 *
 * All functions are called on the thread that runs the loop, except wpk_loop_wake(), which any
 * thread and any library's callback may call. The only file that knows libuv is loop.c. */
#ifndef WPK_COMMON_LOOP_H
#define WPK_COMMON_LOOP_H

#include "common/err.h"

#include <stdint.h>

#define WPK_LOOP_WATCHES_MAX 16 /* signals */

struct wpk_loop;

typedef void (*wpk_loop_fn)(void *user);

/*   owns    caller closes
 *   errors  WPK_ESYSTEM, WPK_ENOMEM */
wpk_err wpk_loop_open(struct wpk_loop **out, struct wpk_diag *diag);
/* Close the loop and its watches. Accepts NULL. */
void wpk_loop_close(struct wpk_loop *loop);

/* Run until wpk_loop_stop(); callbacks that became ready in the same turn are still called. */
void wpk_loop_run(struct wpk_loop *loop);
void wpk_loop_stop(struct wpk_loop *loop);

/* Call `fn` after wpk_loop_wake(): at least once after any number of wakes, and never without one.
 * Call this before the first thread that wakes the loop is started. */
void wpk_loop_on_wake(struct wpk_loop *loop, wpk_loop_fn fn, void *user);
void wpk_loop_wake(struct wpk_loop *loop);

/* Call `fn` at each signal.
 *
 *   errors  WPK_ENOSPC  WPK_LOOP_WATCHES_MAX reached; WPK_ESYSTEM
 */
wpk_err wpk_loop_on_signal(struct wpk_loop *loop, int signal_number, wpk_loop_fn fn, void *user);

/* Call `fn` once, `after_ms` from now; replaces an earlier setting. UINT64_MAX: never. */
void wpk_loop_set_timer(struct wpk_loop *loop, uint64_t after_ms, wpk_loop_fn fn, void *user);

#endif
