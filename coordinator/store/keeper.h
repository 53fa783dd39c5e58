/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper: a log in PostgreSQL (schema/log.sql) keeps all changes of the history, so that it
 * outlives its machine. One wpkd at a time is the holder and appends; others follow with copies.
 *
 *     following ── claim: the holder has handed over, or was not seen for 5 s ──▶ holding
 *     holding ── its epoch is not the log's any more ──▶ deposed: it appends nothing, for good
 *
 * Each claim makes the log's epoch grow, and an append compares its own under a lock of the site's
 * row: no clock but PostgreSQL's decides, and that only when somebody claims. After an append that
 * failed the entry may be there, or may yet come: a new epoch keeps it out, then it is looked for.
 *
 * Errors of all functions, besides those that they name:
 *     WPK_EIO        PostgreSQL cannot be asked: nothing is known of the outcome
 *     WPK_EMISMATCH  the history here and the log do not belong together, in words
 *     WPK_ECLOSED    deposed, or the log has an entry that was never acknowledged: start anew
 *     those of the store */
#ifndef WPK_COORDINATOR_STORE_KEEPER_H
#define WPK_COORDINATOR_STORE_KEEPER_H

#include "coordinator/store/store.h"

struct wpk_keeper;

#define WPK_KEEPER_STALE_S 5 /* as in log.sql */

/* PostgreSQL is not asked yet. `public_key`: of the signing key, which all machines share. Borrows
 * the texts.
 *   owns    caller closes, after a failure too
 *   errors  WPK_EUNSUPPORTED  no libpq, or SQLite cannot record changes */
wpk_err wpk_keeper_open(const char *uri, const char *data_dir, const char *public_key,
                        struct wpk_keeper **out, struct wpk_diag *diag);
/* Hand over, if it is the holder. The store is closed later. Accepts NULL. */
void wpk_keeper_close(struct wpk_keeper *keeper);

/* Bring the history and the artifacts here to the log's end.
 *   errors  WPK_ENOENT  the log is new */
wpk_err wpk_keeper_follow(struct wpk_keeper *keeper, struct wpk_diag *diag);
/* Become the holder, after following. `stale_too`: also of a holder that was not seen lately. A new
 * log begins with the history here, whatever that is.
 *   owns    the caller closes *out, after the keeper; its commits go to the log
 *   errors  WPK_EBUSY  another one holds it, in *diag; WPK_ECLOSED  claimed, and failed after it */
wpk_err wpk_keeper_claim(struct wpk_keeper *keeper, bool stale_too, struct wpk_store **out,
                         struct wpk_diag *diag);
#endif
