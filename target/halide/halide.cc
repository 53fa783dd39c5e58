// SPDX-License-Identifier: Apache-2.0
// Replays a schedule on Halide, and decides nothing: what is computed is the expanded program
// (target/halide/expression.cc), how it is computed is the nest's (target/halide/directive.c).
//
// A tensor becomes an ImageParam (inputs and constants, with their padding as bounds), an embedded
// Buffer (literals) or a Func (what a stage writes). Halide lists dimensions innermost first, the
// IR outermost first: lists of axes are reversed here, indices where expressions are made.

#include "target/halide/halide.h"

#include "nest/reach.h"
#include "nest/target.h"
#include "schema/convert.h"
#include "target/halide/directive.h"
#include "target/halide/expression.hh"
#include "target/halide/launch.hh"

#include <algorithm>
#include <map>
#include <new>
#include <set>
#include <string>
#include <vector>

namespace
{

using Halide::Expr;
using Halide::Func;
using Halide::RVar;
using Halide::Var;
using Halide::VarOrRVar;

using wpk::Failure;
using wpk::Tensor;
using wpk::type_of;

// The loops a stage has by now: names given by axes and splits.
struct Stage {
    Func func;
    std::vector<Var> vars;                 // output axes, outermost first
    std::map<std::string, RVar> reduction; // loops of the update that reduce
};

class Builder
{
  public:
    // `program`: of the schedule, expanded.
    Builder(const wpk_schedule &schedule, const wpk_program &program)
        : program_(program), nest_(*schedule.nest), is_gpu_(wpk_target_is_gpu(schedule.target)),
          fuses_(is_gpu_ || std::strstr(schedule.target, "-fma") != nullptr)
    {
        wpk_directives_make(&schedule, &directives_);
        if (wpk_nest_find_reach(schedule.nest, &program, &reach_) != WPK_OK) {
            wpk_directives_fini(&directives_);
            throw std::bad_alloc();
        }
    }
    ~Builder()
    {
        wpk_directives_fini(&directives_);
    }
    Builder(const Builder &) = delete;
    Builder &operator=(const Builder &) = delete;

    Halide::Pipeline build();
    std::vector<Halide::Argument> arguments() const
    {
        return arguments_;
    }
    std::vector<wpk::LaunchArgument> launch_arguments() const; // of the program, outputs last

  private:
    void declare_tensors();
    void find_parts();
    void define_stage(const wpk_stage &stage, const std::string &name);
    void skip_borders(const wpk_stage &stage, const std::vector<Expr> &axes,
                      Halide::RDom &domain) const;
    Expr expression_of(const wpk_stage &stage, const std::vector<Expr> &axes) const;
    void bound_output(const wpk_tensor &tensor, Func &func);
    void define_reduction(const wpk_stage &stage, Stage &out, const std::vector<Var> &args,
                          std::vector<Expr> &axes);
    void apply(const wpk_directive &directive);
    void apply_split(Stage &stage, const wpk_directive &directive);
    void apply_reorder(Stage &stage, const wpk_directive &directive);
    void apply_placement(Stage &stage, const wpk_directive &directive);
    std::string buffer(int tensor) const; // its name; "": it is no argument
    VarOrRVar loop(const Stage &stage, bool update, const char *name) const;
    Stage &stage_named(const char *name);

