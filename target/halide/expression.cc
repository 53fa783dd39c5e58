// SPDX-License-Identifier: Apache-2.0
// Expressions of the program, node by node, and what keeps strict operations strict.
#include "target/halide/expression.hh"

#include <algorithm>
#include <cmath>

namespace wpk
{

using Halide::Expr;
using namespace Halide::Internal;

Halide::Type type_of(wpk_dtype dtype)
{
    switch (dtype) {
    case WPK_F32:
        return Halide::Float(32);
    case WPK_F64:
        return Halide::Float(64);
    case WPK_F16:
        return Halide::Float(16);
    case WPK_BF16:
        return Halide::BFloat(16);
    case WPK_I8:
        return Halide::Int(8);
    case WPK_U8:
        return Halide::UInt(8);
    case WPK_I16:
        return Halide::Int(16);
    case WPK_I32:
        return Halide::Int(32);
    case WPK_I64:
        return Halide::Int(64);
    case WPK_BOOL:
        return Halide::UInt(1);
    default:
        throw Failure{"unknown element type"};
    }
}

namespace
{

Expr real(Halide::Type type, double value)
{
    return make_const(type, value);
}

// Axes, and i64 numbers that meet nothing else, have 32 bits, which Halide reasons about.
bool is_short(int64_t value)
{
    return value >= INT32_MIN && value <= INT32_MAX;
}

Expr literal_of(const wpk_node &node)
{
    if (!wpk_dtype_is_float(node.dtype)) {
        bool narrow = node.dtype == WPK_I64 && is_short(node.integer);
        return make_const(narrow ? Halide::Int(32) : type_of(node.dtype), node.integer);
    }
    return real(type_of(node.dtype), node.value);
}

// What the operation makes of infinities and NaN is what the machine does. Its operands are built
// as they are: they may be finite.
template <typename F> Expr strictly(const Expr &a, const Expr &b, F operation)
{
    Expr x = Variable::make(a.type(), "a"), y = Variable::make(b.type(), "b");
    Expr strict = Halide::strict_float(operation(x, y));
    return substitute({{"a", a}, {"b", b}}, strict);
}

Expr pow_of(const Expr &base, const Expr &exponent);

// Halide's remainder is never negative, ours has the sign of the divisor: a quotient by a negative
// divisor that leaves a rest is one less.
Expr floored(int op, const Expr &a, const Expr &b)
{
    Expr quotient = a / b, rest = a % b;
    if (!a.type().is_int() || is_positive_const(b)) {
        return op == WPK_BINARY_DIV ? quotient : rest;
    }
    Expr lower = b < 0 && rest != 0;
    return op == WPK_BINARY_DIV ? Halide::select(lower, quotient - 1, quotient)
                                : Halide::select(lower, rest + b, rest);
}

Expr operation(int op, const Expr &a, const Expr &b)
{
    switch (op) {
    case WPK_BINARY_ADD:
        return a + b;
    case WPK_BINARY_SUB:
        return a - b;
    case WPK_BINARY_MUL:
        return a * b;
    case WPK_BINARY_DIV:
    case WPK_BINARY_MOD:
        return floored(op, a, b);
    case WPK_BINARY_MIN:
        return Halide::min(a, b);
    case WPK_BINARY_MAX:
        return Halide::max(a, b);
    case WPK_BINARY_POW:
        return pow_of(a, b);
    case WPK_BINARY_LT:
        return a < b;
    case WPK_BINARY_LE:
        return a <= b;
    case WPK_BINARY_EQ:
        return a == b;
    case WPK_BINARY_NE:
        return a != b;
    case WPK_BINARY_AND:
        return a && b;
    case WPK_BINARY_OR:
        return a || b;
    default:
        throw Failure{"unknown binary operation"};
    }
}

Expr strict_operation(int op, const Expr &a, const Expr &b)
{
    return strictly(a, b, [op](const Expr &x, const Expr &y) { return operation(op, x, y); });
}

Expr strict_product(const Expr &a, const Expr &b)
{
    return strict_operation(WPK_BINARY_MUL, a, b);
}

Expr is_less(const Expr &a, const Expr &b)
{
    return strict_operation(WPK_BINARY_LT, a, b);
}

Expr is_equal(const Expr &a, const Expr &b)
{
    return strict_operation(WPK_BINARY_EQ, a, b);
}

Expr nan_of_bits()
{
    return Halide::reinterpret<float>(Expr(UINT32_C(0x7fc00000)));
}

// Clamp `a` to [least, largest], both exact in its type; NaN stays NaN.
Expr limit(double least, const Expr &a, double largest)
{
    Expr low = strict_operation(WPK_BINARY_MAX, real(a.type(), least), a);
    return strict_operation(WPK_BINARY_MIN, real(a.type(), largest), low);
}

Expr polynomial(const std::vector<double> &coefficients, const Expr &x)
{
    Expr p = real(x.type(), coefficients[0]);
    for (size_t i = 1; i < coefficients.size(); i++) {
        p = p * x + real(x.type(), coefficients[i]);
    }
    return p;
}

// The sum t rounds to an integer n, since its last place is 1, and its low bits are the exponent of
// 2^(n-1), or 0, which the rest's polynomial is multiplied with (Moshier's Cephes library, 1989).
// Halide's own rounding is of half a vector. Fast operations on a NaN make a NaN; the last product
// is strict, so that no compiler takes it for a number. So is the difference from n C, which is
// exact, unless it is fused: LLVM adds up the two Cs else. Unsigned numbers may wrap around.
Expr exp_of(const Expr &value, bool fuses)
{
    const float magic = 0x1.8p+23F + 126;
    const Expr magic_bits = Expr(UINT32_C(0x4b400000) + 126);
    if (value.type() != Halide::Float(32)) {
        return Halide::exp(value);
    }
    Expr a = limit(-0x1.5d589ep+6, value, 89);
    Expr t = Halide::reinterpret<uint32_t>(a * 0x1.715476p+0F + magic);
    Expr n = Halide::cast<float>(Halide::reinterpret<int32_t>(t - magic_bits));
    Expr product = n * 0x1.63p-1F;
    Expr r =
        (fuses ? a - product : strict_operation(WPK_BINARY_SUB, a, product)) + n * 0x1.bd0106p-13F;
    Expr p = polynomial({1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2,
                         1.6666665459e-1, 5.0000001201e-1, 1.0, 1.0},
                        r);
    return strict_product(p + p, Halide::reinterpret<float>(t << 23));
}

// The same library's: of a part of [0.7, 1.42) and the exponent that is taken out of it.
Expr log_of(const Expr &value)
{
    if (value.type() != Halide::Float(32)) {
        return Halide::log(value);
    }
    const Expr zero = 0.0F, infinity = real(Halide::Float(32), INFINITY);
    Expr is_small = is_less(value, 0x1p-126F);
    Expr bits = Halide::reinterpret<uint32_t>(
        Halide::select(is_small, strict_product(value, 0x1p23F), value));
    Expr e = Halide::reinterpret<int32_t>(bits - Expr(UINT32_C(0x3f3504f3))) >> 23;
    Expr part = Halide::reinterpret<float>(bits - (Halide::reinterpret<uint32_t>(e) << 23));
    Expr n = Halide::cast<float>(e - Halide::select(is_small, 23, 0));
    Expr f = part - 1.0F, square = f * f;
    Expr p = polynomial({7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1,
                         1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1,
                         3.3333331174e-1},
                        f);
    p = p * f * square - n * 0x1.bd0106p-13F - 0.5F * square + f + n * 0x1.63p-1F;
    return Halide::select(is_less(zero, value), Halide::select(is_less(value, infinity), p, value),
                          Halide::select(is_equal(value, zero), -infinity, nan_of_bits()));
}

// log2 of a positive f32 as f64: a series in (a - 1) / (a + 1), of a part of [0.7, 1.42).
Expr wide_log2(const Expr &value)
{
    const double log2e = 0x1.71547652b82fep+0;
    Expr bits = Halide::reinterpret<uint64_t>(Halide::cast<double>(value));
    Expr e = Halide::reinterpret<int64_t>(bits - Expr(UINT64_C(0x3fe6a09e667f3bcd))) >> 52;
    Expr part = Halide::reinterpret<double>(bits - (Halide::reinterpret<uint64_t>(e) << 52));
    Expr s = (part - Expr(1.0)) / (part + Expr(1.0));
    Expr p = polynomial({2 * log2e / 13, 2 * log2e / 11, 2 * log2e / 9, 2 * log2e / 7,
                         2 * log2e / 5, 2 * log2e / 3, 2 * log2e},
                        s * s);
    return Halide::cast<double>(Halide::cast<int32_t>(e)) + s * p;
}

// 2^x as f32, by f64: the scale's exponent is in the low bits of t, as in exp_of.
Expr wide_exp2(const Expr &value)
{
    const Expr magic_bits = Expr(UINT64_C(0x4338000000000000));
    Expr x = limit(-1022, value, 1000);
    Expr t = Halide::reinterpret<uint64_t>(x + Expr(0x1.8p+52));
    Expr n = Halide::cast<int32_t>(Halide::reinterpret<int64_t>(t - magic_bits));
    Expr p = polynomial(
        {1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0},
        (x - Halide::cast<double>(n)) * Expr(0x1.62e42fefa39efp-1));
    Expr scale = Halide::reinterpret<double>((t + Expr(UINT64_C(1023))) << 52);
    return Halide::cast<float>(strict_product(p, scale));
}

// Of f32 as 2^(b log2 |a|) in f64, in which nothing leaves the range, and no error of 2^-30 shows.
Expr pow_of(const Expr &base, const Expr &exponent)
{
    if (base.type() != Halide::Float(32)) {
        return Halide::pow(base, exponent);
    }
    const Expr one = 1.0F, zero = 0.0F, infinity = real(Halide::Float(32), INFINITY);
    Expr size = Halide::abs(base), halved = exponent * 0.5F;
    Expr special = Halide::select(is_equal(size, zero), -infinity, size);
    Expr log2 = Halide::select(is_less(zero, size) && is_less(size, infinity), wide_log2(size),
                               Halide::cast<double>(special));
    Expr value = wide_exp2(strict_product(Halide::cast<double>(exponent), log2));
    Expr is_whole = is_equal(exponent, Halide::floor(exponent));
    Expr is_odd = is_whole && !is_equal(halved, Halide::floor(halved));
    Expr sign = Halide::reinterpret<uint32_t>(base) & Expr(UINT32_C(0x80000000));
    value = Halide::reinterpret<float>(Halide::reinterpret<uint32_t>(value) |
                                       Halide::select(is_odd, sign, Expr(UINT32_C(0))));
    value = Halide::select(is_less(base, zero) && is_less(size, infinity) && !is_whole,
                           nan_of_bits(), value);
    Expr is_one =
        is_equal(base, one) || (is_equal(size, one) && is_equal(Halide::abs(exponent), infinity));
    return Halide::select(is_one || is_equal(exponent, zero), one, value);
}

Expr function(int op, const Expr &a, bool fuses)
{
    switch (op) {
    case WPK_UNARY_NEG:
        return -a;
    case WPK_UNARY_NOT:
        return !a;
    case WPK_UNARY_EXP:
        return exp_of(a, fuses);
    case WPK_UNARY_LOG:
        return log_of(a);
    case WPK_UNARY_SQRT:
        return Halide::sqrt(a);
    case WPK_UNARY_ABS:
        if (a.type() == Halide::Float(64)) { // Halide's takes an infinity for impossible
            return Halide::reinterpret<double>(Halide::reinterpret<uint64_t>(a) &
                                               Expr(UINT64_MAX >> 1));
        }
        return Halide::cast(a.type(), Halide::abs(a));
    case WPK_UNARY_FLOOR:
        return Halide::floor(a);
    case WPK_UNARY_CEIL:
        return Halide::ceil(a);
    case WPK_UNARY_ROUND:
        return Halide::round(a);
    case WPK_UNARY_TRUNC:
        return Halide::trunc(a);
    case WPK_UNARY_SIN:
        return Halide::sin(a);
    case WPK_UNARY_COS:
        return Halide::cos(a);
    default:
        throw Failure{"not a primitive function"};
    }
}

// Halide compares f16 in f32, to which it casts with fast arithmetic: bits know no type.
Expr is_infinity(const Expr &a, double infinity)
{
    Halide::Type bits = Halide::UInt(a.type().bits());
    return Halide::reinterpret(bits, a) == Halide::reinterpret(bits, real(a.type(), infinity));
}

// To f32, so that the next cast rounds as if it were the only one: 13 digits, of which the last is
// set if any digit after it is. Bits, because LLVM makes one cast of two, and calls a function.
Expr to_odd(const Expr &a)
{
    const int dropped = 40, infinity = 0x7f800000, quiet = 0x400000;
    Expr bits = Halide::reinterpret<uint64_t>(a);
    Expr mask = make_const(Halide::UInt(64), (UINT64_C(1) << dropped) - 1);
    Expr kept = Halide::cast<float>(Halide::reinterpret<double>(bits & ~mask));
    Expr number = Halide::reinterpret<int32_t>(kept);
    Expr is_nan = (bits >> 52 & 0x7ff) == 0x7ff; // or an infinity, of which no digit is set
    Expr too_large = (number & infinity) == infinity;
    Expr odd = Halide::select(is_nan, quiet, too_large, 0, 1 << (dropped - 29));
    return Halide::reinterpret<float>(number | Halide::select((bits & mask) != 0, odd, 0));
}

// An f32 for a cast to f16. The limit of its bits changes no number, but LLVM cannot know that: it
// would make one cast of this one and one from f64 that it meets in registers, and call a function.
Expr limited(const Expr &a)
{
    const int nan = 0x7fc00000;
    return Halide::reinterpret<float>(Halide::min(Halide::reinterpret<int32_t>(a), nan));
}

// A condition that Halide does not solve for the variable of a loop: it would compute only what the
// condition lets through of the stages that an arm reads, which the nest's extents and steps do not
// fit. LLVM sees through the cast.
Expr opaque(const Expr &condition)
{
    return Halide::cast<uint8_t>(condition) != 0;
}

// An operand that is cast to an integer is rounded; everything else is Halide's cast.
Expr cast_to(wpk_dtype dtype, const Expr &a)
{
    Halide::Type to = type_of(dtype);
    if (a.type() == to) {
        return a;
    }
    bool wide = a.type() == Halide::Float(64) || (a.type().is_int() && a.type().bits() >= 32);
    if (wide && to.is_float() && to.bits() == 16) { // f32 cannot represent all of them
        return Halide::cast(to, to_odd(Halide::cast<double>(a)));
    }
    if (a.type() == Halide::Float(32) && to == Halide::Float(16)) {
        return Halide::cast(to, limited(a));
    }
    bool saturates = a.type().is_float() && !to.is_float() && !to.is_bool();
    return saturates ? Halide::saturating_cast(to, a) : Halide::cast(to, a);
}

} // namespace

Expr identity_of(const wpk_program &program, const wpk_stage &stage)
{
    const wpk_node &node = program.nodes[stage.identity];
    Halide::Type type = type_of(node.dtype);
    Expr identity = type.is_float() ? real(type, node.value) : make_const(type, node.integer);
    // Halide looks for strict operations before StrictPass makes them: there has to be one.
    return stage.strict ? strict_operation(WPK_BINARY_ADD, identity, make_zero(type)) : identity;
}

// An element of a literal as a choice between its values: once the index is a number, so is this.
Expr Expressions::element(const wpk_tensor &t, const std::vector<Expr> &index) const
{
    std::vector<Expr> values;
    Expr at = 0;
    for (int d = 0; d < t.rank; d++) {
        at = at * static_cast<int>(t.extent[d]) + index[static_cast<size_t>(t.rank - 1 - d)];
    }
    for (int64_t k = 0; k < wpk_tensor_elements(&t); k++) {
        values.push_back(make_const(type_of(t.dtype), t.values[k]));
    }
    return Halide::mux(at, values);
}

// The row and the column that i / n and i % n are, of a tensor stored in part. Halide finds that
// the address n * (i / n - first) + i % n is that of neighbours only where both are written by the
// same quotient, which it must not look into.
void Expressions::read_flat(const wpk_node &node, int dim, std::vector<Expr> &index)
{
    const wpk_tensor &t = program_.tensors[node.tensor];
    int width = static_cast<int>(t.extent[dim + 1]);
    Expr i = convert(program_.nodes[node.index[dim]].arg[0]);
    Expr row = Halide::likely(i / width);
    index[static_cast<size_t>(t.rank - 1 - dim)] = row;
    index[static_cast<size_t>(t.rank - 2 - dim)] =
        Halide::unsafe_promise_clamped(i - row * width, 0, width - 1);
}

// A load as a `dtype`. Halide takes no branch around it: it reads an element of the tensor, and
// selects. What is read for elements that nobody needs is an element of the tensor, too.
Expr Expressions::load(const wpk_node &node, wpk_dtype dtype)
{
    const wpk_tensor &t = program_.tensors[node.tensor];
    const Tensor &source = tensors_[static_cast<size_t>(node.tensor)];
    std::vector<Expr> index(static_cast<size_t>(t.rank));
    Expr inside;
    for (int d = 0; d < t.rank; d++) {
        Expr e = convert(node.index[d]);
        int64_t low = 0, high = 0;
        wpk_index_range(&program_, &stage_, node.index[d], &low, &high);
        int64_t first = -t.pad_before[d], last = t.extent[d] + t.pad_after[d] - 1;
        if (low < first || high > last) {
            int lo = static_cast<int>(first), hi = static_cast<int>(last);
            inside = inside.defined() ? inside && e >= lo && e <= hi : e >= lo && e <= hi;
            e = Halide::clamp(Halide::likely(e), lo, hi);
        } else if ((limited_[node.tensor] >> d & 1) != 0) {
            e = Halide::clamp(Halide::likely(e), static_cast<int>(first), static_cast<int>(last));
        }
        index[static_cast<size_t>(t.rank - 1 - d)] = Halide::cast<int>(e);
    }
    int flat = source.part ? wpk_load_flat_dim(&program_, &node) : -1;
    if (flat >= 0 && !inside.defined()) { // only what is given is limited
        read_flat(node, flat, index);
    }
    Expr value;
    if (t.role == WPK_ROLE_LITERAL) {
        // loops of a sum that is an expression are unrolled
        value = stage_.reduction == WPK_REDUCE_NONE || !source.literal.defined()
                    ? element(t, index)
                    : Expr(source.literal(index));
    } else if (t.role == WPK_ROLE_INPUT || t.role == WPK_ROLE_CONSTANT) {
        value = source.image(index);
    } else {
        value = source.func(index);
    }
    value = cast_to(dtype, value);
    return node.outside < 0 ? value
                            : Halide::select(inside, value, cast_to(dtype, convert(node.outside)));
}

Expr Expressions::unary(const wpk_node &node)
{
    Expr a = convert(node.arg[0]);
    // the others are one instruction, or a call, which assumes nothing
    switch (node.strict ? node.op : WPK_UNARY_COUNT) {
    case WPK_UNARY_NEG:
        return strictly(a, a, [](const Expr &x, const Expr &) { return -x; });
    default:
        return function(node.op, a, fuses_);
    }
}

Expr Expressions::binary(int id)
{
    const wpk_node &node = program_.nodes[id];
    const wpk_node &right = program_.nodes[node.arg[1]];
    Expr a = convert(node.arg[0]), b = convert(node.arg[1]);
    if (node.dtype == WPK_I64 && a.type().bits() == 32 && b.type().bits() == 32) {
        int64_t low = 0, high = 0;
        wpk_index_range(&program_, &stage_, id, &low, &high);
        a = is_short(low) && is_short(high) ? a : Halide::cast<int64_t>(a);
    }
    if (node.op == WPK_BINARY_EQ && node.strict && right.kind == WPK_NODE_LITERAL &&
        std::isinf(right.value) && a.type().bits() == 16) {
        return is_infinity(a, right.value);
    }
    return node.strict ? strict_operation(node.op, a, b) : operation(node.op, a, b);
}

Expr Expressions::make(int id)
{
    const wpk_node &node = program_.nodes[id];
    switch (node.kind) {
    case WPK_NODE_LITERAL:
        return literal_of(node);
    case WPK_NODE_AXIS:
        return axes_[static_cast<size_t>(node.axis)];
    case WPK_NODE_LOAD:
        return load(node, node.dtype);
    case WPK_NODE_UNARY:
        return unary(node);
    case WPK_NODE_BINARY:
        return binary(id);
    case WPK_NODE_SELECT: {
        Expr condition = convert(node.arg[0]);
        condition = wpk_node_has_axis(&program_, node.arg[0]) ? opaque(condition) : condition;
        return Halide::select(condition, cast_to(node.dtype, convert(node.arg[1])),
                              cast_to(node.dtype, convert(node.arg[2])));
    }
    case WPK_NODE_CAST: {
        const wpk_node &operand = program_.nodes[node.arg[0]];
        return operand.kind == WPK_NODE_LOAD ? load(operand, node.dtype)
                                             : cast_to(node.dtype, convert(node.arg[0]));
    }
    default:
        throw Failure{"unknown node"};
    }
}

Expr Expressions::value()
{
    return cast_to(program_.nodes[stage_.expr].dtype, convert(stage_.expr));
}

Expr Expressions::convert(int id)
{
    auto found = made_.find(id);
    return found != made_.end() ? found->second : made_.emplace(id, make(id)).first->second;
}

namespace
{

Expr combine(VectorReduce::Operator op, const Expr &a, const Expr &b)
{
    switch (op) {
    case VectorReduce::Add:
        return Add::make(a, b);
    case VectorReduce::Mul:
        return Mul::make(a, b);
    case VectorReduce::Min:
        return Min::make(a, b);
    default:
        return Max::make(a, b);
    }
}

} // namespace

Expr StrictPass::visit(const VectorReduce *reduce)
{
    Expr value = mutate(reduce->value);
    int lanes = value.type().lanes();
    bool halves = reduce->type.is_scalar() && (lanes & (lanes - 1)) == 0;
    if (!halves || !reduce->type.is_float()) {
        return VectorReduce::make(reduce->op, value, reduce->type.lanes());
    }
    std::vector<std::pair<std::string, Expr>> whole;
    while (lanes > 1) {
        whole.emplace_back(unique_name("lanes"), value);
        Expr all = Variable::make(value.type(), whole.back().first);
        lanes /= 2;
        value = combine(reduce->op, Shuffle::make_slice(all, 0, 1, lanes),
                        Shuffle::make_slice(all, lanes, 1, lanes));
    }
    for (size_t i = whole.size(); i-- > 0;) {
        value = Let::make(whole[i].first, whole[i].second, value);
    }
    return value;
}

Expr OutputPass::visit(const Load *load)
{
    Expr mutated = IRMutator::visit(load);
    auto output = outputs_.find(load->name);
    const Load *l = mutated.as<Load>();
    return output == outputs_.end() ? mutated
                                    : Load::make(l->type, l->name, l->index, l->image,
                                                 output->second, l->predicate, l->alignment);
}

Stmt StrictPass::visit(const Store *store)
{
    Stmt mutated = IRMutator::visit(store);
    bool strict = std::find(strict_.begin(), strict_.end(), store->name) != strict_.end();
    const Store *s = mutated.as<Store>();
    return !strict ? mutated
                   : Store::make(s->name, Halide::strict_float(s->value), s->index, s->param,
                                 s->predicate, s->alignment);
}

} // namespace wpk
