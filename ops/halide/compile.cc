#include "ops/halide/compile.h"

#include <stdlib.h>

#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "Halide.h"
#include "ops/halide/algorithm.h"
#include "ops/halide/describe.h"

namespace optrail::halide {
namespace {

using Halide::Func;
using Halide::VarOrRVar;

[[noreturn]] void Fail(const std::string& why) {
  throw std::invalid_argument(why);
}

using Words = std::vector<std::string>;

Words SplitWords(const std::string& line) {
  std::istringstream in(line);
  Words words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

Halide::Type TypeOf(const std::string& name) {
  if (name == "f32") return Halide::Float(32);
  if (name == "f64") return Halide::Float(64);
  if (name == "i64") return Halide::Int(64);
  if (name == "i32") return Halide::Int(32);
  if (name == "i16") return Halide::Int(16);
  if (name == "i8") return Halide::Int(8);
  if (name == "u8") return Halide::UInt(8);
  Fail("data type " + name + " is none of f32, f64, i64, i32, i16, i8, u8");
}

struct Request {
  std::string kind, object, autoscheduler;
  Halide::Target target;
  int parallelism = 1;
  Call call;
  std::vector<Words> steps;
};

Request Parse(const std::string& text) {
  Request request;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    Words words = SplitWords(line);
    if (words.empty()) continue;
    if (words.size() < 2) Fail("request line \"" + line + "\"");
    const std::string& key = words[0];
    if (key == "kind") {
      request.kind = words[1];
    } else if (key == "target") {
      request.target = Halide::Target(words[1]);
    } else if (key == "dim") {
      request.call.dims[words.at(1)] = std::stoll(words.at(2));
    } else if (key == "attribute") {
      request.call.attributes[words.at(1)] = words.at(2);
    } else if (key == "operand") {
      Operand operand;
      operand.type = TypeOf(words.at(1));
      operand.is_input = words.at(2) == "in";
      for (size_t i = words.size(); i-- > 3;) {
        operand.extents.push_back(std::stoll(words[i]));
      }
      request.call.operands.push_back(std::move(operand));
    } else if (key == "object") {
      request.object = words[1];
    } else if (key == "autoscheduler") {
      request.autoscheduler = words.at(1);
      request.parallelism = std::stoi(words.at(2));
    } else if (key == "step") {
      words.erase(words.begin());
      request.steps.push_back(std::move(words));
    } else {
      Fail("request line \"" + line + "\"");
    }
  }
  for (const Operand& operand : request.call.operands) {
    if (!operand.is_input) continue;
    Halide::ImageParam image(operand.type,
                             static_cast<int>(operand.extents.size()),
                             "in" + std::to_string(request.call.inputs.size()));
    int64_t stride = 1;
    for (size_t d = 0; d < operand.extents.size(); ++d) {
      const int extent = static_cast<int>(operand.extents[d]);
      // Its bounds are left open: what the code is going to read is asked of
      // it before it runs, and compared with what there is.
      image.dim(d).set_stride(static_cast<int>(stride));
      image.dim(d).set_estimate(0, extent);
      stride *= extent;
    }
    request.call.inputs.push_back(image);
  }
  return request;
}

// The loops of a program, made again with Halide's.
class Steps {
 public:
  Steps(Call& call, std::vector<Func> stages)
      : call_(call), stages_(std::move(stages)) {
    for (size_t s = 0; s < stages_.size(); ++s) names_.push_back(NamesOf(s));
  }

