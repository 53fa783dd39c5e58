/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/offer.h"

#include "coordinator/state/job.h"
#include "coordinator/state/state.h"
#include "coordinator/state/worker_class.h"
#include "search/back_end.h"

#include <stdio.h>
#include <string.h>

void wpk_offer_pinned(const struct wpk_job_op_state *op, char out[WPK_KEY_TEXT_MAX])
{
    static const char gene[] = WPK_BACK_END_GENE "=";
    const char *at = op->pins != NULL ? op->pins : "";
    while (*at != '\0' && strncmp(at, gene, strlen(gene)) != 0) {
        at += strcspn(at, ";");
        at += *at == ';';
    }
    at += *at != '\0' ? strlen(gene) : 0;
    snprintf(out, WPK_KEY_TEXT_MAX, "%.*s", (int)strcspn(at, ";"), at);
}

/* True if workers of the worker class may build for the job's searches in the timing class, which
 * has no back ends added. */
static bool builds_for(const struct wpk_worker_class *worker_class, const struct wpk_job_entry *job,
                       const char *class_text)
{
    unsigned roles = worker_class->hello.roles;
    if (worker_class->available_count == 0 || (roles & WPK_WORKER_BUILDS) == 0) {
        return false;
    }
    return (roles & WPK_WORKER_RUNS) == 0 ? wpk_worker_class_builds_for(worker_class, class_text)
                                          : strcmp(worker_class->timing->text, class_text) == 0 &&
                                                wpk_worker_class_suits(worker_class, job);
}

/* How many workers build by all of the list but its first entry. */
static uint32_t count_workers(const struct wpk_coordinator *c, const struct wpk_job_entry *job,
                              const char *class_text, const char *back_ends)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->worker_class_count; i++) {
        const struct wpk_worker_class *worker_class = c->worker_classes[i];
        bool offers = builds_for(worker_class, job, class_text) &&
                      wpk_worker_class_offers(worker_class, back_ends);
        count += offers ? worker_class->available_count : 0;
    }
    return count;
}

/* "+ENTRY" of the most workers, of equally many the first by name; "": nobody offers it. */
static void find_version(const struct wpk_coordinator *c, const struct wpk_job_entry *job,
                         const char *class_text, const char *name, char out[WPK_BACK_END_MAX + 1])
{
    uint32_t most = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < c->worker_class_count; i++) {
        const struct wpk_worker_class *worker_class = c->worker_classes[i];
        char list[WPK_KEY_TEXT_MAX], entry[WPK_BACK_END_MAX], added[WPK_BACK_END_MAX + 1];
        wpk_worker_class_list_back_ends(&worker_class->hello, list);
        if (list[0] == '\0' || !builds_for(worker_class, job, class_text) ||
            !wpk_back_ends_find(list + 1, name, entry)) {
            continue;
        }
        snprintf(added, sizeof added, "+%s", entry);
        uint32_t count = count_workers(c, job, class_text, added);
        if (count > most || (count == most && strcmp(added, out) < 0)) {
            most = count;
            memcpy(out, added, sizeof added);
        }
    }
}

bool wpk_offer_add(const struct wpk_coordinator *c, const struct wpk_job_op_state *op,
                   const char *class_text, char out[WPK_TIMING_CLASS_TEXT_MAX])
{
    char pinned[WPK_KEY_TEXT_MAX], added[WPK_KEY_TEXT_MAX] = "";
    wpk_offer_pinned(op, pinned);
    unsigned wanted = wpk_back_ends_read(pinned);
    bool any = strcmp(pinned, WPK_BACK_ENDS_ANY) == 0;
    uint32_t builders = any ? count_workers(c, op->job, class_text, "") : 0;
    for (int i = 1 + wpk_back_end_first(op->job->kind); wpk_back_end_name(i) != NULL; i++) {
        size_t used = strlen(added);
        char entry[WPK_BACK_END_MAX + 1] = "";
        if ((wanted & 1U << i) != 0) {
            find_version(c, op->job, class_text, wpk_back_end_name(i), entry);
        }
        if (any && count_workers(c, op->job, class_text, entry) < builders) {
            entry[0] = '\0';
        }
        snprintf(added + used, sizeof added - used, "%s", entry);
    }
    wpk_timing_class_add(class_text, added, out);
    return pinned[0] == '\0' || (wanted & 1U << wpk_back_end_first(op->job->kind)) != 0 ||
           added[0] != '\0';
}

bool wpk_offer_stands(const struct wpk_coordinator *c, const struct wpk_job_entry *job,
                      const char *class_text)
{
    char stripped[WPK_TIMING_CLASS_TEXT_MAX];
    const char *back_ends = wpk_timing_class_back_ends(class_text);
    wpk_timing_class_strip(class_text, stripped);
    return back_ends[strcspn(back_ends, "+;")] != '+' ||
           count_workers(c, job, stripped, back_ends) > 0;
}
