// Plants every convergence fault and counts what is found; and what is found in
// healthy sessions. Prints the table of docs/method/convergence.md.
//
//   bazel run //tracker/convergence/evaluation:convergence_evaluation --
//   --repeats=50
//
// With --history, really recorded sessions are judged whose trials are in a
// random order, with their configs dealt out at random: readings and outcomes
// are real, and nothing that is found about their order or their knobs is true.
//
// With --recordings, strategies search spaces of which every config was
// measured on a device, so that what a finding claims can be looked up.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "tracker/convergence/convergence.h"
#include "tracker/convergence/evaluation/simulate_sessions.h"
#include "tracker/convergence/findings.h"
#include "tracker/history/history.h"
#include "tuning/replay/recorded_domain.h"
#include "tuning/replay/recording.h"
#include "tuning/replay/replay_problem.h"
#include "tuning/search/strategies.h"
#include "tuning/space/space.h"

ABSL_FLAG(int, repeats, 50, "times that each fault is planted");
ABSL_FLAG(int, healthy, 200, "healthy sessions");
ABSL_FLAG(int, healthy_repeats, 5, "times that healthy sessions are judged");
ABSL_FLAG(int, first_seed, 1, "of the simulations, which count up from it");
ABSL_FLAG(std::string, history, "", "folder of recorded sessions to shuffle");
ABSL_FLAG(std::string, recordings, "", "folder of recorded spaces to search");
ABSL_FLAG(bool, verbose, false,
          "print other findings beside planted faults, and false ones");

namespace optrail::tracker {
namespace {

std::vector<Finding> FindIn(const std::vector<proto::Session>& sessions) {
  std::vector<SessionAnalysis> analyses;
  for (const proto::Session& session : sessions) {
    analyses.push_back(AnalyzeSession(session));
  }
  return FindFaults(analyses);
}

// The session's own trials, in a random order and with each other's configs.
void Shuffle(Rng& rng, proto::Session* session) {
  std::vector<proto::Trial> trials(session->trials().begin(),
                                   session->trials().end());
  std::vector<proto::Trial> own(
      trials.begin() + session->warm_start_trial_count(), trials.end());
  rng.Shuffle(own);
  std::vector<proto::Config> configs;
  for (const proto::Trial& trial : own) configs.push_back(trial.config());
  rng.Shuffle(configs);
  for (size_t i = 0; i < own.size(); ++i) {
    *own[i].mutable_config() = configs[i];
    *session->mutable_trials(session->warm_start_trial_count() +
                             static_cast<int>(i)) = own[i];
  }
}

// Returns whether the finding is about what Shuffle takes away.
bool IsFalse(const Finding& finding) {
  if (finding.kind == FindingKind::kMostTrialsFail) {
    // The trials did fail; a rule over knobs is false.
    return std::any_of(finding.evidence.begin(), finding.evidence.end(),
                       [](const std::string& line) {
                         return absl::StrContains(line, " holds for ");
                       });
  }
  return finding.kind == FindingKind::kDoesNotConverge;
}

absl::Status JudgeShuffled(const std::string& folder) {
  OPTRAIL_ASSIGN_OR_RETURN(const History history, History::Open(folder));
  OPTRAIL_ASSIGN_OR_RETURN(const SessionList list, history.ListSessions());
  std::vector<proto::Session> sessions;
  for (const SessionInfo& info : list.sessions) {
    OPTRAIL_ASSIGN_OR_RETURN(sessions.emplace_back(),
                             history.ReadSession(info.id()));
  }
  const int repeats = absl::GetFlag(FLAGS_repeats);
  std::map<FindingKind, int> counts;
  Rng rng(static_cast<uint64_t>(absl::GetFlag(FLAGS_first_seed)));
  for (int i = 0; i < repeats; ++i) {
    std::vector<proto::Session> shuffled = sessions;
    for (proto::Session& session : shuffled) Shuffle(rng, &session);
    for (const Finding& finding : FindIn(shuffled)) {
      if (IsFalse(finding)) ++counts[finding.kind];
    }
  }
  for (const FindingKind kind :
       {FindingKind::kDoesNotConverge, FindingKind::kMostTrialsFail}) {
    std::cout << absl::StrFormat(
        "%-20s %d false findings in %d times %d shuffled sessions\n",
        FindingKindName(kind), counts[kind], repeats, sessions.size());
  }
  return absl::OkStatus();
}

// A search of a recorded space as a session.
class RecordedSearch {
 public:
  explicit RecordedSearch(const tuning::Recording& recording)
      : recording_(recording), domain_(recording) {
    for (const tuning::KnobLevels& knob : recording.knobs) {
      are_ints_.push_back(std::all_of(knob.labels.begin(), knob.labels.end(),
                                      [](const std::string& label) {
                                        int64_t unused = 0;
                                        return absl::SimpleAtoi(label, &unused);
                                      }));
    }
  }