  void Apply(const Words& step) {
    const std::string& op = step.at(0);
    const int s = IndexOf(step.at(1));
    Func& func = stages_[s];
    if (op == "root") {
      func.compute_root();
    } else if (op == "inline") {
      func.compute_inline();
    } else if (op == "at") {
      const int at = IndexOf(step.at(2)), d = std::stoi(step.at(3));
      func.compute_at(
          Halide::LoopLevel(stages_[at], OwnLoop(at, d, step.at(4))));
    } else if (op == "extent") {
      func.bound_extent(func.args().at(std::stoi(step.at(2))),
                        std::stoi(step.at(3)));
    } else if (op == "split") {
      const int d = std::stoi(step.at(2));
      const std::string& old = step.at(3);
      const VarOrRVar loop = Loop(s, d, old);
      const VarOrRVar outer = Named(s, d, old + "o", loop.is_rvar);
      const VarOrRVar inner = Named(s, d, old + "i", loop.is_rvar);
      StageOf(s, d).split(loop, outer, inner, std::stoi(step.at(4)),
                          TailOf(step));
    } else if (op == "reorder") {
      const int d = std::stoi(step.at(2));
      std::vector<VarOrRVar> order;
      for (size_t i = step.size(); i-- > 3;) {
        order.push_back(Loop(s, d, step[i]));
      }
      StageOf(s, d).reorder(order);
    } else if (op == "fuse") {
      const int d = std::stoi(step.at(2));
      const VarOrRVar outer = Loop(s, d, step.at(3));
      const VarOrRVar inner = Loop(s, d, step.at(4));
      const VarOrRVar fused = Named(s, d, step.at(5), outer.is_rvar);
      StageOf(s, d).fuse(inner, outer, fused);
    } else if (op == "vectorize" || op == "unroll" || op == "parallel") {
      const int d = std::stoi(step.at(2));
      const VarOrRVar loop = Loop(s, d, step.at(3));
      Halide::Stage stage = StageOf(s, d);
      if (op == "vectorize") {
        // Lanes of a reduction are added up pair by pair.
        if (loop.is_rvar) stage.atomic();
        stage.vectorize(loop);
      }
      if (op == "unroll") stage.unroll(loop);
      if (op == "parallel") stage.parallel(loop);
    } else if (op == "cache_write") {
      copies_[s] = stages_.size();
      Append(func.in());
    } else if (op == "cache_read") {
      const int source = std::stoi(step.at(3));
      if (step.at(2) == "input") {
        Append(call_.inputs.at(source).in(func));
      } else {
        Append(stages_.at(source).in(func));
      }
    } else if (op == "rfactor") {
      const int d = std::stoi(step.at(2));
      const VarOrRVar loop = Loop(s, d, "r" + step.at(3));
      const Halide::RVar whole(loop.name());
      const Halide::RVar outer(loop.name() + "_o"), inner(loop.name() + "_i");
      StageOf(s, d).split(whole, outer, inner, std::stoi(step.at(4)));
      const Halide::Var lanes("lanes" + std::to_string(s));
      Append(func.update(d - 1).rfactor(inner, lanes));
      names_[s] = NamesOf(s);
    } else if (op == "storage") {
      std::vector<Halide::Var> order;
      for (size_t i = 2; i < step.size(); ++i) {
        order.push_back(func.args().at(std::stoi(step[i])));
      }
      func.reorder_storage(order);
    } else {
      Fail("step " + op);
    }
  }

  // The stage, or what copies it.
  Func Output(size_t s) const {
    const auto copy = copies_.find(s);
    return stages_[copy == copies_.end() ? s : copy->second];
  }

 private:
  // Loops of each definition by our names.
  using Names = std::vector<std::map<std::string, VarOrRVar>>;

  static Halide::TailStrategy TailOf(const Words& step) {
    return step.size() < 6 ? Halide::TailStrategy::Auto
                           : Halide::TailStrategy::ShiftInwards;
  }

  int IndexOf(const std::string& word) const {
    const int s = std::stoi(word);
    if (s < 0 || s >= static_cast<int>(stages_.size())) Fail("stage " + word);
    return s;
  }

  Names NamesOf(size_t s) const {
    const Halide::Internal::Function function = stages_[s].function();
    Names names;
    for (int d = 0; d <= static_cast<int>(function.updates().size()); ++d) {
      std::map<std::string, VarOrRVar> loops;
      for (size_t x = 0; x < function.args().size(); ++x) {
        loops.emplace("x" + std::to_string(x),
                      VarOrRVar(function.args()[x], false));
      }
      if (d > 0) {
        int r = 0;
        for (const auto& dim : function.update(d - 1).schedule().dims()) {
          if (!dim.is_rvar()) continue;
          // What rfactor leaves is qualified by the reduction's name.
          const std::string name = dim.var.substr(dim.var.rfind('.') + 1);
          loops.emplace("r" + std::to_string(r++), VarOrRVar(name, true));
        }
      }
      names.push_back(std::move(loops));
    }
    return names;
  }

  void Append(Func func) {
    stages_.push_back(std::move(func));
    names_.push_back(NamesOf(stages_.size() - 1));
  }

  Halide::Stage StageOf(int s, int d) {
    if (d == 0) return stages_[s];
    return stages_[s].update(d - 1);
  }

  VarOrRVar Loop(int s, int d, const std::string& name) const {
    const auto& loops = names_[s].at(d);
    const auto found = loops.find(name);
    if (found == loops.end()) {
      Fail("stage " + std::to_string(s) + " has no loop " + name);
    }
    return found->second;
  }

  // With a name that no other definition of the stage has: Halide finds the
  // place of a computation by that alone.
  VarOrRVar OwnLoop(int s, int d, const std::string& name) {
    const VarOrRVar loop = Loop(s, d, name);
    for (size_t other = 0; other < names_[s].size(); ++other) {
      if (static_cast<int>(other) == d) continue;
      for (const auto& [key, value] : names_[s][other]) {
        if (value.name() != loop.name()) continue;
        names_[s].at(d).erase(name);
        const VarOrRVar own = Named(s, d, name, loop.is_rvar);
        StageOf(s, d).rename(loop, own);
        return own;
      }
    }
    return loop;
  }

