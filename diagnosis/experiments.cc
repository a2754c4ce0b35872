#include "diagnosis/experiments.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/stats/statistics.h"
#include "base/status_macros.h"
#include "diagnosis/derived.h"
#include "diagnosis/gpu_experiments.h"
#include "diagnosis/padding.h"
#include "diagnosis/pairs.h"
#include "ops/core/jit_backend.h"
#include "ops/core/smaller_shape.h"
#include "tuning/proto/canonical.h"

namespace optrail::diagnosis {
namespace {

using proto::Perturbation;
using suites::Contender;
using suites::Evaluation;

constexpr int kWorkspace = -1;

bool IsFloat(proto::DataType type) {
  return type == proto::F32 || type == proto::F16 || type == proto::BF16 ||
         type == proto::F64;
}

// The shape with the first dimension doubled that makes about twice the work.
absl::optional<proto::Shape> DoubledShape(const ops::Operator& op,
                                          const proto::Shape& shape) {
  for (int i = 0; i < shape.dims_size(); ++i) {
    proto::Shape doubled = shape;
    doubled.mutable_dims(i)->set_value(2 * shape.dims(i).value());
    if (!ops::CheckShape(op, doubled).ok()) continue;
    const double work = op.MovedBytes(doubled) / op.MovedBytes(shape);
    if (work > 1.7 && work < 2.3) return doubled;
  }
  return absl::nullopt;
}

class Experimenter {
 public:
  Experimenter(const Subject& subject, const Machine& machine,
               const EvaluatorFor& evaluator_for)
      : subject_(subject), machine_(machine), evaluator_for_(evaluator_for) {
    options_.sampling = PairSampling();
  }

  absl::StatusOr<Numbers> Run() {
    // First: each change of the task opens a process with other operands.
    MeasureOtherSize();
    OPTRAIL_RETURN_IF_ERROR(MeasureBase());
    AddRoofline(subject_.entry, machine_, time_ns_, &numbers_);
    if (task().device_kind() == proto::CUDA) {
      RunGpuExperiments(subject_, evaluator_for_, options_, &numbers_);
    } else {
      Profile();
      if (task().device_kind() == proto::CPU) {
        PerturbMemory();
        PerturbProcessor();
      }
      PerturbCompiler();
      ChangeThreads();
    }
    ChangeSize();
    MeasurePadding(subject_, machine_, evaluator_for_, options_, &numbers_);
    AddDerived(machine_.hardware, task().threads(), &numbers_);
    return std::move(numbers_);
  }

 private:
  const proto::Task& task() const { return subject_.entry.task; }
  suites::Evaluator& evaluator() { return evaluator_for_(task()); }

  // The time of a call; not known where the kernel failed.
  static absl::optional<double> TimeOf(const Evaluation& evaluation) {
    if (evaluation.trial().outcome() == proto::OK) {
      return evaluation.trial().time_ns();
    }
    if (evaluation.trial().outcome() == proto::CONTENDED &&
        evaluation.trial().measurements_size() > 0 &&
        evaluation.trial().measurements(0).has_median_ns()) {
      return evaluation.trial().measurements(0).median_ns();
    }
    return absl::nullopt;
  }

  // On a busy machine more than half of the samples are disturbed. The kernel
  // is measured again then, unless that takes so long that nothing will change
  // meanwhile. A measurement that fails replaces none that did not.
  Evaluation EvaluateBase() {
    constexpr int kMostReadings = 3;
    constexpr int64_t kLongNs = 2'000'000'000;
    Evaluation best = evaluator().Evaluate(subject_.config, options_);
    for (int i = 1; i < kMostReadings; ++i) {
      if (!TimeOf(best) || DisturbedShare(best) <= .5 ||
          best.trial().elapsed_ns() > kLongNs) {
        break;
      }
      Evaluation again = evaluator().Evaluate(subject_.config, options_);
      if (TimeOf(again) && DisturbedShare(again) < DisturbedShare(best)) {
        best = std::move(again);
      }
    }
    return best;
  }

  absl::Status MeasureBase() {
    const Evaluation base = EvaluateBase();
    const absl::optional<double> time_ns = TimeOf(base);
    if (!time_ns) {
      return absl::FailedPreconditionError(
          absl::StrCat(suites::ShortTaskText(task()), ": ",
                       proto::Outcome_Name(base.trial().outcome()), ": ",
                       base.trial().detail(),
                       "; a diagnosis needs a kernel that runs and is right"));
    }
    time_ns_ = *time_ns;
    numbers_.Set("time_ns", time_ns_, "hot, as benchmarked");
    numbers_.Set("threads", task().threads(), "as requested");
    const proto::Measurement& measurement = base.trial().measurements(0);
    if (measurement.sample_ns_size() > 0) {
      numbers_.Set("disturbed_share", DisturbedShare(base),
                   "samples that the stopwatch leaves out");
    }
    AddThrottling(measurement);
    AddFacts(base.trial().facts(), &numbers_);
    return absl::OkStatus();
  }

