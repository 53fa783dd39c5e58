// SPDX-License-Identifier: Apache-2.0
// Replays a schedule's directives on Halide. The only C++ in the project, and it decides nothing:
// what is computed is the program's text, how it is computed is the directives'.
//
// A tensor becomes an ImageParam (inputs and constants, with their padding as bounds), an embedded
// Buffer (literals) or a Func (what a stage writes). Halide lists dimensions innermost first, the
// IR outermost first: every index list is reversed here and nowhere else.

#include "codegen/halide.h"

#include "op/infinite.h"
#include "schema/convert.h"

#include <Halide.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Halide::Expr;
using Halide::Func;
using Halide::RVar;
using Halide::Var;
using Halide::VarOrRVar;

using Failure = std::runtime_error;

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

// One tensor of the program on Halide's side.
struct Tensor {
    Halide::ImageParam image;       // inputs and constants
    Halide::Buffer<void> literal;   // literals
    Func func;                      // written by a stage
    Halide::Type stored;            // what a load yields before the cast to the tensor's type
};

// The loops a stage has by now: names given by axes and splits.
struct Stage {
    Func func;
    std::vector<Var> vars;                 // output axes, outermost first
    std::map<std::string, RVar> reduction; // loops of the update that reduce
};

class Builder {
  public:
    explicit Builder(const wpk_schedule &schedule) : program_(schedule.main), schedule_(schedule) {
        wpk_infinite_find(&program_, &infinite_);
    }

    Halide::Pipeline build();
    std::vector<Halide::Argument> arguments() const { return arguments_; }

  private:
    void declare_tensors();
    void define_stage(const wpk_stage &stage, const std::string &name);
    void bound_output(const wpk_tensor &tensor, Func &func);
    Expr expand(const wpk_stage &stage, int a, std::vector<Expr> &axes, Expr sum);
    Expr convert(const wpk_stage &stage, int node, const std::vector<Expr> &axes);
    Expr convert_load(const wpk_stage &stage, const wpk_node &node, const std::vector<Expr> &axes);
    Expr convert_unary(const wpk_stage &stage, const wpk_node &node,
                       const std::vector<Expr> &axes);
    Expr convert_binary(const wpk_stage &stage, const wpk_node &node,
                        const std::vector<Expr> &axes);
    Expr literal(const wpk_node &node) const;
    Expr choose_value(const wpk_tensor &literal, const std::vector<Expr> &index) const;
    Expr cast_to(wpk_dtype dtype, const Expr &value) const;
    void apply(const wpk_directive &directive);
    void apply_split(Stage &stage, const wpk_directive &directive);
    void apply_reorder(Stage &stage, const wpk_directive &directive);
    void apply_placement(Stage &stage, const wpk_directive &directive);
    VarOrRVar loop(const Stage &stage, bool update, const char *name) const;
    Stage &stage_named(const char *name);

    const wpk_program &program_;
    const wpk_schedule &schedule_;
    wpk_infinite infinite_;
    std::vector<Tensor> tensors_;
    std::vector<Stage> stages_; // by stage index
    bool expanding_ = false;    // what is being defined
    std::vector<Halide::Argument> arguments_;
};

void Builder::declare_tensors() {
    tensors_.resize(static_cast<size_t>(program_.tensor_count));
    for (int i = 0; i < program_.tensor_count; i++) {
        const wpk_tensor &t = program_.tensors[i];
        Tensor &out = tensors_[static_cast<size_t>(i)];
        out.stored = type_of(t.dtype);
        if (t.role == WPK_ROLE_INPUT || t.role == WPK_ROLE_CONSTANT) {
            out.image = Halide::ImageParam(type_of(t.dtype == WPK_BOOL ? WPK_U8 : t.dtype), t.rank,
                                           t.name);
            int64_t stride = 1;
            for (int d = t.rank - 1; d >= 0; d--) {
                int64_t extent = t.pad_before[d] + t.extent[d] + t.pad_after[d];
                out.image.dim(t.rank - 1 - d)
                    .set_bounds(static_cast<int>(-t.pad_before[d]), static_cast<int>(extent))
                    .set_stride(static_cast<int>(stride));
                stride *= extent;
            }
            arguments_.push_back(out.image);
        } else if (t.role == WPK_ROLE_LITERAL) {
            std::vector<int> extents;
            for (int d = t.rank - 1; d >= 0; d--) {
                extents.push_back(static_cast<int>(t.extent[d]));
            }
            if (t.dtype != WPK_F32 && t.dtype != WPK_F64) {
                throw Failure{std::string("literal ") + t.name + ": only f32 and f64 are built"};
            }
            out.literal = Halide::Buffer<void>(type_of(t.dtype), extents);
            wpk_convert_narrow(t.dtype, t.values, wpk_tensor_elements(&t), out.literal.data());
        }
    }
}

