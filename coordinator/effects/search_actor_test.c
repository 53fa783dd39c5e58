/* SPDX-License-Identifier: Apache-2.0 */
/* Search actors: the space that a search's key gives, and snapshots. */
#include "coordinator/effects/search_actor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* So many allocations of texts until one fails; 0: none does. The link puts these before malloc and
 * strdup. */
static int allocations_left;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);

static bool fails(void)
{
    return allocations_left > 0 && --allocations_left == 0;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : __real_strdup(text);
}

/* The actor of a convolution, which fast Winograd tiles compute less accurately than its sums. */
static wpk_err make_actor_of(const char *strategy, const char *accuracy, const char *prior,
                             const struct wpk_history_log *log, struct wpk_search_actor **out,
                             struct wpk_diag *diag)
{
    struct wpk_search_spec spec = {
        .key = {.layouts = "fixed", .threads = 1, .seed = 1, .providers = "halide-cpu"},
        .op = (char *)"input X f32[1,16,14,14]\nconstant W f32[16,16,3,3]\n"
                      "output Y f32[1,16,14,14]\n"
                      "Y[n,k,y,x] = sum(c:16,r:3,s:3) X[n,c,y+r-1,x+s-1] * W[k,c,r,s]\n",
        .device = {.kind = "cpu",
                   .model = "model",
                   .cpu = {.flags = WPK_CPU_SET_AVX2,
                           .l1_bytes = 32768,
                           .l2_bytes = 1 << 20,
                           .l3_bytes = 1 << 25,
                           .vector_bytes = 32,
                           .vector_registers = 16},
                   .core_count = 2},
    };
    snprintf(spec.key.strategy, sizeof spec.key.strategy, "%s", strategy);
    snprintf(spec.key.accuracy, sizeof spec.key.accuracy, "%s", accuracy);
    snprintf(spec.key.prior, sizeof spec.key.prior, "%s", prior);
    return wpk_search_actor_new(&spec, log, 0, out, diag);
}

static wpk_err make_actor_with(const char *accuracy, const char *prior,
                               const struct wpk_history_log *log, struct wpk_search_actor **out,
                               struct wpk_diag *diag)
{
    return make_actor_of("random", accuracy, prior, log, out, diag);
}

static wpk_err make_actor(const char *accuracy, const struct wpk_history_log *log,
                          struct wpk_search_actor **out)
{
    struct wpk_diag diag = {0};
    return make_actor_with(accuracy, "", log, out, &diag);
}

