/* SPDX-License-Identifier: Apache-2.0 */
/* The regions that a nest finds are those that Halide allocates: schedules of random programs are
 * lowered by Halide, and its allocations compared with the nest's extents. Five things differ by
 * design:
 *   - Halide bounds x % c by c; the nest counts the x that follow each other
 *   - the nest has one box for all loads of a tensor, and the largest of its iterations, where
 *     Halide's bounds can be tighter, also of a divided index
 *   - of a load that may leave its tensor the nest takes what lies in the tensor, Halide the range
 *     of the index or of the clamped index, whichever it can bound
 *   - Halide computes what a whole tile needs, of the stage or of a reader, also where it passes
 *     the axis's end
 *   - Halide computes a stage that stands before everything as far as it is read, the nest whole
 * WPK_TEST_SCHEDULES sets how many schedules are compared. */
#include "target/halide/halide.h"

#include "common/fs.h"
#include "target/codegen.h"
#include "tests/random_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SCHEDULES "100"
#define DRAWS_MAX 20 /* of one program */
#define TAKEN_MAX 4
#define TEXT_SIZE_MAX ((size_t)16 << 20)

struct counts {
    int schedules;
    int same;
    int less; /* than Halide's, by design */
    int more; /* by design */
    int other;
    int refused; /* by Halide, which meets a type of another expression once in a thousand */
    int folded;  /* Halide has no allocation of a fixed size: scalars, what was simplified away */
};

/* ---- products in Halide's text */

struct reader {
    const char *at;
    bool failed; /* an allocation whose size is not a number */
};

static int64_t read_sum(struct reader *r);

static int64_t read_factor(struct reader *r)
{
    int64_t value = 0;
    r->at += strspn(r->at, " ");
    if (*r->at == '(') {
        r->at++;
        value = read_sum(r);
        r->failed = r->failed || *r->at != ')';
        r->at += !r->failed;
        return value;
    }
    char *end;
    value = strtoll(r->at, &end, 10);
    r->failed = r->failed || end == r->at;
    r->at = end;
    return value;
}

static int64_t read_product(struct reader *r)
{
    int64_t value = read_factor(r);
    while (!r->failed && strncmp(r->at, " * ", 3) == 0) {
        r->at += 3;
        value *= read_factor(r);
    }
    return value;
}

/* Halide adds an element to what is read by vectors that reach past it: it is not of the region. */
static int64_t read_sum(struct reader *r)
{
    int64_t value = read_product(r);
    while (!r->failed && strncmp(r->at, " + ", 3) == 0) {
        r->at += 3;
        (void)read_product(r);
    }
    return value;
}

/* The elements of "allocate NAME[TYPE * ...]", -1 without one. Halide numbers names that it has
 * had before: NAME$3. */
static int64_t allocated(const char *text, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = text; (at = strstr(at, "allocate ")) != NULL; at++) {
        const char *found = at + strlen("allocate ");
        const char *rest = found + size;
        if (strncmp(found, name, size) != 0) {
            continue;
        }
        rest += *rest == '$' ? 1 + strspn(rest + 1, "0123456789") : 0;
        const char *product = strstr(rest, " * ");
        if (*rest == '[' && product != NULL) {
            struct reader r = {.at = product + 3};
            int64_t elements = read_sum(&r);
            return r.failed || *r.at != ']' ? -2 : elements;
        }
    }
    return -1;
}

/* ---- what may differ */

static bool divides(const struct wpk_program *program, int index, enum wpk_binary op)
{
    const struct wpk_node *node = &program->nodes[index];
    return node->kind == WPK_NODE_BINARY &&
           (node->op == (int)op || divides(program, node->arg[0], op) ||
            divides(program, node->arg[1], op));
}

struct reads {
    int count;                     /* loads of the tensor */
    bool modulo, divided, guarded; /* some of them */
    bool
        rounded; /* a reader is computed for whole tiles, the last of which passes its axis's end */
    bool whole;  /* a reader is an intermediate tensor, and computed before everything */
};