  absl::StatusOr<proto::Session> Run(const std::string& strategy_name,
                                     int trials, int seed) const {
    proto::Session session = Header(trials, seed);
    session.set_strategy(strategy_name);
    tuning::StrategyOptions options;
    options.seed = static_cast<uint64_t>(seed);
    options.budget = trials;
    OPTRAIL_ASSIGN_OR_RETURN(
        const std::unique_ptr<tuning::Strategy> strategy,
        tuning::MakeStrategy(strategy_name, domain_, options));
    while (session.trials_size() < trials) {
      const std::vector<tuning::Levels> next = strategy->Ask(1);
      if (next.empty()) {
        session.set_stop_reason(proto::SPACE_EXHAUSTED);
        break;
      }
      const tuning::RecordedConfig& config =
          recording_.configs[*domain_.IndexOf(next[0])];
      strategy->Tell({tuning::TrialOf(config)});
      AddTrial(config, &session);
    }
    return session;
  }

  // The share by which the space's best config beats the session's best.
  double GainLeft(const proto::Session& session) const {
    double best = HUGE_VAL, found = HUGE_VAL;
    for (const tuning::RecordedConfig& config : recording_.configs) {
      if (config.outcome == proto::OK) {
        best = std::min(best, config.time_ms * 1e6);
      }
    }
    for (const proto::Trial& trial : session.trials()) {
      if (trial.has_time_ns()) found = std::min(found, trial.time_ns());
    }
    return 1 - best / found;
  }

  // The remedy's constraint refuses configs: returns which share of them
  // failed.
  absl::StatusOr<double> FailingAmongRefused(
      const std::string& space_textproto) const {
    OPTRAIL_ASSIGN_OR_RETURN(
        const tuning::Space space,
        tuning::Space::Parse(space_textproto, "the remedy"));
    OPTRAIL_ASSIGN_OR_RETURN(
        const std::unique_ptr<tuning::BoundSpace> bound,
        space.Bind(Header(0, 0).task().shape(), proto::Hardware(), {}));
    double refused = 0, failing = 0;
    for (const tuning::RecordedConfig& config : recording_.configs) {
      if (bound->Validate(ConfigOf(config)).ok()) continue;
      ++refused;
      failing += config.outcome != proto::OK;
    }
    return refused > 0 ? failing / refused : 0;
  }

 private:
  proto::KnobValue ValueOf(size_t knob, int level) const {
    const std::string& label = recording_.knobs[knob].labels[level];
    proto::KnobValue value;
    value.set_knob(recording_.knobs[knob].name);
    int64_t number = 0;
    if (are_ints_[knob] && absl::SimpleAtoi(label, &number)) {
      value.set_int_(number);
    } else {
      value.set_variant(VariantOf(label));
    }
    return value;
  }

  // Names of variants are words.
  static std::string VariantOf(absl::string_view label) {
    std::string variant = "v";
    for (const char c : label) {
      variant += absl::ascii_isalnum(c) ? absl::ascii_tolower(c) : '_';
    }
    return variant;
  }

  proto::Config ConfigOf(const tuning::RecordedConfig& config) const {
    proto::Config result;
    for (size_t k = 0; k < recording_.knobs.size(); ++k) {
      *result.add_set() = ValueOf(k, config.levels[k]);
    }
    return result;
  }