static struct wpk_search_actor *new_actor(const char *accuracy)
{
    const struct wpk_history_log log = {0};
    struct wpk_search_actor *actor = NULL;
    assert_int_equal(make_actor(accuracy, &log, &actor), WPK_OK);
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

/* Of the texts of other shapes those that cannot be one here are left out. */
static void a_search_begins_with_other_shapes(void **state)
{
    (void)state;
    struct wpk_history_log log = {.relative_count = 2, .twin_count = 2};
    struct wpk_search_actor *random = new_actor("standard"), *nearest = NULL;
    struct wpk_diag diag = {0};
    struct wpk_work_item drawn = {0}, asked = {0};
    uint32_t filled = 0;
    assert_int_equal(wpk_search_actor_ask(random, 1, &drawn, &filled), WPK_OK);
    log.relatives[0] = (char *)"cpu-0 algorithm=direct layout=asis";
    log.relatives[1] = drawn.text;
    assert_int_equal(make_actor_of("nearest", "standard", "", &log, &nearest, &diag), WPK_OK);
    assert_int_equal(wpk_search_actor_ask(nearest, 1, &asked, &filled), WPK_OK);
    assert_int_equal(filled, 1);
    assert_string_equal(asked.text, drawn.text);
    assert_string_equal(asked.source, "history");
    free(asked.text);
    free(drawn.text);
    wpk_search_actor_free(nearest);
    wpk_search_actor_free(random);
}

/* Where no candidate packs constants as another shape's does, the search is free to. */
static void a_packing_that_does_not_fit(void **state)
{
    (void)state;
    struct wpk_history_log log = {0};
    struct wpk_search_actor *actor = NULL;
    struct wpk_diag diag = {0};
    struct wpk_work_item asked = {0};
    uint32_t filled = 0;
    wpk_buf_append_text(&log.packing, "cpu-0 algorithm=direct layout=asis");
    assert_int_equal(make_actor_with("standard", "", &log, &actor, &diag), WPK_OK);
    assert_int_equal(wpk_search_actor_ask(actor, 1, &asked, &filled), WPK_OK);
    assert_int_equal(filled, 1);
    free(asked.text);
    wpk_search_actor_free(actor);
    wpk_buf_fini(&log.packing);
}

/* A search never goes on without its prior, or with another one. */
static void a_prior_that_is_gone_or_old(void **state)
{
    (void)state;
    struct wpk_history_log log = {0};
    struct wpk_search_actor *actor = NULL;
    struct wpk_diag gone = {0}, old = {0};
    assert_int_equal(make_actor_with("standard", "abc123", &log, &actor, &gone), WPK_ENOENT);
    assert_non_null(strstr(gone.text, "prior abc123 is gone"));
    wpk_buf_append_text(&log.prior, "wpk-prior-0 cpu-1 0");
    assert_int_equal(make_actor_with("standard", "abc123", &log, &actor, &old), WPK_EUNSUPPORTED);
    assert_non_null(strstr(old.text, "learn it again"));
    wpk_buf_fini(&log.prior);
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
    assert_int_equal(wpk_search_actor_ask(actor, 1, &item, &filled), WPK_OK);
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

/* Else the search would not be the same after a restart. */
static void an_ask_that_fails_leaves_no_trace(void **state)
{
    (void)state;
    struct wpk_search_actor *one = new_actor("standard");
    struct wpk_search_actor *other = new_actor("standard");
    struct wpk_work_item items[3] = {0}, others[3] = {0};
    uint32_t filled = 0;
    for (int n = 1; n <= 3; n++) {
        allocations_left = n;
        assert_int_equal(wpk_search_actor_ask(one, 3, items, &filled), WPK_ENOMEM);
        assert_int_equal(filled, 0);
    }
    assert_int_equal(wpk_search_actor_ask(one, 3, items, &filled), WPK_OK);
    assert_int_equal(filled, 3);
    assert_int_equal(wpk_search_actor_ask(other, 3, others, &filled), WPK_OK);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(items[i].text, others[i].text);
        free(items[i].text);
        free(others[i].text);
    }
    wpk_search_actor_free(one);
    wpk_search_actor_free(other);
}

/* Nor does a restart without memory begin another search. */
static void a_replay_that_fails_is_repeated(void **state)
{
    (void)state;
    struct wpk_search_actor *actor = new_actor("standard");
    struct wpk_work_item ask = {.text = NULL};
    struct wpk_history_log log = {.asks = &ask, .count = 1};
    uint32_t filled = 0;
    assert_int_equal(wpk_search_actor_ask(actor, 1, &ask, &filled), WPK_OK);
    wpk_search_actor_free(actor);
    allocations_left = 1 << 30;
    assert_int_equal(make_actor("standard", &log, &actor), WPK_OK);
    int made = (1 << 30) - allocations_left;
    wpk_search_actor_free(actor);
    allocations_left = made; /* the last one is of the ask's text */
    assert_int_equal(make_actor("standard", &log, &actor), WPK_ENOMEM);
    assert_int_equal(allocations_left, 0);
    free(ask.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_accuracy_class_prunes_the_space),
        cmocka_unit_test(a_search_begins_with_other_shapes),
        cmocka_unit_test(a_packing_that_does_not_fit),
        cmocka_unit_test(a_prior_that_is_gone_or_old),
        cmocka_unit_test(a_snapshot_that_does_not_fit),
        cmocka_unit_test(an_ask_that_fails_leaves_no_trace),
        cmocka_unit_test(a_replay_that_fails_is_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
