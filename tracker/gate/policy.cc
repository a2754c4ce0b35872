#include "tracker/gate/policy.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "base/check.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "base/text/textproto.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"
#include "re2/re2.h"

namespace optrail::tracker {
namespace {

constexpr double kMinEffect = .03;
constexpr double kDetectEffect = .05;
constexpr double kDetectOverMin = 5. / 3;
constexpr double kRunFalseAlarmRate = .01;
constexpr double kPower = .95;
constexpr int kMinBaselineRuns = 5;
constexpr int kMinProcesses = 3;
constexpr int kWindowRuns = 10;
constexpr absl::string_view kMainBranch = "main";

using Pattern = std::shared_ptr<const RE2>;

absl::StatusOr<Pattern> CompilePattern(const std::string& pattern,
                                       const TextProtoPlace& place) {
  // "." matches a line feed too: no name escapes its rule.
  RE2::Options options(RE2::Quiet);
  options.set_dot_nl(true);
  auto compiled = std::make_shared<const RE2>(pattern, options);
  if (compiled->ok()) return compiled;
  return place.Error(absl::StrCat(
      "'", pattern, "' is no RE2 regular expression: ", compiled->error()));
}

// Absent patterns match everything, or `absent` where that is given.
absl::StatusOr<Pattern> CompileField(const std::string& pattern,
                                     const TextProtoPlace& place,
                                     absl::string_view absent = ".*") {
  return CompilePattern(pattern.empty() ? std::string(absent) : pattern, place);
}

bool Matches(const Pattern& pattern, absl::string_view text) {
  return RE2::FullMatch(re2::StringPiece(text.data(), text.size()), *pattern);
}

absl::Status CheckBetween(double value, double low, double high,
                          absl::string_view field,
                          const TextProtoPlace& parent) {
  if (value >= low && value <= high) return absl::OkStatus();  // not NaN
  return parent.Child(field).Error(absl::StrCat(
      field, " is ", value, ", expected a number from ", low, " to ", high));
}

absl::Status CheckAtLeast(int64_t value, int64_t minimum,
                          absl::string_view field,
                          const TextProtoPlace& parent) {
  if (value >= minimum) return absl::OkStatus();
  return parent.Child(field).Error(
      absl::StrCat(field, " is ", value, ", expected at least ", minimum));
}

// The first second after the date, UTC.
absl::StatusOr<int64_t> EndOfDate(const std::string& date,
                                  const TextProtoPlace& place) {
  absl::CivilDay day;
  if (date.size() != 10 || !absl::ParseCivilTime(date, &day)) {
    return place.Error(absl::StrCat("'", date,
                                    "' is no date, expected a day of the "
                                    "calendar like 2026-12-31"));
  }
  return absl::ToUnixSeconds(absl::FromCivil(day + 1, absl::UTCTimeZone()));
}

// Benchmarks of backends other than the device's own.
constexpr absl::string_view kOtherBackends =
    "[^/]+/[a-z0-9]+:[a-z][a-z0-9_]*/.*";

void FillDefaults(proto::Policy* policy) {
  if (policy->baseline().empty()) policy->add_baseline()->mutable_window();
  for (proto::Baseline& baseline : *policy->mutable_baseline()) {
    if (!baseline.has_window()) continue;
    if (baseline.window().branch().empty()) {
      baseline.mutable_window()->set_branch(std::string(kMainBranch));
    }
    if (baseline.window().runs() == 0) {
      baseline.mutable_window()->set_runs(kWindowRuns);
    }
  }
  if (policy->rule().empty()) {
    // What a library or a compiler does is news, not our regression.
    proto::Rule* others = policy->add_rule();
    others->set_benchmark(std::string(kOtherBackends));
    others->set_action(proto::WARN);
    policy->add_rule();
  }
  for (proto::Rule& rule : *policy->mutable_rule()) {
    if (rule.action() == proto::ACTION_UNSPECIFIED) {
      rule.set_action(proto::FAIL);
    }
    if (!rule.has_min_effect()) rule.set_min_effect(kMinEffect);
    if (!rule.has_detect_effect()) {
      rule.set_detect_effect(
          std::max(kDetectEffect, kDetectOverMin * rule.min_effect()));
    }
  }
  if (!policy->has_run_false_alarm_rate()) {
    policy->set_run_false_alarm_rate(kRunFalseAlarmRate);
  }
  if (policy->has_quorum()) {
    double weights = 0;
    for (proto::Quorum::Hardware& hardware :
         *policy->mutable_quorum()->mutable_hardware()) {
      if (!hardware.has_weight()) hardware.set_weight(1);
      weights += hardware.weight();
    }
    if (!policy->quorum().has_slower_on()) {
      policy->mutable_quorum()->set_slower_on(weights);
    }
  }
  if (!policy->has_power()) policy->set_power(kPower);
  if (!policy->has_min_baseline_runs()) {
    policy->set_min_baseline_runs(kMinBaselineRuns);
  }
  if (!policy->has_min_processes()) policy->set_min_processes(kMinProcesses);
  const auto fill = [](proto::Action value, proto::Action default_value) {
    return value == proto::ACTION_UNSPECIFIED ? default_value : value;
  };
  policy->set_on_missing(fill(policy->on_missing(), proto::FAIL));
  policy->set_on_crashed(fill(policy->on_crashed(), proto::FAIL));
  policy->set_on_new(fill(policy->on_new(), proto::IGNORE));
  policy->set_on_renamed(fill(policy->on_renamed(), proto::WARN));
  policy->set_on_slower_in_most_samples(
      fill(policy->on_slower_in_most_samples(), proto::WARN));
  policy->set_on_new_version(fill(policy->on_new_version(), proto::WARN));
  policy->set_on_cannot_tell(fill(policy->on_cannot_tell(), proto::FAIL));
  policy->set_on_other_settings(fill(policy->on_other_settings(), proto::WARN));
}

constexpr absl::string_view kBuiltIn = "the built-in policy";

// Names a rule that stands in no file of the user's, so that it can be put into
// one.
std::string BuiltInRuleText(const proto::Rule& rule) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string text;
  OPTRAIL_CHECK(printer.PrintToString(rule, &text));
  absl::StripTrailingAsciiWhitespace(&text);
  return absl::StrCat("the built-in rule { ", text,
                      " }, which a file for --policy may hold");
}

absl::Status CheckRule(const proto::Rule& rule, const TextProtoPlace& place) {
  OPTRAIL_RETURN_IF_ERROR(
      CheckBetween(rule.min_effect(), 0, 10, "min_effect", place));
  OPTRAIL_RETURN_IF_ERROR(
      CheckBetween(rule.detect_effect(), 0, 20, "detect_effect", place));
  if (rule.detect_effect() <= rule.min_effect()) {
    return place.Child("detect_effect")
        .Error(absl::StrCat("detect_effect is ", rule.detect_effect(),
                            ", expected more than min_effect, which is ",
                            rule.min_effect()));
  }
  return absl::OkStatus();
}

absl::Status CheckQuorum(const proto::Quorum& quorum,
                         const TextProtoPlace& place) {
  std::set<std::string> ids;
  double weights = 0;
  for (int i = 0; i < quorum.hardware_size(); ++i) {
    const proto::Quorum::Hardware& hardware = quorum.hardware(i);
    const TextProtoPlace at = place.Child("hardware", i);
    if (hardware.id().empty()) {
      return at.Error("hardware without an id; `optrail doctor` prints it");
    }
    if (!ids.insert(hardware.id()).second) {
      return at.Child("id").Error(absl::StrCat(
          "hardware '", hardware.id(), "' is there twice, expected it once"));
    }
    OPTRAIL_RETURN_IF_ERROR(
        CheckBetween(hardware.weight(), .001, 1000, "weight", at));
    weights += hardware.weight();
  }
  if (ids.size() < 2) {
    return place.Error(absl::StrCat("a quorum of ", ids.size(),
                                    " hardware, expected at least 2"));
  }
  return CheckBetween(quorum.slower_on(), .001, weights, "slower_on", place);
}

// "merge_base" of a policy is "merge-base" on the command line.
std::string KindOf(const google::protobuf::FieldDescriptor& field) {
  return absl::StrReplaceAll(field.name(), {{"_", "-"}});
}

// The field of a baseline that says what it is; null if none does.
const google::protobuf::FieldDescriptor* FieldOf(
    const proto::Baseline& baseline) {
  return baseline.GetReflection()->GetOneofFieldDescriptor(
      baseline, baseline.GetDescriptor()->oneof_decl(0));
}

// Returns the name in a baseline other than a window.
std::string NameIn(const proto::Baseline& baseline) {
  const google::protobuf::FieldDescriptor* field = FieldOf(baseline);
  if (field == nullptr) return "";
  return baseline.GetReflection()->GetString(baseline, field);
}

absl::Status CheckBaseline(const proto::Baseline& baseline,
                           const TextProtoPlace& place) {
  if (baseline.has_window()) {
    return CheckAtLeast(baseline.window().runs(), 1, "runs",
                        place.Child("window"));
  }
  if (!NameIn(baseline).empty()) return absl::OkStatus();
  return place.Error(
      "a baseline says nothing, expected one of window, run, commit, tag, "
      "merge_base");
}

// "BRANCH:RUNS", either of which may be missing.
absl::StatusOr<proto::Baseline> ParseWindow(absl::string_view text,
                                            absl::string_view window) {
  const std::pair<std::string, absl::string_view> parts =
      absl::StrSplit(window, absl::MaxSplits(':', 1));
  int runs = kWindowRuns;
  if (!parts.second.empty() &&
      (!absl::SimpleAtoi(parts.second, &runs) || runs < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("baseline '", text,
                     "': expected a number of runs of at least 1, found '",
                     parts.second, "'"));
  }
  proto::Baseline baseline;
  baseline.mutable_window()->set_branch(
      parts.first.empty() ? std::string(kMainBranch) : parts.first);
  baseline.mutable_window()->set_runs(runs);
  return baseline;
}

}  // namespace

