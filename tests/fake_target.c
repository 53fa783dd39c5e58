/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fake_target.h"

#include "search/feature.h"

#include <stdio.h>

#define STATEMENTS_MAX 64

static void describe(const struct wpk_device *device, struct wpk_machine *out)
{
    (void)device;
    *out = (struct wpk_machine){
        .lanes_max = 4,
        .lanes_min = 4,
        .registers = 8,
        .row_vectors = 1,
        .row_max = 8,
        .recomputed_max = 2,
        .cache_bytes = {1 << 10, 4 << 10, 16 << 10},
        .strip_vectors = 4,
        .strip_bytes_max = 1 << 10,
    };
}

static bool legal(const struct wpk_machine *machine, const struct wpk_tile *tile, const char **why)
{
    bool fits = !tile->reuses || tile->accumulators + tile->vectors + 1 <= machine->registers;
    bool legal = fits && (tile->statements <= STATEMENTS_MAX || tile->statements <= tile->least);
    if (!legal && why != NULL) {
        *why = "more than the fake device has";
    }
    return legal;
}

static double construct(const struct wpk_machine *machine, const struct wpk_tile *tile)
{
    (void)machine;
    return tile->covered;
}

static double bound(const struct wpk_machine *machine, const struct wpk_features *features,
                    int threads)
{
    (void)machine;
    return 1e-9 * (1 + features->flops) / threads;
}

/* Single elements, or whole vectors. */
static int mask(const struct wpk_machine *machine, int multiple)
{
    return multiple == 0 ? 1 : multiple == 1 ? machine->lanes_max : 0;
}

static const struct wpk_target_rules rules = {
    .kind = "cpu",
    .describe = describe,
    .legal = legal,
    .construct = construct,
    .bound = bound,
    .mask = mask,
};

struct wpk_space_options wpk_target_fake_options(const char *layouts, int threads)
{
    struct wpk_space_options options = {
        .layouts = layouts, .threads = threads, .target.rules = &rules};
    snprintf(options.device.kind, sizeof(options.device.kind), "cpu");
    return options;
}

static void describe_panels(const struct wpk_device *device, struct wpk_machine *out)
{
    wpk_target_cpu.describe(device, out);
    out->strip_bytes_max = 0;
}

struct wpk_target wpk_target_fake_panels(void)
{
    static struct wpk_target_rules panels;
    panels = wpk_target_cpu;
    panels.describe = describe_panels;
    return (struct wpk_target){.rules = &panels};
}
