#include "tracker/convergence/findings.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/convergence/convergence.h"
#include "tracker/convergence/evaluation/simulate_sessions.h"

namespace optrail::tracker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<Finding> FindIn(const std::vector<proto::Session>& sessions) {
  std::vector<SessionAnalysis> analyses;
  for (const proto::Session& session : sessions) {
    analyses.push_back(AnalyzeSession(session));
  }
  return FindFaults(analyses);
}

bool Has(const std::vector<Finding>& findings, FindingKind kind) {
  return std::any_of(
      findings.begin(), findings.end(),
      [&](const Finding& finding) { return finding.kind == kind; });
}

class EveryFault : public ::testing::TestWithParam<FindingKind> {};

TEST_P(EveryFault, IsFoundWithItsRemedyWhenPlanted) {
  constexpr int kSeeds = 5;
  int found = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    for (const Finding& finding : FindIn(SimulateFault(GetParam(), seed))) {
      if (finding.kind != GetParam()) continue;
      ++found;
      EXPECT_FALSE(finding.evidence.empty());
      EXPECT_FALSE(finding.session_ids.empty());
      EXPECT_TRUE(std::any_of(finding.remedies.begin(), finding.remedies.end(),
                              [](const Remedy& remedy) {
                                return remedy.lever == RemedyOf(GetParam());
                              }))
          << "seed " << seed;
    }
  }
  EXPECT_GE(found, kSeeds - 1);
}

TEST_P(EveryFault, HasANameThatParses) {
  EXPECT_EQ(ParseFindingKind(FindingKindName(GetParam())), GetParam());
}

INSTANTIATE_TEST_SUITE_P(, EveryFault, ::testing::ValuesIn(kAllFindingKinds),
                         [](const auto& info) {
                           return std::string(FindingKindName(info.param));
                         });

// A session of `tune --command` for throughput, in which large batches run out
// of memory; or configs that no rule tells from the others.
proto::Session CommandWithoutMemory(int64_t least_failing, bool scattered) {
  proto::Session session;
  session.set_session_id("a");
  session.mutable_command()->set_command("./train {batch}");
  proto::Objective& objective = *session.add_objectives();
  objective.set_metric("throughput");
  objective.set_direction(proto::HIGHER_IS_BETTER);
  for (int i = 0; i < 18; ++i) {
    const int64_t batch = int64_t{1} << (i % 6);
    proto::Trial& trial = *session.add_trials();
    proto::KnobValue& value = *trial.mutable_config()->add_set();
    value.set_knob("batch");
    value.set_int_(batch);
    const bool fails = scattered ? i % 4 < 2 : batch >= least_failing;
    trial.set_outcome(fails ? proto::OUT_OF_MEMORY : proto::OK);
    if (fails) continue;
    proto::MetricSamples& metric = *trial.add_objectives();
    metric.set_metric("throughput");
    metric.add_values(100 + static_cast<double>(batch));
  }
  return session;
}

TEST(FindFaults, MemoryThatAKnobSeparatesIsFoundForCommandsToo) {
  for (const int64_t least_failing : {4, 8}) {
    const auto findings = FindIn({CommandWithoutMemory(least_failing, false)});
    ASSERT_TRUE(Has(findings, FindingKind::kMostTrialsFail)) << least_failing;
    std::string text;
    for (const Remedy& remedy : findings[0].remedies) {
      text += remedy.text + "\n";
    }
    EXPECT_THAT(text, HasSubstr(absl::StrCat("batch < ", least_failing)));
    EXPECT_THAT(text, HasSubstr("--command_memory_mib"));
    EXPECT_THAT(text, Not(HasSubstr("--max_config_mib")));
  }
  EXPECT_FALSE(Has(FindIn({CommandWithoutMemory(0, /*scattered=*/true)}),
                   FindingKind::kMostTrialsFail));
}

