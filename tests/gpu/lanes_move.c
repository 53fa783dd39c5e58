/* SPDX-License-Identifier: Apache-2.0 */
/* Moves, conversions, and registers taken apart and put together. */
#include "tests/gpu/lanes.h"
#include "tests/gpu/operation.h"

#include <fenv.h>
#include <math.h>

void wpk_ptx_move_16(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    wpk_lanes_put_16(warp, &in->operand[0], WPK_LANES(uint16_t, 1));
}

void wpk_ptx_move_32(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    wpk_lanes_put_32(warp, &in->operand[0], WPK_LANES(uint32_t, 1));
}

void wpk_ptx_move_64(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    wpk_lanes_put_64(warp, &in->operand[0], WPK_LANES(uint64_t, 1));
}

void wpk_ptx_move_predicate(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    wpk_lanes_put_predicate(warp, &in->operand[0], wpk_lanes_predicate(warp, &in->operand[1]));
}

/* One lane of an operand as an unsigned number, whatever its size is. */
static uint64_t get(const struct wpk_warp *warp, const struct wpk_ptx_operand *operand, int lane)
{
    const uint8_t *at = warp->file + operand->offset + (size_t)lane * operand->size;
    uint64_t bits = 0;
    memcpy(&bits, at, operand->size);
    return bits;
}

static void put(const struct wpk_warp *warp, const struct wpk_ptx_operand *operand, int lane,
                uint64_t bits)
{
    memcpy(warp->file + operand->offset + (size_t)lane * operand->size, &bits, operand->size);
}

/* Two halves of 32 bits, from operand `i` on: what LLVM keeps pairs of floats in. */
static bool are_halves(const struct wpk_ptx_instruction *in, int i)
{
    return in->operand_count == 3 && in->operand[i].size == 4 && in->operand[i + 1].size == 4;
}

void wpk_ptx_pack(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    if (are_halves(in, 1)) {
        const uint32_t_lane *low = WPK_LANES(uint32_t, 1), *high = WPK_LANES(uint32_t, 2);
        uint64_t whole[WPK_WARP_LANES];
        for (int lane = 0; lane < WPK_WARP_LANES; lane++) {
            whole[lane] = (uint64_t)high[lane] << 32 | low[lane];
        }
        wpk_lanes_put_64(warp, &in->operand[0], whole);
        return;
    }
    for (int lane = 0; lane < WPK_WARP_LANES; lane++) {
        uint64_t whole = 0;
        for (int i = in->operand_count - 1; i > 0 && (warp->active >> lane & 1) != 0; i--) {
            whole = whole << 8 * in->operand[i].size % 64 | get(warp, &in->operand[i], lane);
        }
        if ((warp->active >> lane & 1) != 0) {
            put(warp, &in->operand[0], lane, whole);
        }
    }
}

void wpk_ptx_unpack(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    const struct wpk_ptx_operand *from = &in->operand[in->operand_count - 1];
    if (are_halves(in, 0)) {
        const uint64_t_lane *whole = WPK_LANES(uint64_t, 2);
        uint32_t low[WPK_WARP_LANES], high[WPK_WARP_LANES];
        for (int lane = 0; lane < WPK_WARP_LANES; lane++) {
            low[lane] = (uint32_t)whole[lane];
            high[lane] = (uint32_t)(whole[lane] >> 32);
        }
        wpk_lanes_put_32(warp, &in->operand[0], low);
        wpk_lanes_put_32(warp, &in->operand[1], high);
        return;
    }
    for (int lane = 0; lane < WPK_WARP_LANES; lane++) {
        uint64_t whole = get(warp, from, lane);
        for (int i = 0; i + 1 < in->operand_count && (warp->active >> lane & 1) != 0; i++) {
            put(warp, &in->operand[i], lane, whole);
            whole >>= 8 * in->operand[i].size % 64;
        }
    }
}

/* ---- conversions */

