/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop of the daemons: signals, one timer, and one way in for threads.
 *
 * Everything is called on the thread that runs the loop, except wpk_loop_wake(), which any thread
 * may call, a library's callback too. The only file that knows libuv is loop.c. */
#ifndef WPK_COMMON_LOOP_H
#define WPK_COMMON_LOOP_H

#include "common/err.h"

#include <stdint.h>

#define WPK_LOOP_WATCHES_MAX 16 /* signals */

struct wpk_loop;

typedef void (*wpk_loop_fn)(void *user);

/*   owns    caller closes
 *   errors  WPK_ESYSTEM, WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_loop_open(struct wpk_loop **out, struct wpk_diag *diag);
/* Forgets every watch. Accepts NULL. */
void wpk_loop_close(struct wpk_loop *loop);

/* Serve until wpk_loop_stop(); what became ready in the same turn is still called. */
void wpk_loop_run(struct wpk_loop *loop);
void wpk_loop_stop(struct wpk_loop *loop);

/* Call `fn` after wpk_loop_wake(): once or more for any number of wakes, never for none. Set before
 * the first thread that wakes is started. */
void wpk_loop_on_wake(struct wpk_loop *loop, wpk_loop_fn fn, void *user);
void wpk_loop_wake(struct wpk_loop *loop);

/* Call `fn` at each signal.
 *
 *   errors  WPK_ENOSPC  WPK_LOOP_WATCHES_MAX reached; WPK_ESYSTEM
 */
WPK_MUST_CHECK wpk_err wpk_loop_on_signal(struct wpk_loop *loop, int signal_number, wpk_loop_fn fn,
                                          void *user);

/* Call `fn` once, `after_ms` from now; replaces what was set before. UINT64_MAX: never. */
void wpk_loop_set_timer(struct wpk_loop *loop, uint64_t after_ms, wpk_loop_fn fn, void *user);

#endif
