// Searches are those of a shell command whose metric is arithmetic, and of an
// operator with so few readings that nothing here depends on what they are.

#include "diagnosis/try_remedies.h"

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/file/file.h"
#include "diagnosis/search_again.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "suites/stopwatch/stopwatch.h"
#include "suites/worker/worker.h"
#include "suites/workload/tasks.h"
#include "tracker/convergence/convergence.h"
#include "tracker/convergence/findings.h"
#include "tracker/explain/calibration.h"
#include "tuning/command/tune_command.h"
#include "tuning/proto/canonical.h"

namespace optrail::diagnosis {
namespace {

using ::testing::HasSubstr;
using tracker::Finding;
using tracker::FindingKind;
using tracker::Lever;
using tracker::Remedy;

// The cost falls with `o`, which a search in order raises last, and with `i`,
// whose range ends at its best value.
constexpr char kSpace[] = R"(
knob { name: "o" ints: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16] }
knob { name: "i" ints: [1, 2, 3, 4] }
default { set { knob: "o" int: 1 } set { knob: "i" int: 1 } }
)";
constexpr char kCommand[] =
    "[ {o} = 99 ] && exit 9; "
    "echo \"{\\\"cost\\\": $(( 10 + (20 - {o}) * (20 - {o}) + "
    "2 * (8 - {i}) * (8 - {i}) ))}\"";

class TryRemediesTest : public ::testing::Test {
 protected:
  TryRemediesTest() {
    EXPECT_TRUE(CreateDirectories(folder_).ok());
    setenv("BUILD_WORKSPACE_DIRECTORY", folder_.c_str(), /*overwrite=*/1);
    auto context = suites::FindRunContext(proto::CPU, "", "");
    EXPECT_TRUE(context.ok()) << context.status();
    tools_.context = *std::move(context);
    tools_.tune.quiet = true;
    suites::TuneOptions& tune = tools_.tune.tune;
    tune.sampling = suites::DefaultSamplingOptions();
    tune.finalists = 1;
    tune.rank_rounds = 1;
    tune.proof.max_time = absl::Milliseconds(200);
  }

  proto::Session TuneCommand(const std::string& command, int trials) {
    tuning::TuneCommandOptions options;
    options.space_file = JoinPath(folder_, "test.space.textproto");
    EXPECT_TRUE(WriteFileAtomically(options.space_file, kSpace).ok());
    *options.header.mutable_hardware() = tools_.context.hardware;
    options.command = command;
    options.metrics = {"cost:min"};
    options.strategy = "exhaustive";
    options.budget.set_trials(trials);
    options.proof.max_time = absl::Milliseconds(200);
    options.quiet = true;
    const auto tuned = tuning::TuneCommand::Prepare(options);
    EXPECT_TRUE(tuned.ok()) << tuned.status();
    const auto session = (*tuned)->Run({}, std::cerr);
    EXPECT_TRUE(session.ok()) << session.status();
    return *session;
  }

  std::vector<proto::Diagnosis> Try(const proto::Session& session,
                                    std::vector<Finding>* findings) {
    return TryRemedies(
        [&](const std::string& id) -> absl::StatusOr<proto::Session> {
          if (id == session.session_id()) return session;
          return absl::NotFoundError("no such session");
        },
        [&](const SearchAgain& search) {
          return RunSearchAgain(search, tools_);
        },
        findings);
  }

  const Remedy* Find(const Finding& finding, Lever lever) {
    for (const Remedy& remedy : finding.remedies) {
      if (remedy.lever == lever) return &remedy;
    }
    return nullptr;
  }

