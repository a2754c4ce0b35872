#include "carbon/certified_work.h"

#include <algorithm>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "base/status_macros.h"
#include "base/text/prose.h"
#include "tracker/series/series_key.h"
#include "tracker/workload/workload_time.h"
#include "tuning/proto/canonical.h"

namespace optrail::carbon {
namespace {

using Results = std::map<std::string, const proto::BenchmarkResult*>;

Results ResultsOf(const proto::Run& run, const RE2& filter) {
  Results results;
  for (const proto::BenchmarkResult& result : run.results()) {
    const std::string name = tracker::CanonicalText(result.key());
    if (result.outcome() == proto::OK && RE2::PartialMatch(name, filter)) {
      results[name] = &result;
    }
  }
  return results;
}

std::string VariantOf(const proto::BenchmarkKey& key) {
  return key.backend().empty() ? tracker::SelectionName(key) : key.backend();
}

// The lower, the sooner a run of the model would use it.
int RankOf(const proto::BenchmarkKey& key) {
  const int selection = key.selection() == proto::TUNED     ? 0
                        : key.selection() == proto::DEFAULT ? 1
                                                            : 2;
  return key.backend().empty() ? selection : 3 + selection;
}

// The variant of a layer that a side counts; nullopt if it has none.
absl::StatusOr<absl::optional<CountedCall>> ChooseVariant(
    const proto::Run& run, const Results& results,
    const proto::WorkloadLayer& layer) {
  std::vector<std::string> best;
  for (const auto& [name, result] : results) {
    const proto::BenchmarkKey& key = result->key();
    if (key.operator_name() != layer.operator_name() ||
        tuning::CanonicalText(key.shape()) != layer.shape()) {
      continue;
    }
    const int rank = RankOf(key);
    const int known = best.empty() ? rank : RankOf(results.at(best[0])->key());
    if (rank < known) best.clear();
    if (rank <= known) best.push_back(name);
  }
  if (best.empty()) return absl::optional<CountedCall>();
  if (best.size() > 1) {
    constexpr size_t kNamed = 3;
    return absl::FailedPreconditionError(absl::StrCat(
        "run ", run.run_id(), " has ", best.size(), " variants of the layer ",
        tracker::LayerName(layer), ", of which a run of ", run.workload(),
        " takes one: ", JoinFirst(best, kNamed),
        "; next: --filter with what the names of one variant have in common"));
  }
  const proto::BenchmarkResult* const result = results.at(best[0]);
  return absl::make_optional(CountedCall{
      best[0], result, static_cast<double>(std::max(layer.count(), 1)),
      tracker::LayerName(layer), VariantOf(result->key())});
}

bool SameLayers(const proto::Run& a, const proto::Run& b) {
  return std::equal(
      a.workload_layers().begin(), a.workload_layers().end(),
      b.workload_layers().begin(), b.workload_layers().end(),
      [](const proto::WorkloadLayer& x, const proto::WorkloadLayer& y) {
        return tracker::LayerName(x) == tracker::LayerName(y) &&
               x.part() == y.part() && x.way() == y.way() &&
               std::max(x.count(), 1) == std::max(y.count(), 1);
      });
}

absl::Status AddLayers(const proto::Run& base, const Results& of_base,
                       const proto::Run& candidate, const Results& of_candidate,
                       CertifiedWork& work) {
  int counted = 0;
  const std::vector<bool> counts = tracker::LayersThatCount(base);
  for (int i = 0; i < base.workload_layers_size(); ++i) {
    if (!counts[i]) continue;  // another way to compute what is counted
    ++counted;
    const proto::WorkloadLayer& layer = base.workload_layers(i);
    OPTRAIL_ASSIGN_OR_RETURN(const absl::optional<CountedCall> before,
                             ChooseVariant(base, of_base, layer));
    OPTRAIL_ASSIGN_OR_RETURN(const absl::optional<CountedCall> after,
                             ChooseVariant(candidate, of_candidate, layer));
    if (before.has_value() && after.has_value()) {
      work.base.push_back(*before);
      work.candidate.push_back(*after);
    } else {
      work.left_out.push_back(tracker::LayerName(layer));
    }
  }
  work.unit = absl::StrCat(
      "a run of ", base.workload(),
      work.left_out.empty()
          ? ""
          : absl::StrCat(", ", work.base.size(), " of ", counted, " layers"));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CertifiedWork> CertifiedWorkOf(const proto::Run& base,
                                              const proto::Run& candidate,
                                              const RE2& filter) {
  if (base.workload() != candidate.workload()) {
    return absl::FailedPreconditionError(
        absl::StrCat("run ", base.run_id(), " is of workload \"",
                     base.workload(), "\" and ", candidate.run_id(), " of \"",
                     candidate.workload(), "\", expected the same"));
  }
  const Results of_base = ResultsOf(base, filter);
  const Results of_candidate = ResultsOf(candidate, filter);
  CertifiedWork work;
  if (!base.workload_layers().empty() || !candidate.workload_layers().empty()) {
    if (!SameLayers(base, candidate)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "runs ", base.run_id(), " and ", candidate.run_id(),
          " have other layers of workload \"", base.workload(),
          "\", expected the same; next: measure both with one file of it"));
    }
    OPTRAIL_RETURN_IF_ERROR(
        AddLayers(base, of_base, candidate, of_candidate, work));
    return work;
  }
  for (const auto& [name, result] : of_base) {
    const auto other = of_candidate.find(name);
    if (other == of_candidate.end()) {
      work.left_out.push_back(name);
      continue;
    }
    work.base.push_back({name, result});
    work.candidate.push_back({name, other->second});
  }
  for (const auto& [name, result] : of_candidate) {
    if (of_base.count(name) == 0) work.left_out.push_back(name);
  }
  std::sort(work.left_out.begin(), work.left_out.end());
  work.unit =
      !base.workload().empty() ? absl::StrCat("a run of ", base.workload())
      : work.base.size() == 1  ? "a call"
                               : absl::StrCat("one call of each of ",
                                              work.base.size(), " benchmarks");
  return work;
}

}  // namespace optrail::carbon
