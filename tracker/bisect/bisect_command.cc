#include "tracker/bisect/bisect_command.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/progress.h"
#include "base/prose.h"
#include "base/status_macros.h"
#include "base/table.h"
#include "base/units.h"
#include "re2/re2.h"
#include "tracker/ab/rounds.h"
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
  Bisection(const BisectCommand& options, CommitBuilder& builder,
            std::ostream& out)
      : options_(options), builder_(builder), out_(out) {}

  absl::StatusOr<int> Run() {
    OPTRAIL_RETURN_IF_ERROR(Prepare());
    OPTRAIL_ASSIGN_OR_RETURN(const bool slower, CompareEnds());
    if (!slower) return 3;
    const int last = static_cast<int>(line_.size()) - 1;
    BisectOptions search_options;
    search_options.log_effect = effect_.log_ratio;
    search_options.effect_standard_error = effect_.standard_error;
    search_options.expected_standard_error =
        effect_.standard_error * std::sqrt(1. * end_rounds_ / options_.rounds);
    search_options.confidence = options_.confidence;
    NoisyBisection search(last, search_options);
    SayNoise(search_options.expected_standard_error);
    SayWhatIsLeft(search);
    while (const absl::optional<int> next = search.Next()) {
      const absl::Time start = absl::Now();
      OPTRAIL_RETURN_IF_ERROR(Look(*next, search));
      look_time_ =
          (look_time_ * looked_ + (absl::Now() - start)) / (looked_ + 1);
      ++looked_;
      SayWhatIsLeft(search);
    }
    Report(search);
    return search.Answer().is_sure ? 0 : 3;
  }

 private:
  // The commits, and the programs at both ends.
  absl::Status Prepare() {
    OPTRAIL_ASSIGN_OR_RETURN(filter_,
                             CompilePattern("filter", options_.filter));
    OPTRAIL_ASSIGN_OR_RETURN(metric_,
                             CompilePattern("metric", options_.metric));
    OPTRAIL_RETURN_IF_ERROR(CheckFlag(options_.rounds >= 3, "rounds",
                                      options_.rounds, "at least 3"));
    OPTRAIL_RETURN_IF_ERROR(CheckFlag(
        options_.confidence > .5 && options_.confidence < 1, "confidence",
        options_.confidence, "more than 0.5 and less than 1"));
    OPTRAIL_ASSIGN_OR_RETURN(const std::string good,
                             builder_.trees().Resolve(options_.good));
    OPTRAIL_ASSIGN_OR_RETURN(const std::string bad,
                             builder_.trees().Resolve(options_.bad));
    if (good == bad) {
      return absl::InvalidArgumentError(absl::StrCat(
          options_.good, " and ", options_.bad, " are the same commit"));
    }
    OPTRAIL_ASSIGN_OR_RETURN(line_,
                             builder_.trees().FirstParentLine(good, bad));
    const absl::Time start = absl::Now();
    OPTRAIL_ASSIGN_OR_RETURN(good_, builder_.Build(good, Slot::kBase));
    OPTRAIL_ASSIGN_OR_RETURN(bad_, builder_.Build(bad, Slot::kCandidate));
    look_time_ = (absl::Now() - start) / 2;
    return absl::OkStatus();
  }

  // A machine under load makes the search longer, never its answer wrong.
  void SayNoise(double error_of_a_look) const {
    const std::string error = FormatShortPercent(std::expm1(error_of_a_look));
    constexpr double kClear = .25;  // of the effect: a look settles a commit
    if (error_of_a_look < kClear * effect_.log_ratio) return;
    Say(absl::StrCat("noise: a look of ", options_.rounds,
                     " rounds is off by about ", error,
                     ", so some commits are looked at several times; next: a "
                     "machine that does nothing else, or more than --rounds=",
                     options_.rounds));
  }

  void SayWhatIsLeft(const NoisyBisection& search) const {
    const int left = search.ExpectedLooks();
    if (left == 0) return;
    Say(absl::StrCat(
        "about ", left, left == 1 ? " look" : " looks", " at commits to go, ",
        FormatDurationNs(absl::ToDoubleNanoseconds(left * look_time_))));
  }

  // Finds whether BAD is slower, in which benchmark and by how much.
  absl::StatusOr<bool> CompareEnds() {
    OPTRAIL_ASSIGN_OR_RETURN(const bool identical,
                             builder_.AreIdentical(good_, bad_));
    if (identical) {
      std::cerr << "GOOD and BAD are equal byte for byte: nothing to find\n";
      return false;
    }
    AbOptions ab;
    Threshold& effects = ab.compare.effects;
    effects.min_effect = options_.min_effect;
    effects.detect_effect =
        std::max(effects.detect_effect, options_.min_effect);
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
    const absl::Time start = absl::Now();
    OPTRAIL_ASSIGN_OR_RETURN(const AbResult result,
                             Measure("measuring GOOD and BAD", ab, bad_));
    look_time_ +=
        (absl::Now() - start) * options_.rounds / std::max(1, result.rounds);
    if (!result.candidate_failure.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the program at BAD ", result.candidate_failure,
                       ": `git bisect run` finds the commit that broke it"));
    }
    const std::string broken = BrokenText(result.comparison);
    const Row* chosen = nullptr;
    double most = 0;
    for (const Row& row : result.comparison.rows) {
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
    if (chosen == nullptr && !broken.empty()) {
      return absl::FailedPreconditionError(broken);
    }
    if (!broken.empty()) std::cerr << EscapeForTerminal(broken) << "\n";
    if (chosen == nullptr) {
      std::cerr << "nothing is slower at BAD by "
                << FormatChange(options_.min_effect) << " or more, as far as "
                << result.rounds << " rounds tell\n";
      return false;
    }
    name_ = chosen->name;
    metric_name_ = chosen->metric;
    end_rounds_ = result.rounds;
    effect_.log_ratio = std::log1p(chosen->worse_by);
    change_ = chosen->ratio->ratio - 1;
    effect_.standard_error =
        WidenedStandardError(chosen->ratio->standard_error, result.rounds);
    Say(absl::StrCat(name_, " (", metric_name_, "): ", EffectText(),
                     " at BAD, give or take ",
                     FormatShortPercent(std::expm1(effect_.standard_error)),
                     " after ", result.rounds, " rounds; ", line_.size() - 1,
                     " commits"));
    return true;
  }

  // Names what works at GOOD and has no time at BAD; "" for nothing.
  static std::string BrokenText(const Comparison& comparison) {
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

  absl::Status Look(int index, NoisyBisection& search) {
    const std::string& commit = line_[index];
    const absl::StatusOr<Built> built = builder_.Build(commit, Slot::kProbe);
    if (absl::IsNotFound(built.status()) ||
        absl::IsFailedPrecondition(built.status())) {
      Say(absl::StrCat(commit.substr(0, 12), " does not build: skipped"));
      looks_[index] = "does not build";
      search.Skip(index);
      return absl::OkStatus();
    }
    OPTRAIL_RETURN_IF_ERROR(built.status());
    for (const bool bad : {false, true}) {
      OPTRAIL_ASSIGN_OR_RETURN(
          const bool identical,
          builder_.AreIdentical(*built, bad ? bad_ : good_));
      if (!identical) continue;
      looks_[index] = bad ? "equal to BAD" : "equal to GOOD";
      search.TellCertain(index, bad);
      return absl::OkStatus();
    }
    AbOptions ab;
    ab.compare.min_rounds = ab.max_rounds = options_.rounds;
    // Another order each time.
    ab.seed = options_.seed + 1000 * ++measurements_;
    OnlyWhere(
        [this](absl::string_view name, absl::string_view metric) {
          return name == name_ && metric == metric_name_;
        },
        ab);
    OPTRAIL_ASSIGN_OR_RETURN(
        const AbResult result,
        Measure(absl::StrCat("look ", looked_ + 1, " of about ",
                             looked_ + search.ExpectedLooks(), ", at ",
                             commit.substr(0, 12)),
                ab, *built));
    const Row* measured = nullptr;
    for (const Row& row : result.comparison.rows) {
      if (row.ratio.has_value() && result.candidate_failure.empty()) {
        measured = &row;
      }
    }
    if (measured == nullptr) {
      Say(absl::StrCat(commit.substr(0, 12), " can't be measured: skipped"));
      looks_[index] = "can't be measured";
      search.Skip(index);
      return absl::OkStatus();
    }
    BisectMeasurement measurement;
    measurement.log_ratio = std::log1p(measured->worse_by);
    measurement.standard_error =
        WidenedStandardError(measured->ratio->standard_error, options_.rounds);
    search.Tell(index, measurement);
    looks_[index] =
        absl::StrCat(looks_[index], looks_[index].empty() ? "" : ", ",
                     FormatChange(measured->worse_by));
    const BisectAnswer answer = search.Answer();
    Say(absl::StrFormat("%s %s; most likely %s, probability %.2f",
                        commit.substr(0, 12), FormatChange(measured->worse_by),
                        line_[answer.first].substr(0, 12), answer.probability));
    return absl::OkStatus();
  }

  static void OnlyWhere(
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

  absl::StatusOr<AbResult> Measure(const std::string& title, AbOptions ab,
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

  // "7.8% slower".
  std::string EffectText() const {
    return absl::StrCat(FormatPercent(std::abs(change_)), " ",
                        ChangeWord(change_, metric_name_));
  }

  void Say(absl::string_view text) const {
    if (!options_.quiet) std::cerr << EscapeForTerminal(text) << "\n";
  }

  void Report(const NoisyBisection& search) const {
    const BisectAnswer answer = search.Answer();
    const OutputFormat format = options_.common.format;
    if (IsForPeople(format)) {
      out_ << (answer.is_sure ? "found" : "not sure") << ": "
           << EscapeForTerminal(name_) << " is " << EffectText() << " from "
           << (answer.first == answer.last
                   ? "this commit"
                   : "one of these commits, which can't be told apart,")
           << " on, with probability "
           << absl::StrFormat("%.3f", answer.probability) << "\n"
           << builder_.builds() << " builds for " << line_.size()
           << " commits, GOOD and BAD among them\n\n";
    }
    Table table({{"commit", Align::kLeft, "", Clip::kNever},
                 {"culprit"},
                 {"probability", Align::kRight},
                 {"measured"},
                 {"subject"}});
    for (int i = 1; i < static_cast<int>(line_.size()); ++i) {
      const bool named = answer.first <= i && i <= answer.last;
      const auto look = looks_.find(i);
      if (!named && look == looks_.end() && search.Probability(i) < .01) {
        continue;
      }
      table.AddRow(
          {line_[i].substr(0, 12), named ? "yes" : "",
           Cell::Number(search.Probability(i),
                        absl::StrFormat("%.3f", search.Probability(i))),
           look == looks_.end()  ? ""
           : IsForPeople(format) ? FirstLooks(look->second)
                                 : look->second,
           builder_.trees().Subject(line_[i])});
    }
    out_ << table.Format(format, TerminalWidth());
  }

  const BisectCommand& options_;
  CommitBuilder& builder_;
  std::ostream& out_;
  std::unique_ptr<RE2> filter_, metric_;
  std::vector<std::string> line_;  // GOOD first, BAD last
  Built good_, bad_;
  std::string name_, metric_name_;  // what is slower
  BisectMeasurement effect_;        // at BAD
  double change_ = 0;               // the same, of the metric's value
  int end_rounds_ = 0;
  int measurements_ = 0;
  int looked_ = 0;                    // commits, those skipped included
  absl::Duration look_time_;          // the mean of those; at first a forecast
  std::map<int, std::string> looks_;  // by index into line_
};

}  // namespace

absl::StatusOr<int> RunBisect(const BisectCommand& options, std::ostream& out) {
  Interruptible interruptible;
  BuildOptions build = options.build;
  build.trees.repository = options.common.workspace;
  build.quiet = options.quiet;
  OPTRAIL_ASSIGN_OR_RETURN(const auto builder,
                           CommitBuilder::Create(build, interruptible));
  return Bisection(options, *builder, out).Run();
}

}  // namespace optrail::tracker