// The number of processes follows from the spread, and so does what they bring.
TEST(FindFaults, ProcessesAreThoseThatTheSpreadNeeds) {
  const auto remedy_at = [](double spread, bool is_command) {
    SessionAnalysis session;
    session.process_noise = spread;
    if (is_command) session.header.mutable_command()->set_command("./run");
    for (const Finding& finding : FindFaults({session})) {
      if (finding.kind == FindingKind::kOscillates) {
        return finding.remedies[0].text;
      }
    }
    return std::string();
  };
  EXPECT_THAT(remedy_at(.06, false),
              HasSubstr("--processes=9, which brings the spread from 6.0% to "
                        "2.0%"));
  EXPECT_THAT(remedy_at(.436, false),
              HasSubstr("--processes=25, which brings the spread from 43.6% to "
                        "8.7%"));
  EXPECT_THAT(remedy_at(.436, true), Not(HasSubstr("--processes")));
}

// Sessions of one command, the newest of which ends at a worse config.
std::vector<proto::Session> CommandThatGotWorse() {
  std::vector<proto::Session> sessions =
      SimulateFault(FindingKind::kConvergedToWorse, 1);
  for (proto::Session& session : sessions) {
    session.mutable_command()->set_command("./run {a}");
    session.mutable_task()->set_kernel_id("command-1");
  }
  return sessions;
}

TEST(FindFaults, AnotherProgramIsAnotherTask) {
  std::vector<proto::Session> sessions = CommandThatGotWorse();
  ASSERT_TRUE(Has(FindIn(sessions), FindingKind::kConvergedToWorse));
  for (proto::Session& session : sessions) {
    if (session.session_id() == sessions.back().session_id()) {
      session.mutable_task()->set_kernel_id("command-2");
    }
  }
  EXPECT_FALSE(Has(FindIn(sessions), FindingKind::kConvergedToWorse));
}

TEST(FindFaults, AContendedTrialIsNoAnswer) {
  std::vector<proto::Session> sessions = CommandThatGotWorse();
  for (proto::Session& session : sessions) {
    session.set_stop_reason(proto::SPACE_EXHAUSTED);
    session.add_trials()->set_outcome(proto::CONTENDED);
    session.set_valid_config_count(session.trials_size());
  }
  bool found = false;
  for (const Finding& finding : FindIn(sessions)) {
    if (finding.kind != FindingKind::kConvergedToWorse) continue;
    found = true;
    EXPECT_EQ(finding.remedies[0].lever, Lever::kBudget);
    EXPECT_THAT(finding.remedies[0].text, Not(HasSubstr("every config")));
  }
  EXPECT_TRUE(found);
}

TEST(FindFaults, NoSearchIsAdvisedWhereEveryConfigWasTried) {
  std::vector<proto::Session> sessions = CommandThatGotWorse();
  for (proto::Session& session : sessions) {
    session.set_stop_reason(proto::SPACE_EXHAUSTED);
  }
  bool found = false;
  for (const Finding& finding : FindIn(sessions)) {
    if (finding.kind != FindingKind::kConvergedToWorse) continue;
    found = true;
    EXPECT_THAT(finding.remedies[0].text, HasSubstr("every config"));
    for (const Remedy& remedy : finding.remedies) {
      EXPECT_NE(remedy.lever, Lever::kBudget) << remedy.text;
      EXPECT_NE(remedy.lever, Lever::kStrategy) << remedy.text;
    }
  }
  EXPECT_TRUE(found);
}

TEST(FindFaults, NoMoreTrialsAreAdvisedThanThereAreConfigs) {
  std::vector<proto::Session> sessions = CommandThatGotWorse();
  const int64_t configs = sessions.back().trials_size() + 3;
  for (proto::Session& session : sessions) {
    session.set_valid_config_count(configs);
  }
  bool found = false;
  for (const Finding& finding : FindIn(sessions)) {
    if (finding.kind != FindingKind::kConvergedToWorse) continue;
    found = true;
    ASSERT_TRUE(finding.remedies[0].change.has_value());
    EXPECT_EQ(finding.remedies[0].change->trials, configs);
  }
  EXPECT_TRUE(found);
}