static bool is_rounded(const struct wpk_nest *nest, int stage)
{
    const struct wpk_nest_entry *entry = &nest->entry[nest->entry_count - 1 - stage];
    bool rounded = false;
    for (int a = 0; a < nest->program->stages[stage].rank && entry->bounded; a++) {
        rounded |= nest->program->stages[stage].axes[a].extent % entry->extent[a] != 0;
    }
    for (int i = 0; i < entry->pure.count; i++) {
        const struct wpk_nest_loop *loop = wpk_nest_at(nest, &entry->pure, i);
        rounded |= entry->extent[loop->axis] % loop->step != 0;
    }
    return rounded;
}

static bool is_whole(const struct wpk_nest *nest, int stage)
{
    const struct wpk_nest_entry *entry = &nest->entry[nest->entry_count - 1 - stage];
    while (entry->place.entry >= 0) {
        entry = &nest->entry[entry->place.entry];
    }
    int tensor = wpk_nest_stage(nest, entry)->output;
    return nest->program->tensors[tensor].role == WPK_ROLE_INTERMEDIATE;
}

/* How the loads of all stages read the tensor. */
static struct reads find_reads(const struct wpk_nest *nest, int tensor)
{
    const struct wpk_program *program = nest->program;
    struct reads reads = {.count = 0};
    for (int s = 0; s < program->stage_count; s++) {
        int loads[WPK_LOADS_MAX];
        int count = wpk_stage_loads(program, &program->stages[s], loads, WPK_LOADS_MAX);
        for (int i = 0; i < count; i++) {
            const struct wpk_node *load = &program->nodes[loads[i]];
            if (load->tensor != tensor) {
                continue;
            }
            for (int d = 0; d < program->tensors[tensor].rank; d++) {
                reads.modulo |= divides(program, load->index[d], WPK_BINARY_MOD);
                reads.divided |= divides(program, load->index[d], WPK_BINARY_DIV);
            }
            reads.guarded |= load->outside >= 0;
            reads.rounded |= is_rounded(nest, s);
            reads.whole |= is_whole(nest, s);
            reads.count++;
        }
    }
    return reads;
}

/* The elements of the region with each axis rounded up to the steps of the stage's own loops. */
static int64_t rounded_up(const struct wpk_nest *nest, const struct wpk_nest_entry *entry)
{
    int64_t elements = 1;
    for (int a = 0; a < wpk_nest_stage(nest, entry)->rank; a++) {
        int64_t extent = entry->extent[a];
        for (int i = 0; i < entry->pure.count; i++) {
            const struct wpk_nest_loop *loop = wpk_nest_at(nest, &entry->pure, i);
            int64_t last = loop->axis == a ? extent % loop->step : 0;
            extent += last > 0 ? loop->step - last : 0;
        }
        elements *= extent;
    }
    return elements;
}

static void compare(const struct wpk_schedule *schedule, const char *halide, struct counts *counts)
{
    const struct wpk_nest *nest = schedule->nest;
    for (int e = 0; e < nest->entry_count; e++) {
        const struct wpk_nest_entry *entry = &nest->entry[e];
        if (entry->inlined || entry->place.entry < 0 || entry->place.loop < 0) {
            continue;
        }
        const struct wpk_stage *stage = wpk_nest_stage(nest, entry);
        const char *name = nest->program->tensors[stage->output].name;
        int64_t ours = 1, theirs = allocated(halide, name);
        for (int a = 0; a < stage->rank; a++) {
            ours *= entry->extent[a];
        }
        struct reads reads = find_reads(nest, stage->output);
        bool less = theirs > ours && (reads.modulo || reads.guarded || reads.rounded ||
                                      theirs <= rounded_up(nest, entry));
        bool more =
            theirs >= 0 && theirs < ours &&
            (reads.count > 1 || reads.divided || reads.modulo || reads.guarded || reads.whole);
        counts->same += theirs == ours;
        counts->less += less;
        counts->more += more;
        counts->folded += theirs < 0;
        if (theirs >= 0 && theirs != ours && !less && !more) {
            print_message("schedule %d: %s has %lld elements, Halide's has %lld\n",
                          counts->schedules, name, (long long)ours, (long long)theirs);
            counts->other++;
        }
    }
}

