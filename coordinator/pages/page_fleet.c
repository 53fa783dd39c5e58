/* SPDX-License-Identifier: Apache-2.0 */
/* The fleet by class and state, the queue, the owners' shares, and health. Workers appear one by
 * one only where something is wrong with them. */
#include "coordinator/pages/pages.h"

#include "common/clock.h"
#include "common/format.h"
#include "common/markup.h"
#include "common/metrics.h"
#include "coordinator/state/claim.h"
#include "coordinator/state/coordinator.h"

#include <stdio.h>
#include <string.h>

#define ROWS_MAX 100
#define SILENT_NS (60 * (uint64_t)WPK_NS_PER_S)

static void put_classes(struct wpk_buf *out, const struct wpk_coordinator *c)
{
    wpk_page_begin_table(out, "classes", "Workers by class",
                         "Device|Environment|Roles|#Workers|#Can take work");
    for (uint32_t i = 0; i < c->worker_class_count && i < ROWS_MAX; i++) {
        const struct wpk_worker_class *class = c->worker_classes[i];
        unsigned roles = class->hello.roles;
        char device[2 * WPK_DEVICE_TEXT_MAX];
        snprintf(device, sizeof device, "%.*s", (int)strcspn(class->timing->text, "\n"),
                 class->timing->text);
        wpk_markup_raw(out, "<tr>");
        wpk_page_cell(out, device);
        wpk_page_cell(out, class->hello.environment);
        wpk_page_cell(out, (roles & WPK_WORKER_RUNS) == 0     ? "build"
                           : (roles & WPK_WORKER_BUILDS) == 0 ? "run"
                                                              : "build, run");
        wpk_page_cell_count(out, class->worker_count);
        wpk_page_cell_count(out, class->available_count);
        wpk_markup_raw(out, "</tr>\n");
    }
    wpk_page_end_table(out);
}

/* Why a worker is listed; NULL: nothing is wrong. */
static const char *fault_of(const struct wpk_worker *worker, uint64_t now_ns)
{
    if (worker->admin_state != WPK_ADMIN_STATE_NONE) {
        return worker->admin_reason != NULL ? worker->admin_reason : "";
    }
    return worker->failure[0] != '\0'         ? worker->failure
           : worker->stuck                    ? "its run takes too long"
           : worker->is_outlier               ? "its times are not those of its class"
           : worker->throttled_count > 0      ? "its GPU was throttled in its last result"
           : worker->steadiness.since_ns != 0 ? "its samples wait for a CPU"
           : worker->peer == 0                ? "its connection ended"
           : !worker->polling && now_ns > worker->heard_ns + SILENT_NS ? "it is silent"
                                                                       : NULL;
}

static void put_faults(struct wpk_buf *out, const struct wpk_coordinator *c, uint64_t now_ns)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->worker_count; i++) {
        const struct wpk_worker *worker = c->workers[i];
        const char *fault = fault_of(worker, now_ns);
        if (fault == NULL || count++ >= ROWS_MAX) {
            continue;
        }
        if (count == 1) {
            wpk_page_begin_table(out, "faults", "Workers with which something is wrong",
                                 "Worker|Device|Admin state|Reason");
        }
        wpk_markup_raw(out, "<tr>");
        wpk_page_cell(out, worker->hello.name);
        wpk_page_cell(out, worker->device_class);
        wpk_page_cell(out, wpk_admin_state_name(worker->admin_state));
        wpk_page_cell(out, fault);
        wpk_markup_raw(out, "</tr>\n");
    }
    if (count > 0) {
        wpk_page_end_table(out);
    } else {
        wpk_markup_raw(out, "<p class=\"good\">Nothing is wrong with any worker.</p>\n");
    }
    if (count > ROWS_MAX) {
        wpk_markup(out, "<p>And %u more: <code>wpkctl workers</code> lists all.</p>\n",
                   count - ROWS_MAX);
    }
}

