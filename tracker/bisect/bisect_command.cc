#include "tracker/bisect/bisect_command.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/process/host_name.h"
#include "base/status_macros.h"
#include "base/text/prose.h"
#include "base/text/table.h"
#include "base/text/units.h"
#include "tracker/bisect/local_looks.h"
#include "tracker/bisect/noisy_bisection.h"
#include "tracker/checkout/interruptible.h"
#include "tracker/series/value_text.h"

namespace optrail::tracker {
namespace {

// The first few of "+1.1%, -11.0%, ...", and how many more there are.
std::string FirstLooks(const std::string& looks) {
  constexpr size_t kShown = 4;
  return JoinFirst(absl::StrSplit(looks, ", "), kShown);
}

class Bisection {
 public:
  Bisection(const BisectCommand& options, const Worktrees& trees, Looks& looks,
            std::ostream& out)
      : options_(options), trees_(trees), looks_(looks), out_(out) {}

  absl::StatusOr<int> Run() {
    OPTRAIL_RETURN_IF_ERROR(Prepare());
    const absl::Time start = absl::Now();
    OPTRAIL_ASSIGN_OR_RETURN(const absl::optional<SlowerBenchmark> slower,
                             looks_.CompareEnds(line_.front(), line_.back()));
    if (!slower.has_value()) return 3;
    slower_ = *slower;
    // A forecast: one of the two builds, and fewer rounds.
    look_time_ = (absl::Now() - start) / 2;
    Say(absl::StrCat(
        slower_.name, " (", slower_.metric, "): ", EffectText(),
        " at BAD, give or take ",
        FormatShortPercent(std::expm1(slower_.effect.standard_error)),
        " after ", slower_.rounds, " rounds; ", line_.size() - 1, " commits"));
    const int last = static_cast<int>(line_.size()) - 1;
    BisectOptions search_options;
    search_options.log_effect = slower_.effect.log_ratio;
    search_options.effect_standard_error = slower_.effect.standard_error;
    search_options.expected_standard_error =
        slower_.effect.standard_error *
        std::sqrt(1. * slower_.rounds / options_.rounds);
    search_options.confidence = options_.confidence;
    // Tasks of a fleet build in a tree of their own each.
    if (looks_.at_once() > 1) search_options.build_cost = 0;
    NoisyBisection search(last, search_options);
    SayNoise(search_options.expected_standard_error);
    SayWhatIsLeft(search);
    for (int turn = 0;; ++turn) {
      const std::vector<int> batch = search.NextBatch(looks_.at_once());
      if (batch.empty()) break;
      const absl::Time began = absl::Now();
      OPTRAIL_RETURN_IF_ERROR(LookAt(batch, search));
      look_time_ = (look_time_ * turn + (absl::Now() - began)) / (turn + 1);
      SayWhatIsLeft(search);
    }
    Report(search);
    return search.Answer().is_sure ? 0 : 3;
  }

 private:
  absl::Status Prepare() {
    OPTRAIL_ASSIGN_OR_RETURN(const std::string good,
                             trees_.Resolve(options_.good));
    OPTRAIL_ASSIGN_OR_RETURN(const std::string bad,
                             trees_.Resolve(options_.bad));
    if (good == bad) {
      return absl::InvalidArgumentError(absl::StrCat(
          options_.good, " and ", options_.bad, " are the same commit"));
    }
    OPTRAIL_ASSIGN_OR_RETURN(line_, trees_.FirstParentLine(good, bad));
    return absl::OkStatus();
  }

  // A machine under load makes the search longer, never its answer wrong.
  void SayNoise(double error_of_a_look) const {
    const std::string error = FormatShortPercent(std::expm1(error_of_a_look));
    constexpr double kClear = .25;  // of the effect: a look settles a commit
    if (error_of_a_look < kClear * slower_.effect.log_ratio) return;
    Say(absl::StrCat("noise: a look of ", options_.rounds,
                     " rounds is off by about ", error,
                     ", so some commits are looked at several times; next: a "
                     "machine that does nothing else, or more than --rounds=",
                     options_.rounds));
  }

  void SayWhatIsLeft(const NoisyBisection& search) const {
    const int left = search.ExpectedLooks();
    if (left == 0) return;
    const int turns = (left + looks_.at_once() - 1) / looks_.at_once();
    Say(absl::StrCat(
        "about ", left, left == 1 ? " look" : " looks", " at commits to go, ",
        FormatDurationNs(absl::ToDoubleNanoseconds(turns * look_time_))));
  }

  // Looks at commits of the line, all at the same time.
  absl::Status LookAt(const std::vector<int>& batch, NoisyBisection& search) {
    std::vector<LookRequest> requests;
    const int forecast = looked_ + search.ExpectedLooks();
    for (const int index : batch) {
      LookRequest request;
      request.commit = line_[index];
      // Another order each time.
      request.seed = options_.seed + 1000 * ++looked_;
      request.title = absl::StrCat("look ", looked_, " of about ",
                                   std::max(looked_, forecast), ", at ",
                                   line_[index].substr(0, 12));
      requests.push_back(std::move(request));
    }
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<Look> looks,
                             looks_.LookAt(requests, slower_));
    for (size_t i = 0; i < batch.size(); ++i) {
      Take(batch[i], looks[i], search);
    }
    return absl::OkStatus();
  }