  void AddThrottling(const proto::Measurement& measurement) {
    int throttled = 0;
    for (const proto::MeterWindow& window : measurement.windows()) {
      throttled += window.throttle_reasons() != 0;
    }
    if (measurement.windows_size() > 0) {
      numbers_.Set("throttled_share",
                   static_cast<double>(throttled) / measurement.windows_size(),
                   "windows of the meter with throttle reasons");
    } else {
      numbers_.SetUnsupported("throttled_share", "the device tells no reasons");
    }
  }

  // Loops are observed again where others had the cores meanwhile. A profile
  // that fails replaces none that did not.
  void Profile() {
    constexpr int kMostReadings = 4;
    Numbers best = numbers_;
    ProfileOnce(&best);
    for (int i = 1; i < kMostReadings && LoopsTakeLonger(best); ++i) {
      Numbers observed = numbers_;
      ProfileOnce(&observed);
      const Number* const loops_ns = observed.Find("parallel_ns");
      if (loops_ns != nullptr &&
          loops_ns->value < best.ValueOr("parallel_ns", 0)) {
        best = std::move(observed);
      }
    }
    numbers_ = std::move(best);
  }

  void ProfileOnce(Numbers* numbers) {
    std::vector<std::string> facts_too;
    if (task().device_kind() == proto::CPU &&
        subject_.entry.backend->compiles()) {
      facts_too.push_back(ops::kLoopFactsOption);
    }
    Evaluation profile =
        evaluator().Profile(subject_.config, facts_too, options_);
    if (profile.trial().outcome() != proto::OK && !facts_too.empty()) {
      numbers->SetUnsupported("loop_instructions", profile.trial().detail());
      profile = evaluator().Profile(subject_.config, {}, options_);
    }
    if (profile.trial().outcome() != proto::OK ||
        profile.trial().measurements().empty()) {
      numbers->SetUnsupported("call_ns", profile.trial().detail());
      return;
    }
    AddObserved(profile, numbers);
    AddRowBytes(numbers);
  }

  // The bytes of a row of each operand that the page trace watched.
  void AddRowBytes(Numbers* numbers) {
    const auto specs = subject_.entry.entry->op->Operands(task().shape());
    if (!specs.ok()) return;
    for (size_t i = 0; i < specs->size(); ++i) {
      const ops::OperandSpec& spec = (*specs)[i];
      // An operand of one dimension has no next row.
      if (spec.dims.size() < 2 ||
          numbers->Find(absl::StrCat("page_visits:", i)) == nullptr) {
        continue;
      }
      numbers->Set(absl::StrCat("row_bytes:", i),
                   static_cast<double>(spec.dims.back() *
                                       tuning::DataTypeBytes(spec.data_type)),
                   "the shape");
    }
  }

  // Code that is vectorised where sums may be computed in any order is scalar
  // for their sake.
  void ProfileReassociated(const Perturbation& reassociate) {
    std::vector<std::string> options(reassociate.compile_options().begin(),
                                     reassociate.compile_options().end());
    options.push_back(ops::kLoopFactsOption);
    const Evaluation profile =
        evaluator().Profile(subject_.config, options, options_);
    if (profile.trial().outcome() != proto::OK) return;
    double vector = 0, scalar = 0, bytes = 0;
    for (const proto::Fact& fact : profile.trial().facts()) {
      const auto value = static_cast<double>(fact.value());
      if (fact.name() == "loop_vector_fp") vector = value;
      if (fact.name() == "loop_scalar_fp") scalar = value;
      if (fact.name() == "loop_memory_bytes") bytes = value;
    }
    if (vector + scalar <= 0) return;
    constexpr char kHow[] = "the main loop with sums in any order";
    numbers_.Set("reassociated_scalar_share", scalar / (vector + scalar), kHow);
    numbers_.Set("reassociated_vector_fp", vector, kHow);
    numbers_.Set("reassociated_scalar_fp", scalar, kHow);
    numbers_.Set("reassociated_memory_bytes", bytes, kHow);
  }

  // How much slower code gets without vectorisation: 0 where it makes no
  // difference.
  void SetVectorUse(absl::string_view name, const Perturbation& base,
                    absl::string_view how) {
    Perturbation scalar = base;
    scalar.add_compile_options("-fno-tree-vectorize");
    const auto gain = Pairs(subject_, evaluator(), options_).Of(scalar, &base);
    if (!gain.ok()) {
      numbers_.SetUnsupported(name, gain.status().message());
      return;
    }
    const auto slower = [](double value) {
      return std::max(0., 1 - value) - 1;
    };
    numbers_.Set(name,
                 {slower(gain->value), slower(gain->high), slower(gain->low)},
                 how);
  }

