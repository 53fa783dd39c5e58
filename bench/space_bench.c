/* SPDX-License-Identifier: Apache-2.0 */
/* bench-space: what a candidate costs a search before it is built. Run it by hand:
 *
 *     build/bench/bench-space JOB OPERATOR [VARIANT]
 *
 * Draws legal candidates of a space on this machine's device class, and prints microseconds for a
 * draw (the first one of a variant also derives it), for judging it, for its key (the canonical
 * form), and for its bound, which has to make the nest and to compute its features. */
#include "bench/usage.h"
#include "common/clock.h"
#include "common/fs.h"
#include "ir/notation/definition.h"
#include "schema/job.h"
#include "search/space.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CANDIDATES 1000
#define ROUNDS 20

static const char usage[] =
    "usage: bench-space JOB OPERATOR [VARIANT]\n"
    "  microseconds that a candidate of the operator costs before it is built: to draw and judge\n"
    "  it, its key and its bound; of variants whose text contains VARIANT (all)\n";

static volatile uint64_t kept;

static double us_each(uint64_t from_ns, int count)
{
    return (double)(wpk_clock_ns() - from_ns) / 1e3 / count;
}

static void measure(const struct wpk_space *space, int variant, const char *name)
{
    static struct wpk_candidate drawn[CANDIDATES];
    struct wpk_rng rng;
    double us[4];
    uint64_t sum = 0; /* of all results, so that none is left out */
    int count = 0;
    wpk_rng_seed(&rng, 1);
    uint64_t from = wpk_clock_ns();
    while (count < CANDIDATES && wpk_space_draw_of(space, &rng, variant, &drawn[count]) == WPK_OK) {
        count++;
    }
    if (count < CANDIDATES) {
        printf("%-44s nothing to draw\n", name);
        return;
    }
    us[0] = us_each(from, count);
    from = wpk_clock_ns();
    for (int i = 0; i < count * ROUNDS; i++) {
        sum += wpk_space_is_legal(space, &drawn[i % count]);
    }
    us[1] = us_each(from, count * ROUNDS);
    from = wpk_clock_ns();
    for (int i = 0; i < count * ROUNDS; i++) {
        sum += wpk_space_key(space, &drawn[i % count]);
    }
    us[2] = us_each(from, count * ROUNDS);
    double seconds = 0;
    from = wpk_clock_ns();
    for (int i = 0; i < count * ROUNDS; i++) {
        sum += wpk_space_bound(space, &drawn[i % count], &seconds) == WPK_OK && seconds > 0;
    }
    us[3] = us_each(from, count * ROUNDS);
    printf("%-44s %8.1f %8.2f %8.2f %8.2f %12.0f\n", name, us[0], us[1], us[2], us[3], 1e6 / us[3]);
    kept = sum;
}

static wpk_err derive(const char *path, const char *name, struct wpk_space *out,
                      struct wpk_diag *diag)
{
    struct wpk_space_options options = {.layouts = "any", .threads = 1};
    struct wpk_program program = {0};
    struct wpk_job job = {0};
    struct wpk_buf text = {0};
    int op = 0;
    wpk_err err = wpk_fs_read(path, WPK_JOB_SIZE_MAX, &text, diag);
    if (err == WPK_OK) {
        err = wpk_job_decode(text.data, text.size, &job, diag);
    }
    while (err == WPK_OK && op < job.op_count && strcmp(job.ops[op].name, name) != 0) {
        op++;
    }
    if (err == WPK_OK && op == job.op_count) {
        err = wpk_fail(diag, WPK_ENOENT, "the job has no operator '%s'", name);
    }
    if (err == WPK_OK) {
        err = wpk_job_op_program(&job, op, &program, diag);
    }
    if (err == WPK_OK) {
        err = wpk_device_probe(WPK_CPU_FLAGS_ALL, &options.device);
    }
    if (err == WPK_OK) {
        err = wpk_space_derive(&program, &options, out, diag);
    }
    wpk_program_fini(&program);
    wpk_job_fini(&job);
    wpk_buf_fini(&text);
    return err;
}

int main(int argc, char **argv)
{
    static struct wpk_space space;
    struct wpk_diag diag = {0};
    bench_usage_help(argc, argv, usage);
    if (argc < 3 || argc > 4) {
        fputs(usage, stderr);
        return 2;
    }
    if (derive(argv[1], argv[2], &space, &diag) != WPK_OK) {
        fprintf(stderr, "bench-space: %s\n", diag.text);
        return 1;
    }
    printf("%-44s %8s %8s %8s %8s %12s\n", "microseconds", "draw", "judge", "key", "bound",
           "bounds/s");
    for (int v = 0; v < space.variant_count; v++) {
        char name[WPK_ALGORITHM_MAX + WPK_VARIANT_NAME_MAX];
        snprintf(name, sizeof(name), "%s %s", space.variants[v].algorithm,
                 space.variants[v].layout);
        if (argc < 4 || strstr(name, argv[3]) != NULL) {
            measure(&space, v, name);
        }
    }
    wpk_space_fini(&space);
    return 0;
}
