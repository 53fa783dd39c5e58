/* SPDX-License-Identifier: Apache-2.0 */
/* Integer arithmetic and logic. Sums wrap; shifts by more than the width are by the width; what
 * division by zero gives is not said, so it is all ones, as GPUs do. */
#include "tests/gpu/lanes.h"
#include "tests/gpu/operation.h"

/* Of one unsigned type U with its signed S and the twice as wide WU, WS. */
#define OPERATIONS(bits, U, S, WU, WS, wide)                                                       \
    WPK_LANES_OPERATION(add_##bits, bits, U, U, U, U, a + b)                                       \
    WPK_LANES_OPERATION(sub_##bits, bits, U, U, U, U, a - b)                                       \
    WPK_LANES_OPERATION(mul_##bits, bits, U, U, U, U, (WU)a *b)                                    \
    WPK_LANES_OPERATION(mul_hi_u##bits, bits, U, U, U, U, (WU)((WU)a * b) >> bits)                 \
    WPK_LANES_OPERATION(mul_hi_s##bits, bits, U, S, S, S, (WU)((WS)a * b) >> bits)                 \
    WPK_LANES_OPERATION(mad_##bits, bits, U, U, U, U, (WU)a *b + c)                                \
    WPK_LANES_OPERATION(mad_hi_u##bits, bits, U, U, U, U, ((WU)((WU)a * b) >> bits) + c)           \
    WPK_LANES_OPERATION(mad_hi_s##bits, bits, U, S, S, U, ((WU)((WS)a * b) >> bits) + c)           \
    WPK_LANES_OPERATION(div_u##bits, bits, U, U, U, U, b == 0 ? (U) ~(U)0 : a / b)                 \
    WPK_LANES_OPERATION(div_s##bits, bits, S, S, S, S, b == 0 ? -1 : (WS)a / b)                    \
    WPK_LANES_OPERATION(rem_u##bits, bits, U, U, U, U, b == 0 ? a : a % b)                         \
    WPK_LANES_OPERATION(rem_s##bits, bits, S, S, S, S, b == 0 ? a : (WS)a % b)                     \
    WPK_LANES_OPERATION(min_u##bits, bits, U, U, U, U, a < b ? a : b)                              \
    WPK_LANES_OPERATION(min_s##bits, bits, S, S, S, S, a < b ? a : b)                              \
    WPK_LANES_OPERATION(max_u##bits, bits, U, U, U, U, a > b ? a : b)                              \
    WPK_LANES_OPERATION(max_s##bits, bits, S, S, S, S, a > b ? a : b)                              \
    WPK_LANES_OPERATION(abs_##bits, bits, U, S, S, S, a < 0 ? (U)0 - (U)a : (U)a)                  \
    WPK_LANES_OPERATION(neg_##bits, bits, U, U, U, U, (U)0 - a)                                    \
    WPK_LANES_OPERATION(and_##bits, bits, U, U, U, U, a &b)                                        \
    WPK_LANES_OPERATION(or_##bits, bits, U, U, U, U, a | b)                                        \
    WPK_LANES_OPERATION(xor_##bits, bits, U, U, U, U, a ^ b)                                       \
    WPK_LANES_OPERATION(not_##bits, bits, U, U, U, U, ~a)                                          \
    WPK_LANES_OPERATION(cnot_##bits, bits, U, U, U, U, a == 0 ? 1 : 0)                             \
    WPK_LANES_OPERATION(shl_##bits, bits, U, U, uint32_t, U, b >= bits ? 0 : (WU)a << b)           \
    WPK_LANES_OPERATION(shr_u##bits, bits, U, U, uint32_t, U, b >= bits ? 0 : a >> b)              \
    WPK_LANES_OPERATION(shr_s##bits, bits, S, S, uint32_t, S, a >> (b >= bits ? bits - 1 : b))

__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 s128;

OPERATIONS(16, uint16_t, int16_t, uint32_t, int32_t, 32)
OPERATIONS(32, uint32_t, int32_t, uint64_t, int64_t, 64)
OPERATIONS(64, uint64_t, int64_t, u128, s128, 64)

WPK_LANES_OPERATION(mul_wide_u16, 32, uint32_t, uint16_t, uint16_t, uint16_t, (uint32_t)a *b)
WPK_LANES_OPERATION(mul_wide_s16, 32, int32_t, int16_t, int16_t, int16_t, (int32_t)a *b)
WPK_LANES_OPERATION(mul_wide_u32, 64, uint64_t, uint32_t, uint32_t, uint32_t, (uint64_t)a *b)
WPK_LANES_OPERATION(mul_wide_s32, 64, int64_t, int32_t, int32_t, int32_t, (int64_t)a *b)
WPK_LANES_OPERATION(mad_wide_u16, 32, uint32_t, uint16_t, uint16_t, uint32_t, (uint32_t)a *b + c)
WPK_LANES_OPERATION(mad_wide_s16, 32, uint32_t, int16_t, int16_t, uint32_t,
                    (uint32_t)((int32_t)a *b) + c)
WPK_LANES_OPERATION(mad_wide_u32, 64, uint64_t, uint32_t, uint32_t, uint64_t, (uint64_t)a *b + c)
WPK_LANES_OPERATION(mad_wide_s32, 64, uint64_t, int32_t, int32_t, uint64_t,
                    (uint64_t)((int64_t)a *b) + c)

/* ---- single bits and bytes */

/* `count` bits of `a`, which has `bits`, from `from` on; zeros follow, or copies of the last one,
 * of the field or of `a`. */
static uint64_t extract(uint64_t a, uint32_t from, uint32_t count, uint32_t bits, bool is_signed)
{
    from &= 255;
    count &= 255;
    uint32_t end = from + count > bits ? bits : from + count;
    bool negative = is_signed && count > 0 && (a >> (end - 1) & 1) != 0;
    uint32_t have = from >= end ? 0 : end - from;
    uint64_t mask = have == 64 ? UINT64_MAX : ((uint64_t)1 << have) - 1;
    uint64_t field = from >= bits ? 0 : a >> from & mask;
    return negative ? field | ~mask : field;
}

/* `a` into the bits of `b`. */
static uint64_t insert(uint64_t a, uint64_t b, uint32_t from, uint32_t count)
{
    from &= 255;
    count &= 255;
    if (from > 63 || count == 0) {
        return b;
    }
    uint64_t mask = (count > 63 ? UINT64_MAX : ((uint64_t)1 << count) - 1) << from;
    return (b & ~mask) | (a << from & mask);
}

static uint32_t permute(uint32_t a, uint32_t b, uint32_t selector)
{
    uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t out = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t pick = selector >> 4 * i;
        uint32_t byte = (uint32_t)(bytes >> 8 * (pick & 7)) & 255;
        byte = (pick & 8) == 0 ? byte : (byte & 128) != 0 ? 255 : 0;
        out |= byte << 8 * i;
    }
    return out;
}

static uint64_t reverse(uint64_t a, int bits)
{
    uint64_t out = 0;
    for (int i = 0; i < bits; i++) {
        out |= (a >> i & 1) << (bits - 1 - i);
    }
    return out;
}

static uint32_t logic(uint32_t a, uint32_t b, uint32_t c, uint32_t table)
{
    uint32_t out = 0;
    for (int i = 0; i < 8; i++) {
        uint32_t term = ((i & 4) != 0 ? a : ~a) & ((i & 2) != 0 ? b : ~b) & ((i & 1) != 0 ? c : ~c);
        out |= (table >> i & 1) != 0 ? term : 0;
    }
    return out;
}

static uint32_t funnel_left(uint32_t a, uint32_t b, uint32_t by)
{
    return (uint32_t)(((uint64_t)b << 32 | a) << by >> 32);
}

static uint32_t funnel_right(uint32_t a, uint32_t b, uint32_t by)
{
    return (uint32_t)(((uint64_t)b << 32 | a) >> by);
}

/* Part `i` of a word in parts of so many bits. */
static uint32_t part(uint32_t word, int i, int bits, bool is_signed)
{
    uint32_t out = word << (32 - bits * (i + 1));
    return is_signed ? (uint32_t)((int32_t)out >> (32 - bits)) : out >> (32 - bits);
}

/* Products of the two halves of a with two bytes of b, from number `first` on, added to c. */
static uint32_t dot2(uint32_t a, uint32_t b, uint32_t c, int first, bool signed_a, bool signed_b)
{
    for (int i = 0; i < 2; i++) {
        c += part(a, i, 16, signed_a) * part(b, first + i, 8, signed_b);
    }
    return c;
}

static uint32_t dot4(uint32_t a, uint32_t b, uint32_t c, bool signed_a, bool signed_b)
{
    for (int i = 0; i < 4; i++) {
        c += part(a, i, 8, signed_a) * part(b, i, 8, signed_b);
    }
    return c;
}

#define WORDS(name, expression)                                                                    \
    WPK_LANES_OPERATION(name, 32, uint32_t, uint32_t, uint32_t, uint32_t, expression)
#define FIELDS(bits, U)                                                                            \
    WPK_LANES_OPERATION(bfe_u##bits, bits, U, U, uint32_t, uint32_t,                               \
                        extract(a, b, c, bits, false))                                             \
    WPK_LANES_OPERATION(bfe_s##bits, bits, U, U, uint32_t, uint32_t, extract(a, b, c, bits, true)) \
    WPK_LANES_OPERATION(bfi_##bits, bits, U, U, U, uint32_t,                                       \
                        insert(a, b, c, WPK_LANES(uint32_t, 4)[i]))                                \
    WPK_LANES_OPERATION(brev_##bits, bits, U, U, U, U, reverse(a, bits))
FIELDS(32, uint32_t)
FIELDS(64, uint64_t)
WORDS(permute_32, permute(a, b, c))
WORDS(popc_32, __builtin_popcount(a))
WORDS(clz_32, a == 0 ? 32 : __builtin_clz(a))
WORDS(lop3_32, logic(a, b, c, WPK_LANES(uint32_t, 4)[i]))
#define DOTS(name, signed_a, signed_b)                                                             \
    WORDS(dp2a_lo_##name, dot2(a, b, c, 0, signed_a, signed_b))                                    \
    WORDS(dp2a_hi_##name, dot2(a, b, c, 2, signed_a, signed_b))                                    \
    WORDS(dp4a_##name, dot4(a, b, c, signed_a, signed_b))
DOTS(uu, false, false)
DOTS(us, false, true)
DOTS(su, true, false)
DOTS(ss, true, true)
WORDS(shf_l_wrap, funnel_left(a, b, c & 31))
WORDS(shf_r_wrap, funnel_right(a, b, c & 31))
WORDS(shf_l_clamp, funnel_left(a, b, c > 32 ? 32 : c))
WORDS(shf_r_clamp, funnel_right(a, b, c > 32 ? 32 : c))
WPK_LANES_OPERATION(popc_64, 32, uint32_t, uint64_t, uint64_t, uint64_t, __builtin_popcountll(a))
WPK_LANES_OPERATION(clz_64, 32, uint32_t, uint64_t, uint64_t, uint64_t,
                    a == 0 ? 64 : __builtin_clzll(a))

/* ---- predicates */

#define PREDICATES(name, expression)                                                               \
    static void name(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)                  \
    {                                                                                              \
        uint32_t a = wpk_lanes_predicate(warp, &in->operand[1]);                                   \
        uint32_t b = in->operand_count > 2 ? wpk_lanes_predicate(warp, &in->operand[2]) : 0;       \
        (void)b;                                                                                   \
        wpk_lanes_put_predicate(warp, &in->operand[0], expression);                                \
    }
PREDICATES(and_pred, a &b)
PREDICATES(or_pred, a | b)
PREDICATES(xor_pred, a ^ b)
PREDICATES(not_pred, ~a)

#define ANY(name, form, bits, run, operands)                                                       \
    {name, form, WPK_PTX_U##bits, run, operands}, {name, form, WPK_PTX_S##bits, run, operands},
/* NVRTC packs bytes that it needs beside others that were never written, and that nothing uses
 * afterwards: the result is taken for defined if its lowest byte is. */
static void prmt_32(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    const uint32_t_lane *selector = WPK_LANES(uint32_t, 3);
    uint32_t second = 0; /* lanes whose lowest byte is one of operand 2 */
    for (int i = 0; i < WPK_WARP_LANES; i++) {
        second |= (selector[i] >> 2 & 1U) << i;
    }
    uint32_t from[] = {warp->defined[in->operand[1].reg], warp->defined[in->operand[2].reg]};
    warp->undefined =
        ~warp->defined[in->operand[3].reg] | (second & ~from[1]) | (~second & ~from[0]);
    permute_32(warp, in);
}

#define BITS(name, bits, run, operands) {name, "", WPK_PTX_B##bits, run, operands},
#define ROWS(bits)                                                                                 \
    ANY("add", "", bits, add_##bits, "d=dd")                                                       \
    ANY("sub", "", bits, sub_##bits, "d=dd")                                                       \
    ANY("mul", "lo", bits, mul_##bits, "d=dd")                                                     \
    ANY("mad", "lo", bits, mad_##bits, "d=ddd"){"mul", "hi", WPK_PTX_U##bits, mul_hi_u##bits,      \
                                                "d=dd"},                                           \
        {"mul", "hi", WPK_PTX_S##bits, mul_hi_s##bits, "d=dd"},                                    \
        {"mad", "hi", WPK_PTX_U##bits, mad_hi_u##bits, "d=ddd"},                                   \
        {"mad", "hi", WPK_PTX_S##bits, mad_hi_s##bits, "d=ddd"},                                   \
        {"div", "", WPK_PTX_U##bits, div_u##bits, "d=dd"},                                         \
        {"div", "", WPK_PTX_S##bits, div_s##bits, "d=dd"},                                         \
        {"rem", "", WPK_PTX_U##bits, rem_u##bits, "d=dd"},                                         \
        {"rem", "", WPK_PTX_S##bits, rem_s##bits, "d=dd"},                                         \
        {"min", "", WPK_PTX_U##bits, min_u##bits, "d=dd"},                                         \
        {"min", "", WPK_PTX_S##bits, min_s##bits, "d=dd"},                                         \
        {"max", "", WPK_PTX_U##bits, max_u##bits, "d=dd"},                                         \
        {"max", "", WPK_PTX_S##bits, max_s##bits, "d=dd"},                                         \
        {"abs", "", WPK_PTX_S##bits, abs_##bits, "d=d"},                                           \
        {"neg", "", WPK_PTX_S##bits, neg_##bits, "d=d"},                                           \
        {"shr", "", WPK_PTX_U##bits, shr_u##bits, "d=du"},                                         \
        {"shr", "", WPK_PTX_S##bits, shr_s##bits, "d=du"},                                         \
        BITS("shr", bits, shr_u##bits, "d=du") BITS("shl", bits, shl_##bits, "d=du")               \
            BITS("and", bits, and_##bits, "d=dd") BITS("or", bits, or_##bits, "d=dd")              \
                BITS("xor", bits, xor_##bits, "d=dd") BITS("not", bits, not_##bits, "d=d")         \
                    BITS("cnot", bits, cnot_##bits, "d=d")

#define DOT_ROWS(name, type, other)                                                                \
    {"dp2a", "lo." other, type, dp2a_lo_##name, "d=ddd"},                                          \
        {"dp2a", "hi." other, type, dp2a_hi_##name, "d=ddd"},                                      \
        {"dp4a", other, type, dp4a_##name, "d=ddd"},

const struct wpk_ptx_operation wpk_ptx_integers[] = {
    DOT_ROWS(uu, WPK_PTX_U32, "u32") DOT_ROWS(us, WPK_PTX_U32, "s32")
        DOT_ROWS(su, WPK_PTX_S32, "u32") DOT_ROWS(ss, WPK_PTX_S32, "s32") ROWS(16) ROWS(32)
            ROWS(64){"mul", "wide", WPK_PTX_U16, mul_wide_u16, "w=dd"},
    {"mul", "wide", WPK_PTX_S16, mul_wide_s16, "w=dd"},
    {"mul", "wide", WPK_PTX_U32, mul_wide_u32, "w=dd"},
    {"mul", "wide", WPK_PTX_S32, mul_wide_s32, "w=dd"},
    {"mad", "wide", WPK_PTX_U16, mad_wide_u16, "w=ddw"},
    {"mad", "wide", WPK_PTX_S16, mad_wide_s16, "w=ddw"},
    {"mad", "wide", WPK_PTX_U32, mad_wide_u32, "w=ddw"},
    {"mad", "wide", WPK_PTX_S32, mad_wide_s32, "w=ddw"},
    {"bfe", "", WPK_PTX_U32, bfe_u32, "d=duu"},
    {"bfe", "", WPK_PTX_S32, bfe_s32, "d=duu"},
    {"bfe", "", WPK_PTX_U64, bfe_u64, "d=duu"},
    {"bfe", "", WPK_PTX_S64, bfe_s64, "d=duu"},
    {"bfi", "", WPK_PTX_B32, bfi_32, "d=dduu"},
    {"bfi", "", WPK_PTX_B64, bfi_64, "d=dduu"},
    {"prmt", "", WPK_PTX_B32, prmt_32, "d=ddu~"},
    {"brev", "", WPK_PTX_B32, brev_32, "d=d"},
    {"brev", "", WPK_PTX_B64, brev_64, "d=d"},
    {"popc", "", WPK_PTX_B32, popc_32, "u=d"},
    {"popc", "", WPK_PTX_B64, popc_64, "u=d"},
    {"clz", "", WPK_PTX_B32, clz_32, "u=d"},
    {"clz", "", WPK_PTX_B64, clz_64, "u=d"},
    {"lop3", "", WPK_PTX_B32, lop3_32, "d=dddu"},
    {"shf", "l.wrap", WPK_PTX_B32, shf_l_wrap, "d=ddu"},
    {"shf", "r.wrap", WPK_PTX_B32, shf_r_wrap, "d=ddu"},
    {"shf", "l.clamp", WPK_PTX_B32, shf_l_clamp, "d=ddu"},
    {"shf", "r.clamp", WPK_PTX_B32, shf_r_clamp, "d=ddu"},
    {"and", "", WPK_PTX_PRED, and_pred, "p=pp"},
    {"or", "", WPK_PTX_PRED, or_pred, "p=pp"},
    {"xor", "", WPK_PTX_PRED, xor_pred, "p=pp"},
    {"not", "", WPK_PTX_PRED, not_pred, "p=p"},
    {0},
};
