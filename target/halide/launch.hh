// SPDX-License-Identifier: Apache-2.0
// What Halide compiled for a GPU, as the parts of an image (schema/launch_plan.h): its kernels as
// PTX, and the launches. The host's code that launches them is read, not compiled: all sizes of a
// program are numbers, so it is a list of calls whose arguments are numbers and buffers.
#ifndef WPK_CODEGEN_HALIDE_LAUNCH_HH
#define WPK_CODEGEN_HALIDE_LAUNCH_HH

#include "schema/launch_plan.h"
#include "target/halide/expression.hh"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace wpk
{

// An argument of the program.
struct LaunchArgument {
    std::string name; // of its buffer
    int64_t origin;   // bytes before its element 0, to which launches take a pointer
};

// What launches need before Halide cuts them out of the program:
//
// - A block's shared memory moves up by a KiB. Halide counts addresses from 0, but GPUs from sm_90
//   on keep the first KiB for themselves, and variables begin behind it.
// - The host only launches. If blocks need different sizes, the host would look for the largest
//   in a loop over all blocks, which runs here; and expressions that all blocks share go into them.
// - Halide accesses four elements at once at each index that is a multiple of four. The index of an
//   uneven buffer, whose element 0 is at no multiple of 16 bytes, counts as unknown.
class LaunchPass : public Halide::Internal::IRMutator
{
  public:
    explicit LaunchPass(const std::vector<LaunchArgument> &arguments);

  private:
    using IRMutator::visit;
    Halide::Internal::Stmt visit(const Halide::Internal::For *loop) override;
    Halide::Internal::Stmt visit(const Halide::Internal::LetStmt *let) override;
    Halide::Internal::Stmt visit(const Halide::Internal::Allocate *allocate) override;
    Halide::Internal::Stmt visit(const Halide::Internal::Store *store) override;
    Halide::Expr visit(const Halide::Internal::Load *load) override;

    void run(const Halide::Internal::For *loop);

    std::set<std::string> uneven_;                             // names of buffers
    bool launched_ = false;                                    // inside of loops over blocks
    std::map<std::string, std::map<int64_t, int64_t>> memory_; // of the host: elements, by index
    std::set<std::string> shared_;                             // names of allocations around
};

// Fill the plan but for its architecture, and the PTX, whose functions are SYMBOL_0, SYMBOL_1, ...
// `arguments`: in the order of the program's. Throws Failure where the host does more than launch.
void take_launches(const Halide::Module &module, const std::string &symbol,
                   const std::vector<LaunchArgument> &arguments, wpk_launch_plan &plan,
                   std::string &ptx);

// Halide gives each thread memory for all of its block's tile. Where all accesses of a thread are
// at fixed distances from one another, RegisterPass leaves it the elements between the first and
// the last, at indices that are numbers: LLVM keeps such memory in registers.
class RegisterPass : public Halide::Internal::IRMutator
{
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
