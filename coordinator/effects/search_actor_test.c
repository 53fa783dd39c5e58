/* SPDX-License-Identifier: Apache-2.0 */
/* Search actors: the space that a search's key gives, and snapshots. */
#include "coordinator/effects/search_actor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* The actor of a convolution, which fast Winograd tiles compute less accurately than its sums. */
static struct wpk_search_actor *new_actor(const char *accuracy)
{
    struct wpk_search_spec spec = {
        .key = {.layouts = "fixed",
                .threads = 1,
                .strategy = "random",
                .seed = 1,
                .providers = "halide-cpu"},
        .op = (char *)"input X f32[1,16,14,14]\nconstant W f32[16,16,3,3]\n"
                      "output Y f32[1,16,14,14]\n"
                      "Y[n,k,y,x] = sum(c:16,r:3,s:3) X[n,c,y+r-1,x+s-1] * W[k,c,r,s]\n",
        .device = {.kind = "cpu",
                   .model = "model",
                   .isa = WPK_ISA_AVX2,
                   .core_count = 2,
                   .l1_bytes = 32768,
                   .l2_bytes = 1 << 20,
                   .l3_bytes = 1 << 25,
                   .vector_bytes = 32,
                   .vector_registers = 16},
    };
    struct wpk_history_log log = {0};
    struct wpk_search_actor *actor = NULL;
    struct wpk_diag diag = {0};
    snprintf(spec.key.accuracy, sizeof spec.key.accuracy, "%s", accuracy);
    if (wpk_search_actor_new(&spec, &log, 0, &actor, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
    return actor;
}

static double size_log2_of(const char *accuracy)
{
    struct wpk_search_actor *actor = new_actor(accuracy);
    double size_log2 = wpk_search_actor_size_log2(actor);
    wpk_search_actor_free(actor);
    return size_log2;
}

static void an_accuracy_class_prunes_the_space(void **state)
{
    (void)state;
    assert_true(size_log2_of("strict") < size_log2_of("fast"));
}

/* A snapshot that does not fit is none: the next one has all tells. */
static void a_snapshot_that_does_not_fit(void **state)
{
    (void)state;
    struct wpk_search_actor *actor = new_actor("standard");
    struct wpk_work_item item = {.trial = {.outcome = WPK_OUTCOME_RUN_CRASH}};
    struct wpk_history_snapshot snapshot;
    struct wpk_buf small = {.size_max = 4};
    struct wpk_buf text = {0};
    uint32_t filled = 0;
    assert_int_equal(wpk_search_actor_ask(actor, 1, &item.text, &filled), WPK_OK);
    assert_int_equal(filled, 1);
    wpk_search_actor_tell(actor, 0, &item);
    assert_false(wpk_search_actor_save(actor, 2, &snapshot, &text)); /* one tell is too few */
    assert_false(wpk_search_actor_save(actor, 1, &snapshot, &small));
    assert_true(wpk_search_actor_save(actor, 1, &snapshot, &text));
    assert_int_equal(snapshot.told_count, 1);
    assert_int_equal(snapshot.failed_count, 1);
    assert_memory_equal(snapshot.text, "1 ", 2); /* asks so far; then the strategy's text */
    wpk_buf_reset(&text);
    assert_false(wpk_search_actor_save(actor, 1, &snapshot, &text)); /* nothing is new */
    wpk_buf_fini(&text);
    free(item.text);
    wpk_search_actor_free(actor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_accuracy_class_prunes_the_space),
        cmocka_unit_test(a_snapshot_that_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