  void Take(int index, const Look& look, NoisyBisection& search) {
    std::string& text = texts_[index];
    const auto add = [&text](absl::string_view what) {
      absl::StrAppend(&text, text.empty() ? "" : ", ", what);
    };
    switch (look.kind) {
      case Look::Kind::kDoesNotBuild:
        add("does not build");
        search.Skip(index);
        return;
      case Look::Kind::kNotMeasured:
        add("can't be measured");
        search.Skip(index);
        return;
      case Look::Kind::kEqualToGood:
        text = "equal to GOOD";
        search.TellCertain(index, false);
        return;
      case Look::Kind::kEqualToBad:
        text = "equal to BAD";
        search.TellCertain(index, true);
        return;
      case Look::Kind::kMeasured:
        break;
    }
    search.Tell(index, {std::log1p(look.worse_by), look.standard_error});
    add(FormatChange(look.worse_by));
    const BisectAnswer answer = search.Answer();
    Say(absl::StrFormat(
        "%s %s%s; most likely %s, probability %.2f", line_[index].substr(0, 12),
        FormatChange(look.worse_by),
        look.host.empty() ? "" : absl::StrCat(" on ", look.host),
        line_[answer.first].substr(0, 12), answer.probability));
  }

  // "7.8% slower".
  std::string EffectText() const {
    return absl::StrCat(FormatPercent(std::abs(slower_.change)), " ",
                        ChangeWord(slower_.change, slower_.metric));
  }

  void Say(absl::string_view text) const {
    if (!options_.quiet) std::cerr << EscapeForTerminal(text) << "\n";
  }

  void Report(const NoisyBisection& search) const {
    const BisectAnswer answer = search.Answer();
    const OutputFormat format = options_.common.format;
    if (IsForPeople(format)) {
      out_ << (answer.is_sure ? "found" : "not sure") << ": "
           << EscapeForTerminal(slower_.name) << " is " << EffectText()
           << " from "
           << (answer.first == answer.last
                   ? "this commit"
                   : "one of these commits, which can't be told apart,")
           << " on, with probability "
           << absl::StrFormat("%.3f", answer.probability) << "\n"
           << looks_.builds() << " builds for " << line_.size()
           << " commits, GOOD and BAD among them\n\n";
    }
    Table table({{"commit", Align::kLeft, "", Clip::kNever},
                 {"culprit"},
                 {"probability", Align::kRight},
                 {"measured"},
                 {"subject"}});
    for (int i = 1; i < static_cast<int>(line_.size()); ++i) {
      const bool named = answer.first <= i && i <= answer.last;
      const auto look = texts_.find(i);
      if (!named && look == texts_.end() && search.Probability(i) < .01) {
        continue;
      }
      table.AddRow(
          {line_[i].substr(0, 12), named ? "yes" : "",
           Cell::Number(search.Probability(i),
                        absl::StrFormat("%.3f", search.Probability(i))),
           look == texts_.end()  ? ""
           : IsForPeople(format) ? FirstLooks(look->second)
                                 : look->second,
           trees_.Subject(line_[i])});
    }
    out_ << table.Format(format, TerminalWidth());
  }

  const BisectCommand& options_;
  const Worktrees& trees_;
  Looks& looks_;
  std::ostream& out_;
  std::vector<std::string> line_;  // GOOD first, BAD last
  SlowerBenchmark slower_;
  int looked_ = 0;                    // commits, those skipped included
  absl::Duration look_time_;          // the mean of turns; at first a forecast
  std::map<int, std::string> texts_;  // of looks, by index into line_
};

absl::Status CheckOptions(const BisectCommand& options) {
  OPTRAIL_RETURN_IF_ERROR(
      CheckFlag(options.rounds >= 3, "rounds", options.rounds, "at least 3"));
  return CheckFlag(options.confidence > .5 && options.confidence < 1,
                   "confidence", options.confidence,
                   "more than 0.5 and less than 1");
}

}  // namespace

absl::StatusOr<int> RunBisect(const BisectCommand& options, std::ostream& out) {
  OPTRAIL_RETURN_IF_ERROR(CheckOptions(options));
  Interruptible interruptible;
  BuildOptions build = options.build;
  build.trees.repository = options.common.workspace;
  build.quiet = options.quiet;
  OPTRAIL_ASSIGN_OR_RETURN(const auto builder,
                           CommitBuilder::Create(build, interruptible));
  OPTRAIL_ASSIGN_OR_RETURN(const auto looks,
                           LocalLooks::Create(options, *builder));
  if (options.look == BisectLook::kNone) {
    return Bisection(options, builder->trees(), *looks, out).Run();
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::string good,
                           builder->trees().Resolve(options.good));
  OPTRAIL_ASSIGN_OR_RETURN(const std::string bad,
                           builder->trees().Resolve(options.bad));
  if (options.look == BisectLook::kEnds) {
    OPTRAIL_ASSIGN_OR_RETURN(const auto slower, looks->CompareEnds(good, bad));
    out << ToJson(slower) << "\n";
    return 0;
  }
  OPTRAIL_ASSIGN_OR_RETURN(
      Look look, looks->LookFrom(good, {bad, options.seed, "measuring"}));
  look.host = HostName();
  out << ToJson(look) << "\n";
  return 0;
}

absl::StatusOr<int> RunBisectBy(const BisectCommand& options,
                                const Worktrees& trees, Looks& looks,
                                std::ostream& out) {
  OPTRAIL_RETURN_IF_ERROR(CheckOptions(options));
  return Bisection(options, trees, looks, out).Run();
}

}  // namespace optrail::tracker