    const wpk_program &program_;
    const wpk_nest &nest_;
    const bool is_gpu_; // a buffer is its element [0, 0, ...], behind its padding
    const bool fuses_;  // the machine has fused multiply-adds
    wpk_directives directives_ = {};
    wpk_nest_reach reach_;
    std::vector<Tensor> tensors_;
    std::vector<Stage> stages_;       // by stage index
    std::vector<std::string> strict_; // stages whose reduction is strict
    std::vector<Halide::Argument> arguments_;
};

void Builder::declare_tensors()
{
    tensors_.resize(static_cast<size_t>(program_.tensor_count));
    for (int i = 0; i < program_.tensor_count; i++) {
        const wpk_tensor &t = program_.tensors[i];
        Tensor &out = tensors_[static_cast<size_t>(i)];
        if (t.role == WPK_ROLE_INPUT || t.role == WPK_ROLE_CONSTANT) {
            out.image = Halide::ImageParam(type_of(t.dtype), t.rank, t.name);
            int64_t stride = 1;
            for (int d = t.rank - 1; d >= 0; d--) {
                int64_t extent = t.pad_before[d] + t.extent[d] + t.pad_after[d];
                int64_t min = is_gpu_ ? 0 : -t.pad_before[d];
                out.image.dim(t.rank - 1 - d)
                    .set_bounds(static_cast<int>(min), static_cast<int>(extent))
                    .set_stride(static_cast<int>(stride));
                stride *= extent;
            }
            arguments_.push_back(out.image);
        } else if (t.role == WPK_ROLE_LITERAL) {
            std::vector<int> extents;
            for (int d = t.rank - 1; d >= 0; d--) {
                extents.push_back(static_cast<int>(t.extent[d]));
            }
            if (t.dtype == WPK_F16 || t.dtype == WPK_BF16 || t.dtype == WPK_BOOL) {
                throw Failure{std::string("literal ") + t.name + ": f16 and bool are not built"};
            }
            if (is_gpu_) { // the host would have it
                continue;
            }
            out.literal = Halide::Buffer<void>(type_of(t.dtype), extents);
            wpk_convert_narrow(t.dtype, t.values, wpk_tensor_elements(&t), out.literal.data());
        }
    }
}

void Builder::find_parts()
{
    for (int e = 0; e < nest_.entry_count; e++) {
        const wpk_nest_entry &entry = nest_.entry[e];
        if (entry.stage >= 0 && entry.place.entry >= 0 && !entry.inlined && !is_gpu_) {
            int tensor = program_.stages[entry.stage].output;
            tensors_[static_cast<size_t>(tensor)].part = true;
        }
    }
}

Expr Builder::expression_of(const wpk_stage &stage, const std::vector<Expr> &axes) const
{
    const uint16_t *limited = reach_.limited[&stage - program_.stages];
    return wpk::Expressions(program_, tensors_, stage, axes, limited, fuses_).value();
}

// Halide bounds the domain's loops by its predicate.
void Builder::skip_borders(const wpk_stage &stage, const std::vector<Expr> &axes,
                           Halide::RDom &domain) const
{
    wpk_nest_border border[WPK_NEST_BORDERS_MAX];
    int entry = nest_.entry_count - 1 - static_cast<int>(&stage - program_.stages);
    int count = wpk_nest_borders(&program_, &nest_, entry, true, border);
    for (int b = 0; b < count; b++) {
        wpk_affine affine = {};
        WPK_ASSERT(wpk_index_affine(&program_, border[b].index, &affine));
        Expr index = static_cast<int>(affine.constant);
        for (int a = 0; a < stage.axis_count; a++) {
            if (affine.coefficient[a] != 0) {
                index += static_cast<int>(affine.coefficient[a]) * axes[static_cast<size_t>(a)];
            }
        }
        domain.where(index >= static_cast<int>(border[b].low) &&
                     index < static_cast<int>(border[b].high));
    }
}

static Expr reduced(int reduction, const Expr &before, const Expr &term)
{
    switch (reduction) {
    case WPK_REDUCE_SUM:
        return before + term;
    case WPK_REDUCE_PROD:
        return before * term;
    case WPK_REDUCE_MAX:
        return Halide::max(before, term);
    default:
        return Halide::min(before, term);
    }
}

// Halide sees that a reduction is associative if its simplifier leaves the term whole:
// `before + select(c, 1, 0)` becomes `select(c, before + 1, before)`, `before + -x` a difference.
static bool keeps_term(int reduction, const Expr &term)
{
    Expr before = Halide::Internal::Variable::make(term.type(), "before");
    Expr whole = Halide::Internal::simplify(reduced(reduction, before, term));
    auto has_before = [&](const auto *operation) {
        return operation != nullptr && (Halide::Internal::equal(operation->a, before) ||
                                        Halide::Internal::equal(operation->b, before));
    };
    return reduction == WPK_REDUCE_SUM    ? has_before(whole.as<Halide::Internal::Add>())
           : reduction == WPK_REDUCE_PROD ? has_before(whole.as<Halide::Internal::Mul>())
           : reduction == WPK_REDUCE_MAX  ? has_before(whole.as<Halide::Internal::Max>())
                                          : has_before(whole.as<Halide::Internal::Min>());
}

void Builder::define_reduction(const wpk_stage &stage, Stage &out, const std::vector<Var> &args,
                               std::vector<Expr> &axes)
{
    std::vector<Halide::Range> ranges;
    for (int i = stage.rank; i < stage.axis_count; i++) {
        ranges.emplace_back(0, static_cast<int>(stage.axes[i].extent));
    }
    Halide::RDom domain(ranges, std::string(program_.tensors[stage.output].name) + "_r");
    for (int i = stage.rank; i < stage.axis_count; i++) {
        RVar r = domain[i - stage.rank];
        axes[static_cast<size_t>(i)] = r;
        out.reduction.emplace(stage.axes[i].name, r);
    }
    skip_borders(stage, axes, domain);
    Expr identity = wpk::identity_of(program_, stage);
    Expr value = expression_of(stage, axes);
    bool whole = keeps_term(stage.reduction, value);
    for (auto &loop : out.reduction) { // Halide has no loop over what no term depends on
        bool used = Halide::Internal::expr_uses_var(value, loop.second.name());
        value = used && whole ? value : Halide::select(loop.second >= 0, value, identity);
        whole = true;
    }
    out.func(args) = identity;
    out.func(args) = reduced(stage.reduction, out.func(args), value);
    if (stage.strict) {
        strict_.push_back(out.func.name());
    }
}

void Builder::define_stage(const wpk_stage &stage, const std::string &name)
{
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
    if (stage.reduction == WPK_REDUCE_NONE) {
        out.func(args) = expression_of(stage, axes);
    } else {
        define_reduction(stage, out, args, axes);
    }
    tensors_[static_cast<size_t>(stage.output)].func = out.func;
    stages_.push_back(std::move(out));
}

// Kernels never write padding: the buffer they are given is the unpadded region, with the strides
// of the padded one.
void Builder::bound_output(const wpk_tensor &tensor, Func &func)
{
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

Stage &Builder::stage_named(const char *name)
{
    int found = wpk_program_find_stage(&program_, name);
    if (found < 0) {
        throw Failure{std::string("no stage ") + name};
    }
    return stages_[static_cast<size_t>(found)];
}

// A loop; dots separate the parts of Halide's own names.
Var var(std::string name)
{
    std::replace(name.begin(), name.end(), '.', '$');
    return Var(name);
}

VarOrRVar Builder::loop(const Stage &stage, bool update, const char *name) const
{
    if (update) {
        auto found = stage.reduction.find(name);
        if (found != stage.reduction.end()) {
            return found->second;
        }
    }
    return var(name);
}

Halide::TailStrategy tail_of(wpk_tail tail)
{
    switch (tail) {
    case WPK_TAIL_GUARD:
        return Halide::TailStrategy::GuardWithIf;
    case WPK_TAIL_PREDICATE:
        return Halide::TailStrategy::Predicate;
    case WPK_TAIL_SHIFT:
        return Halide::TailStrategy::ShiftInwards;
    default:
        return Halide::TailStrategy::RoundUp;
    }
}

template <typename F> void with_definition(Stage &stage, const wpk_directive &directive, F use)
{
    if (directive.update) {
        Halide::Stage update = stage.func.update();
        use(update);
    } else {
        use(stage.func);
    }
}

void Builder::apply_split(Stage &stage, const wpk_directive &directive)
{
    const char *old = directive.loop[0], *outer = directive.loop[1], *inner = directive.loop[2];
    int factor = static_cast<int>(directive.factor);
    auto found = stage.reduction.find(old);
    // Halide refuses RoundUp inside a tile of an update, where exact needs no tail.
    bool exact = directive.update && directive.tail == WPK_TAIL_EXACT;
    Halide::TailStrategy tail = exact ? Halide::TailStrategy::Auto : tail_of(directive.tail);
    if (directive.update && found != stage.reduction.end()) {
        RVar o(var(outer).name()), i(var(inner).name());
        stage.func.update().split(found->second, o, i, factor, tail);
        stage.reduction.erase(found);
        stage.reduction.emplace(outer, o);
        stage.reduction.emplace(inner, i);
        return;
    }
    with_definition(stage, directive, [&](auto &definition) {
        definition.split(var(old), var(outer), var(inner), factor, tail);
    });
}

void Builder::apply_reorder(Stage &stage, const wpk_directive &directive)
{
    std::vector<VarOrRVar> order;
    for (int i = 0; i < directive.loop_count; i++) {
        order.push_back(loop(stage, directive.update, directive.loop[i]));
    }
    with_definition(stage, directive, [&](auto &definition) { definition.reorder(order); });
}

void Builder::apply_placement(Stage &stage, const wpk_directive &directive)
{
    switch (directive.kind) {
    case WPK_DIRECTIVE_COMPUTE_ROOT:
        stage.func.compute_root();
        break;
    case WPK_DIRECTIVE_COMPUTE_AT:
    case WPK_DIRECTIVE_STORE_AT: {
        const Stage &at = stage_named(directive.loop[0]);
        Halide::LoopLevel level(at.func, loop(at, true, directive.loop[1]));
        if (directive.kind == WPK_DIRECTIVE_COMPUTE_AT) {
            stage.func.compute_at(level);
        } else {
            stage.func.store_at(level);
        }
        break;
    }
    case WPK_DIRECTIVE_STORE_IN: {
        std::string memory(directive.loop[0]);
        stage.func.store_in(memory == "stack"      ? Halide::MemoryType::Stack
                            : memory == "register" ? Halide::MemoryType::Register
                            : memory == "shared"   ? Halide::MemoryType::GPUShared
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
    default:
        throw Failure{"not a placement"};
    }
}

void Builder::apply(const wpk_directive &directive)
{
    Stage &stage = stages_[static_cast<size_t>(directive.stage)];
    auto first = [&] { return loop(stage, directive.update, directive.loop[0]); };
    switch (directive.kind) {
    case WPK_DIRECTIVE_SPLIT:
        apply_split(stage, directive);
        break;
    case WPK_DIRECTIVE_REORDER:
        apply_reorder(stage, directive);
        break;
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
    case WPK_DIRECTIVE_GPU_BLOCKS:
        with_definition(stage, directive,
                        [&](auto &definition) { definition.gpu_blocks(first()); });
        break;
    case WPK_DIRECTIVE_GPU_THREADS:
        with_definition(stage, directive,
                        [&](auto &definition) { definition.gpu_threads(first()); });
        break;
    case WPK_DIRECTIVE_GPU_SINGLE_THREAD:
        with_definition(stage, directive,
                        [&](auto &definition) { definition.gpu_single_thread(); });
        break;
    case WPK_DIRECTIVE_ATOMIC:
        stage.func.update().atomic();
        break;
    case WPK_DIRECTIVE_NO_PARTITION:
        with_definition(stage, directive, [&](auto &definition) {
            definition.partition(first(), Halide::Partition::Never);
        });
        break;
    default:
        apply_placement(stage, directive);
        break;
    }
}

Halide::Pipeline Builder::build()
{
    declare_tensors();
    find_parts();
    std::map<int, Func> outputs; // by tensor, which is the order of a kernel's arguments
    for (int i = 0; i < program_.stage_count; i++) {
        const wpk_stage &stage = program_.stages[i];
        const wpk_tensor &tensor = program_.tensors[stage.output];
        define_stage(stage, tensor.name);
        if (tensor.role == WPK_ROLE_OUTPUT) {
            bound_output(tensor, stages_.back().func);
            outputs.emplace(stage.output, stages_.back().func);
        }
    }
    for (int i = 0; i < directives_.count; i++) {
        apply(directives_.item[i]);
    }
    std::vector<Func> funcs;
    for (const auto &output : outputs) {
        funcs.push_back(output.second);
    }
    Halide::Pipeline pipeline(funcs);
    if (funcs.size() > 1) {
        std::map<std::string, Halide::Parameter> parameters;
        for (Func &func : funcs) {
            parameters.emplace(func.name(), func.output_buffer().parameter());
        }
        pipeline.add_custom_lowering_pass(new wpk::OutputPass(parameters));
    }
    if (wpk_program_is_strict(&program_)) {
        pipeline.add_custom_lowering_pass(new wpk::StrictPass(strict_));
    }
    if (is_gpu_) {
        pipeline.add_custom_lowering_pass(new wpk::LaunchPass(launch_arguments()));
        pipeline.add_custom_lowering_pass(new wpk::RegisterPass());
    }
    return pipeline;
}

std::string Builder::buffer(int tensor) const
{
    const Tensor &t = tensors_[static_cast<size_t>(tensor)];
    wpk_role role = program_.tensors[tensor].role;
    return role == WPK_ROLE_OUTPUT                               ? t.func.name()
           : role == WPK_ROLE_INPUT || role == WPK_ROLE_CONSTANT ? t.image.name()
                                                                 : "";
}

std::vector<wpk::LaunchArgument> Builder::launch_arguments() const
{
    std::vector<wpk::LaunchArgument> arguments;
    for (bool outputs : {false, true}) {
        for (int i = 0; i < program_.tensor_count; i++) {
            const wpk_tensor &t = program_.tensors[i];
            int64_t origin = 0, stride = static_cast<int64_t>(wpk_dtype_size(t.dtype)); // bytes
            for (int d = t.rank - 1; d >= 0; d--) {
                origin += t.pad_before[d] * stride;
                stride *= t.pad_before[d] + t.extent[d] + t.pad_after[d];
            }
            if (!buffer(i).empty() && (t.role == WPK_ROLE_OUTPUT) == outputs) {
                arguments.push_back({buffer(i), origin});
            }
        }
    }
    return arguments;
}

// The functions that a kernel for a CPU calls are in its shared object (runtime/stub.c).
Halide::Target target_of(const wpk_schedule &schedule)
{
    char text[WPK_TARGET_MAX];
    if (wpk_target_spell(schedule.target, text) != WPK_OK) {
        throw Failure{std::string("Halide knows no GPU as old as ") + schedule.target};
    }
    Halide::Target target{std::string(text)};
    for (Halide::Target::Feature f : {Halide::Target::NoAsserts, Halide::Target::NoBoundsQuery,
                                      Halide::Target::UserContext, Halide::Target::NoRuntime}) {
        target.set_feature(f);
    }
    return target;
}

template <typename F> wpk_err guarded(struct wpk_diag *diag, F work)
{
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

wpk_err wpk_halide_warm(const char *target, struct wpk_diag *diag)
{
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

// Call `use` with the schedule's pipeline and arguments.
template <typename F>
static wpk_err with_pipeline(const struct wpk_schedule *schedule, struct wpk_diag *diag, F use)
{
    struct wpk_program program;
    wpk_err err = wpk_schedule_expand(schedule, &program);
    if (err != WPK_OK) {
        wpk_diag_set(diag, "%s", "the program is too large when it is expanded, or memory ran out");
        return err;
    }
    err = guarded(diag, [&] {
        Builder builder(*schedule, program);
        Halide::Pipeline pipeline = builder.build();
        use(pipeline, builder);
    });
    wpk_program_fini(&program);
    return err;
}

static wpk_err write_output(const struct wpk_schedule *schedule, const char *symbol,
                            Halide::OutputFileType type, const char *path, struct wpk_diag *diag)
{
    return with_pipeline(schedule, diag, [&](Halide::Pipeline &pipeline, const Builder &builder) {
        pipeline.compile_to({{type, path}}, builder.arguments(), symbol, target_of(*schedule));
    });
}

wpk_err wpk_halide_build(const struct wpk_schedule *schedule, const char *symbol,
                         const char *object_path, struct wpk_diag *diag)
{
    return write_output(schedule, symbol, Halide::OutputFileType::object, object_path, diag);
}

wpk_err wpk_halide_print_llvm(const struct wpk_schedule *schedule, const char *symbol,
                              const char *path, struct wpk_diag *diag)
{
    return write_output(schedule, symbol, Halide::OutputFileType::llvm_assembly, path, diag);
}

wpk_err wpk_halide_lower(const struct wpk_schedule *schedule, const char *path,
                         struct wpk_diag *diag)
{
    return with_pipeline(schedule, diag, [&](Halide::Pipeline &pipeline, const Builder &builder) {
        pipeline.compile_to_lowered_stmt(path, builder.arguments(), Halide::Text,
                                         target_of(*schedule));
    });
}

wpk_err wpk_halide_launches(const struct wpk_schedule *schedule, const char *symbol,
                            struct wpk_launch_plan *plan, struct wpk_buf *ptx,
                            struct wpk_diag *diag)
{
    *plan = {};
    wpk_err err =
        wpk_target_architecture(schedule->target, plan->architecture, sizeof(plan->architecture));
    if (err != WPK_OK) {
        return wpk_fail(diag, WPK_EUNSUPPORTED, "the target %s names no architecture of a GPU",
                        schedule->target);
    }
    err = with_pipeline(schedule, diag, [&](Halide::Pipeline &pipeline, const Builder &builder) {
        std::string text;
        Halide::Module module =
            pipeline.compile_to_module(builder.arguments(), symbol, target_of(*schedule));
        wpk::take_launches(module, symbol, builder.launch_arguments(), *plan, text);
        wpk_buf_append_text(ptx, text.c_str());
    });
    return err == WPK_OK ? wpk_buf_status(ptx) : err;
}
