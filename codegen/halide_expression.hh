// SPDX-License-Identifier: Apache-2.0
// The program's expressions as Halide's.
//
// Halide lists dimensions innermost first, the IR outermost first: every index list is reversed, in
// a load and where a stage is defined.
#ifndef WPK_CODEGEN_HALIDE_EXPRESSION_HH
#define WPK_CODEGEN_HALIDE_EXPRESSION_HH

#include "op/infinite.h"

#include <Halide.h>
#include <stdexcept>
#include <vector>

namespace wpk {

using Failure = std::runtime_error;

Halide::Type type_of(wpk_dtype dtype);
// What a reduction starts from; `infinite`: its terms may be.
Halide::Expr identity_of(wpk_reduction reduction, wpk_dtype dtype, bool infinite);

// One tensor of the program on Halide's side.
struct Tensor {
    Halide::ImageParam image;     // inputs and constants
    Halide::Buffer<void> literal; // literals
    Halide::Func func;            // written by a stage
    Halide::Type stored;          // what a load yields before the cast to the tensor's type
};

// The expressions of one stage. What is strict in `infinite` is built with strict operations.
struct Expressions {
    const wpk_program &program;
    const wpk_infinite &infinite;
    const std::vector<Tensor> &tensors; // by tensor id
    const wpk_stage &stage;
    bool expanding; // literals become the numbers they are

    using Axes = std::vector<Halide::Expr>; // variables or numbers, one for each axis
    // The stage's value, or term, as a `dtype`.
    Halide::Expr value(wpk_dtype dtype, const Axes &axes) const;

  private:
    Halide::Expr convert(int id, const Axes &axes) const;
    Halide::Expr load(int id, const Axes &axes) const;
    Halide::Expr element(const wpk_tensor &literal, const Axes &index) const;
    Halide::Expr unary(int id, const Axes &axes) const;
    Halide::Expr binary(int id, const Axes &axes) const;
};

// Adds up, or compares, the lanes of a vector pairwise, as Halide itself does only as long as a
// program has no strict operation; and makes what the stages called `strict` store strict.
class StrictPass : public Halide::Internal::IRMutator {
  public:
    explicit StrictPass(std::vector<std::string> strict) : strict_(std::move(strict)) {}

  protected:
    using IRMutator::visit;
    Halide::Expr visit(const Halide::Internal::VectorReduce *reduce) override;
    Halide::Internal::Stmt visit(const Halide::Internal::Store *store) override;

  private:
    std::vector<std::string> strict_;
};

} // namespace wpk
#endif
