/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/worker.h"

#include "coordinator/state/effect.h"
#include "coordinator/state/model.h"
#include "coordinator/state/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum direction { FASTER, EQUAL, SLOWER, DIRECTIONS };

static enum direction direction_of(double ratio)
{
    return ratio >= WPK_OUTLIER_FACTOR         ? SLOWER
           : ratio <= 1.0 / WPK_OUTLIER_FACTOR ? FASTER
                                               : EQUAL;
}

static uint32_t kept(const struct wpk_comparisons *all)
{
    return all->count < WPK_COMPARISONS_MAX ? all->count : WPK_COMPARISONS_MAX;
}

/* ---- what is remembered */

static struct wpk_comparison *slot_for(struct wpk_comparisons *all, uint64_t device,
                                       uint64_t problem, bool *known)
{
    for (uint32_t i = 0; i < kept(all); i++) {
        if (all->items[i].device == device && all->items[i].problem == problem) {
            *known = true;
            return &all->items[i];
        }
    }
    *known = false;
    return &all->items[all->count++ % WPK_COMPARISONS_MAX];
}

static void remember(struct wpk_worker *worker, uint64_t device, uint64_t problem, double ratio)
{
    bool known;
    if (worker->comparisons == NULL) {
        worker->comparisons = WPK_DEMAND(calloc(1, sizeof *worker->comparisons));
    }
    struct wpk_comparison *slot = slot_for(worker->comparisons, device, problem, &known);
    if (!known || fabs(log(ratio)) < fabs(log(slot->ratio))) {
        *slot = (struct wpk_comparison){.device = device, .problem = problem, .ratio = ratio};
    }
}

/* ---- what it comes to */

struct verdict {
    bool is_outlier;
    uint32_t others;
    uint32_t problems;
    double ratio; /* the one of theirs that is nearest to 1 */
};

/* How all times of that device compare; EQUAL if some are. */
static enum direction of_device(const struct wpk_comparisons *all, uint64_t device)
{
    enum direction found = DIRECTIONS;
    for (uint32_t i = 0; i < kept(all); i++) {
        enum direction direction = direction_of(all->items[i].ratio);
        if (all->items[i].device == device) {
            found = found == DIRECTIONS || found == direction ? direction : EQUAL;
        }
    }
    return found;
}

static bool is_first(const struct wpk_comparisons *all, uint32_t at, bool by_device)
{
    for (uint32_t i = 0; i < at; i++) {
        if (by_device ? all->items[i].device == all->items[at].device
                      : all->items[i].problem == all->items[at].problem) {
            return false;
        }
    }
    return true;
}

static struct verdict judge_direction(const struct wpk_comparisons *all, enum direction direction)
{
    struct wpk_comparisons differing = {0};
    struct verdict verdict = {0};
    uint32_t devices = 0;
    for (uint32_t i = 0; i < kept(all); i++) {
        devices += is_first(all, i, true);
        if (of_device(all, all->items[i].device) == direction) {
            differing.items[differing.count++] = all->items[i];
        }
    }
    for (uint32_t i = 0; i < differing.count; i++) {
        double ratio = differing.items[i].ratio;
        verdict.others += is_first(&differing, i, true);
        verdict.problems += is_first(&differing, i, false);
        verdict.ratio =
            i == 0 || fabs(log(ratio)) < fabs(log(verdict.ratio)) ? ratio : verdict.ratio;
    }
    verdict.is_outlier = verdict.others >= WPK_OUTLIER_OTHERS &&
                         verdict.problems >= WPK_OUTLIER_PROBLEMS &&
                         3 * verdict.others > 2 * devices;
    return verdict;
}

static struct verdict judge(const struct wpk_worker *worker)
{
    struct verdict verdict = {0};
    if (worker->comparisons != NULL) {
        verdict = judge_direction(worker->comparisons, SLOWER);
        if (!verdict.is_outlier) {
            verdict = judge_direction(worker->comparisons, FASTER);
        }
    }
    return verdict;
}

bool wpk_outlier_reason(const struct wpk_worker *worker, char out[WPK_REASON_MAX])
{
    struct verdict verdict = judge(worker);
    out[0] = '\0';
    if (verdict.is_outlier) {
        snprintf(out, WPK_REASON_MAX,
                 "its times are %.2g of those of %u other workers of its class, for %u operators",
                 verdict.ratio, verdict.others, verdict.problems);
    }
    return verdict.is_outlier;
}

static void judge_again(struct wpk_coordinator *c, struct wpk_worker *worker)
{
    char reason[WPK_REASON_MAX];
    bool is_outlier = wpk_outlier_reason(worker, reason);
    if (is_outlier && !worker->is_outlier) {
        wpk_effect_warn(c, "worker_outlier", "worker=%s device=\"%s\" reason=\"%s\"",
                        worker->hello.name, worker->device_class, reason);
    } else if (!is_outlier && worker->is_outlier) {
        wpk_effect_log(c, "worker_no_outlier", "worker=%s", worker->hello.name);
    }
    worker->is_outlier = is_outlier;
}

void wpk_outlier_compare(struct wpk_coordinator *c, const struct wpk_search *search,
                         uint64_t before_by, uint64_t before_ns, const struct wpk_worker *worker,
                         uint64_t ns)
{
    struct wpk_worker *other = wpk_table_get(&c->workers_by_name, before_by);
    struct wpk_worker *own = wpk_table_get(&c->workers_by_session, worker->session);
    if (other == NULL || own == NULL || other->device_hash == own->device_hash ||
        other->worker_class->timing != own->worker_class->timing || before_ns == 0 || ns == 0) {
        return;
    }
    double ratio = (double)ns / (double)before_ns;
    remember(own, other->device_hash, search->problem_id, ratio);
    remember(other, own->device_hash, search->problem_id, 1 / ratio);
    judge_again(c, own);
    judge_again(c, other);
}
