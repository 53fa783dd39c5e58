/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of GPUs, whose spaces are of a kind of their own: those of groups are never asked. */
#include "target/gpu/space/space.h"

/* Finding sites needs a machine. */
static void describe(const struct wpk_device *device, struct wpk_machine *out)
{
    (void)device;
    *out = (struct wpk_machine){.lanes_max = 1, .lanes_min = 1, .registers = 2, .row_vectors = 1};
}

static bool legal(const struct wpk_machine *machine, const struct wpk_tile *tile, const char **why)
{
    (void)machine;
    (void)tile;
    (void)why;
    return true;
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
    (void)features;
    (void)threads;
    return 0;
}

static int mask(const struct wpk_machine *machine, int multiple)
{
    (void)machine;
    return multiple == 0 ? 1 : 0;
}

const struct wpk_target_rules wpk_target_cuda = {
    .kind = "cuda",
    .describe = describe,
    .legal = legal,
    .construct = construct,
    .bound = bound,
    .mask = mask,
    .space = &wpk_space_cuda,
};