  VarOrRVar Named(int s, int d, const std::string& name, bool is_rvar) {
    // Names are unique in a function, also between its definitions.
    const VarOrRVar loop("d" + std::to_string(d) + name, is_rvar);
    names_[s].at(d).emplace(name, loop);
    return loop;
  }

  Call& call_;
  std::vector<Func> stages_;
  std::vector<Names> names_;
  std::map<size_t, size_t> copies_;
};

// Limits of LLVM's analyses, each of which looks at all pairs of accesses: long
// straight code takes a third of the time, and comes out the same.
// Nor is straight code looked through for vectors: programs say what is one.
constexpr char kLlvmOptions[] =
    "-capture-tracking-max-uses-to-explore=8 -max-dependences=1 "
    "-memssa-check-limit=30 -vectorize-slp=false";

// Leaves out what Halide asserts of arguments, a third of a convolution's code
// to compile: the loader makes them what they must be, and asks the code what
// it would use of each before the first call (halide_code.cc). Assertions about
// the program itself stay.
class DropArgumentChecks : public Halide::Internal::IRMutator {
 private:
  using IRMutator::visit;

  Halide::Internal::Stmt visit(
      const Halide::Internal::AssertStmt* op) override {
    static const auto& kOfArguments = *new std::set<std::string>{
        "halide_error_access_out_of_bounds",
        "halide_error_bad_dimensions",
        "halide_error_bad_type",
        "halide_error_buffer_allocation_too_large",
        "halide_error_buffer_argument_is_null",
        "halide_error_buffer_extents_negative",
        "halide_error_buffer_extents_too_large",
        "halide_error_constraint_violated",
        "halide_error_device_dirty_with_no_device_support",
        "halide_error_host_is_null",
    };
    const auto* const error = op->message.as<Halide::Internal::Call>();
    if (error == nullptr || kOfArguments.count(error->name) == 0) return op;
    return Halide::Internal::Evaluate::make(0);
  }
};

void Compile(Request& request, const Stages& stages) {
  setenv("HL_LLVM_ARGS", kLlvmOptions, 1);  // Halide reads it on first use
  std::vector<Func> outputs;
  for (const size_t s : stages.outputs) outputs.push_back(stages.funcs[s]);
  if (request.autoscheduler.empty()) {
    Steps steps(request.call, stages.funcs);
    for (const Words& step : request.steps) {
      try {
        steps.Apply(step);
      } catch (const std::exception& e) {
        std::string text;
        for (const std::string& word : step) text += " " + word;
        Fail("step" + text + ": " + e.what());
      }
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      outputs[i] = steps.Output(stages.outputs[i]);
    }
    // Programs say what is a vector and what is unrolled; LLVM 14's own passes
    // over loops made wrong code of some that unroll copies.
    request.target.set_feature(Halide::Target::DisableLLVMLoopOpt);
  }
  size_t output = 0;
  for (const Operand& operand : request.call.operands) {
    if (operand.is_input) continue;
    auto buffer = outputs[output++].output_buffer();
    int64_t stride = 1;
    for (size_t d = 0; d < operand.extents.size(); ++d) {
      const int extent = static_cast<int>(operand.extents[d]);
      auto dimension = buffer.dim(static_cast<int>(d));
      dimension.set_bounds(0, extent).set_stride(static_cast<int>(stride));
      dimension.set_estimate(0, extent);
      stride *= extent;
    }
  }
  Halide::Pipeline pipeline(outputs);
  Halide::Target target = request.target;
  if (!request.autoscheduler.empty()) {
    std::string library = request.autoscheduler;
    for (char& c : library) c = static_cast<char>(std::tolower(c));
    Halide::load_plugin(std::string(OPTRAIL_HALIDE_PLUGINS) +
                        "/libautoschedule_" + library + ".so");
    constexpr int kCacheBytes = 16 << 20, kBalance = 40;
    pipeline.auto_schedule(
        request.autoscheduler, target,
        Halide::MachineParams(request.parallelism, kCacheBytes, kBalance));
  }
  pipeline.add_custom_lowering_pass(new DropArgumentChecks());
  target.set_feature(Halide::Target::NoRuntime);
  target.set_feature(Halide::Target::UserContext);
  std::vector<Halide::Argument> arguments(request.call.inputs.begin(),
                                          request.call.inputs.end());
  pipeline.compile_to_object(request.object, arguments, kEntryPoint, target);
}

}  // namespace

Reply CarryOut(const std::string& text) {
  try {
    Request request = Parse(text);
    const Stages stages = StagesOf(request.call, Algorithm(request.call));
    if (request.kind == "describe") {
      return {true, Describe(request.call, stages)};
    }
    if (request.kind != "compile" && request.kind != "object") {
      Fail("kind " + request.kind);
    }
    Compile(request, stages);
    return {true, ""};
  } catch (const std::exception& e) {
    return {false, e.what()};
  }
}

}  // namespace optrail::halide
