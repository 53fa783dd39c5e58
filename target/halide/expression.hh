// SPDX-License-Identifier: Apache-2.0
// The program's expressions as Halide's.
//
// Halide lists dimensions innermost first, the IR outermost first: every index list is reversed, in
// a load and where a stage is defined.
#ifndef WPK_CODEGEN_HALIDE_EXPRESSION_HH
#define WPK_CODEGEN_HALIDE_EXPRESSION_HH

#include "nest/expand.h"

#include <Halide.h>
#include <map>
#include <stdexcept>
#include <vector>

namespace wpk
{

using Failure = std::runtime_error;

Halide::Type type_of(wpk_dtype dtype);
// What a reduction starts from.
Halide::Expr identity_of(const wpk_program &program, const wpk_stage &stage);

// One tensor of the program on Halide's side.
struct Tensor {
    Halide::ImageParam image;     // inputs and constants
    Halide::Buffer<void> literal; // literals; undefined: they are in no memory
    Halide::Func func;            // written by a stage
    bool part = false;            // of it: what an iteration of a reader's loop needs
};

// The expressions of one stage of an expanded program (nest/expand.h). What is strict is built with
// strict operations. A shared node becomes a shared expression.
class Expressions
{
  public:
    // By tensor id; by axis, variables. `limited`: as in nest/reach.h, of the stage. `fuses`:
    // the machine has fused multiply-adds.
    Expressions(const wpk_program &program, const std::vector<Tensor> &tensors,
                const wpk_stage &stage, const std::vector<Halide::Expr> &axes,
                const uint16_t *limited, bool fuses)
        : program_(program), tensors_(tensors), stage_(stage), axes_(axes), limited_(limited),
          fuses_(fuses)
    {
    }

    Halide::Expr value(); // the stage's value, or term

  private:
    Halide::Expr convert(int id);
    Halide::Expr make(int id);
    Halide::Expr load(const wpk_node &node, wpk_dtype dtype);
    void read_flat(const wpk_node &node, int dim, std::vector<Halide::Expr> &index);
    Halide::Expr element(const wpk_tensor &literal, const std::vector<Halide::Expr> &index) const;
    Halide::Expr unary(const wpk_node &node);
    Halide::Expr binary(int id);

    const wpk_program &program_;
    const std::vector<Tensor> &tensors_;
    const wpk_stage &stage_;
    const std::vector<Halide::Expr> &axes_;
    const uint16_t *limited_;          // [tensor_count]
    bool fuses_;                       // the machine has fused multiply-adds
    std::map<int, Halide::Expr> made_; // by node id
};

// Adds up, or compares, the lanes of a vector pairwise, as Halide itself does only as long as a
// program has no strict operation; and makes what the stages called `strict` store strict.
class StrictPass : public Halide::Internal::IRMutator
{
  public:
    explicit StrictPass(std::vector<std::string> strict) : strict_(std::move(strict))
    {
    }

  protected:
    using IRMutator::visit;
    Halide::Expr visit(const Halide::Internal::VectorReduce *reduce) override;
    Halide::Internal::Stmt visit(const Halide::Internal::Store *store) override;

  private:
    std::vector<std::string> strict_;
};

// Loads of outputs, which other stages read: Halide takes such a buffer for one of its own, and
// loads from it as if it were aligned to whole vectors. A load with the parameter does not.
class OutputPass : public Halide::Internal::IRMutator
{
  public:
    explicit OutputPass(std::map<std::string, Halide::Parameter> outputs)
        : outputs_(std::move(outputs))
    {
    }

  private:
    using IRMutator::visit;
    Halide::Expr visit(const Halide::Internal::Load *load) override;

    std::map<std::string, Halide::Parameter> outputs_; // by the name of the function
};

} // namespace wpk
#endif
