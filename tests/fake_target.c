/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fake_target.h"

#include <stdio.h>

static void describe(const struct wpk_device *device, struct wpk_machine *out)
{
    (void)device;
    *out = (struct wpk_machine){
        .lanes_max = 4,
        .lanes_min = 4,
        .registers = 8,
        .row_vectors = 1,
        .row_max = 8,
        .latency = 2,
        .multiply_adds = 1,
        .loads = 1,
        .stores = 1,
        .issued = 2,
        .hertz = 1e9,
        .l1i_bytes = 4 << 10,
        .code_bytes_max = 2 << 10,
        .recomputed_max = 2,
        .cache_bytes = {1 << 10, 4 << 10, 16 << 10},
        .cache_bytes_per_cycle = {8, 4, 2},
        .strip_vectors = 4,
        .strip_bytes_max = 1 << 10,
    };
}

struct wpk_space_options wpk_target_fake_options(const char *layouts, int threads)
{
    static struct wpk_target_rules rules;
    rules = wpk_target_cpu;
    rules.describe = describe;
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
