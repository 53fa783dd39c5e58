/* SPDX-License-Identifier: Apache-2.0 */
/* Gauges, which are set once a second. All other metrics are counted as things happen. */
#include "coordinator/service_state.h"

#include "common/metrics.h"
#include "coordinator/state/demand.h"

#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

static void set_states(const struct wpk_coordinator *coordinator)
{
    struct wpk_coordinator_counts counts;
    wpk_coordinator_count(coordinator, &counts);
    for (int i = 0; i < WPK_JOB_STATE_COUNT; i++) {
        bool ended = i == WPK_JOB_DONE || i == WPK_JOB_FAILED || i == WPK_JOB_CANCELLED;
        if (!ended) { /* those are counted when they end: the state forgets them */
            unsigned value =
                wpk_metric_value(WPK_LABEL_JOB_STATE, wpk_job_state_name((enum wpk_job_state)i));
            wpk_metric_set(WPK_GAUGE_JOBS, value, counts.jobs[i]);
        }
    }
    const struct {
        const char *state;
        uint32_t count;
    } workers[] = {{"idle", counts.workers_idle},
                   {"busy", counts.workers_busy},
                   {"draining", counts.workers_draining},
                   {"quarantined", counts.workers_quarantined}};
    for (size_t i = 0; i < sizeof workers / sizeof workers[0]; i++) {
        wpk_metric_set(WPK_GAUGE_WORKERS,
                       wpk_metric_value(WPK_LABEL_WORKER_STATE, workers[i].state),
                       workers[i].count);
    }
    wpk_metric_set(WPK_GAUGE_WORKER_OUTLIERS, 0, counts.workers_outliers);
    wpk_metric_set(WPK_GAUGE_WORKERS_THROTTLED, 0, counts.workers_throttled);
    wpk_metric_set(WPK_GAUGE_WORKERS_DISTURBED, 0, counts.workers_disturbed);
    wpk_metric_set(WPK_GAUGE_LEASES_HELD, 0, counts.leases);
    wpk_metric_set(WPK_GAUGE_SEARCHES, 0, counts.searches);
}

/* Set at once for each device, so that a scrape in between never sees a sum that is half made. */
static void set_queue(const struct wpk_coordinator *coordinator)
{
    int64_t depths[WPK_METRIC_VALUES_MAX] = {0};
    for (uint32_t i = 0; i < coordinator->search_count; i++) {
        const struct wpk_search *search = coordinator->searches[i];
        unsigned value = wpk_metric_value(WPK_LABEL_DEVICE, search->key.device_class);
        depths[value] += wpk_ready_depth(search);
    }
    for (unsigned i = 0; i < wpk_metric_value_count(WPK_LABEL_DEVICE); i++) {
        wpk_metric_set(WPK_GAUGE_QUEUE_DEPTH, i, depths[i]);
    }
}

static void set_wanted(const struct wpk_coordinator *coordinator)
{
    struct wpk_demand demands[WPK_JOBS_LIVE_MAX];
    int64_t workers[WPK_METRIC_VALUES_MAX] = {0};
    uint32_t count = wpk_demand_list(coordinator, wpk_clock_now_ns(wpk_clock_system()), demands);
    for (uint32_t i = 0; i < count; i++) {
        unsigned value = wpk_metric_value(WPK_LABEL_DEVICE, wpk_demand_device(&demands[i]));
        workers[value] += wpk_demand_workers(&demands[i]);
    }
    for (unsigned i = 0; i < wpk_metric_value_count(WPK_LABEL_DEVICE); i++) {
        wpk_metric_set(WPK_GAUGE_WORKERS_WANTED, i, workers[i]);
    }
}

static void set_sizes(const struct wpk_service *service)
{
    static const char *const files[] = {"history.db", "history.db-wal"};
    int64_t bytes = 0;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[4096];
        struct stat status;
        snprintf(path, sizeof path, "%s/%s", service->config->data_dir, files[i]);
        bytes += stat(path, &status) == 0 ? (int64_t)status.st_size : 0;
    }
    wpk_metric_set(WPK_GAUGE_STORE_BYTES, 0, bytes);
    struct statvfs disk;
    if (statvfs(service->config->data_dir, &disk) == 0) {
        wpk_metric_set(WPK_GAUGE_STORE_FREE_BYTES, 0,
                       (int64_t)disk.f_bavail * (int64_t)disk.f_frsize);
    }
}

/* A tick sends the writer something when it has nothing to do: one that works is never still. */
static void set_stalled(struct wpk_service *service)
{
    uint64_t now_ns = wpk_clock_now_ns(wpk_clock_system());
    if (service->commits != service->advanced_commits || service->advanced_ns == 0) {
        service->advanced_commits = service->commits;
        service->advanced_ns = now_ns;
    }
    wpk_metric_set(WPK_GAUGE_STORE_STALLED, 0,
                   (int64_t)((now_ns - service->advanced_ns) / WPK_NS_PER_S));
}

void wpk_service_measure(struct wpk_service *service)
{
    const struct wpk_coordinator *coordinator = wpk_executor_coordinator(service->executor);
    set_states(coordinator);
    set_queue(coordinator);
    set_wanted(coordinator);
    set_sizes(service);
    set_stalled(service);
    const struct wpk_index_version *version = wpk_index_acquire(service->index);
    wpk_metric_set(WPK_GAUGE_KERNELS, 0, version->count);
    wpk_index_release(service->index, version);
}

/* The weights and quotas of owners that the configuration names. */

static void set_owner(struct wpk_service *service, const struct wpk_config_owner *owner,
                      const char *name)
{
    struct wpk_event event = {
        .kind = WPK_EVENT_SET_OWNER,
        .owner = {.name = name, .weight = owner->weight, .jobs_max = owner->jobs_max}};
    wpk_executor_step(service->executor, &event);
}

void wpk_service_set_owners(void *user)
{
    struct wpk_service *service = user;
    const struct wpk_config *config = service->config;
    set_owner(service, &config->owner_default, "");
    for (uint32_t i = 0; i < config->owner_count; i++) {
        set_owner(service, &config->owners[i], config->owners[i].name);
    }
}

void wpk_service_forget_owners(struct wpk_service *service, const struct wpk_config *before)
{
    for (uint32_t i = 0; i < before->owner_count; i++) {
        set_owner(service, &service->config->owner_default, before->owners[i].name);
    }
}
