#include "diagnosis/gpu_experiments.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ops/core/data_type.h"
#include "ops/core/operator.h"
#include "ops/device/cuda/ablation.h"
#include "tuning/proto/canonical.h"

namespace optrail::diagnosis {
namespace {

using ops::cuda::Ablation;
using proto::Perturbation;
using suites::Evaluation;

constexpr int kWorkspace = -1;
// A granule of aliased memory.
constexpr int64_t kGranuleBytes = 2 << 20;

class GpuExperimenter {
 public:
  GpuExperimenter(const Subject& subject, const EvaluatorFor& evaluator_for,
                  const suites::EvaluationOptions& options, Numbers* numbers)
      : evaluator_for_(evaluator_for),
        options_(options),
        subject_(subject),
        numbers_(*numbers),
        by_graph_(subject.entry.task.launch_mode() == proto::GRAPH) {
    subject_.entry.task.set_launch_mode(proto::GRAPH);
  }

  void Run() {
    ChangeLaunch();
    Profile();
    KeepInL2();
    TwoAtATime();
    if (!subject_.entry.backend->compiles()) {
      for (const char* gain :
           {"near_gain", "coalescing_gain", "bank_gain", "atomic_gain",
            "local_gain", "register_gain", "barrier_gain"}) {
        numbers_.SetUnsupported(gain,
                                absl::StrCat(subject_.entry.backend->name(),
                                             " is not compiled on request"));
      }
      return;
    }
    Ablate();
  }

 private:
  suites::Evaluator& evaluator() { return evaluator_for_(subject_.entry.task); }
  absl::StatusOr<Number> Set(absl::string_view name, const Perturbation& twin,
                             absl::string_view how,
                             const Perturbation* base = nullptr) {
    return Pairs(subject_, evaluator(), options_)
        .Set(name, twin, how, base, &numbers_);
  }

  void ChangeLaunch() {
    const double base_ns = numbers_.ValueOr("time_ns", 0);
    if (by_graph_) {
      numbers_.SetUnsupported("graph_gain",
                              "captured graphs launch the calls already");
      numbers_.Set("graph_ns", base_ns, "as benchmarked");
      return;
    }
    const Evaluation by_graph = evaluator().Evaluate(subject_.config, options_);
    if (!by_graph.trial().has_time_ns()) {
      numbers_.SetUnsupported("graph_gain", WhyUntimed(by_graph));
      return;
    }
    numbers_.Set("graph_ns", by_graph.trial().time_ns(), "launched by a graph");
    if (base_ns > 0) {
      numbers_.Set("graph_gain", 1 - by_graph.trial().time_ns() / base_ns,
                   "a captured graph against a stream");
    }
  }

  void Profile() {
    std::vector<std::string> facts_too;
    if (subject_.entry.backend->compiles()) {
      facts_too.push_back(ops::cuda::AblationOption(Ablation::kNone));
    }
    Evaluation profile =
        evaluator().Profile(subject_.config, facts_too, options_);
    if (profile.trial().outcome() != proto::OK && !facts_too.empty()) {
      numbers_.SetUnsupported("global_accesses", profile.trial().detail());
      profile = evaluator().Profile(subject_.config, {}, options_);
    }
    if (profile.trial().outcome() != proto::OK ||
        profile.trial().measurements().empty()) {
      numbers_.SetUnsupported("grid_blocks", WhyUntimed(profile));
      return;
    }
    // The facts of the driver's compiler are not those of the kernel.
    const double spill_bytes = numbers_.ValueOr("spill_bytes", -1);
    AddObserved(profile, &numbers_);
    if (spill_bytes >= 0) {
      numbers_.Set("spill_bytes", spill_bytes, "told by the compiler");
    }
  }

  // Repeated, indices stay valid, but their order may matter: those that would
  // be repeated stay where they are, and `all` becomes false.
  Perturbation Aliased(bool* all) const {
    Perturbation aliased;
    const auto specs =
        subject_.entry.entry->op->Operands(subject_.entry.task.shape());
    if (!specs.ok()) return aliased;
    *all = true;
    for (size_t i = 0; i < specs->size(); ++i) {
      const ops::OperandSpec& spec = (*specs)[i];
      int64_t bytes = tuning::DataTypeBytes(spec.data_type);
      for (const int64_t extent : spec.dims) bytes *= extent;
      if (!ops::IsFloat(spec.data_type) && bytes > kGranuleBytes) {
        *all = false;
        continue;
      }
      aliased.add_aliased_operands(static_cast<int>(i));
    }
    aliased.add_aliased_operands(kWorkspace);
    return aliased;
  }

  void KeepInL2() {
    bool all = false;
    (void)Set("memory_gain", Aliased(&all),
              "operands and workspace in the L2: 2 MiB each, mapped again and "
              "again");
  }

  void TwoAtATime() {
    Perturbation two;
    two.set_concurrent_calls(2);
    // One call in a sample has no other beside it.
    constexpr int kLeastCalls = 4;
    suites::EvaluationOptions several = options_;
    several.sampling.set_min_sample_ns(std::max(
        several.sampling.min_sample_ns(),
        static_cast<int64_t>(kLeastCalls * numbers_.ValueOr("graph_ns", 0))));
    (void)Pairs(subject_, evaluator(), several)
        .Set("overlap_gain", two, "two calls at a time", nullptr, &numbers_);
  }

  void Ablate() {
    Perturbation base;
    base.add_compile_options(ops::cuda::AblationOption(Ablation::kNone));
    const auto without = [&](Ablation ablation) {
      Perturbation twin;
      twin.add_compile_options(ops::cuda::AblationOption(ablation));
      return twin;
    };
    (void)Set("coalescing_gain", without(Ablation::kCoalesced),
              "a warp's accesses in one segment", &base);
    (void)Set("bank_gain", without(Ablation::kConflictFree),
              "a warp's accesses in different banks", &base);
    (void)Set("atomic_gain", without(Ablation::kPlainStores),
              "stores in place of atomic operations on floats", &base);
    (void)Set("local_gain", without(Ablation::kNoLocalArrays),
              "local arrays of one element", &base);
    if (numbers_.ValueOr("spill_bytes", 0) > 0) {
      (void)Set("register_gain", without(Ablation::kAllRegisters),
                "as many registers as there are", &base);
    }
    Perturbation no_barriers;
    no_barriers.add_compile_options("-D__syncthreads()=((void)0)");
    (void)Set("barrier_gain", no_barriers, "compiled without __syncthreads");
    bool all = false;
    Perturbation aliased = Aliased(&all), near = aliased;
    if (!all) {
      numbers_.SetUnsupported("near_gain", "indices must stay valid");
      return;
    }
    aliased.add_compile_options(ops::cuda::AblationOption(Ablation::kNone));
    near.add_compile_options(ops::cuda::AblationOption(Ablation::kNear));
    (void)Set("near_gain", near, "loads from the L1 in place of the L2",
              &aliased);
  }

  const EvaluatorFor& evaluator_for_;
  const suites::EvaluationOptions& options_;
  Subject subject_;  // launched by a graph
  Numbers& numbers_;
  const bool by_graph_;  // as the user launches it
};

}  // namespace

void RunGpuExperiments(const Subject& subject,
                       const EvaluatorFor& evaluator_for,
                       const suites::EvaluationOptions& options,
                       Numbers* numbers) {
  GpuExperimenter(subject, evaluator_for, options, numbers).Run();
}

}  // namespace optrail::diagnosis