TEST(FindFaults, StaysQuietOverHealthySessions) {
  for (const uint64_t seed : {1, 2, 3}) {
    EXPECT_LE(FindIn(SimulateHealthy(200, seed)).size(), 2) << seed;
  }
}

TEST(FindFaults, OfNothingIsNothing) { EXPECT_TRUE(FindFaults({}).empty()); }

TEST(FindFaults, TheOrderOfSessionsDoesNotMatter) {
  std::vector<proto::Session> sessions =
      SimulateFault(FindingKind::kTunerWorse, 1);
  const std::vector<Finding> forward = FindIn(sessions);
  std::reverse(sessions.begin(), sessions.end());
  const std::vector<Finding> backward = FindIn(sessions);
  ASSERT_EQ(forward.size(), backward.size());
  for (size_t i = 0; i < forward.size(); ++i) {
    EXPECT_EQ(forward[i].kind, backward[i].kind);
    EXPECT_EQ(forward[i].evidence, backward[i].evidence);
  }
}

TEST(FindFaults, NamesTheRuleThatFailingConfigsShare) {
  const std::vector<Finding> findings =
      FindIn(SimulateFault(FindingKind::kMostTrialsFail, 1));
  ASSERT_TRUE(Has(findings, FindingKind::kMostTrialsFail));
  EXPECT_THAT(findings[0].remedies[0].text, HasSubstr("a * b <"));
}

TEST(FindFaults, ASessionThatWasDoneDidConverge) {
  std::vector<proto::Session> sessions =
      SimulateFault(FindingKind::kDoesNotConverge, 1);
  sessions[0].set_stop_reason(proto::PATIENCE_SPENT);
  EXPECT_FALSE(Has(FindIn(sessions), FindingKind::kDoesNotConverge));
}

class ComparesSessions : public ::testing::TestWithParam<FindingKind> {};

TEST_P(ComparesSessions, SaysThatTheyWereMeasuredDifferently) {
  std::vector<proto::Session> sessions = SimulateFault(GetParam(), 1);
  const auto found = [&] {
    for (Finding& finding : FindIn(sessions)) {
      if (finding.kind == GetParam()) return finding;
    }
    ADD_FAILURE() << "the planted fault was not found";
    return Finding();
  };
  const auto says =
      ::testing::Contains("measured differently: min sample 100 us -> 500 us");
  const Finding before = found();
  EXPECT_THAT(before.evidence, Not(says));
  for (proto::Session& session : sessions) {
    const bool late =
        std::find(before.session_ids.begin(), before.session_ids.end(),
                  session.session_id()) != before.session_ids.end();
    session.mutable_settings()->set_min_sample_ns(late ? 500'000 : 100'000);
  }
  EXPECT_THAT(found().evidence, says);
}

INSTANTIATE_TEST_SUITE_P(, ComparesSessions,
                         ::testing::Values(FindingKind::kTimeExploded,
                                           FindingKind::kConvergedToWorse,
                                           FindingKind::kSlowerToConverge,
                                           FindingKind::kTunerWorse),
                         [](const auto& info) {
                           return std::string(FindingKindName(info.param));
                         });

TEST(FindFaults, SessionsOfOneTaskShareAFinding) {
  std::vector<proto::Session> sessions;
  SessionPlan plan;
  plan.contended_share = .8;
  for (plan.day = 0; plan.day < 3; ++plan.day) {
    sessions.push_back(SimulateSession(plan, plan.day));
  }
  const std::vector<Finding> findings = FindIn(sessions);
  ASSERT_EQ(findings.size(), 1);
  EXPECT_EQ(findings[0].session_ids.size(), 3);
}

}  // namespace
}  // namespace optrail::tracker