struct Policy::Compiled {
  struct Rule {
    Pattern benchmark;
    Pattern metric;
    RuleView view;
  };
  struct Exemption {
    Pattern benchmark;
    Pattern metric;
    int64_t end_unix_s = 0;
  };

  std::vector<Rule> rules;
  std::vector<Exemption> exemptions;
};

absl::StatusOr<Policy> Policy::Load(absl::string_view path) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string text, ReadFile(std::string(path)));
  return Parse(text, path);
}

absl::StatusOr<Policy> Policy::Parse(absl::string_view text,
                                     absl::string_view file_name) {
  OPTRAIL_ASSIGN_OR_RETURN(auto parsed,
                           ParseTextProto<proto::Policy>(text, file_name));
  const TextProtoPlace root = parsed.root();
  Policy policy;
  policy.proto_ = parsed.message;
  FillDefaults(&policy.proto_);
  const proto::Policy& p = policy.proto_;

  OPTRAIL_RETURN_IF_ERROR(CheckBetween(p.run_false_alarm_rate(), 1e-9, .5,
                                       "run_false_alarm_rate", root));
  OPTRAIL_RETURN_IF_ERROR(CheckBetween(p.power(), .5, .9999, "power", root));
  OPTRAIL_RETURN_IF_ERROR(
      CheckAtLeast(p.min_baseline_runs(), 1, "min_baseline_runs", root));
  OPTRAIL_RETURN_IF_ERROR(
      CheckAtLeast(p.min_processes(), 2, "min_processes", root));
  if (p.has_quorum()) {
    OPTRAIL_RETURN_IF_ERROR(CheckQuorum(p.quorum(), root.Child("quorum")));
  }
  // What was filled in stands nowhere and needs no check.
  for (int i = 0; i < parsed.message.baseline_size(); ++i) {
    OPTRAIL_RETURN_IF_ERROR(
        CheckBaseline(p.baseline(i), root.Child("baseline", i)));
  }

  auto compiled = std::make_shared<Compiled>();
  for (int i = 0; i < p.rule_size(); ++i) {
    const bool written = i < parsed.message.rule_size();
    const proto::Rule& rule = p.rule(i);
    Compiled::Rule out;
    if (written) {
      const TextProtoPlace place = root.Child("rule", i);
      OPTRAIL_RETURN_IF_ERROR(CheckRule(rule, place));
      OPTRAIL_ASSIGN_OR_RETURN(
          out.benchmark,
          CompileField(rule.benchmark(), place.Child("benchmark")));
      OPTRAIL_ASSIGN_OR_RETURN(
          out.metric,
          CompileField(rule.metric(), place.Child("metric"), "time"));
      out.view.matched =
          file_name == kBuiltIn
              ? BuiltInRuleText(rule)
              : absl::StrCat("rule ", i + 1, " (line ", place.line(), ")");
    } else {
      out.benchmark = std::make_shared<const RE2>(
          rule.benchmark().empty() ? "(?s).*" : rule.benchmark());
      out.metric = std::make_shared<const RE2>("time");
      out.view.matched = BuiltInRuleText(rule);
    }
    out.view.action = rule.action();
    out.view.threshold.direction = rule.direction();
    out.view.threshold.min_effect = rule.min_effect();
    out.view.threshold.detect_effect = rule.detect_effect();
    compiled->rules.push_back(std::move(out));
  }
  for (int i = 0; i < p.exemption_size(); ++i) {
    const proto::Exemption& exemption = p.exemption(i);
    const TextProtoPlace place = root.Child("exemption", i);
    if (exemption.benchmark().empty() || exemption.until().empty() ||
        exemption.reason().empty()) {
      return place.Error(
          "an exemption needs benchmark, until and reason: it must not outlive "
          "what it was made for");
    }
    Compiled::Exemption out;
    OPTRAIL_ASSIGN_OR_RETURN(
        out.benchmark,
        CompileField(exemption.benchmark(), place.Child("benchmark")));
    OPTRAIL_ASSIGN_OR_RETURN(
        out.metric, CompileField(exemption.metric(), place.Child("metric")));
    OPTRAIL_ASSIGN_OR_RETURN(
        out.end_unix_s, EndOfDate(exemption.until(), place.Child("until")));
    compiled->exemptions.push_back(std::move(out));
  }
  policy.compiled_ = std::move(compiled);
  return policy;
}