/* ---- schedules */

static bool is_placed(const struct wpk_schedule *schedule)
{
    for (int e = 0; e < schedule->nest->entry_count; e++) {
        const struct wpk_nest_entry *entry = &schedule->nest->entry[e];
        if (!entry->inlined && entry->place.entry >= 0 && entry->place.loop >= 0) {
            return true;
        }
    }
    return false;
}

static void compare_lowered(const struct wpk_schedule *schedule, const char *path,
                            struct counts *counts)
{
    struct wpk_buf text = {0};
    struct wpk_diag diag = {0};
    if (wpk_halide_lower(schedule, path, &diag) != WPK_OK) {
        print_message("schedule %d: %s\n", counts->schedules, diag.text);
        counts->refused++;
        return;
    }
    assert_int_equal(wpk_fs_read(path, TEXT_SIZE_MAX, &text, NULL), WPK_OK);
    compare(schedule, wpk_buf_text(&text), counts);
    wpk_buf_fini(&text);
}

static void compare_program(uint64_t seed, int most, const char *path, struct counts *counts)
{
    const struct wpk_random_options random = {.products = seed % 2 != 0, .data = seed % 3 == 0};
    struct wpk_space_options options = {.layouts = "fixed", .threads = 1};
    struct wpk_program program;
    struct wpk_space space;
    struct wpk_candidate candidate;
    struct wpk_diag diag = {0};
    struct wpk_rng rng;
    options.device.cpu.flags = WPK_CPU_SET_AVX512;
    options.device.cpu.vector_bytes = 64;
    options.device.cpu.vector_registers = 32;
    wpk_rng_seed(&rng, seed);
    wpk_random_program(&rng, &random, &program);
    if (wpk_space_derive(&program, &options, &space, &diag) != WPK_OK) {
        wpk_program_fini(&program);
        return;
    }
    for (int i = 0, taken = 0; i < DRAWS_MAX && taken < TAKEN_MAX && counts->schedules < most;
         i++) {
        struct wpk_schedule schedule;
        if (wpk_space_draw(&space, &rng, &candidate) != WPK_OK) {
            break;
        }
        assert_int_equal(wpk_lower(&space, &candidate, &schedule, &diag), WPK_OK);
        if (is_placed(&schedule)) {
            taken++;
            counts->schedules++;
            compare_lowered(&schedule, path, counts);
        }
        wpk_schedule_fini(&schedule);
    }
    wpk_space_fini(&space);
    wpk_program_fini(&program);
}

static void test_regions_are_those_of_halide(void **state)
{
    (void)state;
    const char *wanted = getenv("WPK_TEST_SCHEDULES");
    int most = (int)strtol(wanted == NULL ? SCHEDULES : wanted, NULL, 10);
    struct counts counts = {.schedules = 0};
    char path[] = "/tmp/wpk-halide-XXXXXX.stmt";
    int file = mkstemps(path, (int)strlen(".stmt"));
    assert_true(file >= 0);
    close(file);
    for (uint64_t seed = 0; counts.schedules < most; seed++) {
        compare_program(seed, most, path, &counts);
    }
    unlink(path);
    print_message("%d schedules: %d regions are the same; %d are less and %d more by design; %d "
                  "differ otherwise; %d folded\n",
                  counts.schedules, counts.same, counts.less, counts.more, counts.other,
                  counts.folded);
    int compared = counts.same + counts.less + counts.more + counts.other;
    assert_true(compared > counts.schedules / 2);
    assert_true(counts.same * 100 >= compared * 80);
    assert_true(counts.other * 100 <= compared * 2);
    assert_true(counts.refused * 100 <= counts.schedules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_regions_are_those_of_halide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
