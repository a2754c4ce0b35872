#include "tracker/bisect/local_looks.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/progress.h"
#include "base/text/prose.h"
#include "base/text/units.h"

namespace optrail::tracker {
namespace {

// Names what works at GOOD and has no time at BAD; "" for nothing.
std::string BrokenText(const Comparison& comparison) {
  std::vector<std::string> texts;
  for (const Row& row : comparison.rows) {
    if (row.verdict == Verdict::kCrashed ||
        row.verdict == Verdict::kWrongResult ||
        row.verdict == Verdict::kMissing) {
      texts.push_back(absl::StrCat(row.name, ": ", row.reason));
    }
  }
  if (texts.empty()) return "";
  constexpr size_t kNamed = 3;
  return absl::StrCat(
      JoinFirst(texts, kNamed, "; "),
      ": at BAD that has no time to search by; `git bisect run` finds the "
      "commit that broke it");
}

void OnlyWhere(
    std::function<bool(absl::string_view, absl::string_view)> is_wanted,
    AbOptions& ab) {
  ab.compare.threshold =
      [effects = ab.compare.effects, is_wanted](
          absl::string_view name,
          absl::string_view metric) -> absl::optional<Threshold> {
    if (!is_wanted(name, metric)) return absl::nullopt;
    return effects;
  };
}

// The benchmark that is most surely slower, or null.
const Row* MostSurelySlower(const Comparison& comparison) {
  const Row* chosen = nullptr;
  double most = 0;
  for (const Row& row : comparison.rows) {
    if (row.verdict != Verdict::kSlower) continue;
    if (!row.ratio.has_value()) {
      std::cerr << EscapeForTerminal(absl::StrCat(
          row.name, ", ", row.reason,
          ": that has no ratio to search by; `git bisect run` finds the "
          "commit\n"));
      continue;
    }
    const double sureness =
        std::log1p(row.worse_by) / row.ratio->standard_error;
    if (sureness <= most) continue;
    most = sureness;
    chosen = &row;
  }
  return chosen;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalLooks>> LocalLooks::Create(
    const BisectCommand& options, CommitBuilder& builder) {
  std::unique_ptr<LocalLooks> looks(new LocalLooks(options, builder));
  OPTRAIL_ASSIGN_OR_RETURN(looks->filter_,
                           CompilePattern("filter", options.filter));
  OPTRAIL_ASSIGN_OR_RETURN(looks->metric_,
                           CompilePattern("metric", options.metric));
  return looks;
}

absl::StatusOr<absl::optional<SlowerBenchmark>> LocalLooks::CompareEnds(
    const std::string& good, const std::string& bad) {
  OPTRAIL_ASSIGN_OR_RETURN(good_, builder_.Build(good, Slot::kBase));
  OPTRAIL_ASSIGN_OR_RETURN(bad_, builder_.Build(bad, Slot::kCandidate));
  const absl::optional<SlowerBenchmark> nothing;
  OPTRAIL_ASSIGN_OR_RETURN(const bool identical,
                           builder_.AreIdentical(good_, *bad_));
  if (identical) {
    std::cerr << "GOOD and BAD are equal byte for byte: nothing to find\n";
    return nothing;
  }
  AbOptions ab;
  Threshold& effects = ab.compare.effects;
  effects.min_effect = options_.min_effect;
  effects.detect_effect = std::max(effects.detect_effect, options_.min_effect);
  ab.compare.false_alarm_rate = options_.false_alarm_rate;
  // The size of the effect is needed, not only its sign.
  ab.compare.min_rounds = std::min(10, options_.max_rounds);
  ab.max_rounds = options_.max_rounds;
  ab.seed = options_.seed;
  OnlyWhere(
      [this](absl::string_view name, absl::string_view metric) {
        return MatchesPart(*filter_, name) && MatchesWhole(*metric_, metric);
      },
      ab);
  OPTRAIL_ASSIGN_OR_RETURN(const AbResult result,
                           Measure("measuring GOOD and BAD", ab, *bad_));
  if (!result.candidate_failure.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the program at BAD ", result.candidate_failure,
                     ": `git bisect run` finds the commit that broke it"));
  }
  const std::string broken = BrokenText(result.comparison);
  const Row* const chosen = MostSurelySlower(result.comparison);
  if (chosen == nullptr && !broken.empty()) {
    return absl::FailedPreconditionError(broken);
  }
  if (!broken.empty()) std::cerr << EscapeForTerminal(broken) << "\n";
  if (chosen == nullptr) {
    std::cerr << "nothing is slower at BAD by "
              << FormatChange(options_.min_effect) << " or more, as far as "
              << result.rounds << " rounds tell\n";
    return nothing;
  }
  SlowerBenchmark slower;
  slower.name = chosen->name;
  slower.metric = chosen->metric;
  slower.change = chosen->ratio->ratio - 1;
  slower.effect.log_ratio = std::log1p(chosen->worse_by);
  slower.effect.standard_error =
      WidenedStandardError(chosen->ratio->standard_error, result.rounds);
  slower.rounds = result.rounds;
  return absl::make_optional(std::move(slower));
}

absl::StatusOr<std::vector<Look>> LocalLooks::LookAt(
    const std::vector<LookRequest>& requests, const SlowerBenchmark& at) {
  std::vector<Look> looks;
  for (const LookRequest& request : requests) {
    OPTRAIL_ASSIGN_OR_RETURN(
        Look look, LookAtOne(request, [&at](absl::string_view name,
                                            absl::string_view metric) {
          return name == at.name && metric == at.metric;
        }));
    looks.push_back(std::move(look));
  }
  return looks;
}

absl::StatusOr<Look> LocalLooks::LookFrom(const std::string& good,
                                          const LookRequest& request) {
  OPTRAIL_ASSIGN_OR_RETURN(good_, builder_.Build(good, Slot::kBase));
  return LookAtOne(
      request, [this](absl::string_view name, absl::string_view metric) {
        return MatchesPart(*filter_, name) && MatchesWhole(*metric_, metric);
      });
}

absl::StatusOr<Look> LocalLooks::LookAtOne(const LookRequest& request,
                                           const IsWanted& is_wanted) {
  Look look;
  const std::string& commit = request.commit;
  const absl::StatusOr<Built> built = builder_.Build(commit, Slot::kProbe);
  if (absl::IsNotFound(built.status()) ||
      absl::IsFailedPrecondition(built.status())) {
    Say(absl::StrCat(commit.substr(0, 12), " does not build: skipped"));
    look.kind = Look::Kind::kDoesNotBuild;
    return look;
  }
  OPTRAIL_RETURN_IF_ERROR(built.status());
  OPTRAIL_ASSIGN_OR_RETURN(const bool is_good,
                           builder_.AreIdentical(*built, good_));
  if (is_good) {
    look.kind = Look::Kind::kEqualToGood;
    return look;
  }
  if (bad_.has_value()) {
    OPTRAIL_ASSIGN_OR_RETURN(const bool is_bad,
                             builder_.AreIdentical(*built, *bad_));
    if (is_bad) {
      look.kind = Look::Kind::kEqualToBad;
      return look;
    }
  }
  AbOptions ab;
  ab.compare.min_rounds = ab.max_rounds = options_.rounds;
  ab.seed = request.seed;
  OnlyWhere(is_wanted, ab);
  OPTRAIL_ASSIGN_OR_RETURN(const AbResult result,
                           Measure(request.title, ab, *built));
  const Row* measured = nullptr;
  for (const Row& row : result.comparison.rows) {
    if (row.ratio.has_value() && result.candidate_failure.empty()) {
      measured = &row;
    }
  }
  if (measured == nullptr) {
    Say(absl::StrCat(commit.substr(0, 12), " can't be measured: skipped"));
    look.kind = Look::Kind::kNotMeasured;
    return look;
  }
  look.worse_by = measured->worse_by;
  look.standard_error =
      WidenedStandardError(measured->ratio->standard_error, options_.rounds);
  return look;
}

absl::StatusOr<AbResult> LocalLooks::Measure(const std::string& title,
                                             AbOptions ab,
                                             const Built& candidate) {
  ProgressOptions progress_options;
  progress_options.quiet = options_.quiet;
  Progress progress(title, 2 * ab.max_rounds, progress_options);
  ab.progress = [&](int, int forecast, int, int) {
    progress.SetTotal(2 * forecast);
  };
  int done = 0;
  return RunRounds(ab, [&](Program program, int) {
    progress.Update(done++);
    return builder_.Run(program == Program::kA ? good_ : candidate);
  });
}

void LocalLooks::Say(absl::string_view text) const {
  if (!options_.quiet) std::cerr << EscapeForTerminal(text) << "\n";
}

}  // namespace optrail::tracker