  absl::StatusOr<Number> Set(absl::string_view name,
                             const Perturbation& perturbation,
                             absl::string_view how,
                             const Perturbation* base = nullptr) {
    return Pairs(subject_, evaluator(), options_)
        .Set(name, perturbation, how, base, &numbers_);
  }

  void PerturbMemory() {
    const auto specs = subject_.entry.entry->op->Operands(task().shape());
    if (!specs.ok()) return;
    Perturbation block, small, huge;
    for (size_t i = 0; i < specs->size(); ++i) {
      // Indices of a block are valid, but their order may matter.
      if (!IsFloat((*specs)[i].data_type)) continue;
      block.add_aliased_operands(static_cast<int>(i));
    }
    block.add_aliased_operands(kWorkspace);
    // A block is mapped by small pages. So is what it is compared with, or a
    // walk down columns would wait longer for addresses than it did for data.
    small.set_pages(Perturbation::SMALL);
    const auto memory =
        Set("memory_gain", block,
            "operands and workspace in one small block, against small pages",
            &small);
    if (memory.ok() && memory->value < .1) return;
    huge.set_pages(Perturbation::HUGE);
    (void)Set("huge_page_gain", huge, "operands on huge pages");
  }

  void PerturbProcessor() {
    Perturbation flush;
    flush.set_flush_denormals(true);
    (void)Set("denormal_gain", flush, "denormals taken for zero");
    // With large operands, where they begin is no matter.
    if (numbers_.ValueOr("memory_gain", 1) < .5) ChangeOffsets();
    ChangeData();
  }

  // Operands hold one kind of values at a time, so readings take turns. One
  // pair will do where nothing is to be seen.
  void ChangeData() {
    constexpr int kRounds = 5;
    constexpr double kNothing = .1;
    suites::EvaluationOptions zeros = options_;
    zeros.zero_inputs = true;
    std::vector<double> gains;
    for (int i = 0; i < kRounds; ++i) {
      const Evaluation equal = evaluator().Evaluate(subject_.config, zeros);
      const Evaluation typical =
          evaluator().Evaluate(subject_.config, options_);
      if (!equal.trial().has_time_ns() || !typical.trial().has_time_ns()) {
        if (!gains.empty()) break;
        numbers_.SetUnsupported(
            "data_gain",
            WhyUntimed(equal.trial().has_time_ns() ? typical : equal));
        return;
      }
      gains.push_back(1 - equal.trial().time_ns() / typical.trial().time_ns());
      if (i == 0 && gains[0] < kNothing) break;
    }
    // The range of five covers the median in 94%.
    const auto [low, high] = std::minmax_element(gains.begin(), gains.end());
    numbers_.Set("data_gain", {Median(gains), *low, *high}, "inputs of zeros");
  }

  void ChangeOffsets() {
    // The copies are compared with each other: they are on other pages than the
    // base.
    std::vector<Contender> contenders;
    const std::vector<int> offsets = {0, 4, 60};
    for (const int offset : offsets) {
      Contender twin = suites::ContenderOf(task().backend(), subject_.config);
      twin.mutable_perturbation()->set_pages(Perturbation::SMALL);
      twin.mutable_perturbation()->set_offset_bytes(offset);
      contenders.push_back(std::move(twin));
    }
    const auto all = evaluator().EvaluatePerturbed(contenders, options_);
    if (!all.ok()) {
      numbers_.SetUnsupported("alignment_gain", all.status().message());
      return;
    }
    Number best = 0;
    int best_offset = 0;
    for (size_t i = 1; i < offsets.size(); ++i) {
      const Number gain = GainOf((*all)[0], (*all)[i]);
      if (gain.value > best.value) {
        best = gain;
        best_offset = offsets[i];
      }
    }
    numbers_.Set("alignment_gain", best, "operands moved by 4 and 60 bytes");
    numbers_.Set("best_offset_bytes", best_offset, "of those");
  }

  void PerturbCompiler() {
    if (!subject_.entry.backend->compiles()) {
      const std::string why = absl::StrCat(subject_.entry.backend->name(),
                                           " is not compiled on request");
      numbers_.SetUnsupported("reassociation_gain", why);
      numbers_.SetUnsupported("vector_use", why);
      return;
    }
    Perturbation reassociate;
    for (const char* option :
         {"-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math"}) {
      reassociate.add_compile_options(option);
    }
    const auto reassociated = Set("reassociation_gain", reassociate,
                                  "compiled with sums in any order");
    SetVectorUse("vector_use", Perturbation(),
                 "how much slower without vectorisation");
    if (!reassociated.ok() || reassociated->value <= .1) return;
    ProfileReassociated(reassociate);
    SetVectorUse("reassociated_vector_use", reassociate,
                 "the same of sums in any order");
  }

