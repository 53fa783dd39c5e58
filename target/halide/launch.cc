// SPDX-License-Identifier: Apache-2.0
#include "target/halide/launch.hh"

#include <algorithm>
#include <cstdio>

namespace wpk
{

using Halide::Expr;
using namespace Halide::Internal;

// ---- what is launched

namespace
{

constexpr int reserved_bytes = 1024;
constexpr int64_t iterations_max = 65536;

int reserved(Halide::Type type)
{
    return reserved_bytes / type.bytes();
}

Expr moved(const Expr &index, Halide::Type type)
{
    return simplify(index + make_const(index.type(), reserved(type.element_of())));
}

ModulusRemainder moved(const ModulusRemainder &index, Halide::Type type)
{
    return index + ModulusRemainder(0, reserved(type.element_of()));
}

int64_t number(const Expr &e)
{
    auto value = as_const_int(simplify(e));
    if (!value) {
        throw Failure("the size of a launch is no number");
    }
    return *value;
}

class BlockFinder : public IRVisitor
{
  public:
    bool found = false;

  private:
    using IRVisitor::visit;
    void visit(const For *loop) override
    {
        found = found || loop->for_type == ForType::GPUBlock;
        IRVisitor::visit(loop);
    }
};

bool has_blocks(const For *loop)
{
    BlockFinder finder;
    loop->accept(&finder);
    return finder.found;
}

} // namespace

LaunchPass::LaunchPass(const std::vector<LaunchArgument> &arguments)
{
    constexpr int64_t vector_bytes = 16;
    for (const LaunchArgument &argument : arguments) {
        if (argument.origin % vector_bytes != 0) {
            uneven_.insert(argument.name);
        }
    }
}

// Run a loop of the host.
void LaunchPass::run(const For *loop)
{
    int64_t min = number(mutate(loop->min)), extent = number(mutate(loop->extent));
    if (extent > iterations_max) {
        throw Failure("the host computes too long how much memory blocks need");
    }
    for (int64_t i = min; i < min + extent; i++) {
        mutate(substitute(loop->name, static_cast<int>(i), loop->body));
    }
}

Stmt LaunchPass::visit(const For *loop)
{
    if (!launched_ && !has_blocks(loop)) {
        run(loop);
        return Evaluate::make(0);
    }
    bool before = launched_;
    launched_ = launched_ || loop->for_type == ForType::GPUBlock;
    Stmt mutated = IRMutator::visit(loop);
    launched_ = before;
    return mutated;
}

Stmt LaunchPass::visit(const LetStmt *let)
{
    return launched_ || let->value.type().is_handle()
               ? IRMutator::visit(let)
               : mutate(substitute(let->name, let->value, let->body));
}

Stmt LaunchPass::visit(const Allocate *allocate)
{
    if (allocate->memory_type != Halide::MemoryType::GPUShared) {
        return IRMutator::visit(allocate);
    }
    shared_.insert(allocate->name);
    Expr elements = 1;
    for (const Expr &extent : allocate->extents) {
        elements = elements * mutate(extent);
    }
    elements = simplify(elements + reserved(allocate->type));
    return Allocate::make(allocate->name, allocate->type, allocate->memory_type, {elements},
                          allocate->condition, mutate(allocate->body));
}

Stmt LaunchPass::visit(const Store *store)
{
    if (!launched_) {
        if (!store->value.type().is_int() || !store->value.type().is_scalar()) {
            throw Failure("a stage is in no launch: write loops over blocks around it");
        }
        memory_[store->name][number(mutate(store->index))] = number(mutate(store->value));
        return Evaluate::make(0);
    }
    Stmt mutated = IRMutator::visit(store);
    const Store *s = mutated.as<Store>();
    if (uneven_.count(store->name) > 0) {
        return Store::make(s->name, s->value, s->index, s->param, s->predicate, ModulusRemainder());
    }
    return shared_.count(store->name) == 0
               ? mutated
               : Store::make(s->name, s->value, moved(s->index, s->value.type()), s->param,
                             s->predicate, moved(s->alignment, s->value.type()));
}

Expr LaunchPass::visit(const Load *load)
{
    auto known = memory_.find(load->name);
    if (known != memory_.end()) {
        return make_const(load->type, known->second[number(mutate(load->index))]);
    }
    Expr mutated = IRMutator::visit(load);
    const Load *l = mutated.as<Load>();
    if (uneven_.count(load->name) > 0) {
        return Load::make(l->type, l->name, l->index, l->image, l->param, l->predicate,
                          ModulusRemainder());
    }
    return shared_.count(load->name) == 0
               ? mutated
               : Load::make(l->type, l->name, moved(l->index, l->type), l->image, l->param,
                            l->predicate, moved(l->alignment, l->type));
}

// ---- launches

namespace
{

constexpr size_t run_arguments = 12; // state, function, 3 blocks, 3 threads, shared bytes, 3 lists
constexpr int64_t blocks_beside_max = 65535; // along y and z: every architecture
constexpr int64_t shared_max = 48 << 10;     // bytes that need no attribute of the function
constexpr const char *buffer_suffix = ".buffer";

class Reader : public IRVisitor
{
  public:
    Reader(const std::string &symbol, const std::vector<LaunchArgument> &arguments,
           wpk_launch_plan &plan)
        : symbol_(symbol), plan_(plan)
    {
        for (const LaunchArgument &argument : arguments) {
            pointer_[argument.name] = {plan_.argument_count++, 8, argument.origin};
        }
    }

