/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold all the time, whatever goes wrong. */
#include "tests/sim/sim.h"

#include "coordinator/parts.h"
#include "coordinator/store.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* ---- leases */

/* Leased pieces among these; of the session, or of all if it is 0. */
static uint32_t count_leased(const struct wpk_piece *pieces, uint32_t count, uint64_t session)
{
    uint32_t leased = 0;
    for (uint32_t i = 0; i < count; i++) {
        leased += pieces[i].standing == WPK_STANDING_LEASED &&
                  (session == 0 || pieces[i].session == session);
    }
    return leased;
}

static uint32_t leased_of(const struct wpk_search *search, uint64_t session)
{
    uint32_t asks = 0;
    for (uint32_t n = search->told_count; n < search->ask_count; n++) {
        asks += count_leased(wpk_search_ask(search, n), 1, session);
    }
    return asks + count_leased(search->vendors, search->vendor_count, session) +
           count_leased(&search->final, 1, session) + count_leased(&search->verify, 1, session);
}

void wpk_sim_check_leases(const struct wpk_sim *sim)
{
    const struct wpk_coordinator *c = wpk_performer_coordinator(sim->performer);
    uint32_t held = 0;
    uint32_t leased = 0;
    for (uint32_t w = 0; w < c->worker_count; w++) {
        uint32_t count = 0;
        for (uint32_t s = 0; s < c->search_count; s++) {
            count += leased_of(c->searches[s], c->workers[w]->session);
        }
        assert_int_equal(count, c->workers[w]->lease_count);
        held += count;
    }
    for (uint32_t s = 0; s < c->search_count; s++) {
        uint32_t count = leased_of(c->searches[s], 0);
        assert_int_equal(count, c->searches[s]->leased_count);
        leased += count;
    }
    assert_int_equal(held, leased);
}

/* ---- what is acknowledged */

static void check_recorded(const struct wpk_sim *sim, wpk_work_id id)
{
    struct wpk_rows *rows = wpk_store_query(
        sim->store,
        "SELECT t.outcome <> 'ok' OR EXISTS (SELECT 1 FROM measurement m WHERE m.trial_id = t.id)"
        " FROM ask a JOIN trial t ON t.id = a.trial_id WHERE a.search_id = ? AND a.number = ?"
        " AND a.ended = 1",
        "ii", (int64_t)id.search, (int64_t)id.index);
    assert_true(wpk_rows_next(rows));
    assert_true(wpk_rows_int(rows, 0));
    wpk_rows_close(rows);
}

void wpk_sim_check_reply(const struct wpk_sim *sim, const void *frame, size_t size)
{
    struct wpk_message reply = {0};
    assert_int_equal(wpk_message_decode(frame, size, &reply, NULL), WPK_OK);
    if (reply.kind == WPK_MESSAGE_ACK && reply.ack_count > 0) {
        assert_non_null(sim->delivering);
        assert_int_equal(reply.ack_count, sim->delivering->result_count);
        for (uint32_t i = 0; i < reply.ack_count; i++) {
            wpk_work_id id = sim->delivering->results[i].id;
            if (reply.acks[i] != WPK_ACK_UNKNOWN && id.kind == WPK_WORK_TRIAL) {
                check_recorded(sim, id);
            }
        }
    }
    wpk_message_fini(&reply);
}