  void ChangeThreads() {
    if (task().threads() <= 1) return;
    proto::Task single = task();
    single.set_threads(1);
    const Evaluation one =
        evaluator_for_(single).Evaluate(subject_.config, options_);
    if (!one.trial().has_time_ns()) {
      numbers_.SetUnsupported("thread_speedup", WhyUntimed(one));
      return;
    }
    const double speedup = one.trial().time_ns() / time_ns_;
    numbers_.Set("one_thread_ns", one.trial().time_ns(), "one thread");
    numbers_.Set("thread_speedup", speedup, "one thread against all");
    numbers_.Set("parallel_loss", 1 - speedup / task().threads(),
                 "one thread against all");
  }

  void MeasureOtherSize() {
    const ops::Operator& op = *subject_.entry.entry->op;
    // A small shape may only be halved once.
    other_shape_ = ops::SmallerShape(op, task().shape(), .2);
    if (!other_shape_) other_shape_ = ops::SmallerShape(op, task().shape(), .5);
    // A larger one tells the same.
    if (!other_shape_) other_shape_ = DoubledShape(op, task().shape());
    if (other_shape_) other_ = EvaluateAt(*other_shape_);
  }

  Evaluation EvaluateAt(const proto::Shape& shape) {
    proto::Task task = this->task();
    *task.mutable_shape() = shape;
    return evaluator_for_(task).Evaluate(subject_.config, options_);
  }

  void ChangeSize() {
    if (!other_shape_) {
      numbers_.SetUnsupported("fixed_share", "the shape cannot be changed");
      return;
    }
    if (!other_.trial().has_time_ns()) {
      numbers_.SetUnsupported("fixed_share", WhyUntimed(other_));
      return;
    }
    const double work = WorkRatio(*other_shape_);
    if (work >= .7 && work <= 1.4) {
      numbers_.SetUnsupported("fixed_share", "the shape cannot be changed");
      return;
    }
    const double ratio = other_.trial().time_ns() / time_ns_;
    double fixed = FixedShare(ratio, work);
    std::string how =
        absl::StrFormat("%.2g of the work takes %.2g of the time", work, ratio);
    // A small shape may also be computed worse. What is fixed is fixed for a
    // larger one, too.
    constexpr double kTells = .2;
    const auto doubled =
        DoubledShape(*subject_.entry.entry->op, task().shape());
    if (fixed >= kTells && work < 1 && doubled) {
      const Evaluation larger = EvaluateAt(*doubled);
      const double twice = WorkRatio(*doubled);
      if (larger.trial().has_time_ns()) {
        const double larger_ratio = larger.trial().time_ns() / time_ns_;
        fixed = FixedOfBoth(fixed, larger_ratio, twice);
        absl::StrAppendFormat(&how, ", %.2g of it %.2g", twice, larger_ratio);
      }
    }
    numbers_.Set("fixed_share", fixed, how);
  }

  double WorkRatio(const proto::Shape& shape) const {
    const ops::Operator& op = *subject_.entry.entry->op;
    return std::max(op.Flop(shape) / op.Flop(task().shape()),
                    op.MovedBytes(shape) / op.MovedBytes(task().shape()));
  }

  // The time is a constant and a part that grows with the work.
  static double FixedShare(double time_ratio, double work_ratio) {
    return std::clamp((time_ratio - work_ratio) / (1 - work_ratio), 0., 1.);
  }

  // The fixed share by a smaller shape and by a larger one. A larger one that
  // takes still longer than its work says has left a cache, which tells nothing
  // of what is fixed. It may have left one in part, so it counts half.
  static double FixedOfBoth(double smaller, double time_ratio,
                            double work_ratio) {
    constexpr double kShowsNothing = .1;
    constexpr double kNoise = 1.1;
    if (time_ratio > kNoise * work_ratio) return smaller;
    const double larger = FixedShare(time_ratio, work_ratio);
    return std::min(smaller,
                    larger < kShowsNothing ? larger : (smaller + larger) / 2);
  }

  const Subject& subject_;
  const Machine& machine_;
  const EvaluatorFor& evaluator_for_;
  suites::EvaluationOptions options_;
  Numbers numbers_;
  double time_ns_ = 0;
  absl::optional<proto::Shape> other_shape_;
  Evaluation other_;
};

}  // namespace

absl::StatusOr<Numbers> RunExperiments(const Subject& subject,
                                       const Machine& machine,
                                       const EvaluatorFor& evaluator_for) {
  return Experimenter(subject, machine, evaluator_for).Run();
}

}  // namespace optrail::diagnosis
