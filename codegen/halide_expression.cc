// SPDX-License-Identifier: Apache-2.0
// Expressions of the program, node by node, and what keeps strict operations strict.
#include "codegen/halide_expression.hh"

#include <algorithm>
#include <cmath>

namespace wpk {

using Halide::Expr;
using namespace Halide::Internal;

Halide::Type type_of(wpk_dtype dtype) {
    switch (dtype) {
    case WPK_F32: return Halide::Float(32);
    case WPK_F64: return Halide::Float(64);
    case WPK_F16: return Halide::Float(16);
    case WPK_BF16: return Halide::BFloat(16);
    case WPK_I8: return Halide::Int(8);
    case WPK_U8: return Halide::UInt(8);
    case WPK_I32: return Halide::Int(32);
    case WPK_I64: return Halide::Int(64);
    case WPK_BOOL: return Halide::UInt(1);
    default: throw Failure{"unknown element type"};
    }
}

namespace {

Expr real(Halide::Type type, double value) {
    return make_const(type, value);
}

// Axes, and i64 numbers that meet nothing else, have 32 bits, which Halide reasons about.
bool is_short(int64_t value) {
    return value >= INT32_MIN && value <= INT32_MAX;
}

Expr literal_of(const wpk_node &node) {
    if (!wpk_dtype_is_float(node.dtype)) {
        bool narrow = node.dtype == WPK_I64 && is_short(node.integer);
        return make_const(narrow ? Halide::Int(32) : type_of(node.dtype), node.integer);
    }
    return real(type_of(node.dtype), node.value);
}

// What the operation makes of infinities and NaN is what the machine does. Its operands are built
// as they are: they may be finite.
template <typename F> Expr strictly(const Expr &a, const Expr &b, F operation) {
    Expr x = Variable::make(a.type(), "a"), y = Variable::make(b.type(), "b");
    Expr strict = Halide::strict_float(operation(x, y));
    return substitute({{"a", a}, {"b", b}}, strict);
}

// The sum t rounds to an integer, since its last place is 1, and its low bits are added to the
// exponent of the rest's polynomial (Moshier's Cephes library, 1989). Halide's own rounding is of
// half a vector. What is less than the least normal number becomes 0, what is more than the
// largest becomes about that. Unsigned numbers may wrap around.
Expr exp_of(const Expr &value) {
    const float magic = 0x1.8p+23F, log_least = -0x1.5d589ep+6F, log_largest = 0x1.62e42ep+6F;
    const Expr magic_bits = Expr(UINT32_C(0x4b400000));
    const float terms[] = {1.3981999507e-3F, 8.3334519073e-3F, 4.1665795894e-2F, 1.6666665459e-1F,
                           5.0000001201e-1F, 1.0F,             1.0F};
    if (value.type() != Halide::Float(32)) {
        return Halide::exp(value);
    }
    Expr a = Halide::min(value, log_largest);
    Expr t = Halide::reinterpret<uint32_t>(a * 0x1.715476p+0F + magic);
    Expr n = Halide::cast<float>(Halide::reinterpret<int32_t>(t - magic_bits));
    Expr r = a - n * 0x1.63p-1F + n * 0x1.bd0106p-13F;
    Expr p = 1.9875691500e-4F;
    for (float term : terms) {
        p = p * r + term;
    }
    Expr number = Halide::reinterpret<uint32_t>(p) + (t << 23);
    return Halide::select(a >= log_least, Halide::reinterpret<float>(number), 0.0F);
}

Expr function(int op, const Expr &a) {
    switch (op) {
    case WPK_UNARY_NEG: return -a;
    case WPK_UNARY_NOT: return !a;
    case WPK_UNARY_EXP: return exp_of(a);
    case WPK_UNARY_LOG: return Halide::log(a);
    case WPK_UNARY_SQRT: return Halide::sqrt(a);
    case WPK_UNARY_ABS: return Halide::cast(a.type(), Halide::abs(a));
    case WPK_UNARY_FLOOR: return Halide::floor(a);
    case WPK_UNARY_CEIL: return Halide::ceil(a);
    case WPK_UNARY_ROUND: return Halide::round(a);
    case WPK_UNARY_TRUNC: return Halide::trunc(a);
    case WPK_UNARY_SIN: return Halide::sin(a);
    case WPK_UNARY_COS: return Halide::cos(a);
    default: throw Failure{"not a primitive function"};
    }
}

// Halide's remainder is never negative, ours has the sign of the divisor: a quotient by a negative
// divisor that leaves a rest is one less.
Expr floored(int op, const Expr &a, const Expr &b) {
    Expr quotient = a / b, rest = a % b;
    if (!a.type().is_int() || is_positive_const(b)) {
        return op == WPK_BINARY_DIV ? quotient : rest;
    }
    Expr lower = b < 0 && rest != 0;
    return op == WPK_BINARY_DIV ? Halide::select(lower, quotient - 1, quotient)
                                : Halide::select(lower, rest + b, rest);
}

Expr operation(int op, const Expr &a, const Expr &b) {
    switch (op) {
    case WPK_BINARY_ADD: return a + b;
    case WPK_BINARY_SUB: return a - b;
    case WPK_BINARY_MUL: return a * b;
    case WPK_BINARY_DIV:
    case WPK_BINARY_MOD: return floored(op, a, b);
    case WPK_BINARY_MIN: return Halide::min(a, b);
    case WPK_BINARY_MAX: return Halide::max(a, b);
    case WPK_BINARY_POW: return Halide::pow(a, b);
    case WPK_BINARY_LT: return a < b;
    case WPK_BINARY_LE: return a <= b;
    case WPK_BINARY_EQ: return a == b;
    case WPK_BINARY_NE: return a != b;
    case WPK_BINARY_AND: return a && b;
    case WPK_BINARY_OR: return a || b;
    default: throw Failure{"unknown binary operation"};
    }
}

Expr strict_operation(int op, const Expr &a, const Expr &b) {
    return strictly(a, b, [op](const Expr &x, const Expr &y) { return operation(op, x, y); });
}

// Halide compares f16 in f32, to which it casts with fast arithmetic: bits know no type.
Expr is_infinity(const Expr &a, double infinity) {
    Halide::Type bits = Halide::UInt(a.type().bits());
    return Halide::reinterpret(bits, a) == Halide::reinterpret(bits, real(a.type(), infinity));
}

// To f32, so that the next cast rounds as if it were the only one: 13 digits, of which the last is
// set if any digit after it is. Bits, because LLVM makes one cast of two, and calls a function.
Expr to_odd(const Expr &a) {
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
Expr limited(const Expr &a) {
    const int nan = 0x7fc00000;
    return Halide::reinterpret<float>(Halide::min(Halide::reinterpret<int32_t>(a), nan));
}

// A condition that Halide does not solve for the variable of a loop: it would compute only what the
// condition lets through of the stages that an arm reads, which the nest's extents and steps do not
// fit. LLVM sees through the cast.
Expr opaque(const Expr &condition) {
    return Halide::cast<uint8_t>(condition) != 0;
}

// An operand that is cast to an integer is rounded; everything else is Halide's cast.
Expr cast_to(wpk_dtype dtype, const Expr &a) {
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

Expr identity_of(const wpk_program &program, const wpk_stage &stage) {
    const wpk_node &node = program.nodes[stage.identity];
    Halide::Type type = type_of(node.dtype);
    Expr identity = type.is_float() ? real(type, node.value) : make_const(type, node.integer);
    // Halide looks for strict operations before StrictPass makes them: there has to be one.
    return stage.strict ? strict_operation(WPK_BINARY_ADD, identity, make_zero(type)) : identity;
}

// An element of a literal as a choice between its values: once the index is a number, so is this.
Expr Expressions::element(const wpk_tensor &t, const std::vector<Expr> &index) const {
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
void Expressions::read_flat(const wpk_node &node, int dim, std::vector<Expr> &index) {
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
Expr Expressions::load(const wpk_node &node, wpk_dtype dtype) {
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
        index[static_cast<size_t>(t.rank - 1 - d)] = e;
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
    return node.outside < 0
               ? value
               : Halide::select(inside, value, cast_to(dtype, convert(node.outside)));
}

Expr Expressions::unary(const wpk_node &node) {
    Expr a = convert(node.arg[0]);
    // the others are one instruction, or a call, which assumes nothing
    switch (node.strict ? node.op : WPK_UNARY_COUNT) {
    case WPK_UNARY_NEG: return strictly(a, a, [](const Expr &x, const Expr &) { return -x; });
    case WPK_UNARY_EXP: {
        // what is not finite must not reach a fast operation; a strict max takes no NaN
        Expr least = real(a.type(), WPK_EXP_LEAST_F32);
        return function(WPK_UNARY_EXP, strict_operation(WPK_BINARY_MAX, a, least));
    }
    default: return function(node.op, a);
    }
}

Expr Expressions::binary(int id) {
    const wpk_node &node = program_.nodes[id];
    const wpk_node &right = program_.nodes[node.arg[1]];
    Expr a = convert(node.arg[0]), b = convert(node.arg[1]);
    if (node.dtype == WPK_I64 && a.type().bits() == 32 && b.type().bits() == 32) {
        int64_t low = 0, high = 0;
        wpk_index_range(&program_, &stage_, id, &low, &high);
        a = is_short(low) && is_short(high) ? a : Halide::cast<int64_t>(a);
    }
    if (node.op == WPK_BINARY_EQ && node.strict && right.kind == WPK_NODE_LITERAL &&
        std::isinf(right.value)) {
        return is_infinity(a, right.value);
    }
    return node.strict ? strict_operation(node.op, a, b) : operation(node.op, a, b);
}

Expr Expressions::make(int id) {
    const wpk_node &node = program_.nodes[id];
    switch (node.kind) {
    case WPK_NODE_LITERAL: return literal_of(node);
    case WPK_NODE_AXIS: return axes_[static_cast<size_t>(node.axis)];
    case WPK_NODE_LOAD: return load(node, node.dtype);
    case WPK_NODE_UNARY: return unary(node);
    case WPK_NODE_BINARY: return binary(id);
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
    default: throw Failure{"unknown node"};
    }
}

Expr Expressions::value() {
    return cast_to(program_.nodes[stage_.expr].dtype, convert(stage_.expr));
}

Expr Expressions::convert(int id) {
    auto found = made_.find(id);
    return found != made_.end() ? found->second : made_.emplace(id, make(id)).first->second;
}

namespace {

Expr combine(VectorReduce::Operator op, const Expr &a, const Expr &b) {
    switch (op) {
    case VectorReduce::Add: return Add::make(a, b);
    case VectorReduce::Mul: return Mul::make(a, b);
    case VectorReduce::Min: return Min::make(a, b);
    default: return Max::make(a, b);
    }
}

} // namespace

Expr StrictPass::visit(const VectorReduce *reduce) {
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

Expr OutputPass::visit(const Load *load) {
    Expr mutated = IRMutator::visit(load);
    auto output = outputs_.find(load->name);
    const Load *l = mutated.as<Load>();
    return output == outputs_.end() ? mutated
                                    : Load::make(l->type, l->name, l->index, l->image,
                                                 output->second, l->predicate, l->alignment);
}

Stmt StrictPass::visit(const Store *store) {
    Stmt mutated = IRMutator::visit(store);
    bool strict = std::find(strict_.begin(), strict_.end(), store->name) != strict_.end();
    const Store *s = mutated.as<Store>();
    return !strict ? mutated
                   : Store::make(s->name, Halide::strict_float(s->value), s->index, s->param,
                                 s->predicate, s->alignment);
}

} // namespace wpk
