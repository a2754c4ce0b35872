// What Halide knows of a program's arguments (their strides, that their extents
// are not negative, ...: a hundred facts of a convolution) it looks for in all
// of the program, for each of them anew and five times over. Nothing is ever
// found, since loops are simplified by what is known anyway; and it takes a
// sixth of the time to compile. So this function is here under the name of
// Halide's, which the dynamic linker takes instead: it leaves out what is about
// arguments and hands the rest on. Code comes out the same, byte by byte
// (golden_traces_test); where a Halide has no such function nobody calls this.

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "Halide.h"

namespace optrail::halide {
namespace {

using Halide::Expr;
using Halide::Internal::Stmt;
using Facts = std::vector<Expr>;

class OfArguments : public Halide::Internal::IRVisitor {
 public:
  bool only = true;

 private:
  using IRVisitor::visit;
  void visit(const Halide::Internal::Variable* op) override {
    static constexpr std::array<const char*, 8> kParts = {
        ".buffer", ".device_dirty", ".dimensions",   ".extent.",
        ".min.",   ".stride.",      ".total_extent", ".type"};
    only &= op->type.is_handle() ||
            std::any_of(kParts.begin(), kParts.end(), [&](const char* part) {
              return op->name.find(part) != std::string::npos;
            });
  }
};

Facts Others(const Facts& facts) {
  Facts others;
  for (const Expr& fact : facts) {
    OfArguments of_arguments;
    fact.accept(&of_arguments);
    if (!of_arguments.only) others.push_back(fact);
  }
  return others;
}

}  // namespace

// Halide::Internal::substitute_facts_impl<Stmt>
#define OPTRAIL_SUBSTITUTE_FACTS                                 \
  "_ZN6Halide8Internal21substitute_facts_implINS0_4StmtEEET_S3_" \
  "RKSt6vectorINS_4ExprESaIS5_EES9_"

Stmt SubstituteFacts(Stmt stmt, const Facts& truths,
                     const Facts& falsehoods) asm(OPTRAIL_SUBSTITUTE_FACTS);

Stmt SubstituteFacts(Stmt stmt, const Facts& truths, const Facts& falsehoods) {
  using Function = Stmt(Stmt, const Facts&, const Facts&);
  static auto* const halides =
      reinterpret_cast<Function*>(dlsym(RTLD_NEXT, OPTRAIL_SUBSTITUTE_FACTS));
  const Facts true_others = Others(truths), false_others = Others(falsehoods);
  const bool none = true_others.empty() && false_others.empty();
  if (none || halides == nullptr) return stmt;
  return halides(std::move(stmt), true_others, false_others);
}

}  // namespace optrail::halide