Expr Builder::literal(const wpk_node &node) const {
    if (!wpk_dtype_is_float(node.dtype)) {
        return Halide::Internal::make_const(
            node.dtype == WPK_I64 ? Halide::Int(32) : type_of(node.dtype), node.integer);
    }
    if (std::isinf(node.value)) {
        return Halide::cast(type_of(node.dtype), Expr(static_cast<float>(node.value)));
    }
    return Halide::Internal::make_const(type_of(node.dtype), node.value);
}

// Float to integer rounds to nearest even and saturates; everything else is Halide's cast.
Expr Builder::cast_to(wpk_dtype dtype, const Expr &value) const {
    Halide::Type to = type_of(dtype);
    if (value.type() == to) {
        return value;
    }
    if (value.type().is_float() && !to.is_float() && !to.is_bool()) {
        return Halide::saturating_cast(to, Halide::round(value));
    }
    return Halide::cast(to, value);
}

// An element of a literal as a choice between its values: once the index is a number, so is this.
Expr Builder::choose_value(const wpk_tensor &t, const std::vector<Expr> &index) const {
    std::vector<Expr> values;
    Expr at = 0;
    for (int d = 0; d < t.rank; d++) {
        at = at * static_cast<int>(t.extent[d]) + index[static_cast<size_t>(t.rank - 1 - d)];
    }
    for (int64_t k = 0; k < wpk_tensor_elements(&t); k++) {
        values.push_back(Halide::Internal::make_const(type_of(t.dtype), t.values[k]));
    }
    return Halide::mux(at, values);
}

Expr Builder::convert_load(const wpk_stage &stage, const wpk_node &node,
                           const std::vector<Expr> &axes) {
    const wpk_tensor &t = program_.tensors[node.tensor];
    Tensor &source = tensors_[static_cast<size_t>(node.tensor)];
    std::vector<Expr> index(static_cast<size_t>(t.rank));
    Expr inside;
    for (int d = 0; d < t.rank; d++) {
        Expr e = convert(stage, node.index[d], axes);
        int64_t low = 0, high = 0;
        wpk_index_range(&program_, &stage, node.index[d], &low, &high);
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
        value = expanding_ ? choose_value(t, index) : Expr(source.literal(index));
    } else if (t.role == WPK_ROLE_INPUT || t.role == WPK_ROLE_CONSTANT) {
        value = source.image(index);
    } else {
        value = source.func(index);
    }
    value = cast_to(t.dtype, value);
    if (inside.defined()) {
        Expr outside = node.outside >= 0 ? literal(program_.nodes[node.outside])
                                         : Halide::Internal::make_const(value.type(), 0);
        value = Halide::select(inside, value, cast_to(t.dtype, outside));
    }
    return value;
}