    std::vector<std::string> functions; // Halide's names, by launch

  private:
    using IRVisitor::visit;
    void visit(const Allocate *allocate) override;
    void visit(const Call *call) override;
    void visit(const LetStmt *let) override;
    void visit(const Store *) override
    {
        refuse();
    }
    void visit(const For *) override
    {
        refuse();
    }
    [[noreturn]] static void refuse()
    {
        throw Failure("a loop is in no launch: write loops over blocks around it");
    }
    void take_launch(const Call *call);
    wpk_launch_parameter find_pointer(const std::string &name);
    wpk_launch_parameter find_parameter(const Expr &argument);

    const std::string &symbol_;
    wpk_launch_plan &plan_;
    std::map<std::string, wpk_launch_parameter> pointer_; // of buffers
    std::map<std::string, int64_t> bytes_;                // of what the host allocates
};

void Reader::visit(const Allocate *allocate)
{
    if (allocate->memory_type == Halide::MemoryType::Stack) { // the host's own
        IRVisitor::visit(allocate);
        return;
    }
    int64_t bytes = allocate->type.bytes();
    for (const Expr &extent : allocate->extents) {
        bytes *= number(extent);
    }
    bytes_[allocate->name] = bytes;
    IRVisitor::visit(allocate);
}

// A number that launches read.
void Reader::visit(const LetStmt *let)
{
    if (as_const_int(let->value)) {
        substitute(let->name, let->value, let->body).accept(this);
    } else {
        IRVisitor::visit(let);
    }
}

void Reader::visit(const Call *call)
{
    if (call->name == "halide_cuda_run") {
        take_launch(call);
    } else {
        IRVisitor::visit(call);
    }
}

// A buffer that one launch writes and a later one reads is scratch memory of the plan. It is added
// when a launch first names it.
wpk_launch_parameter Reader::find_pointer(const std::string &name)
{
    auto known = pointer_.find(name);
    if (known != pointer_.end()) {
        return known->second;
    }
    auto allocated = bytes_.find(name);
    if (allocated == bytes_.end()) {
        throw Failure("a launch reads " + name + ", which the host has");
    }
    if (plan_.scratch_count == WPK_LAUNCH_SCRATCH_MAX) {
        throw Failure("there are too many tensors between launches");
    }
    wpk_launch_parameter parameter = {plan_.argument_count + plan_.scratch_count, 8, 0};
    plan_.scratch[plan_.scratch_count++].bytes = allocated->second;
    pointer_[name] = parameter;
    return parameter;
}

// A number is passed as a structure of its own, which has to be known here.
wpk_launch_parameter Reader::find_parameter(const Expr &argument)
{
    const Variable *variable = argument.as<Variable>();
    if (variable != nullptr) {
        return find_pointer(variable->name.substr(0, variable->name.rfind(buffer_suffix)));
    }
    const Call *made = argument.as<Call>();
    bool one = made != nullptr && made->is_intrinsic(Call::make_struct) && made->args.size() == 1;
    Expr value = one ? simplify(made->args[0]) : Expr();
    auto known = one ? as_const_int(value) : std::nullopt;
    int bytes = known ? value.type().bytes() : 0;
    if (bytes != 4 && bytes != 8) {
        throw Failure("a launch reads a number, which the host has");
    }
    return {-1, bytes, *known};
}

void Reader::take_launch(const Call *call)
{
    if (plan_.launch_count == WPK_LAUNCHES_MAX) {
        throw Failure("there are too many launches");
    }
    const StringImm *function =
        call->args.size() == run_arguments ? call->args[1].as<StringImm>() : nullptr;
    const Call *arguments =
        call->args.size() == run_arguments ? call->args[10].as<Call>() : nullptr;
    if (function == nullptr || arguments == nullptr) {
        throw Failure("a launch is not as this version of Halide makes them");
    }
    wpk_launch_step &step = plan_.launch[plan_.launch_count];
    std::snprintf(step.entry, sizeof(step.entry), "%s_%d", symbol_.c_str(), plan_.launch_count++);
    for (size_t d = 0; d < 3; d++) {
        step.blocks[d] = number(call->args[2 + d]);
        step.threads[d] = number(call->args[5 + d]);
    }
    step.added_bytes = number(call->args[8]);
    if (step.blocks[1] > blocks_beside_max || step.blocks[2] > blocks_beside_max) {
        throw Failure("a launch has at most 65535 blocks along y and z: write block.x for them");
    }
    if (step.added_bytes > shared_max) {
        throw Failure("a block has at most 47 KiB of shared memory by Halide");
    }
    for (size_t i = 0; i + 1 < arguments->args.size(); i++) { // the last one ends the list
        if (wpk_launch_plan_add(&plan_, find_parameter(arguments->args[i])) != WPK_OK) {
            throw Failure("launches have too many arguments");
        }
    }
    functions.push_back(function->value);
}

// ---- the kernels

bool is_of_name(char c)
{
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
}

// Names of parameters and the like begin with the function's.
void rename(std::string &ptx, const std::string &from, const std::string &to)
{
    for (size_t at = ptx.find(from); at != std::string::npos; at = ptx.find(from, at)) {
        size_t end = at + from.size();
        bool whole =
            (at == 0 || !is_of_name(ptx[at - 1])) &&
            (end == ptx.size() || !is_of_name(ptx[end]) || ptx.compare(end, 7, "_param_") == 0);
        if (whole) {
            ptx.replace(at, from.size(), to);
        }
        at += whole ? to.size() : from.size();
    }
}

// A compiler that knows how many threads there are gives each its share of the registers.
void limit_threads(std::string &ptx, const wpk_launch_step &step)
{
    size_t at = ptx.find(std::string(".entry ") + step.entry + "(");
    size_t body = at == std::string::npos ? at : ptx.find("\n{", at);
    if (body == std::string::npos) {
        throw Failure("a launched function is not in the module");
    }
    ptx.insert(body, "\n.maxntid " + std::to_string(step.threads[0]) + ", " +
                         std::to_string(step.threads[1]) + ", " + std::to_string(step.threads[2]));
}

} // namespace

void take_launches(const Halide::Module &module, const std::string &symbol,
                   const std::vector<LaunchArgument> &arguments, wpk_launch_plan &plan,
                   std::string &ptx)
{
    Reader reader(symbol, arguments, plan);
    for (const LoweredFunc &function : module.functions()) {
        function.body.accept(&reader);
    }
    Halide::Buffer<> code = module.get_cuda_ptx_assembly_buffer();
    if (plan.launch_count == 0 || !code.defined()) {
        throw Failure("nothing is launched: write loops over blocks");
    }
    const char *text = static_cast<const char *>(code.data());
    ptx.assign(text, strnlen(text, code.size_in_bytes()));
    for (int i = 0; i < plan.launch_count; i++) {
        rename(ptx, reader.functions[static_cast<size_t>(i)], plan.launch[i].entry);
        limit_threads(ptx, plan.launch[i]);
    }
}

} // namespace wpk
