// SPDX-License-Identifier: Apache-2.0
// Halide gives each thread memory for all of its block's tile. Where all accesses of a thread are
// at fixed distances from one another, RegisterPass leaves it the elements between the first and
// the last, at indices that are numbers: LLVM keeps such memory in registers.
#ifndef WPK_CODEGEN_HALIDE_REGISTER_HH
#define WPK_CODEGEN_HALIDE_REGISTER_HH

#include "target/halide/expression.hh"

#include <map>
#include <string>

namespace wpk {

class RegisterPass : public Halide::Internal::IRMutator {
  private:
    // Where the elements of a thread begin, in terms of what is known around the allocation's body.
    struct Part {
        Halide::Expr first; // the index of one access
        int64_t low;        // the least distance of an access from it
    };

    using IRMutator::visit;
    Halide::Internal::Stmt visit(const Halide::Internal::LetStmt *let) override;
    Halide::Expr visit(const Halide::Internal::Let *let) override;
    Halide::Internal::Stmt visit(const Halide::Internal::Allocate *allocate) override;
    Halide::Internal::Stmt visit(const Halide::Internal::Store *store) override;
    Halide::Expr visit(const Halide::Internal::Load *load) override;

    Halide::Expr place(const Part &part, const Halide::Expr &index) const;

    std::map<std::string, Halide::Expr> lets_; // values, without variables that are lets
    std::map<std::string, Part> parts_;        // of allocations around
};

} // namespace wpk
#endif