Policy Policy::Default() { return *Parse("", kBuiltIn); }

absl::StatusOr<Policy> Policy::LoadOr(const std::string& path,
                                      const std::string& metric) {
  if (!path.empty()) return Load(path);
  if (metric.empty()) return Default();
  const RE2 pattern(metric, RE2::Quiet);
  if (!pattern.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--metric='", metric, "' is no regular expression: ", pattern.error()));
  }
  proto::Policy policy = Default().proto();
  for (proto::Rule& rule : *policy.mutable_rule()) rule.set_metric(metric);
  std::string text;
  OPTRAIL_CHECK(google::protobuf::TextFormat::PrintToString(policy, &text));
  return Parse(text, kBuiltIn);
}

RuleView Policy::RuleFor(absl::string_view benchmark,
                         absl::string_view metric) const {
  for (const Compiled::Rule& rule : compiled_->rules) {
    if (Matches(rule.benchmark, benchmark) && Matches(rule.metric, metric)) {
      return rule.view;
    }
  }
  RuleView none;
  none.matched = "no rule";
  return none;
}

const proto::Exemption* Policy::ExemptionFor(absl::string_view benchmark,
                                             absl::string_view metric,
                                             int64_t now_unix_s) const {
  for (size_t i = 0; i < compiled_->exemptions.size(); ++i) {
    const Compiled::Exemption& exemption = compiled_->exemptions[i];
    if (now_unix_s < exemption.end_unix_s &&
        Matches(exemption.benchmark, benchmark) &&
        Matches(exemption.metric, metric)) {
      return &proto_.exemption(static_cast<int>(i));
    }
  }
  return nullptr;
}