static const struct {
    uint8_t size;
    bool is_signed, is_float;
} types[] = {
#define SIGNED(name) (WPK_PTX_##name >= WPK_PTX_S8 && WPK_PTX_##name <= WPK_PTX_S64)
#define ROW(name, text, size)                                                                      \
    {size, SIGNED(name), WPK_PTX_##name == WPK_PTX_F32 || WPK_PTX_##name == WPK_PTX_F64},
    WPK_PTX_TYPE_LIST(ROW)};

uint64_t wpk_ptx_extend(uint64_t bits, enum wpk_ptx_type type)
{
    int unused = 64 - 8 * types[type].size;
    return types[type].is_signed ? (uint64_t)((int64_t)(bits << unused) >> unused)
                                 : bits << unused >> unused;
}

static double to_float(uint64_t bits, enum wpk_ptx_type type)
{
    float single;
    double number;
    uint32_t low = (uint32_t)bits;
    memcpy(&single, &low, sizeof(single));
    memcpy(&number, &bits, sizeof(number));
    return type == WPK_PTX_F32 ? (double)single : number;
}

static uint64_t from_float(double number, enum wpk_ptx_type type)
{
    volatile float single = (float)number; /* rounds as the mode says */
    float rounded = single;
    uint32_t low;
    uint64_t bits;
    memcpy(&low, &rounded, sizeof(low));
    memcpy(&bits, &number, sizeof(bits));
    return type == WPK_PTX_F32 ? low : bits;
}

/* Rounded to an integral value; what the type cannot hold is the nearest that it can. NaN is zero,
 * or the first bit alone where one of the types has 64. */
static uint64_t float_to_integer(double number, enum wpk_ptx_type type, enum wpk_ptx_type from)
{
    int bits = 8 * types[type].size - types[type].is_signed;
    double least = types[type].is_signed ? -ldexp(1, bits) : 0, most = ldexp(1, bits);
    number = nearbyint(number);
    if (isnan(number)) {
        bool wide = types[type].size == 8 || types[from].size == 8;
        return wide ? (uint64_t)1 << (8 * types[type].size - 1) : 0;
    }
    if (number >= most) {
        return bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
    }
    if (number <= least) {
        return types[type].is_signed ? (uint64_t)0 - ((uint64_t)1 << bits) : 0;
    }
    return number < 0 ? (uint64_t)(int64_t)number : (uint64_t)number;
}

/* Straight to f32: by way of f64 a number of 64 bits would be rounded twice. */
static uint64_t integer_to_float(uint64_t number, bool is_signed, enum wpk_ptx_type type)
{
    volatile float single = is_signed ? (float)(int64_t)number : (float)number;
    volatile double wide = is_signed ? (double)(int64_t)number : (double)number;
    float low = single;
    uint32_t bits;
    memcpy(&bits, &low, sizeof(bits));
    return type == WPK_PTX_F32 ? bits : from_float(wide, type);
}

static uint64_t limit_integer(uint64_t number, enum wpk_ptx_type from, enum wpk_ptx_type to)
{
    bool negative = types[from].is_signed && (int64_t)number < 0;
    int bits = 8 * types[to].size - types[to].is_signed;
    uint64_t most = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
    if (!negative) {
        return number > most ? most : number;
    }
    uint64_t least = types[to].is_signed ? ~most : 0;
    return (int64_t)number < (int64_t)least ? least : number;
}

static uint64_t convert(const struct wpk_ptx_instruction *in, uint64_t bits)
{
    enum wpk_ptx_type to = in->type, from = in->from;
    if (types[from].is_float) {
        double number = to_float(bits, from);
        if (!types[to].is_float) {
            return float_to_integer(number, to, from);
        }
        number = in->to_integer ? nearbyint(number) : number;
        if (in->saturates) {
            number = isnan(number) || number < 0 ? 0 : number > 1 ? 1 : number;
        }
        return from_float(number, to);
    }
    bits = wpk_ptx_extend(bits, from);
    if (types[to].is_float) {
        bool negative = types[from].is_signed && (int64_t)bits < 0;
        bits = in->saturates ? bits != 0 && !negative : bits;
        return integer_to_float(bits, types[from].is_signed, to);
    }
    return in->saturates ? limit_integer(bits, from, to) : bits;
}

/* The conversions that kernels have most, to 64 bits of the same kind; false: it is another one. */
static bool widen(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    uint64_t results[WPK_WARP_LANES];
    bool wider = in->operand[1].size == 4 && in->operand[0].size == 8 && !in->saturates &&
                 types[in->from].size == 4 && types[in->type].size == 8 &&
                 types[in->from].is_float == types[in->type].is_float;
    if (!wider) {
        return false;
    }
    const uint32_t_lane *from = WPK_LANES(uint32_t, 1);
    for (int lane = 0; lane < WPK_WARP_LANES && types[in->from].is_float; lane++) {
        float single;
        memcpy(&single, &from[lane], sizeof(single));
        double number = (double)single;
        memcpy(&results[lane], &number, sizeof(number));
    }
    for (int lane = 0; lane < WPK_WARP_LANES && !types[in->from].is_float; lane++) {
        results[lane] =
            types[in->from].is_signed ? (uint64_t)(int64_t)(int32_t)from[lane] : from[lane];
    }
    wpk_lanes_put_64(warp, &in->operand[0], results);
    return true;
}

/* f64 to f32, rounded to the nearest; false: it is another one. */
static bool narrow(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    float results[WPK_WARP_LANES];
    if (in->from != WPK_PTX_F64 || in->type != WPK_PTX_F32 || in->saturates ||
        in->round > WPK_PTX_ROUND_EVEN) {
        return false;
    }
    const double_lane *from = WPK_LANES(double, 1);
    for (int lane = 0; lane < WPK_WARP_LANES; lane++) {
        results[lane] = (float)from[lane];
    }
    wpk_lanes_put_32(warp, &in->operand[0], results);
    return true;
}

void wpk_ptx_convert(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    static const int modes[] = {FE_TONEAREST, FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    if (!in->to_integer && (widen(warp, in) || narrow(warp, in))) {
        return;
    }
    int before = in->round > WPK_PTX_ROUND_EVEN ? fegetround() : FE_TONEAREST;
    if (in->round > WPK_PTX_ROUND_EVEN) {
        (void)fesetround(modes[in->round]);
    }
    for (int lane = 0; lane < WPK_WARP_LANES; lane++) {
        if ((warp->active >> lane & 1) != 0) {
            uint64_t bits = convert(in, get(warp, &in->operand[1], lane));
            put(warp, &in->operand[0], lane, wpk_ptx_extend(bits, in->type));
        }
    }
    if (in->round > WPK_PTX_ROUND_EVEN) {
        (void)fesetround(before);
    }
}
