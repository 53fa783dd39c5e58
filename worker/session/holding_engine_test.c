/* SPDX-License-Identifier: Apache-2.0 */
/* A lease whose trial waits for the device: a real engine and a real lock, and a fake clock. */
#include "tests/clock_fake.h"
#include "tests/engine_bench.h"
#include "worker/engine/engine_state.h"
#include "worker/session/holding.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#define LEASE 77

/* In the engine as a trial that goes well. */
static void take_in_trial(struct engine_bench *bench, struct wpk_holding *holding)
{
    struct wpk_message_op op = {.text = bench_op, .layouts = "fixed"};
    struct wpk_work work = {.id = {1, WPK_WORK_TRIAL, 0},
                            .attempt = 1,
                            .lease = LEASE,
                            .provider = "halide-cpu",
                            .candidate = "a=b"};
    struct wpk_message message = {
        .kind = WPK_MESSAGE_WORK, .ops = &op, .op_count = 1, .work = &work, .work_count = 1};
    wpk_holding_take_in(holding, &message);
    holding->items[0].standing = WPK_HOLDING_IN_ENGINE;
    bench_put(bench, holding->items[0].order, "good");
}

static void advance(struct engine_bench *bench, struct wpk_holding *holding)
{
    uint64_t next_ms;
    bench_step(bench);
    assert_int_equal(wpk_holding_advance(holding, &next_ms), WPK_OK);
}

static uint32_t count_named(const struct wpk_holding *holding)
{
    wpk_work_id ids[WPK_HOLDING_MAX];
    return wpk_holding_ids(holding, false, ids);
}

/* For 60 seconds the lease is held. Then polls do not name it, so that wpkd takes it back without
 * blame; here it is timed when the device is free. */
static void a_lease_waits_a_minute_for_the_device(void **state)
{
    struct engine_bench *bench = *state;
    struct wpk_clock_fake fake;
    struct wpk_device_lock other;
    struct wpk_holding *holding;
    struct wpk_result results[WPK_WORK_MAX];
    wpk_clock_fake_init(&fake, wpk_clock_ns(), 0);
    struct wpk_holding_options options = {
        .engine = bench->engine, .work_dir = bench->directory, .clock = &fake.clock};
    holding = wpk_holding_new(&options);
    wpk_device_lock_init(&other, "cpu");
    while (wpk_device_lock_take(&other) != WPK_OK) {
        usleep(1000); /* a worker is at work here */
    }
    take_in_trial(bench, holding);
    while (wpk_engine_device_wanted_ns(bench->engine) == 0) {
        advance(bench, holding);
    }
    fake.now_ns = wpk_engine_device_wanted_ns(bench->engine) + 59 * WPK_NS_PER_S;
    advance(bench, holding);
    assert_false(holding->blocked);
    assert_int_equal(count_named(holding), 1);
    assert_int_equal(wpk_holding_running(holding), LEASE);
    wpk_clock_fake_advance(&fake, WPK_NS_PER_S - 1);
    advance(bench, holding);
    assert_int_equal(count_named(holding), 1);
    wpk_clock_fake_advance(&fake, 1);
    advance(bench, holding);
    assert_true(holding->blocked);
    assert_int_equal(count_named(holding), 0);
    assert_int_equal(wpk_holding_running(holding), 0);
    assert_int_equal(wpk_holding_results(holding, results, WPK_WORK_MAX), 0);
    wpk_device_lock_give(&other);
    while (wpk_holding_unfinished(holding) > 0) {
        advance(bench, holding);
    }
    assert_false(holding->blocked);
    assert_int_equal(holding->items[0].record.outcome, WPK_OUTCOME_OK);
    wpk_holding_free(holding);
}

int main(int argc, char **argv)
{
    int served = bench_serve(argc, argv);
    if (served >= 0) {
        return served;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_lease_waits_a_minute_for_the_device, bench_open,
                                        bench_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