  proto::Session Header(int trials, int seed) const {
    proto::Session session;
    session.set_session_id(
        absl::StrFormat("20260101T000000Z-%012x", seed & 0xffffff));
    session.set_started_unix_ns(int64_t{1767225600} * 1'000'000'000);
    session.set_stop_reason(proto::TRIALS_SPENT);
    session.mutable_budget()->set_trials(trials);
    proto::Task& task = *session.mutable_task();
    task.set_operator_name("recorded");
    task.set_kernel_id(recording_.name);
    task.set_device_kind(proto::CUDA);
    task.set_hardware_id("recorded");
    proto::Dim& dim = *task.mutable_shape()->add_dims();
    dim.set_name("n");
    dim.set_value(1);
    task.mutable_shape()->add_data_types(proto::F32);
    session.mutable_hardware()->set_id("recorded");
    std::string space;
    for (size_t k = 0; k < recording_.knobs.size(); ++k) {
      std::vector<std::string> values;
      for (const std::string& label : recording_.knobs[k].labels) {
        values.push_back(
            are_ints_[k] ? label : absl::StrCat("\"", VariantOf(label), "\""));
      }
      absl::StrAppend(&space, "knob { name: \"", recording_.knobs[k].name,
                      are_ints_[k] ? "\" ints: [" : "\" variants: [",
                      absl::StrJoin(values, ", "), "] }\n");
    }
    absl::StrAppend(&space, "default {\n");
    const proto::Config first = ConfigOf(recording_.configs[0]);
    for (const proto::KnobValue& value : first.set()) {
      absl::StrAppend(&space, "  set { knob: \"", value.knob(), "\" ",
                      value.has_int_()
                          ? absl::StrCat("int: ", value.int_())
                          : absl::StrCat("variant: \"", value.variant(), "\""),
                      " }\n");
    }
    absl::StrAppend(&space, "}\n");
    session.set_space_textproto(space);
    return session;
  }

  void AddTrial(const tuning::RecordedConfig& config,
                proto::Session* session) const {
    proto::Trial& trial = *session->add_trials();
    *trial.mutable_config() = ConfigOf(config);
    if (config.outcome == proto::OK) {
      trial.set_outcome(proto::OK);
      trial.set_time_ns(config.time_ms * 1e6);
    } else {
      trial.set_outcome(proto::LAUNCH_ERROR);
    }
  }

  const tuning::Recording& recording_;
  const tuning::RecordedDomain domain_;
  std::vector<bool> are_ints_;
};

// "" if what the finding claims is so in the whole recording, else what is.
std::string Refutation(const Finding& finding, const RecordedSearch& search,
                       const proto::Session& session) {
  // A finding must matter by so much.
  constexpr double kWorth = .05;
  const double left = search.GainLeft(session);
  switch (finding.kind) {
    case FindingKind::kDoesNotConverge:
    case FindingKind::kConvergedTooEarly:
      return left >= kWorth
                 ? ""
                 : absl::StrFormat("the best is %.1f%% faster", 100 * left);
    case FindingKind::kMostTrialsFail:
      for (const Remedy& remedy : finding.remedies) {
        if (remedy.lever != Lever::kConstraint || !remedy.change) continue;
        const auto failing =
            search.FailingAmongRefused(remedy.change->space_textproto);
        if (!failing.ok()) return std::string(failing.status().message());
        if (*failing < .5) {
          return absl::StrFormat("%.0f%% of what it refuses fails",
                                 100 * *failing);
        }
      }
      return "";
    default:
      return "readings are the recorded means";
  }
}

absl::Status SearchRecordings(const std::string& folder) {
  struct Count {
    int found = 0, refuted = 0;
  };
  std::map<FindingKind, Count> counts;
  int sessions = 0, unfinished = 0, reported = 0;
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    paths.push_back(entry.path().string());
  }
  if (paths.empty()) {
    return absl::NotFoundError(absl::StrCat(folder, " has no recordings"));
  }
  std::sort(paths.begin(), paths.end());
  int seed = absl::GetFlag(FLAGS_first_seed);
  for (const std::string& path : paths) {
    OPTRAIL_ASSIGN_OR_RETURN(const tuning::Recording recording,
                             tuning::ReadRecording(path));
    const RecordedSearch search(recording);
    for (const char* strategy : {"default", "random"}) {
      for (const int trials : {30, 60, 120}) {
        for (int i = 0; i < absl::GetFlag(FLAGS_repeats); ++i) {
          OPTRAIL_ASSIGN_OR_RETURN(const proto::Session session,
                                   search.Run(strategy, trials, seed++));
          ++sessions;
          const bool is_unfinished = search.GainLeft(session) >= .05;
          unfinished += is_unfinished;
          bool is_reported = false;
          for (const Finding& finding : FindIn({session})) {
            Count& count = counts[finding.kind];
            ++count.found;
            is_reported |= finding.kind != FindingKind::kMostTrialsFail;
            const std::string why = Refutation(finding, search, session);
            if (why.empty()) continue;
            ++count.refuted;
            if (!absl::GetFlag(FLAGS_verbose)) continue;
            std::cout << recording.name << " " << strategy << " " << trials
                      << ": " << FindingKindName(finding.kind) << ": " << why
                      << "; " << absl::StrJoin(finding.evidence, "; ") << "\n";
          }
          reported += is_unfinished && is_reported;
        }
      }
    }
  }
  for (const auto& [kind, count] : counts) {
    std::cout << absl::StrFormat("%-24s %4d findings, of which %d false\n",
                                 FindingKindName(kind), count.found,
                                 count.refuted);
  }
  std::cout << absl::StrFormat(
      "%d sessions; %d ended 5%% or more above the best config, of which %d "
      "have a finding about their search\n",
      sessions, unfinished, reported);
  return absl::OkStatus();
}

void Main() {
  const int repeats = absl::GetFlag(FLAGS_repeats);
  const int first_seed = absl::GetFlag(FLAGS_first_seed);
  std::cout
      << "planted                  found  with the remedy  other findings\n";
  for (const FindingKind kind : kAllFindingKinds) {
    int found = 0, remedied = 0, others = 0;
    for (int seed = first_seed; seed < first_seed + repeats; ++seed) {
      bool is_found = false, is_remedied = false;
      for (const Finding& finding : FindIn(SimulateFault(kind, seed))) {
        if (finding.kind != kind) {
          ++others;
          if (absl::GetFlag(FLAGS_verbose)) {
            std::cout << "    " << FindingKindName(finding.kind) << ": "
                      << finding.evidence.front() << "\n";
          }
          continue;
        }
        is_found = true;
        is_remedied =
            is_remedied ||
            std::any_of(finding.remedies.begin(), finding.remedies.end(),
                        [&](const Remedy& remedy) {
                          return remedy.lever == RemedyOf(kind);
                        });
      }
      found += is_found;
      remedied += is_remedied;
    }
    std::cout << absl::StrFormat("%-24s %2d/%d  %12d/%d  %14d\n",
                                 FindingKindName(kind), found, repeats,
                                 remedied, repeats, others);
  }
  const int healthy = absl::GetFlag(FLAGS_healthy);
  const int healthy_repeats = absl::GetFlag(FLAGS_healthy_repeats);
  for (int seed = first_seed; seed < first_seed + healthy_repeats; ++seed) {
    const std::vector<Finding> findings =
        FindIn(SimulateHealthy(healthy, seed));
    std::cout << absl::StrFormat("%d healthy sessions, seed %d: %d findings\n",
                                 healthy, seed, findings.size());
    for (const Finding& finding : findings) {
      std::cout << "    " << FindingKindName(finding.kind) << ": "
                << finding.evidence.front() << "\n";
    }
  }
}

}  // namespace
}  // namespace optrail::tracker

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Measures the findings of convergence.");
  absl::ParseCommandLine(argc, argv);
  if (const std::string folder = absl::GetFlag(FLAGS_recordings);
      !folder.empty()) {
    const absl::Status searched = optrail::tracker::SearchRecordings(folder);
    if (!searched.ok()) std::cerr << searched << "\n";
    return searched.ok() ? 0 : 2;
  }
  if (const std::string folder = absl::GetFlag(FLAGS_history);
      !folder.empty()) {
    const absl::Status judged = optrail::tracker::JudgeShuffled(folder);
    if (!judged.ok()) std::cerr << judged << "\n";
    return judged.ok() ? 0 : 2;
  }
  optrail::tracker::Main();
  return 0;
}