std::vector<const proto::Exemption*> Policy::ExpiredExemptions(
    int64_t now_unix_s) const {
  std::vector<const proto::Exemption*> expired;
  for (size_t i = 0; i < compiled_->exemptions.size(); ++i) {
    if (now_unix_s >= compiled_->exemptions[i].end_unix_s) {
      expired.push_back(&proto_.exemption(static_cast<int>(i)));
    }
  }
  return expired;
}

proto::Action Policy::ActionFor(Verdict verdict, const RuleView& rule) const {
  const auto milder = [&](proto::Action action) {
    // WARN and IGNORE rules never turn anything red; IGNORE hides it.
    return static_cast<proto::Action>(std::max<int>(action, rule.action));
  };
  switch (verdict) {
    case Verdict::kUnchanged:
    case Verdict::kFaster:
    case Verdict::kSkipped:
      return proto::IGNORE;
    case Verdict::kSlower:
      return rule.action;
    case Verdict::kSlowerInMostSamples:
      return milder(proto_.on_slower_in_most_samples());
    case Verdict::kCannotTell:
      return milder(proto_.on_cannot_tell());
    case Verdict::kMissing:
      return milder(proto_.on_missing());
    case Verdict::kNew:
      return milder(proto_.on_new());
    case Verdict::kRenamed:
      return milder(proto_.on_renamed());
    case Verdict::kNewVersion:
      return milder(proto_.on_new_version());
    case Verdict::kCrashed:
    case Verdict::kWrongResult:
      return milder(proto_.on_crashed());
    case Verdict::kFailed:
    case Verdict::kMaybeSlower:
    case Verdict::kMaybeFaster:
    case Verdict::kAcknowledged:
    case Verdict::kExpected:
    case Verdict::kMuted:
    case Verdict::kNoBaseline:
      break;  // of series alone
  }
  return proto::IGNORE;
}

