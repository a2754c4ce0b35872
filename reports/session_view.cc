#include "reports/session_view.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "reports/proof_sides.h"
#include "reports/schedule_view.h"
#include "tracker/convergence/convergence.h"
#include "tracker/convergence/findings.h"
#include "tuning/proto/canonical.h"

namespace optrail::reports {
namespace {

// Levels in their natural order: numbers by size, then words by name.
struct LevelOrder {
  bool operator()(const std::string& a, const std::string& b) const {
    int64_t x, y;
    const bool a_is_number = absl::SimpleAtoi(a, &x);
    const bool b_is_number = absl::SimpleAtoi(b, &y);
    if (a_is_number != b_is_number) return a_is_number;
    if (a_is_number && x != y) return x < y;
    return a < b;
  }
};

void AddKnobs(TuningSession& session) {
  std::map<std::string, std::map<std::string, int, LevelOrder>> levels;
  for (const tracker::TrialPoint& trial : session.of.trials) {
    for (const proto::KnobValue& value : trial.config.set()) {
      levels[value.knob()][tuning::CanonicalText(value)] = 0;
    }
  }
  std::map<std::string, int> knob_index;
  for (auto& [name, values] : levels) {
    Knob knob;
    knob.name = name;
    for (auto& [text, index] : values) {
      index = static_cast<int>(knob.levels.size());
      knob.levels.push_back(text);
    }
    knob_index[name] = static_cast<int>(session.knobs.size());
    session.knobs.push_back(std::move(knob));
  }
  for (const tracker::TrialPoint& trial : session.of.trials) {
    std::vector<int> of_trial(session.knobs.size(), -1);
    for (const proto::KnobValue& value : trial.config.set()) {
      of_trial[knob_index[value.knob()]] =
          levels[value.knob()][tuning::CanonicalText(value)];
    }
    session.levels.push_back(std::move(of_trial));
  }
}

// In one line: the first evidence and the first remedy.
std::string FindingText(const tracker::Finding& finding) {
  std::string line =
      absl::StrReplaceAll(tracker::FindingKindName(finding.kind), {{"_", " "}});
  if (!finding.evidence.empty()) {
    absl::StrAppend(&line, ": ", finding.evidence.front());
  }
  if (!finding.remedies.empty()) {
    absl::StrAppend(&line, ". Remedy: ", finding.remedies.front().text);
  }
  return line;
}

}  // namespace

Commit ConvertCommit(const proto::Commit& commit) {
  Commit result;
  result.id = commit.id();
  result.branch = commit.branch();
  result.subject = commit.subject();
  if (commit.has_first_parent_position()) {
    result.position = commit.first_parent_position();
  }
  result.unix_ns = commit.commit_unix_ns();
  result.dirty = commit.dirty();
  return result;
}

TuningSession ConvertSession(const proto::Session& session) {
  TuningSession result;
  result.of = tracker::AnalyzeSession(session);
  result.commit = ConvertCommit(session.commit());
  AddKnobs(result);
  result.schedule = ViewOfSchedule(session, result);
  result.sides = SidesOf(session);
  return result;
}

std::vector<TuningSession> ConvertSessions(
    const std::vector<proto::Session>& sessions) {
  std::vector<const proto::Session*> ordered;
  for (const proto::Session& session : sessions) ordered.push_back(&session);
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const proto::Session* a, const proto::Session* b) {
                     if (a->started_unix_ns() != b->started_unix_ns()) {
                       return a->started_unix_ns() > b->started_unix_ns();
                     }
                     return a->session_id() < b->session_id();
                   });
  std::vector<TuningSession> converted;
  std::vector<tracker::SessionAnalysis> analyses;
  for (const proto::Session* session : ordered) {
    converted.push_back(ConvertSession(*session));
    analyses.push_back(converted.back().of);
  }
  std::map<std::string, std::vector<std::string>> lines;
  for (const tracker::Finding& finding : tracker::FindFaults(analyses)) {
    for (const std::string& id : finding.session_ids) {
      lines[id].push_back(FindingText(finding));
    }
  }
  for (TuningSession& session : converted) {
    session.findings = std::move(lines[session.of.id()]);
  }
  return converted;
}

}  // namespace optrail::reports
