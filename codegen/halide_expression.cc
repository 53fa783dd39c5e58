// SPDX-License-Identifier: Apache-2.0
// Expressions of the program, node by node, and what keeps infinities from fast arithmetic.
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

Expr literal_of(const wpk_node &node) {
    if (!wpk_dtype_is_float(node.dtype)) {
        return make_const(node.dtype == WPK_I64 ? Halide::Int(32) : type_of(node.dtype),
                          node.integer);
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

// tanh and erf are expanded over exp: Halide turns the calls into scalar ones.
Expr tanh_of(const Expr &a) {
    Expr e = Halide::exp(Halide::abs(a) * -2);
    Expr t = (1 - e) / (1 + e);
    // near zero 1 - e cancels; two or five terms of the series are exact to a rounding there
    Expr rest = real(a.type(), 0);
    for (double c : {-1382.0 / 155925, 62.0 / 2835, -17.0 / 315, 2.0 / 15, -1.0 / 3}) {
        bool wanted = a.type() == Halide::Float(64) || std::abs(c) > 0.1;
        rest = wanted ? a * a * (real(a.type(), c) + rest) : rest;
    }
    Expr small = a * (1 + rest);
    return Halide::select(Halide::abs(a) < real(a.type(), 0.05), small,
                          Halide::select(a < 0, -t, t));
}

Expr function(int op, const Expr &a) {
    switch (op) {
    case WPK_UNARY_NEG: return -a;
    case WPK_UNARY_NOT: return !a;
    case WPK_UNARY_EXP: return Halide::exp(a);
    case WPK_UNARY_LOG: return Halide::log(a);
    case WPK_UNARY_SQRT: return Halide::sqrt(a);
    case WPK_UNARY_RSQRT: {
        // the target's estimate has 12 bits: one step of Newton's doubles them
        Expr e = make_one(a.type()) / Halide::sqrt(a);
        return e * (real(a.type(), 1.5) - real(a.type(), 0.5) * a * e * e);
    }
    case WPK_UNARY_TANH: return tanh_of(a);
    case WPK_UNARY_ERF: { // in f64 the C library's
        bool wide = a.type() == Halide::Float(64);
        return wide ? Call::make(a.type(), "erf", {a}, Call::PureExtern) : Halide::erf(a);
    }
    case WPK_UNARY_SIGMOID: return 1 / (1 + Halide::exp(-a));
    case WPK_UNARY_ABS: return Halide::cast(a.type(), Halide::abs(a));
    case WPK_UNARY_FLOOR: return Halide::floor(a);
    case WPK_UNARY_CEIL: return Halide::ceil(a);
    case WPK_UNARY_ROUND: return Halide::round(a);
    case WPK_UNARY_SIN: return Halide::sin(a);
    case WPK_UNARY_COS: return Halide::cos(a);
    default: throw Failure{"unknown unary operation"};
    }
}

Expr operation(int op, const Expr &a, const Expr &b) {
    switch (op) {
    case WPK_BINARY_ADD: return a + b;
    case WPK_BINARY_SUB: return a - b;
    case WPK_BINARY_MUL: return a * b;
    case WPK_BINARY_DIV: return a / b;
    case WPK_BINARY_MOD: return a % b;
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

// The comparison fails for NaN, which becomes the least, too.
Expr exp_of_special(wpk_dtype dtype, const Expr &a, int may_be) {
    Expr least = real(a.type(), wpk_infinite_exp_least(dtype));
    Expr value = Halide::exp(strict_operation(WPK_BINARY_MAX, a, least));
    Expr plus = real(a.type(), INFINITY), overflows = strict_operation(WPK_BINARY_EQ, a, plus);
    return (may_be & WPK_MAY_BE_PLUS) == 0 ? value : Halide::select(overflows, plus, value);
}

// A function of what may be infinite is computed of numbers, and the rest is set.
Expr function_of_special(int op, const Expr &a) {
    switch (op) {
    case WPK_UNARY_NEG: case WPK_UNARY_RSQRT:
        return strictly(a, a, [op](const Expr &x, const Expr &) { return function(op, x); });
    case WPK_UNARY_TANH: case WPK_UNARY_ERF: case WPK_UNARY_SIGMOID: case WPK_UNARY_LOG:
    case WPK_UNARY_SIN: case WPK_UNARY_COS: break;
    default: return function(op, a); // one instruction, or a call, which assumes nothing
    }
    Expr finite = Halide::is_finite(a), zero = real(a.type(), 0), one = real(a.type(), 1);
    Expr number = function(op, Halide::select(finite, a, one));
    Expr nan = strict_operation(WPK_BINARY_SUB, a, a); // of an infinity, too
    Expr below = strict_operation(WPK_BINARY_LT, a, zero);
    Expr above = strict_operation(WPK_BINARY_LT, zero, a);
    bool saturates = op == WPK_UNARY_TANH || op == WPK_UNARY_ERF || op == WPK_UNARY_SIGMOID;
    Expr low = !saturates ? nan : op == WPK_UNARY_SIGMOID ? zero : -one;
    Expr high = saturates ? one : op == WPK_UNARY_LOG ? a : nan;
    return Halide::select(finite, number, below, low, above, high, nan);
}

// Float to integer rounds to nearest even and saturates; everything else is Halide's cast.
Expr cast_to(wpk_dtype dtype, const Expr &value) {
    Halide::Type to = type_of(dtype);
    if (value.type() == to) {
        return value;
    }
    if (value.type().is_float() && !to.is_float() && !to.is_bool()) {
        return Halide::saturating_cast(to, Halide::round(value));
    }
    return Halide::cast(to, value);
}

// Halide's casts between floating types are never strict: what is special is selected apart.
Expr cast_of(wpk_dtype dtype, const Expr &a, int may_be) {
    Expr value = cast_to(dtype, a);
    if (a.type() == value.type() || !value.type().is_float()) {
        return value;
    }
    Expr nan = strict_operation(WPK_BINARY_SUB, real(value.type(), INFINITY),
                                real(value.type(), INFINITY));
    if ((may_be & WPK_MAY_BE_NAN) != 0) {
        value = Halide::select(strict_operation(WPK_BINARY_EQ, a, a), value, nan);
    }
    for (double infinity : {-INFINITY, INFINITY}) {
        int sign = infinity < 0 ? WPK_MAY_BE_MINUS : WPK_MAY_BE_PLUS;
        Halide::Type bits = Halide::UInt(a.type().bits());
        Expr is = Halide::reinterpret(bits, a) ==
                  Halide::reinterpret(bits, real(a.type(), infinity));
        value = (may_be & sign) == 0 ? value
                                     : Halide::select(is, real(value.type(), infinity), value);
    }
    return value;
}

} // namespace

Expr identity_of(wpk_reduction reduction, wpk_dtype dtype, bool infinite) {
    Halide::Type type = type_of(dtype);
    Expr identity = make_zero(type);
    if (reduction == WPK_REDUCE_PROD) {
        identity = make_one(type);
    } else if (reduction != WPK_REDUCE_SUM && type.is_float()) {
        identity = real(type, wpk_infinite_identity(reduction, dtype, infinite));
    } else if (reduction != WPK_REDUCE_SUM) {
        identity = reduction == WPK_REDUCE_MAX ? type.min() : type.max();
    }
    // Halide looks for strict operations before StrictPass makes them: there has to be one.
    return infinite ? strict_operation(WPK_BINARY_ADD, identity, make_zero(type))
                    : identity;
}

// An element of a literal as a choice between its values: once the index is a number, so is this.
Expr Expressions::element(const wpk_tensor &t, const Axes &index) const {
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

Expr Expressions::load(int id, const Axes &axes) const {
    const wpk_node &node = program.nodes[id];
    const wpk_tensor &t = program.tensors[node.tensor];
    const Tensor &source = tensors[static_cast<size_t>(node.tensor)];
    Axes index(static_cast<size_t>(t.rank));
    Expr inside;
    for (int d = 0; d < t.rank; d++) {
        Expr e = convert(node.index[d], axes);
        int64_t low = 0, high = 0;
        wpk_index_range(&program, &stage, node.index[d], &low, &high);
        int64_t first = -t.pad_before[d], last = t.extent[d] + t.pad_after[d] - 1;
        if (low < first || high > last) {
            int lo = static_cast<int>(first), hi = static_cast<int>(last);
            inside = inside.defined() ? inside && e >= lo && e <= hi : e >= lo && e <= hi;
            e = Halide::clamp(Halide::likely(e), lo, hi);
        }
        index[static_cast<size_t>(t.rank - 1 - d)] = e;
    }
    Expr value;
    if (t.role == WPK_ROLE_LITERAL) {
        value = expanding ? element(t, index) : Expr(source.literal(index));
    } else if (t.role == WPK_ROLE_INPUT || t.role == WPK_ROLE_CONSTANT) {
        value = source.image(index);
    } else {
        value = source.func(index);
    }
    value = cast_of(t.dtype, value, infinite.may_be[id]);
    if (inside.defined()) {
        Expr outside = node.outside >= 0 ? literal_of(program.nodes[node.outside])
                                         : make_const(value.type(), 0);
        value = Halide::select(inside, value, cast_to(t.dtype, outside));
    }
    return value;
}

Expr Expressions::unary(int id, const Axes &axes) const {
    const wpk_node &node = program.nodes[id];
    Expr a = convert(node.arg[0], axes);
    if (infinite.strict[id] && node.op == WPK_UNARY_EXP) {
        return exp_of_special(node.dtype, a, infinite.may_be[node.arg[0]]);
    }
    return infinite.strict[id] ? function_of_special(node.op, a) : function(node.op, a);
}

Expr Expressions::binary(int id, const Axes &axes) const {
    const wpk_node &node = program.nodes[id];
    Expr a = convert(node.arg[0], axes), b = convert(node.arg[1], axes);
    return infinite.strict[id] ? strict_operation(node.op, a, b) : operation(node.op, a, b);
}

Expr Expressions::convert(int id, const Axes &axes) const {
    const wpk_node &node = program.nodes[id];
    switch (node.kind) {
    case WPK_NODE_LITERAL: return literal_of(node);
    case WPK_NODE_AXIS: return axes[static_cast<size_t>(node.axis)];
    case WPK_NODE_LOAD: return load(id, axes);
    case WPK_NODE_UNARY: return unary(id, axes);
    case WPK_NODE_BINARY: return binary(id, axes);
    case WPK_NODE_SELECT:
        return Halide::select(convert(node.arg[0], axes), convert(node.arg[1], axes),
                              convert(node.arg[2], axes));
    case WPK_NODE_CAST:
        return cast_of(node.dtype, convert(node.arg[0], axes), infinite.may_be[node.arg[0]]);
    default: throw Failure{"unknown node"};
    }
}

Expr Expressions::value(wpk_dtype dtype, const Axes &axes) const {
    return cast_of(dtype, convert(stage.expr, axes), infinite.may_be[stage.expr]);
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

Stmt StrictPass::visit(const Store *store) {
    Stmt mutated = IRMutator::visit(store);
    bool strict = std::find(strict_.begin(), strict_.end(), store->name) != strict_.end();
    const Store *s = mutated.as<Store>();
    return !strict ? mutated
                   : Store::make(s->name, Halide::strict_float(s->value), s->index, s->param,
                                 s->predicate, s->alignment);
}

} // namespace wpk