absl::StatusOr<proto::Baseline> ParseBaseline(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  if (parts.first == "window") return ParseWindow(text, parts.second);
  const bool is_bare = !absl::StrContains(text, ':');
  const std::string value(is_bare ? text : parts.second);
  proto::Baseline baseline;
  const google::protobuf::Descriptor& type = *baseline.GetDescriptor();
  const google::protobuf::FieldDescriptor* field = nullptr;
  for (int i = 0; i < type.field_count(); ++i) {
    if (KindOf(*type.field(i)) == (is_bare ? "run" : parts.first)) {
      field = type.field(i);
    }
  }
  if (field == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "baseline '", text,
        "': expected window:BRANCH:RUNS, run:ID, commit:HASH, tag:NAME, "
        "merge-base:BRANCH or a bare run, commit or latest~N"));
  }
  if (value.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("baseline '", text, "': expected a name after ':'"));
  }
  baseline.GetReflection()->SetString(&baseline, field, value);
  return baseline;
}

std::string BaselineText(const proto::Baseline& baseline) {
  if (baseline.has_window()) {
    return absl::StrCat("window:", baseline.window().branch(), ":",
                        baseline.window().runs());
  }
  const google::protobuf::FieldDescriptor* field = FieldOf(baseline);
  return field == nullptr ? ""
                          : absl::StrCat(KindOf(*field), ":", NameIn(baseline));
}

}  // namespace optrail::tracker