// tanh and erf are expanded over exp: Halide turns the calls into scalar ones.
Expr Builder::convert_unary(const wpk_stage &stage, const wpk_node &node,
                            const std::vector<Expr> &axes) {
    Expr a = convert(stage, node.arg[0], axes);
    switch (node.op) {
    case WPK_UNARY_NEG: return -a;
    case WPK_UNARY_NOT: return !a;
    case WPK_UNARY_EXP: return Halide::exp(a);
    case WPK_UNARY_LOG: return Halide::log(a);
    case WPK_UNARY_SQRT: return Halide::sqrt(a);
    case WPK_UNARY_RSQRT: {
        // the target's estimate has 12 bits: one step of Newton's doubles them
        Expr e = Halide::Internal::make_one(a.type()) / Halide::sqrt(a);
        auto real = [&](double v) { return Halide::Internal::make_const(a.type(), v); };
        return e * (real(1.5) - real(0.5) * a * e * e);
    }
    case WPK_UNARY_TANH: {
        Expr e = Halide::exp(Halide::abs(a) * -2);
        Expr t = (1 - e) / (1 + e);
        // near zero 1 - e cancels; two or five terms of the series are exact to a rounding there
        auto real = [&](double v) { return Halide::Internal::make_const(a.type(), v); };
        Expr rest = real(0);
        for (double c : {-1382.0 / 155925, 62.0 / 2835, -17.0 / 315, 2.0 / 15, -1.0 / 3}) {
            bool wanted = a.type() == Halide::Float(64) || std::abs(c) > 0.1;
            rest = wanted ? a * a * (real(c) + rest) : rest;
        }
        Expr small = a * (1 + rest);
        return Halide::select(Halide::abs(a) < real(0.05), small,
                              Halide::select(a < 0, -t, t));
    }
    case WPK_UNARY_ERF: { // in f64 the C library's
        using Halide::Internal::Call;
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

Expr Builder::convert_binary(const wpk_stage &stage, const wpk_node &node,
                             const std::vector<Expr> &axes) {
    Expr a = convert(stage, node.arg[0], axes);
    Expr b = convert(stage, node.arg[1], axes);
    switch (node.op) {
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

Expr Builder::convert(const wpk_stage &stage, int id, const std::vector<Expr> &axes) {
    const wpk_node &node = program_.nodes[id];
    switch (node.kind) {
    case WPK_NODE_LITERAL: return literal(node);
    case WPK_NODE_AXIS: return axes[static_cast<size_t>(node.axis)];
    case WPK_NODE_LOAD: return convert_load(stage, node, axes);
    case WPK_NODE_UNARY: return convert_unary(stage, node, axes);
    case WPK_NODE_BINARY: return convert_binary(stage, node, axes);
    case WPK_NODE_SELECT:
        return Halide::select(convert(stage, node.arg[0], axes), convert(stage, node.arg[1], axes),
                              convert(stage, node.arg[2], axes));
    case WPK_NODE_CAST: return cast_to(node.dtype, convert(stage, node.arg[0], axes));
    default: throw Failure{"unknown node"};
    }
}

// The largest finite value: reductions by max and min start from it rather than from infinity,
// which the default fast arithmetic knows nothing of. Of what may be infinite the first term is it.
double largest(Halide::Type type) {
    if (type == Halide::Float(64)) {
        return std::numeric_limits<double>::max();
    }
    return type == Halide::Float(16) ? 65504.0 : 3.3895313892515355e38; // bf16's, below f32's
}

Expr identity_of(wpk_reduction reduction, Halide::Type type) {
    switch (reduction) {
    case WPK_REDUCE_SUM: return Halide::Internal::make_zero(type);
    case WPK_REDUCE_PROD: return Halide::Internal::make_one(type);
    case WPK_REDUCE_MAX:
        return type.is_float() ? Halide::Internal::make_const(type, -largest(type)) : type.min();
    default:
        return type.is_float() ? Halide::Internal::make_const(type, largest(type)) : type.max();
    }
}

// The terms of a sum, in their order, added to `sum`; axes before `a` have their numbers already.
Expr Builder::expand(const wpk_stage &stage, int a, std::vector<Expr> &axes, Expr sum) {
    if (a == stage.axis_count) {
        return sum + cast_to(stage.accumulator, convert(stage, stage.expr, axes));
    }
    for (int i = 0; i < static_cast<int>(stage.axes[a].extent); i++) {
        axes[static_cast<size_t>(a)] = i;
        sum = expand(stage, a + 1, axes, sum);
    }
    return sum;
}

void Builder::define_stage(const wpk_stage &stage, const std::string &name) {
    Stage out;
    out.func = Func(name);
    std::vector<Expr> axes(static_cast<size_t>(stage.axis_count));
    std::vector<Var> args;
    for (int i = 0; i < stage.rank; i++) {
        out.vars.emplace_back(stage.axes[i].name);
        axes[static_cast<size_t>(i)] = out.vars.back();
    }
    for (int i = stage.rank - 1; i >= 0; i--) {
        args.push_back(out.vars[static_cast<size_t>(i)]);
    }
    Tensor &tensor = tensors_[static_cast<size_t>(stage.output)];
    wpk_dtype dtype = program_.tensors[stage.output].dtype;
    expanding_ = wpk_schedule_expands(&schedule_, &stage);
    if (expanding_) {
        tensor.stored = type_of(stage.accumulator);
        out.func(args) = expand(stage, stage.rank, axes, Halide::cast(tensor.stored, 0));
    } else if (stage.reduction == WPK_REDUCE_NONE) {
        Expr value = cast_to(dtype, convert(stage, stage.expr, axes));
        if (dtype == WPK_BOOL && program_.tensors[stage.output].role == WPK_ROLE_OUTPUT) {
            value = Halide::cast(Halide::UInt(8), value);
        }
        out.func(args) = value;
    } else {
        std::vector<Halide::Range> ranges;
        for (int i = stage.rank; i < stage.axis_count; i++) {
            ranges.emplace_back(0, static_cast<int>(stage.axes[i].extent));
        }
        Halide::RDom domain(ranges, name + "_r");
        std::vector<Expr> first(axes);
        for (int i = stage.rank; i < stage.axis_count; i++) {
            RVar r = domain[i - stage.rank];
            axes[static_cast<size_t>(i)] = r;
            first[static_cast<size_t>(i)] = 0;
            out.reduction.emplace(stage.axes[i].name, r);
        }
        wpk_dtype accumulator = program_.tensors[stage.output].role == WPK_ROLE_OUTPUT
                                    ? dtype : stage.accumulator;
        Halide::Type type = type_of(accumulator);
        tensor.stored = type;
        Expr value = cast_to(accumulator, convert(stage, stage.expr, axes));
        bool sums = stage.reduction == WPK_REDUCE_SUM || stage.reduction == WPK_REDUCE_PROD;
        out.func(args) = infinite_.tensor[stage.output] && !sums
                             ? cast_to(accumulator, convert(stage, stage.expr, first))
                             : identity_of(stage.reduction, type);
        Expr before = out.func(args);
        switch (stage.reduction) {
        case WPK_REDUCE_SUM: out.func(args) = before + value; break;
        case WPK_REDUCE_PROD: out.func(args) = before * value; break;
        case WPK_REDUCE_MAX: out.func(args) = Halide::max(before, value); break;
        default: out.func(args) = Halide::min(before, value); break;
        }
    }
    tensor.func = out.func;
    stages_.push_back(std::move(out));
}

// Kernels never write padding: the buffer they are given is the unpadded region, with the strides
// of the padded one.
void Builder::bound_output(const wpk_tensor &tensor, Func &func) {
    int64_t stride = 1;
    for (int d = tensor.rank - 1; d >= 0; d--) {
        int dim = tensor.rank - 1 - d;
        func.output_buffer()
            .dim(dim)
            .set_bounds(0, static_cast<int>(tensor.extent[d]))
            .set_stride(static_cast<int>(stride));
        func.bound(func.args()[static_cast<size_t>(dim)], 0, static_cast<int>(tensor.extent[d]));
        stride *= tensor.pad_before[d] + tensor.extent[d] + tensor.pad_after[d];
    }
}

Stage &Builder::stage_named(const char *name) {
    int found = wpk_schedule_find_stage(&program_, name);
    if (found < 0) {
        throw Failure{std::string("no stage ") + name};
    }
    return stages_[static_cast<size_t>(found)];
}

// A loop; dots separate the parts of Halide's own names.
Var var(std::string name) {
    std::replace(name.begin(), name.end(), '.', '$');
    return Var(name);
}

VarOrRVar Builder::loop(const Stage &stage, bool update, const char *name) const {
    if (update) {
        auto found = stage.reduction.find(name);
        if (found != stage.reduction.end()) {
            return found->second;
        }
    }
    return var(name);
}

Halide::TailStrategy tail_of(wpk_tail tail) {
    switch (tail) {
    case WPK_TAIL_GUARD: return Halide::TailStrategy::GuardWithIf;
    case WPK_TAIL_PREDICATE: return Halide::TailStrategy::Predicate;
    case WPK_TAIL_SHIFT: return Halide::TailStrategy::ShiftInwards;
    default: return Halide::TailStrategy::RoundUp;
    }
}

template <typename F> void with_definition(Stage &stage, const wpk_directive &directive, F use) {
    if (directive.update) {
        Halide::Stage update = stage.func.update();
        use(update);
    } else {
        use(stage.func);
    }
}

void Builder::apply_split(Stage &stage, const wpk_directive &directive) {
    const char *old = directive.loop[0], *outer = directive.loop[1], *inner = directive.loop[2];
    int factor = static_cast<int>(directive.factor);
    auto found = stage.reduction.find(old);
    if (directive.update && found != stage.reduction.end()) {
        RVar o(var(outer).name()), i(var(inner).name());
        bool exact = directive.tail == WPK_TAIL_EXACT;
        stage.func.update().split(found->second, o, i, factor,
                                  exact ? Halide::TailStrategy::Auto : tail_of(directive.tail));
        stage.reduction.erase(found);
        stage.reduction.emplace(outer, o);
        stage.reduction.emplace(inner, i);
        return;
    }
    with_definition(stage, directive, [&](auto &definition) {
        definition.split(var(old), var(outer), var(inner), factor, tail_of(directive.tail));
    });
}

void Builder::apply_reorder(Stage &stage, const wpk_directive &directive) {
    std::vector<VarOrRVar> order;
    for (int i = 0; i < directive.loop_count; i++) {
        order.push_back(loop(stage, directive.update, directive.loop[i]));
    }
    with_definition(stage, directive, [&](auto &definition) { definition.reorder(order); });
}

void Builder::apply_placement(Stage &stage, const wpk_directive &directive) {
    switch (directive.kind) {
    case WPK_DIRECTIVE_COMPUTE_ROOT: stage.func.compute_root(); break;
    case WPK_DIRECTIVE_COMPUTE_INLINE: stage.func.compute_inline(); break;
    case WPK_DIRECTIVE_COMPUTE_AT: {
        const Stage &at = stage_named(directive.loop[0]);
        stage.func.compute_at(Halide::LoopLevel(at.func, loop(at, true, directive.loop[1])));
        break;
    }
    case WPK_DIRECTIVE_STORE_IN: {
        std::string memory(directive.loop[0]);
        stage.func.store_in(memory == "stack"      ? Halide::MemoryType::Stack
                            : memory == "register" ? Halide::MemoryType::Register
                                                   : Halide::MemoryType::Heap);
        break;
    }
    case WPK_DIRECTIVE_REORDER_STORAGE: {
        std::vector<Var> order;
        for (int i = 0; i < directive.loop_count; i++) {
            order.push_back(var(directive.loop[i]));
        }
        stage.func.reorder_storage(order);
        break;
    }
    case WPK_DIRECTIVE_ALIGN_STORAGE:
        stage.func.align_storage(var(directive.loop[0]), static_cast<int>(directive.factor));
        break;
    case WPK_DIRECTIVE_BOUND_EXTENT:
        stage.func.bound_extent(var(directive.loop[0]), static_cast<int>(directive.factor));
        break;
    case WPK_DIRECTIVE_ALIGN_BOUNDS:
        stage.func.align_bounds(var(directive.loop[0]), static_cast<int>(directive.factor));
        break;
    default: throw Failure{"not a placement"};
    }
}

void Builder::apply(const wpk_directive &directive) {
    Stage &stage = stages_[static_cast<size_t>(directive.stage)];
    auto first = [&] { return loop(stage, directive.update, directive.loop[0]); };
    switch (directive.kind) {
    case WPK_DIRECTIVE_SPLIT: apply_split(stage, directive); break;
    case WPK_DIRECTIVE_REORDER: apply_reorder(stage, directive); break;
    case WPK_DIRECTIVE_FUSE:
        with_definition(stage, directive, [&](auto &definition) {
            VarOrRVar outer = loop(stage, directive.update, directive.loop[1]);
            definition.fuse(first(), outer, var(directive.loop[2]));
        });
        break;
    case WPK_DIRECTIVE_VECTORIZE:
        with_definition(stage, directive, [&](auto &definition) { definition.vectorize(first()); });
        break;
    case WPK_DIRECTIVE_UNROLL:
        with_definition(stage, directive, [&](auto &definition) { definition.unroll(first()); });
        break;
    case WPK_DIRECTIVE_PARALLEL:
        with_definition(stage, directive, [&](auto &definition) { definition.parallel(first()); });
        break;
    case WPK_DIRECTIVE_ATOMIC: stage.func.update().atomic(); break;
    case WPK_DIRECTIVE_EXPAND: break; // heard when the stage was defined
    case WPK_DIRECTIVE_NO_PARTITION:
        with_definition(stage, directive, [&](auto &definition) {
            definition.partition(first(), Halide::Partition::Never);
        });
        break;
    default: apply_placement(stage, directive); break;
    }
}

Halide::Pipeline Builder::build() {
    declare_tensors();
    std::vector<Func> outputs;
    for (int i = 0; i < program_.stage_count; i++) {
        const wpk_stage &stage = program_.stages[i];
        const wpk_tensor &tensor = program_.tensors[stage.output];
        define_stage(stage, tensor.name);
        if (tensor.role == WPK_ROLE_OUTPUT) {
            bound_output(tensor, stages_.back().func);
            outputs.push_back(stages_.back().func);
        }
    }
    for (int i = 0; i < schedule_.directive_count; i++) {
        apply(schedule_.directives[i]);
    }
    return Halide::Pipeline(outputs);
}

Halide::Target target_of(const wpk_schedule &schedule) {
    Halide::Target target(schedule.target);
    for (Halide::Target::Feature f :
         {Halide::Target::NoRuntime, Halide::Target::NoAsserts, Halide::Target::NoBoundsQuery,
          Halide::Target::UserContext}) {
        target.set_feature(f);
    }
    // infinities are meaningless under the default fast arithmetic
    if (wpk_infinite_literal(&schedule.main)) {
        target.set_feature(Halide::Target::StrictFloat);
    }
    return target;
}

template <typename F> wpk_err guarded(struct wpk_diag *diag, F work) {
    try {
        work();
        return WPK_OK;
    } catch (const Halide::Error &error) {
        std::string text = error.what();
        for (char &c : text) {
            c = c == '\n' ? ' ' : c;
        }
        wpk_diag_set(diag, "%s", text.c_str());
    } catch (const std::exception &error) {
        wpk_diag_set(diag, "%s", error.what());
    }
    return WPK_EUNSUPPORTED;
}

} // namespace

wpk_err wpk_halide_warm(const char *target, struct wpk_diag *diag) {
    return guarded(diag, [&] {
        Var x("x");
        Func f("warm");
        f(x) = Halide::cast<float>(x) * 2.0f;
        f.vectorize(x, 8);
        Halide::Target t(target);
        t.set_feature(Halide::Target::NoRuntime);
        f.compile_to_module({}, "wpk_warm", t);
        f.compile_to_object("/dev/null", {}, "wpk_warm", t);
    });
}

wpk_err wpk_halide_build(const struct wpk_schedule *schedule, const char *symbol,
                         const char *object_path, const char *assembly_path,
                         struct wpk_diag *diag) {
    return guarded(diag, [&] {
        Builder builder(*schedule);
        std::map<Halide::OutputFileType, std::string> outputs = {
            {Halide::OutputFileType::object, object_path}};
        if (assembly_path != nullptr) {
            outputs[Halide::OutputFileType::assembly] = assembly_path;
        }
        builder.build().compile_to(outputs, builder.arguments(), symbol, target_of(*schedule));
    });
}
