/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons, and choices by what they give. */
#include "tests/gpu/lanes.h"
#include "tests/gpu/operation.h"

#include <math.h>

#define COMPARISON(name, T, expression)                                                            \
    static void name(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)                  \
    {                                                                                              \
        const T##_lane *as = WPK_LANES(T, 1), *bs = WPK_LANES(T, 2);                               \
        uint32_t bits = 0;                                                                         \
        for (int i = 0; i < WPK_WARP_LANES; i++) {                                                 \
            const T a = as[i], b = bs[i];                                                          \
            bits |= (uint32_t)(expression) << i;                                                   \
        }                                                                                          \
        wpk_lanes_put_predicate(warp, &in->operand[0], bits);                                      \
    }

#define ORDERED(suffix, T)                                                                         \
    COMPARISON(eq_##suffix, T, a == b)                                                             \
    COMPARISON(ne_##suffix, T, a != b)                                                             \
    COMPARISON(lt_##suffix, T, a < b)                                                              \
    COMPARISON(le_##suffix, T, a <= b)                                                             \
    COMPARISON(gt_##suffix, T, a > b)                                                              \
    COMPARISON(ge_##suffix, T, a >= b)

/* `ne` of numbers is false where one is NaN, all that end in u are true. */
#define UNORDERED(suffix, T)                                                                       \
    COMPARISON(num_ne_##suffix, T, a<b || a> b)                                                    \
    COMPARISON(equ_##suffix, T, !(a < b || a > b))                                                 \
    COMPARISON(ltu_##suffix, T, !(a >= b))                                                         \
    COMPARISON(leu_##suffix, T, !(a > b))                                                          \
    COMPARISON(gtu_##suffix, T, !(a <= b))                                                         \
    COMPARISON(geu_##suffix, T, !(a < b))                                                          \
    COMPARISON(num_##suffix, T, !isnan(a) && !isnan(b))                                            \
    COMPARISON(nan_##suffix, T, isnan(a) || isnan(b))

ORDERED(u16, uint16_t)
ORDERED(u32, uint32_t)
ORDERED(u64, uint64_t)
ORDERED(s16, int16_t)
ORDERED(s32, int32_t)
ORDERED(s64, int64_t)
ORDERED(f32, float)
ORDERED(f64, double)
UNORDERED(f32, float)
UNORDERED(f64, double)

#define CHOICE(bits)                                                                               \
    static void select_##bits(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)         \
    {                                                                                              \
        const uint##bits##_t_lane *a = WPK_LANES(uint##bits##_t, 1);                               \
        const uint##bits##_t_lane *b = WPK_LANES(uint##bits##_t, 2);                               \
        uint32_t chosen = wpk_lanes_predicate(warp, &in->operand[3]);                              \
        uint##bits##_t out[WPK_WARP_LANES];                                                        \
        for (int i = 0; i < WPK_WARP_LANES; i++) {                                                 \
            out[i] = (chosen >> i & 1) != 0 ? a[i] : b[i];                                         \
        }                                                                                          \
        uint32_t first = warp->defined[in->operand[1].reg];                                        \
        uint32_t second = warp->defined[in->operand[2].reg];                                       \
        uint32_t known = warp->defined[in->operand[3].reg];                                        \
        warp->undefined = ~known | (chosen & ~first) | (~chosen & ~second);                        \
        wpk_lanes_put_##bits(warp, &in->operand[0], out);                                          \
    }
CHOICE(16)
CHOICE(32)
CHOICE(64)

#define ROWS(TYPE, suffix)                                                                         \
    {"setp", "eq", TYPE, eq_##suffix, "p=dd"}, {"setp", "lt", TYPE, lt_##suffix, "p=dd"},          \
        {"setp", "le", TYPE, le_##suffix, "p=dd"}, {"setp", "gt", TYPE, gt_##suffix, "p=dd"},      \
        {"setp", "ge", TYPE, ge_##suffix, "p=dd"},
#define INTEGER_ROWS(bits)                                                                         \
    ROWS(WPK_PTX_U##bits, u##bits)                                                                 \
    ROWS(WPK_PTX_S##bits, s##bits){"setp", "ne", WPK_PTX_U##bits, ne_u##bits, "p=dd"},             \
        {"setp", "ne", WPK_PTX_S##bits, ne_s##bits, "p=dd"},                                       \
        {"setp", "eq", WPK_PTX_B##bits, eq_u##bits, "p=dd"},                                       \
        {"setp", "ne", WPK_PTX_B##bits, ne_u##bits, "p=dd"},                                       \
        {"setp", "lo", WPK_PTX_U##bits, lt_u##bits, "p=dd"},                                       \
        {"setp", "ls", WPK_PTX_U##bits, le_u##bits, "p=dd"},                                       \
        {"setp", "hi", WPK_PTX_U##bits, gt_u##bits, "p=dd"},                                       \
        {"setp", "hs", WPK_PTX_U##bits, ge_u##bits, "p=dd"},                                       \
        {"selp", "", WPK_PTX_U##bits, select_##bits, "d=ddp~"},                                    \
        {"selp", "", WPK_PTX_S##bits, select_##bits, "d=ddp~"},                                    \
        {"selp", "", WPK_PTX_B##bits, select_##bits, "d=ddp~"},
#define FLOAT_ROWS(bits)                                                                           \
    ROWS(WPK_PTX_F##bits, f##bits){"setp", "ne", WPK_PTX_F##bits, num_ne_f##bits, "p=dd"},         \
        {"setp", "neu", WPK_PTX_F##bits, ne_f##bits, "p=dd"},                                      \
        {"setp", "equ", WPK_PTX_F##bits, equ_f##bits, "p=dd"},                                     \
        {"setp", "ltu", WPK_PTX_F##bits, ltu_f##bits, "p=dd"},                                     \
        {"setp", "leu", WPK_PTX_F##bits, leu_f##bits, "p=dd"},                                     \
        {"setp", "gtu", WPK_PTX_F##bits, gtu_f##bits, "p=dd"},                                     \
        {"setp", "geu", WPK_PTX_F##bits, geu_f##bits, "p=dd"},                                     \
        {"setp", "num", WPK_PTX_F##bits, num_f##bits, "p=dd"},                                     \
        {"setp", "nan", WPK_PTX_F##bits, nan_f##bits, "p=dd"},                                     \
        {"selp", "", WPK_PTX_F##bits, select_##bits, "d=ddp~"},

const struct wpk_ptx_operation wpk_ptx_compares[] = {
    INTEGER_ROWS(16) INTEGER_ROWS(32) INTEGER_ROWS(64) FLOAT_ROWS(32) FLOAT_ROWS(64){0},
};
