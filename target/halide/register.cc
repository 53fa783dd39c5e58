// SPDX-License-Identifier: Apache-2.0
#include "target/halide/launch.hh"

#include <algorithm>
#include <vector>

namespace wpk
{

using Halide::Expr;
using namespace Halide::Internal;

namespace
{

// The index of an access's first lane.
Expr first_lane(const Expr &index)
{
    const Ramp *ramp = index.as<Ramp>();
    return ramp != nullptr ? ramp->base : index;
}

// The indices of all accesses of an allocation; none that are not of neighbours.
class Accesses : public IRVisitor
{
  public:
    Accesses(std::string name, std::map<std::string, Expr> lets)
        : name_(std::move(name)), lets_(std::move(lets))
    {
    }

    std::vector<Expr> index; // of the first lane, without variables that are lets
    std::vector<int> lanes;
    std::vector<std::string> loops; // of each thread, in the allocation
    bool other = false;             // an access is of elements that are no neighbours

  private:
    using IRVisitor::visit;

    void visit(const For *loop) override
    {
        if (loop->for_type != ForType::GPUThread) {
            loops.push_back(loop->name);
        }
        IRVisitor::visit(loop);
    }
    void visit(const LetStmt *let) override
    {
        lets_[let->name] = substitute(lets_, let->value);
        IRVisitor::visit(let);
    }
    void visit(const Let *let) override
    {
        lets_[let->name] = substitute(lets_, let->value);
        IRVisitor::visit(let);
    }
    void visit(const Store *store) override
    {
        take(store->name, store->index);
        IRVisitor::visit(store);
    }
    void visit(const Load *load) override
    {
        take(load->name, load->index);
        IRVisitor::visit(load);
    }

    void take(const std::string &name, const Expr &at)
    {
        if (name != name_) {
            return;
        }
        const Ramp *ramp = at.as<Ramp>();
        bool neighbours = at.type().is_scalar() || (ramp != nullptr && is_const_one(ramp->stride));
        other = other || !neighbours;
        index.push_back(substitute(lets_, first_lane(at)));
        lanes.push_back(at.type().lanes());
    }

    std::string name_;
    std::map<std::string, Expr> lets_;
};

} // namespace

Stmt RegisterPass::visit(const LetStmt *let)
{
    lets_[let->name] = substitute(lets_, let->value);
    return IRMutator::visit(let);
}

Expr RegisterPass::visit(const Let *let)
{
    lets_[let->name] = substitute(lets_, let->value);
    return IRMutator::visit(let);
}

Stmt RegisterPass::visit(const Allocate *allocate)
{
    if (allocate->memory_type != Halide::MemoryType::Register) {
        return IRMutator::visit(allocate);
    }
    Accesses accesses(allocate->name, lets_);
    allocate->body.accept(&accesses);
    int64_t low = 0, high = 0;
    bool fixed = !accesses.other && !accesses.index.empty();
    for (size_t i = 0; i < accesses.index.size() && fixed; i++) {
        auto distance = as_const_int(simplify(accesses.index[i] - accesses.index[0]));
        fixed = static_cast<bool>(distance);
        low = fixed ? std::min(low, *distance) : low;
        high = fixed ? std::max(high, *distance + accesses.lanes[i] - 1) : high;
    }
    for (const std::string &loop : accesses.loops) { // they begin elsewhere in each iteration
        fixed = fixed && !expr_uses_var(accesses.index[0], loop);
    }
    if (!fixed) {
        return IRMutator::visit(allocate);
    }
    parts_[allocate->name] = {accesses.index[0], low};
    return Allocate::make(allocate->name, allocate->type, allocate->memory_type,
                          {static_cast<int>(high - low + 1)}, allocate->condition,
                          mutate(allocate->body));
}

Expr RegisterPass::place(const Part &part, const Expr &index) const
{
    Expr at = simplify(substitute(lets_, first_lane(index)) - part.first);
    at = simplify(at - static_cast<int>(part.low));
    return index.type().is_vector() ? Ramp::make(at, 1, index.type().lanes()) : at;
}

Stmt RegisterPass::visit(const Store *store)
{
    Stmt mutated = IRMutator::visit(store);
    const Store *s = mutated.as<Store>();
    auto part = parts_.find(store->name);
    return part == parts_.end() ? mutated
                                : Store::make(s->name, s->value, place(part->second, s->index),
                                              s->param, s->predicate, ModulusRemainder());
}

Expr RegisterPass::visit(const Load *load)
{
    Expr mutated = IRMutator::visit(load);
    const Load *l = mutated.as<Load>();
    auto part = parts_.find(load->name);
    return part == parts_.end() ? mutated
                                : Load::make(l->type, l->name, place(part->second, l->index),
                                             l->image, l->param, l->predicate, ModulusRemainder());
}

} // namespace wpk
