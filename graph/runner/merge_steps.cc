#include "graph/runner/merge_steps.h"

#include <set>
#include <utility>
#include <vector>

namespace optrail::graph {
namespace {

// Kernels have at most 4 KiB of parameters.
constexpr size_t kMostOperands = 256;
constexpr size_t kMostSteps = 32;
// Tiles of all kernels in a launch count, and 48 KiB are a launch's limit.
constexpr int64_t kMostSharedBytes = int64_t{36} << 10;

bool MayMerge(const Step& step) {
  return step.kernel == "generated" && !step.prepared;
}

// Several steps, with the storages that they read and write.
class Side {
 public:
  void Add(Step step) {
    const size_t reads = step.operands.size() - step.results;
    for (size_t i = 0; i < step.operands.size(); ++i) {
      (i < reads ? read_ : written_).insert(step.operands[i].storage);
    }
    operands_ += step.operands.size();
    shared_bytes_ += step.code.shared_bytes;
    steps_.push_back(std::move(step));
  }

  bool Takes(const Step& step) const {
    if (steps_.empty()) return true;
    if (!MayMerge(step) || !MayMerge(steps_[0]) ||
        step.code.threads != steps_[0].code.threads ||
        operands_ + step.operands.size() > kMostOperands ||
        steps_.size() == kMostSteps ||
        shared_bytes_ + step.code.shared_bytes > kMostSharedBytes) {
      return false;
    }
    const size_t reads = step.operands.size() - step.results;
    for (size_t i = 0; i < step.operands.size(); ++i) {
      const int storage = step.operands[i].storage;
      if (written_.count(storage) > 0 ||
          (i >= reads && read_.count(storage) > 0)) {
        return false;
      }
    }
    return true;
  }

  // Moves the steps out, as one where the printer merges them.
  void Flush(const LoopPrinter& printer, std::vector<Step>* to) {
    std::vector<Step> steps = std::exchange(steps_, {});
    *this = Side();
    if (steps.size() > 1) {
      Step merged;
      if (Merge(printer, steps, &merged)) {
        to->push_back(std::move(merged));
        return;
      }
    }
    for (Step& step : steps) to->push_back(std::move(step));
  }

 private:
  static bool Merge(const LoopPrinter& printer, const std::vector<Step>& steps,
                    Step* merged) {
    // All that is read stands before all that is written.
    size_t reads = 0, writes = 0;
    for (const Step& step : steps) {
      reads += step.operands.size() - step.results;
    }
    std::vector<GeneratedKernel> kernels;
    std::vector<std::vector<int>> operands;
    std::vector<View> results;
    for (const Step& step : steps) {
      std::vector<int>& places = operands.emplace_back();
      const size_t own = step.operands.size() - step.results;
      for (size_t i = 0; i < step.operands.size(); ++i) {
        std::vector<View>& list = i < own ? merged->operands : results;
        const size_t place = i < own ? list.size() : reads + writes++;
        places.push_back(static_cast<int>(place));
        list.push_back(step.operands[i]);
      }
      kernels.push_back(step.code);
      merged->nodes.insert(merged->nodes.end(), step.nodes.begin(),
                           step.nodes.end());
      if (merged->why.empty()) merged->why = step.why;
    }
    merged->code = printer.Merge(kernels, operands);
    merged->operands.insert(merged->operands.end(), results.begin(),
                            results.end());
    merged->results = static_cast<int>(results.size());
    merged->kernel = "generated";
    merged->name = steps.back().name;
    return !merged->code.source.empty();
  }

  std::vector<Step> steps_;
  std::set<int> read_, written_;
  size_t operands_ = 0;
  int64_t shared_bytes_ = 0;
};

}  // namespace

void MergeSteps(const LoopPrinter& printer, Program* program) {
  std::vector<Step> steps;
  Side side;
  for (Step& step : program->steps) {
    if (!side.Takes(step)) side.Flush(printer, &steps);
    side.Add(std::move(step));
  }
  side.Flush(printer, &steps);
  program->steps = std::move(steps);
}

}  // namespace optrail::graph
