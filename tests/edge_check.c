/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/edge_check.h"

#include "ir/notation/notation.h"
#include "target/codegen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TENSORS_MAX 48
#define CONSTRUCTED 1   /* candidates of a program, and some have one drawn */
#define STAGES_MANY 16  /* which take long: none is drawn */
#define DRAWN_SHARE 0.3 /* of programs that have a drawn one; all where WPK_TEST_DRAWS is set */

static void parse(const struct wpk_edge *edge, struct wpk_program *out)
{
    struct wpk_declaration declaration[TENSORS_MAX];
    struct wpk_diag diag = {0};
    char text[1000], *rest = NULL;
    int count = 0;
    snprintf(text, sizeof(text), "%s", edge->tensors);
    for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        char *type = strchr(word, '=');
        assert_true(type != NULL && count < TENSORS_MAX);
        *type++ = '\0';
        declaration[count] = (struct wpk_declaration){.name = word};
        if (wpk_notation_parse_type(type, &declaration[count], &diag) != WPK_OK) {
            fail_msg("%s: %s", type, diag.text);
        }
        declaration[count++].name = word;
    }
    if (wpk_notation_parse(edge->op, declaration, count, out, &diag) != WPK_OK) {
        fail_msg("%s: %s", edge->op, diag.text);
    }
}

/* Put the candidate's kernel into the batch, by the back end, unless that does not build it. */
static void add_kernel(struct wpk_kernels *batch, const struct wpk_edge *edge,
                       const struct wpk_space *space, const struct wpk_candidate *candidate,
                       const char *by)
{
    struct wpk_kernel_case *subject = &batch->subject[batch->count];
    struct wpk_diag diag = {0};
    if (wpk_lower(space, candidate, &subject->schedule, &diag) != WPK_OK) {
        fail_msg("%s: %s", edge->op, diag.text);
    }
    snprintf(subject->schedule.by, sizeof(subject->schedule.by), "%s", by);
    if (wpk_codegen_check(&subject->schedule, &diag) != WPK_OK) {
        wpk_schedule_fini(&subject->schedule);
        if (strcmp(by, "c") != 0) {
            fail_msg("%s: %s", edge->op, diag.text);
        }
        return;
    }
    assert_int_equal(wpk_candidate_encode(space, candidate, subject->words, sizeof subject->words),
                     WPK_OK);
    subject->values = edge->values;
    batch->count++;
}

bool wpk_edge_add(struct wpk_kernels *batch, const struct wpk_edge *edge,
                  const struct wpk_program *program, struct wpk_rng *rng)
{
    struct wpk_space_options options = {.layouts = "fixed", .threads = 1};
    struct wpk_candidate candidate[CONSTRUCTED + 1];
    struct wpk_space space;
    struct wpk_diag diag = {0};
    int count = 0;
    options.device.cpu.flags = batch->flags;
    options.device.cpu.vector_bytes = 32;
    options.device.cpu.vector_registers = 16;
    if (wpk_space_derive(program, &options, &space, &diag) != WPK_OK) {
        if (strstr(diag.text, "does not depend on") == NULL) {
            fail_msg("%s: %s", edge->op, diag.text);
        }
        return false;
    }
    assert_int_equal(wpk_space_construct(&space, candidate, CONSTRUCTED, &count), WPK_OK);
    count += program->stage_count < STAGES_MANY &&
             (wpk_rng_chance(rng, DRAWN_SHARE) || getenv("WPK_TEST_DRAWS") != NULL) &&
             wpk_space_draw(&space, rng, &candidate[count]) == WPK_OK;
    for (int i = 0; i < count; i++) {
        add_kernel(batch, edge, &space, &candidate[i], "halide-cpu");
    }
    add_kernel(batch, edge, &space, &candidate[0], "c");
    wpk_space_fini(&space);
    return true;
}

static void add_program(struct wpk_kernels *batch, const struct wpk_edge *edge, struct wpk_rng *rng)
{
    struct wpk_program program;
    parse(edge, &program);
    assert_true(wpk_edge_add(batch, edge, &program, rng));
    wpk_program_fini(&program);
}

bool wpk_edges_begin(struct wpk_kernels *batch, struct wpk_rng *rng)
{
    const char *seed = getenv("WPK_TEST_SEED");
    struct wpk_device here;
    memset(batch, 0, sizeof(*batch)); /* of a test that failed */
    batch->flags = WPK_CPU_SET_AVX2;
    batch->emit = wpk_emit;
    wpk_rng_seed(rng, seed == NULL ? 1 : strtoull(seed, NULL, 10));
    assert_int_equal(wpk_device_probe(WPK_CPU_SET_AVX2, &here), WPK_OK);
    return here.cpu.flags >= WPK_CPU_SET_AVX2;
}

void wpk_check_edges_within(const struct wpk_edge *edges, int count, wpk_cpu_flags flags,
                            double units)
{
    static struct wpk_kernels batch; /* large */
    struct wpk_rng rng;
    if (!wpk_edges_begin(&batch, &rng)) {
        skip();
    }
    batch.flags = flags;
    batch.units = units;
    for (int i = 0; i < count; i++) {
        add_program(&batch, &edges[i], &rng);
        if (batch.count > WPK_KERNELS_MAX - CONSTRUCTED - 2 || i + 1 == count) {
            wpk_check_kernels(&batch, &rng);
        }
    }
    print_message("%d programs, %d kernels\n", count, batch.kernels);
    assert_int_equal(batch.refused, 0);
}

void wpk_check_edges(const struct wpk_edge *edges, int count)
{
    wpk_check_edges_within(edges, count, WPK_CPU_SET_AVX2, 0);
}
