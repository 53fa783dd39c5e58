/* SPDX-License-Identifier: Apache-2.0 */
/* Checks which kernel a problem serves, and which it served before. Each commit is read and
 * remembered, so the order of events is known without the clock, which may be set at any time. */
#include "tests/sim/sim.h"

#include "coordinator/store/store.h"

#include <stdio.h>

struct wpk_sim_kernel *wpk_sim_find_kernel(struct wpk_sim *sim, int64_t id)
{
    for (int i = 0; i < sim->kernel_count; i++) {
        if (sim->kernels[i].id == id) {
            return &sim->kernels[i];
        }
    }
    WPK_SIM_CHECK(sim, sim->kernel_count < WPK_SIM_KERNELS_MAX, "too many kernels");
    sim->kernels[sim->kernel_count] = (struct wpk_sim_kernel){.id = id};
    return &sim->kernels[sim->kernel_count++];
}

/* `sql` is a literal, with an id in it: is there a row? */
static bool exists(struct wpk_sim *sim, const char *sql, int64_t id)
{
    struct wpk_rows *rows = wpk_store_query(sim->store, sql, "i", id);
    bool there = wpk_rows_next(rows);
    wpk_rows_close(rows);
    return there;
}

/* True if a final timed the kernel's artifact, in the epoch in which the kernel was made. */
static bool was_timed(struct wpk_sim *sim, int64_t id)
{
    return exists(sim,
                  "SELECT 1 FROM kernel k JOIN trial t ON t.problem_id = k.problem_id AND"
                  " t.provider = k.provider AND t.artifact_sha256 = k.artifact_sha256 JOIN"
                  " measurement m ON m.trial_id = t.id WHERE m.kind = 'final' AND m.search_id ="
                  " k.search_id AND m.epoch = k.epoch AND k.id = ?",
                  id);
}

/* It is served for the first time: its time is later than those of all that were before it. */
static void note_served(struct wpk_sim *sim, struct wpk_sim_kernel *kernel)
{
    for (int i = 0; i < sim->kernel_count; i++) {
        const struct wpk_sim_kernel *other = &sim->kernels[i];
        bool rival = other->problem == kernel->problem && other != kernel && other->order > 0;
        WPK_SIM_CHECK(sim, !rival || other->served_at < kernel->served_at,
                      "kernel %lld is served after %lld, and it is not said so",
                      (long long)kernel->id, (long long)other->id);
    }
    kernel->order = ++sim->served_last;
}

void wpk_sim_look_at_kernels(struct wpk_sim *sim)
{
    int64_t fresh[WPK_SIM_KERNELS_MAX];
    int fresh_count = 0;
    struct wpk_rows *rows = wpk_store_query(
        sim->store, "SELECT id, problem_id, served_at, served FROM kernel ORDER BY id", "");
    while (wpk_rows_next(rows)) {
        int known = sim->kernel_count;
        struct wpk_sim_kernel *kernel = wpk_sim_find_kernel(sim, wpk_rows_int(rows, 0));
        if (sim->kernel_count > known) {
            fresh[fresh_count++] = kernel->id;
        }
        kernel->problem = wpk_rows_int(rows, 1);
        WPK_SIM_CHECK(sim, kernel->order == 0 || kernel->served_at == wpk_rows_int(rows, 2),
                      "when kernel %lld was served is another time now", (long long)kernel->id);
        kernel->served_at = wpk_rows_int(rows, 2);
        kernel->served = wpk_rows_int(rows, 3) != 0;
        WPK_SIM_CHECK(sim, kernel->served_at > 0 || !kernel->served,
                      "kernel %lld is served, and never was", (long long)kernel->id);
        if (kernel->served_at > 0 && kernel->order == 0) {
            note_served(sim, kernel);
        }
    }
    wpk_rows_close(rows);
    for (int i = 0; i < fresh_count; i++) {
        wpk_sim_find_kernel(sim, fresh[i])->timed = was_timed(sim, fresh[i]);
    }
}

/* ---- going back */

/* The kernel that its problem served before this one, and that was not revoked; NULL: none. */
static const struct wpk_sim_kernel *before(struct wpk_sim *sim, const struct wpk_sim_kernel *kernel)
{
    const struct wpk_sim_kernel *best = NULL;
    for (int i = 0; i < sim->kernel_count; i++) {
        const struct wpk_sim_kernel *other = &sim->kernels[i];
        if (other->problem == kernel->problem && other->order > 0 && other->order < kernel->order &&
            (best == NULL || other->order > best->order) &&
            exists(sim, "SELECT 1 FROM kernel WHERE id = ? AND revoked_at = 0", other->id)) {
            best = other;
        }
    }
    return best;
}

/* All of a problem that is rolled back is not the fastest any more, for good. */
void wpk_sim_roll_back(struct wpk_sim *sim)
{
    char path[64];
    if (sim->store == NULL || sim->degraded) {
        return;
    }
    struct wpk_sim_kernel *served = NULL;
    for (int i = 0; i < sim->kernel_count; i++) {
        bool later = served == NULL || sim->kernels[i].order > served->order;
        served = sim->kernels[i].served && later ? &sim->kernels[i] : served;
    }
    if (served == NULL) {
        return;
    }
    int known = sim->kernel_count;
    const struct wpk_sim_kernel *expected = before(sim, served);
    wpk_sim_say(sim, "user: rolls kernel %lld back", (long long)served->id);
    for (int i = 0; i < sim->kernel_count; i++) {
        sim->kernels[i].rolled_back |= sim->kernels[i].problem == served->problem;
    }
    snprintf(path, sizeof path, "/v1/kernels/k%lld:rollback", (long long)served->id);
    wpk_sim_post(sim, 0, path, "");
    if (sim->store == NULL || sim->degraded || sim->kernel_count > known) {
        return; /* it may have happened or not; or a search has ended with it */
    }
    WPK_SIM_CHECK(sim, expected == NULL ? served->served : expected->served,
                  "after kernel %lld it is not %lld that is served", (long long)served->id,
                  (long long)(expected == NULL ? served->id : expected->id));
    sim->rolled_back += expected != NULL;
}
