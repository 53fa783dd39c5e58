/* SPDX-License-Identifier: Apache-2.0 */
/* Search actors: which space a search's key gives. */
#include "coordinator/effects/search_actor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* A convolution, which fast Winograd tiles compute less accurately than its sums. */
static double size_log2_of(const char *accuracy)
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
    double size_log2 = wpk_search_actor_size_log2(actor);
    wpk_search_actor_free(actor);
    return size_log2;
}

static void an_accuracy_class_prunes_the_space(void **state)
{
    (void)state;
    assert_true(size_log2_of("strict") < size_log2_of("fast"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_accuracy_class_prunes_the_space),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
