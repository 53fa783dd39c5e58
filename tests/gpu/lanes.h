/* SPDX-License-Identifier: Apache-2.0 */
/* How functions of instructions reach the lanes of their operands. */
#ifndef WPK_TESTS_GPU_LANES_H
#define WPK_TESTS_GPU_LANES_H

#include "tests/gpu/warp.h"

#include <string.h>

#define WPK_LANES_ALL UINT32_MAX

/* The lanes of operand `i`, as const T [32]: registers have no type of their own. */
#define WPK_LANES(T, i) ((const T##_lane *)(const void *)(warp->file + in->operand[i].offset))

#define WPK_LANE_TYPE(T) typedef T T##_lane __attribute__((may_alias));
WPK_LANE_TYPE(uint16_t)
WPK_LANE_TYPE(uint32_t)
WPK_LANE_TYPE(uint64_t)
WPK_LANE_TYPE(int16_t)
WPK_LANE_TYPE(int32_t)
WPK_LANE_TYPE(int64_t)
WPK_LANE_TYPE(float)
WPK_LANE_TYPE(double)
#undef WPK_LANE_TYPE

/* The lanes of a predicate, a bit each. */
static inline uint32_t wpk_lanes_predicate(const struct wpk_warp *warp,
                                           const struct wpk_ptx_operand *operand)
{
    uint32_t bits;
    memcpy(&bits, warp->file + operand->offset, sizeof(bits));
    return bits;
}

static inline void wpk_lanes_put_predicate(struct wpk_warp *warp,
                                           const struct wpk_ptx_operand *operand, uint32_t bits)
{
    uint32_t old = wpk_lanes_predicate(warp, operand);
    bits = (old & ~warp->active) | (bits & warp->active);
    memcpy(warp->file + operand->offset, &bits, sizeof(bits));
}

/* Store the active lanes of a result of 1, 2, 4 or 8 bytes a lane. */
#define WPK_LANES_PUT(bits)                                                                        \
    static inline void wpk_lanes_put_##bits(                                                       \
        struct wpk_warp *warp, const struct wpk_ptx_operand *operand, const void *lanes)           \
    {                                                                                              \
        uint8_t *to = warp->file + operand->offset;                                                \
        const uint8_t *from = (const uint8_t *)lanes;                                              \
        if (warp->active == WPK_LANES_ALL) {                                                       \
            memcpy(to, from, WPK_WARP_LANES *(bits / 8));                                          \
            return;                                                                                \
        }                                                                                          \
        for (size_t i = 0; i < WPK_WARP_LANES; i++) {                                              \
            if ((warp->active >> i & 1) != 0) {                                                    \
                memcpy(to + i * (bits / 8), from + i * (bits / 8), bits / 8);                      \
            }                                                                                      \
        }                                                                                          \
    }
WPK_LANES_PUT(16)
WPK_LANES_PUT(32)
WPK_LANES_PUT(64)

/* A function that computes `expression` of the lanes a, b, c, of types A, B, C, for results of
 * type R of that many bits. All lanes are computed; the active ones are kept. */
#define WPK_LANES_OPERATION(name, bits, R, A, B, C, expression)                                    \
    static void name(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)                  \
    {                                                                                              \
        const A##_lane *as = WPK_LANES(A, 1);                                                      \
        const B##_lane *bs = WPK_LANES(B, 2);                                                      \
        const C##_lane *cs = WPK_LANES(C, 3);                                                      \
        R results[WPK_WARP_LANES];                                                                 \
        for (int i = 0; i < WPK_WARP_LANES; i++) {                                                 \
            const A a = as[i];                                                                     \
            const B b = bs[i];                                                                     \
            const C c = cs[i];                                                                     \
            (void)a, (void)b, (void)c;                                                             \
            results[i] = (R)(expression);                                                          \
        }                                                                                          \
        wpk_lanes_put_##bits(warp, &in->operand[0], results);                                      \
    }

#endif
