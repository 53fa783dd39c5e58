/* SPDX-License-Identifier: Apache-2.0 */
/* The gauges, against the state, the files and the clock that they show. */
#include "coordinator/service_state.h"
#include "tests/fixture.h"

#include "common/metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cmocka.h>

static int64_t of(enum wpk_gauge gauge, enum wpk_label label, const char *value)
{
    return wpk_metric_gauged(gauge, wpk_metric_value(label, value));
}

static int64_t gauge(enum wpk_gauge gauge)
{
    return wpk_metric_gauged(gauge, 0);
}

static void set_up_service(struct wpk_fixture *f, struct wpk_config *config,
                           struct wpk_service *service)
{
    wpk_fixture_start(f);
    *config = (struct wpk_config){.data_dir = f->directory};
    *service = (struct wpk_service){.config = config, .executor = f->executor};
    service->index = wpk_index_new();
}

static void the_state_is_shown(void **state)
{
    struct wpk_fixture *f = *state;
    struct wpk_config config;
    struct wpk_service service;
    set_up_service(f, &config, &service);
    wpk_fixture_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB("5"));
    int busy = wpk_fixture_join(f, "busy", WPK_WORKER_ROLES_ALL);
    wpk_fixture_join(f, "idle", WPK_WORKER_ROLES_ALL);
    wpk_fixture_join(f, "idle too", WPK_WORKER_ROLES_ALL);
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "away%d", i);
        wpk_fixture_join(f, name, WPK_WORKER_ROLES_ALL);
    }
    wpk_fixture_request(f, "POST", "/v1/workers:quarantine", "{\"name\":\"away0\"}");
    wpk_fixture_request(f, "POST", "/v1/workers:quarantine", "{\"name\":\"away1\"}");
    wpk_fixture_request(f, "POST", "/v1/workers:drain", "{\"name\":\"away2\"}");
    wpk_service_measure(&service);
    const struct wpk_coordinator *coordinator = wpk_executor_coordinator(f->executor);
    const char *device = coordinator->searches[0]->key.device_class;
    int64_t depth = of(WPK_GAUGE_QUEUE_DEPTH, WPK_LABEL_DEVICE, device);
    assert_true(depth > 0);
    assert_int_equal(of(WPK_GAUGE_WORKERS_WANTED, WPK_LABEL_DEVICE, "cpu"), 1);
    assert_int_equal(of(WPK_GAUGE_WORKERS_WANTED, WPK_LABEL_DEVICE, device), 0);
    assert_int_equal(of(WPK_GAUGE_WORKERS, WPK_LABEL_WORKER_STATE, "idle"), 3);
    assert_int_equal(wpk_fixture_poll(f, busy, 1), 1);
    wpk_service_measure(&service);
    assert_int_equal(of(WPK_GAUGE_QUEUE_DEPTH, WPK_LABEL_DEVICE, device), depth - 1);
    assert_int_equal(of(WPK_GAUGE_JOBS, WPK_LABEL_JOB_STATE, "running"), 1);
    assert_int_equal(of(WPK_GAUGE_WORKERS, WPK_LABEL_WORKER_STATE, "idle"), 2);
    assert_int_equal(of(WPK_GAUGE_WORKERS, WPK_LABEL_WORKER_STATE, "busy"), 1);
    assert_int_equal(of(WPK_GAUGE_WORKERS, WPK_LABEL_WORKER_STATE, "draining"), 1);
    assert_int_equal(of(WPK_GAUGE_WORKERS, WPK_LABEL_WORKER_STATE, "quarantined"), 2);
    assert_int_equal(gauge(WPK_GAUGE_LEASES_HELD), 1);
    assert_int_equal(gauge(WPK_GAUGE_SEARCHES), 1);
    assert_int_equal(gauge(WPK_GAUGE_WORKER_OUTLIERS), 0);
    assert_int_equal(gauge(WPK_GAUGE_WORKERS_THROTTLED), 0);
    assert_int_equal(gauge(WPK_GAUGE_WORKERS_DISTURBED), 0);
    ((struct wpk_worker *)coordinator->workers[1])->throttled_count = 3;
    ((struct wpk_worker *)coordinator->workers[0])->is_outlier = true;
    ((struct wpk_worker *)coordinator->workers[2])->steadiness.since_ns = 1;
    wpk_service_measure(&service);
    assert_int_equal(gauge(WPK_GAUGE_WORKERS_DISTURBED), 1);
    assert_int_equal(gauge(WPK_GAUGE_WORKER_OUTLIERS), 1);
    assert_int_equal(gauge(WPK_GAUGE_WORKERS_THROTTLED), 1);
    wpk_index_free(service.index);
}

static void the_disk_is_shown(void **state)
{
    struct wpk_fixture *f = *state;
    struct wpk_config config;
    struct wpk_service service;
    struct stat history;
    struct statvfs disk;
    char path[96];
    set_up_service(f, &config, &service);
    wpk_service_measure(&service);
    snprintf(path, sizeof path, "%s/history.db", f->directory);
    assert_int_equal(stat(path, &history), 0);
    assert_true(gauge(WPK_GAUGE_STORE_BYTES) >= history.st_size);
    assert_int_equal(statvfs(f->directory, &disk), 0);
    int64_t room = (int64_t)disk.f_bavail * (int64_t)disk.f_frsize;
    assert_true(gauge(WPK_GAUGE_STORE_FREE_BYTES) > room / 2); /* others write to that disk, too */
    assert_true(gauge(WPK_GAUGE_STORE_FREE_BYTES) < room * 2);
    service.advanced_ns -= 7 * WPK_NS_PER_S; /* nothing has been committed for so long */
    wpk_service_measure(&service);
    assert_true(gauge(WPK_GAUGE_STORE_STALLED) >= 7);
    service.commits++;
    wpk_service_measure(&service);
    assert_int_equal(gauge(WPK_GAUGE_STORE_STALLED), 0);
    wpk_index_free(service.index);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, wpk_fixture_set_up, wpk_fixture_tear_down)
    const struct CMUnitTest tests[] = {
        CASE(the_state_is_shown),
        CASE(the_disk_is_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