  const std::string folder_ =
      JoinPath(::testing::TempDir(),
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
  SearchTools tools_;
};

TEST_F(TryRemediesTest, ASearchThatWasCutShortGoesOn) {
  const proto::Session session = TuneCommand(kCommand, 48);
  ASSERT_EQ(tuning::CanonicalText(session.winner()), "i=4,o=12");
  std::vector<Finding> findings =
      tracker::FindFaults({tracker::AnalyzeSession(session)});
  ASSERT_EQ(findings.size(), 1);
  ASSERT_EQ(findings[0].kind, FindingKind::kDoesNotConverge);
  const std::vector<proto::Diagnosis> records = Try(session, &findings);

  // The winner costs 106; twice the trials find 58, a wider range 34.
  const Remedy* const budget = Find(findings[0], Lever::kBudget);
  ASSERT_NE(budget, nullptr);
  ASSERT_TRUE(budget->realised.has_value()) << budget->outcome;
  EXPECT_NEAR(budget->realised->value, 1 - 58. / 106, 1e-3);
  EXPECT_THAT(budget->outcome, HasSubstr("found i=4,o=16"));
  // After half of its trials the best cost 238.
  EXPECT_NEAR(budget->predicted->high, 1 - 106. / 238, 1e-3);
  EXPECT_GT(budget->predicted->value, budget->predicted->low);
  EXPECT_LT(budget->predicted->value, budget->predicted->high);

  const Remedy* const range = Find(findings[0], Lever::kKnobRange);
  ASSERT_NE(range, nullptr);
  ASSERT_TRUE(range->realised.has_value()) << range->outcome;
  EXPECT_NEAR(range->realised->value, 1 - 34. / 106, 1e-3);
  const Remedy* const strategy = Find(findings[0], Lever::kStrategy);
  ASSERT_NE(strategy, nullptr);
  ASSERT_TRUE(strategy->realised.has_value()) << strategy->outcome;
  EXPECT_NEAR(strategy->realised->value, 1 - 58. / 106, 1e-3);

  ASSERT_EQ(records.size(), 1);
  EXPECT_EQ(records[0].causes(0).chain(0).class_name(), "does_not_converge");
  EXPECT_EQ(tuning::CanonicalText(records[0].config()), "i=4,o=12");
  ASSERT_EQ(records[0].advice_size(), 3);
  EXPECT_EQ(records[0].advice(0).predicted_gain(), budget->predicted->value);
  EXPECT_EQ(records[0].advice(0).realised_gain(), budget->realised->value);
  EXPECT_THAT(tracker::CalibrationTable(records).Format(OutputFormat::kCsv),
              HasSubstr("does_not_converge,3,3,"));
}

TEST_F(TryRemediesTest, ASearchThatTriedNothingIsNoTry) {
  const proto::Session session = TuneCommand(kCommand, 64);
  ASSERT_EQ(session.trials_size(), 64);
  Finding finding;
  finding.kind = FindingKind::kConvergedToWorse;
  finding.session_ids = {session.session_id()};
  finding.remedies = {{Lever::kBudget, "--trials=128",
                       tracker::SearchChange{"", 128, ""},
                       tracker::RemedyGain{.2, 0, .4}}};
  std::vector<Finding> findings = {finding};
  const std::vector<proto::Diagnosis> records = Try(session, &findings);
  const Remedy& remedy = findings[0].remedies[0];
  EXPECT_FALSE(remedy.realised.has_value());
  EXPECT_THAT(remedy.outcome, HasSubstr("not tried: the session had measured"));
  EXPECT_THAT(tracker::CalibrationTable(records).Format(OutputFormat::kCsv),
              HasSubstr("converged_to_worse,1,0,"));
}

TEST_F(TryRemediesTest, AConstraintSparesTheTrialsThatFail) {
  std::string command = kCommand;
  command.replace(command.find("{o} = 99"), 8, "{o} -gt 3");
  const proto::Session session = TuneCommand(command, 64);
  std::vector<Finding> findings =
      tracker::FindFaults({tracker::AnalyzeSession(session)});
  ASSERT_EQ(findings.size(), 1);
  ASSERT_EQ(findings[0].kind, FindingKind::kMostTrialsFail);
  Try(session, &findings);
  const Remedy* const constraint = Find(findings[0], Lever::kConstraint);
  ASSERT_NE(constraint, nullptr);
  // All that works was found already, so there is nothing to try.
  EXPECT_FALSE(constraint->realised.has_value());
  EXPECT_THAT(constraint->outcome, HasSubstr("not tried: the session had"));
}

TEST(RealisedGainTest, IsTheShareOfTheCostThatGoes) {
  proto::Session session;
  EXPECT_FALSE(RealisedGain(session).ok());
  session.mutable_winner()->add_set()->set_knob("x");
  proto::Proof& proof = *session.mutable_proof();
  proof.set_gain(.25);
  proof.set_gain_low(.2);
  proof.set_gain_high(1);
  EXPECT_EQ(RealisedGain(session)->value, 0) << "nothing was claimed";
  proof.set_claimed(true);
  EXPECT_DOUBLE_EQ(RealisedGain(session)->value, .25);
  EXPECT_DOUBLE_EQ(RealisedGain(session)->low, .2);
  session.add_objectives()->set_direction(proto::HIGHER_IS_BETTER);
  EXPECT_DOUBLE_EQ(RealisedGain(session)->value, .2);
  EXPECT_DOUBLE_EQ(RealisedGain(session)->high, .5);
}

TEST_F(TryRemediesTest, WhatAPersonHasToApplyIsNotTried) {
  const proto::Session session = TuneCommand(kCommand, 4);
  std::vector<Finding> findings(1);
  findings[0].kind = FindingKind::kMostTrialsContended;
  findings[0].session_ids = {session.session_id()};
  findings[0].evidence = {"busy"};
  findings[0].remedies = {{Lever::kMeasurement, "tune when it is idle"}};
  const std::vector<proto::Diagnosis> records = Try(session, &findings);
  EXPECT_FALSE(findings[0].remedies[0].realised.has_value());
  EXPECT_THAT(findings[0].remedies[0].outcome, HasSubstr("a person"));
  EXPECT_FALSE(records[0].advice(0).has_realised_gain());
}

TEST_F(TryRemediesTest, AGainWouldNotBeTheRemedysElsewhereOrOfAnotherProgram) {
  proto::Session session = TuneCommand(kCommand, 4);
  SearchAgain search = {session, session.space_textproto(), 4, "random"};
  search.session.mutable_task()->set_hardware_id("another");
  EXPECT_THAT(std::string(RunSearchAgain(search, tools_).status().message()),
              HasSubstr("the session is of another"));
  const std::string program = JoinPath(folder_, "program.sh");
  ASSERT_TRUE(WriteFileAtomically(program, "echo '{\"cost\": 1}'").ok());
  session = TuneCommand("sh " + program + " {o} {i}", 4);
  search = {session, session.space_textproto(), 4, "random"};
  EXPECT_TRUE(RunSearchAgain(search, tools_).ok());
  ASSERT_TRUE(WriteFileAtomically(program, "echo '{\"cost\": 2}'").ok());
  EXPECT_THAT(std::string(RunSearchAgain(search, tools_).status().message()),
              HasSubstr("program.sh has changed"));
}

TEST_F(TryRemediesTest, AnOperatorIsSearchedInTheChangedSpace) {
  suites::TaskSelection selection;
  selection.op_regex = "add";
  selection.shape_regex = "n=3000/f32";
  const auto tasks = suites::SelectTasks(selection, tools_.context.hardware);
  ASSERT_TRUE(tasks.ok()) << tasks.status();
  suites::TuneDriverOptions tune = tools_.tune;
  tune.tune.strategy = "random";
  tune.tune.budget.set_trials(2);
  tune.keep = false;
  tune.retune = true;
  const auto summaries = suites::TuneTasks(*tasks, tools_.context, tune);
  ASSERT_TRUE(summaries.ok()) << summaries.status();
  ASSERT_TRUE((*summaries)[0].session.has_value()) << (*summaries)[0].error;
  const proto::Session& session = *(*summaries)[0].session;

  SearchAgain search = {session, session.space_textproto() + "\n# changed", 3,
                        "random"};
  const auto found = RunSearchAgain(search, tools_);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->space_textproto(), search.space_textproto);
  EXPECT_EQ(found->trials_size() - found->warm_start_trial_count(), 3);
  EXPECT_EQ(found->seed(), session.seed() + 1);

  search.session.mutable_task()->set_kernel_id("former");
  EXPECT_THAT(std::string(RunSearchAgain(search, tools_).status().message()),
              HasSubstr("the kernel has changed"));
}

}  // namespace
}  // namespace optrail::diagnosis

// Workers are this binary, too.
int main(int argc, char** argv) {
  if (optrail::suites::IsWorker(argc, argv)) {
    return optrail::suites::RunWorker(argc, argv);
  }
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
