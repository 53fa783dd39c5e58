/* SPDX-License-Identifier: Apache-2.0 */
/* Steadiness: whether a worker's samples wait for a CPU, because its machine has other work or its
 * control group is throttled. A runner takes such samples again, so their share shows it first.
 *
 *     steady ──more than 5 % of 200 samples waited──▶ disturbed ──60 s──▶ steady, counted anew
 *
 * A disturbed worker only builds, if it can and while another worker of its worker class is steady.
 * The last one goes on timing: a job would else wait for ever on a machine that is always busy. */
#include "coordinator/state/effect.h"
#include "coordinator/state/worker.h"
#include "coordinator/state/worker_class.h"

#include <stdio.h>

static void add(struct wpk_steadiness *steadiness, const struct wpk_timing *timing)
{
    if (steadiness->sample_count > 2 * WPK_DISTURBED_SAMPLES) { /* the latest count most */
        steadiness->sample_count /= 2;
        steadiness->disturbed_count /= 2;
    }
    steadiness->sample_count += (uint32_t)(timing->sample_count + timing->disturbed_count);
    steadiness->disturbed_count += (uint32_t)timing->disturbed_count;
}

void wpk_steadiness_note(struct wpk_coordinator *c, struct wpk_worker *worker,
                         const struct wpk_result *result)
{
    struct wpk_steadiness *steadiness = &worker->steadiness;
    add(steadiness, &result->record.timing);
    for (uint32_t i = 0; i < result->timing_count; i++) {
        add(steadiness, &result->timing[i]);
    }
    if (steadiness->since_ns == 0 && steadiness->sample_count >= WPK_DISTURBED_SAMPLES &&
        steadiness->disturbed_count > WPK_DISTURBED_SHARE * steadiness->sample_count) {
        steadiness->since_ns = c->event->now_ns;
        wpk_effect_log(c, "worker_disturbed", "worker=%s samples=%u of=%u", worker->hello.name,
                       steadiness->disturbed_count, steadiness->sample_count);
    }
}

static void update(struct wpk_coordinator *c, struct wpk_worker *worker)
{
    bool only_builds = worker->steadiness.since_ns != 0 && worker->worker_class->steady_count > 0 &&
                       (worker->hello.roles & WPK_WORKER_BUILDS) != 0;
    if (only_builds != worker->steadiness.only_builds) {
        worker->steadiness.only_builds = only_builds;
        wpk_effect_log(c, only_builds ? "worker_only_builds" : "worker_runs_again", "worker=%s",
                       worker->hello.name);
        for (struct wpk_link *l = worker->worker_class->links; l != NULL;
             l = l->worker_class_next) {
            wpk_work_queue_mark(c, l->queue);
        }
    }
}

void wpk_steadiness_update(struct wpk_coordinator *c)
{
    for (uint32_t i = 0; i < c->worker_class_count; i++) {
        c->worker_classes[i]->steady_count = 0;
    }
    for (uint32_t i = 0; i < c->worker_count; i++) {
        struct wpk_steadiness *steadiness = &c->workers[i]->steadiness;
        uint64_t end_ns = steadiness->since_ns + WPK_DISTURBED_MS * UINT64_C(1000000);
        if (steadiness->since_ns != 0 && c->event->now_ns >= end_ns) {
            *steadiness = (struct wpk_steadiness){.only_builds = steadiness->only_builds};
        }
        c->workers[i]->worker_class->steady_count +=
            c->workers[i]->available && steadiness->since_ns == 0;
    }
    for (uint32_t i = 0; i < c->worker_count; i++) {
        update(c, c->workers[i]);
    }
}

bool wpk_steadiness_reason(const struct wpk_worker *worker, char out[WPK_REASON_MAX])
{
    snprintf(out, WPK_REASON_MAX, "its samples wait for a CPU, %u of the last %u%s",
             worker->steadiness.disturbed_count, worker->steadiness.sample_count,
             worker->steadiness.only_builds ? ": it only builds" : "");
    return worker->steadiness.since_ns != 0;
}