static void put_queue(struct wpk_buf *out, const struct wpk_coordinator *c)
{
    uint32_t shown = 0;
    for (uint32_t i = 0; i < c->search_count && shown < ROWS_MAX; i++) {
        const struct wpk_search *search = c->searches[i];
        if (wpk_ready_depth(search) == 0 && search->leased_count == 0) {
            continue;
        }
        if (shown++ == 0) {
            wpk_page_begin_table(out, "queue", "Searches that want workers",
                                 "Operator|Device|Strategy|#Work items|#Leased");
        }
        wpk_markup_raw(out, "<tr>");
        wpk_page_cell(out, search->op != NULL ? search->op : "");
        wpk_page_cell(out, search->key.device_class);
        wpk_page_cell(out, search->key.strategy);
        wpk_page_cell_count(out, wpk_ready_depth(search));
        wpk_page_cell_count(out, search->leased_count);
        wpk_markup_raw(out, "</tr>\n");
    }
    if (shown > 0) {
        wpk_page_end_table(out);
    } else {
        wpk_markup_raw(out, "<p>No search wants a worker.</p>\n");
    }
}

static void put_owners(struct wpk_buf *out, const struct wpk_coordinator *c)
{
    wpk_page_begin_table(out, "owners", "Shares of owners",
                         "Owner|#Weight|#Jobs|#Jobs at most|#Device time");
    for (uint32_t i = 0; i < c->owner_count && i < ROWS_MAX; i++) {
        const struct wpk_owner *owner = c->owners[i];
        char time[WPK_FORMAT_SIZE];
        wpk_format_seconds((int64_t)(owner->device_ns / WPK_NS_PER_S), time);
        wpk_markup_raw(out, "<tr>");
        wpk_page_cell(out, owner->name);
        wpk_page_cell_count(out, owner->weight);
        wpk_page_cell_count(out, owner->job_count);
        wpk_page_cell_count(out, owner->jobs_max);
        wpk_markup(out, "<td class=\"n\" data-v=\"%llu\">%s</td></tr>\n",
                   (unsigned long long)owner->device_ns, time);
    }
    wpk_page_end_table(out);
}

static void put_health(struct wpk_buf *out, const struct wpk_coordinator *c)
{
    char text[96];
    int64_t stalled_s = wpk_metric_gauged(WPK_GAUGE_STORE_STALLED, 0);
    wpk_markup_raw(out, "<h2>Health</h2>\n<dl>\n");
    wpk_page_term(out, "Store",
                  wpk_metric_gauged(WPK_GAUGE_STORE_DEGRADED, 0) != 0
                      ? "cannot be written; nothing is leased"
                      : "is written");
    snprintf(text, sizeof text, "has not answered for %lld s", (long long)stalled_s);
    wpk_page_term(out, "Its answer", stalled_s > 1 ? text : "at once");
    snprintf(text, sizeof text, "%.1f MB, with %.1f GB left on its disk",
             (double)wpk_metric_gauged(WPK_GAUGE_STORE_BYTES, 0) / 1e6,
             (double)wpk_metric_gauged(WPK_GAUGE_STORE_FREE_BYTES, 0) / 1e9);
    wpk_page_term(out, "Size", text);
    snprintf(text, sizeof text, "%.1f MB%s",
             (double)wpk_metric_gauged(WPK_GAUGE_ARTIFACT_BYTES, 0) / 1e6,
             c->builds_held ? "; the quota is reached, nothing is built" : "");
    wpk_page_term(out, "Artifacts", text);
    wpk_page_term(out, "State", c->draining ? "about to end: nothing is leased" : "serving");
    wpk_page_term(out, "Version", WPK_VERSION);
    wpk_markup_raw(out, "</dl>\n");
}

void wpk_page_fleet(struct wpk_buf *out, const struct wpk_coordinator *coordinator, uint64_t now_ns)
{
    const struct wpk_page page = {.title = "Fleet", .here = "fleet", .is_live = true};
    struct wpk_coordinator_counts counts;
    wpk_coordinator_count(coordinator, &counts);
    wpk_page_begin(out, &page);
    wpk_markup(out,
               "<h1>Fleet</h1>\n<p>%u workers: %u idle, %u busy, %u draining, %u quarantined; %u "
               "leases, %u searches.</p>\n",
               coordinator->worker_count, counts.workers_idle, counts.workers_busy,
               counts.workers_draining, counts.workers_quarantined, counts.leases, counts.searches);
    put_faults(out, coordinator, now_ns);
    put_classes(out, coordinator);
    wpk_markup_raw(out, "<h2>Queue</h2>\n");
    put_queue(out, coordinator);
    put_owners(out, coordinator);
    put_health(out, coordinator);
    wpk_markup_raw(out, "<h2>Commands</h2>\n");
    wpk_page_command(out, "workers drain", "NAME", "lets a worker finish");
    wpk_page_command(out, "workers quarantine", "NAME", "believes a worker no more");
    wpk_page_end(out);
}
