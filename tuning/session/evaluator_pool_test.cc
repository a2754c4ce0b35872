// Several scripted nodes as one evaluator: what they answer is a function of
// the request, so that a session over nodes can be held against one machine.

#include "tuning/session/evaluator_pool.h"

#include <unistd.h>

#include <filesystem>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"
#include "tuning/search/strategies.h"
#include "tuning/session/node_calibration.h"
#include "tuning/session/session.h"
#include "tuning/session/session_journal.h"
#include "tuning/space/space.h"

namespace optrail::tuning {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kSpace[] = R"(
knob { name: "tile"   pow2 { min: 1 max: 128 } }
knob { name: "unroll" ints: [1, 2, 3, 4, 5, 6, 7, 8] }
default { set { knob: "tile" int: 1 } set { knob: "unroll" int: 1 } }
)";

// A node as a test sets it up, and counts of the requests that it answered.
struct Script {
  std::string host;
  double slower = 1;            // times what the others take
  double calibration = 1;       // the same, of the calibration loop
  int answers_until_gone = -1;  // -1: never
  bool is_reachable = true;
  std::string hardware_id = "scripted-hardware";
  std::string device_uuid;
  // Seen.
  int searched = 0, ranked = 0, proved = 0, calibrated = 0;
  std::set<int64_t> in_flight;
};

// All that waits is answered by the next poll, in order.
class Scripted : public Evaluator {
 public:
  explicit Scripted(Script* script, int slots = 1)
      : script_(script), slots_(slots) {}

  absl::StatusOr<Offer> Open(const proto::Task& task) override {
    if (!script_->is_reachable) return absl::UnavailableError("nobody there");
    Offer offer;
    offer.set_measure_slots(slots_);
    proto::MeasuringNode node;
    node.set_host(script_->host);
    node.set_hardware_id(script_->hardware_id);
    *offer.add_nodes() = node;
    return offer;
  }
  void Submit(Request request) override {
    script_->in_flight.insert(request.ticket());
    waiting_.push_back(std::move(request));
  }
  std::vector<Evaluation> Poll(absl::Duration wait) override {
    std::vector<Evaluation> answers;
    for (const Request& request : std::exchange(waiting_, {})) {
      script_->in_flight.erase(request.ticket());
      answers.push_back(AnswerOf(request));
    }
    return answers;
  }
  void Cancel(int64_t ticket) override {}

 private:
  Evaluation AnswerOf(const Request& request) {
    Evaluation answer;
    answer.set_ticket(request.ticket());
    proto::Trial& trial = *answer.mutable_trial();
    if (script_->answers_until_gone == 0) {
      answer.set_lost(true);
      trial.set_detail("the cable is out");
      return answer;
    }
    if (script_->answers_until_gone > 0) --script_->answers_until_gone;
    const bool calibrates = request.ticket() < 0;
    (calibrates                             ? script_->calibrated
     : request.purpose() == Request::SEARCH ? script_->searched
     : request.purpose() == Request::RANK   ? script_->ranked
                                            : script_->proved)++;
    const std::string text = CanonicalText(request.config());
    uint64_t hash = 1469598103934665603u;
    for (const char c : absl::StrCat(
             text, "/",
             request.purpose() == Request::SEARCH ? 0 : request.round())) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    }
    // The config decides, and the round a little.
    Rng of_config(std::hash<std::string>()(text)), of_round(hash);
    const double time_ns = 1e5 * script_->slower *
                           (1 + 7 * of_config.UniformReal()) *
                           (1 + .004 * of_round.UniformReal());
    *trial.mutable_config() = request.config();
    trial.set_elapsed_ns(1'000'000);
    trial.set_outcome(request.has_hopeless_above() &&
                              time_ns > request.hopeless_above()
                          ? proto::CENSORED
                          : proto::OK);
    trial.set_time_ns(time_ns);
    proto::Measurement* measurement = trial.add_measurements();
    measurement->set_median_ns(time_ns);
    proto::Conditions& conditions = *measurement->mutable_conditions();
    conditions.set_host(script_->host);
    conditions.set_device_uuid(script_->device_uuid);
    proto::Calibration* loop = conditions.add_calibrations();
    loop->set_loop("arithmetic");
    loop->set_time_ns(100 * script_->calibration);
    return answer;
  }

  Script* const script_;
  const int slots_;
  std::vector<Request> waiting_;
};

class EvaluatorPoolTest : public ::testing::Test {
 protected:
  EvaluatorPoolTest() {
    space_ = std::make_unique<Space>(*Space::Parse(kSpace, "test"));
    bound_ = *space_->Bind(*ParseShape("n=8/f32"), proto::Hardware());
    setup_.header.set_session_id("20261128T000000Z-1");
    setup_.header.mutable_task()->set_operator_name("scripted");
    setup_.header.mutable_task()->set_hardware_id("scripted-hardware");
    setup_.header.set_space_hash(space_->hash());
    setup_.header.set_strategy("random");
    setup_.header.set_seed(1);
    setup_.header.mutable_budget()->set_trials(24);
    setup_.default_config = bound_->default_config();
    setup_.propose = [this](const proto::Session& begun, int batch) {
      ProposerOptions options;
      options.batch = batch;
      return MakeProposer(*bound_, begun, options);
    };
    setup_.proof.max_rounds = 20;
    for (int i = 0; i < 3; ++i) scripts_[i].host = absl::StrCat("host", i);
    std::string folder = "/tmp/optrail_XXXXXX";
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  ~EvaluatorPoolTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<EvaluatorPool> Pool(int count) {
    std::vector<EvaluatorPool::Member> members;
    for (int i = 0; i < count; ++i) {
      members.push_back(
          {absl::StrCat("n", i), std::make_unique<Scripted>(&scripts_[i])});
    }
    return std::make_unique<EvaluatorPool>(
        std::move(members), setup_.default_config, clock_,
        [this](const std::string& what) { said_.push_back(what); });
  }

  absl::StatusOr<proto::Session> Run(int count) {
    return RunSession(setup_, *Pool(count), clock_);
  }

  // The session without what says where it was measured.
  static std::string Text(proto::Session session) {
    session.clear_nodes();
    const auto strip = [](auto* measurements) {
      for (proto::Measurement& one : *measurements) {
        one.mutable_conditions()->clear_host();
      }
    };
    for (proto::Trial& trial : *session.mutable_trials()) {
      strip(trial.mutable_measurements());
    }
    for (proto::Finalist& finalist : *session.mutable_finalists()) {
      strip(finalist.mutable_measurements());
    }
    strip(session.mutable_proof()->mutable_candidate_measurements());
    strip(session.mutable_proof()->mutable_default_measurements());
    return session.DebugString();
  }

  // One machine that measures so many at the same time.
  std::string OneMachine(int slots) {
    Script script;
    Scripted one(&script, slots);
    const auto session = RunSession(setup_, one, clock_);
    EXPECT_TRUE(session.ok()) << session.status();
    EXPECT_TRUE(session->has_winner());
    return session.ok() ? Text(*session) : "";
  }

  FakeClock clock_;
  std::unique_ptr<Space> space_;
  std::unique_ptr<BoundSpace> bound_;
  SessionSetup setup_;
  Script scripts_[3];
  std::vector<std::string> said_;
  std::string folder_;
};

TEST_F(EvaluatorPoolTest, NodesGiveTheSessionOfOneMachineWithAsManySlots) {
  for (const std::string& strategy : StrategyNames()) {
    setup_.header.set_strategy(strategy);
    for (const int count : {1, 2, 3}) {
      const auto session = Run(count);
      ASSERT_TRUE(session.ok()) << session.status();
      EXPECT_EQ(Text(*session), OneMachine(count)) << strategy << count;
    }
  }
}

TEST_F(EvaluatorPoolTest, ManyNodesFindTheWinnerOfOneMachine) {
  // A random search asks for the same configs, whoever answers first.
  Script script;
  Scripted alone(&script);
  const proto::Session one = *RunSession(setup_, alone, clock_);
  const proto::Session three = *Run(3);
  EXPECT_EQ(CanonicalText(one.winner()), CanonicalText(three.winner()));
  EXPECT_EQ(one.trials_size(), three.trials_size());
}

TEST_F(EvaluatorPoolTest, AllSearchAndOneRanksAndProves) {
  const auto session = Run(3);
  ASSERT_TRUE(session.ok()) << session.status();
  for (const Script& script : scripts_) EXPECT_EQ(script.searched, 8);
  EXPECT_GT(scripts_[0].ranked, 0);
  EXPECT_GT(scripts_[0].proved, 0);
  for (const int other : {1, 2}) {
    EXPECT_EQ(scripts_[other].ranked + scripts_[other].proved, 0);
    EXPECT_GE(scripts_[other].calibrated, kFewestCalibrations);
  }
  ASSERT_EQ(session->nodes_size(), 3);
  EXPECT_TRUE(session->nodes(0).proves());
  EXPECT_TRUE(session->nodes(2).searches());
  std::set<std::string> hosts;
  for (const proto::Trial& trial : session->trials()) {
    hosts.insert(trial.measurements(0).conditions().host());
  }
  EXPECT_THAT(hosts, ElementsAre("host0", "host1", "host2"));
  for (const auto& reading : session->proof().candidate_measurements()) {
    EXPECT_EQ(reading.conditions().host(), "host0");
  }
}

TEST_F(EvaluatorPoolTest, ANodeThatDiffersIsReportedAndSearchesNothing) {
  scripts_[1].slower = 1.1;
  const auto session = Run(3);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(scripts_[1].searched, 0);
  EXPECT_EQ(session->nodes(1).verdict(), proto::NODE_DIFFERS);
  EXPECT_NEAR(session->nodes(1).ratio(), 1.1, .01);
  ASSERT_EQ(said_.size(), 2);
  EXPECT_THAT(said_[0], HasSubstr("node n1 (host1): told apart"));
  EXPECT_EQ(said_[1], "2 of 3 nodes search, n0 ranks and proves");
}

TEST_F(EvaluatorPoolTest, WhereTheFirstDiffersAnotherOneProves) {
  scripts_[0].slower = scripts_[0].calibration = 1.1;
  const auto session = Run(3);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->nodes(0).verdict(), proto::NODE_DIFFERS_AS_CALIBRATED);
  EXPECT_TRUE(session->nodes(1).proves());
  EXPECT_GT(scripts_[1].proved, 0);
  EXPECT_EQ(scripts_[0].searched, 0);
}

TEST_F(EvaluatorPoolTest, WhatAGoneNodeHadGoesToAnotherOne) {
  scripts_[1].answers_until_gone = kMostCalibrations + 2;
  const auto session = Run(2);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->trials_size(), 24);
  EXPECT_LT(scripts_[1].searched, 12);
  EXPECT_EQ(scripts_[0].searched + scripts_[1].searched, 24);
  EXPECT_THAT(said_.back(),
              HasSubstr("n1 is left out from now on: the cable is out"));
  EXPECT_TRUE(session->has_winner());
  EXPECT_EQ(session->nodes(0).lost_because(), "");
  EXPECT_EQ(session->nodes(1).lost_because(), "the cable is out");
  EXPECT_EQ(session->nodes(1).detail(), "");
  EXPECT_THAT(NodeText(session->nodes(1)),
              HasSubstr("lost during the search: the cable is out"));
}

// A node that was lost may stand otherwise in the next sitting, and one that
// stood otherwise may be lost in it: neither reason replaces the other.
TEST_F(EvaluatorPoolTest, WhyANodeWasLostStaysApartFromHowItStands) {
  proto::Session header = setup_.header;
  proto::MeasuringNode& node = *header.add_nodes();
  node.set_name("n1");
  node.set_host("host1");
  const auto sitting = [&](proto::NodeVerdict verdict,
                           const std::string& detail, const char* lost) {
    node.set_verdict(verdict);
    node.set_detail(detail);
    auto journal = SessionJournal::Open(folder_, header);
    EXPECT_TRUE(journal.ok()) << journal.status();
    EXPECT_TRUE((*journal)->BeginSitting(header).ok());
    if (lost != nullptr) {
      proto::MeasuringNode gone = node;
      gone.set_lost_because(lost);
      EXPECT_TRUE((*journal)->AppendLostNode(gone).ok());
    }
    EXPECT_EQ((*journal)->header().nodes_size(), 1);
    return (*journal)->header().nodes(0);
  };
  sitting(proto::NODE_UNREACHED, "nobody there", nullptr);
  proto::MeasuringNode now = sitting(proto::NODE_EQUAL, "", "no power");
  EXPECT_EQ(now.detail(), "");
  EXPECT_EQ(now.lost_because(), "no power");
  now = sitting(proto::NODE_DIFFERS, "", nullptr);
  EXPECT_EQ(now.detail(), "");
  EXPECT_EQ(now.lost_because(), "no power");
  EXPECT_THAT(NodeText(now), HasSubstr("lost during the search: no power"));
  now = sitting(proto::NODE_FAILED, "it crashed", nullptr);
  EXPECT_EQ(now.detail(), "it crashed");
  EXPECT_EQ(now.lost_because(), "no power");
  EXPECT_THAT(NodeText(now), HasSubstr("left out: it crashed"));
}

TEST_F(EvaluatorPoolTest, WhenAllAreGoneTheSessionSaysSo) {
  for (Script& script : scripts_) {
    script.answers_until_gone = kMostCalibrations + 2;
  }
  const auto session = Run(3);
  EXPECT_EQ(session.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(session.status().message()),
              HasSubstr("the cable is out"));
}

TEST_F(EvaluatorPoolTest, WhoIsNotThereIsLeftOutUnlessNobodyIs) {
  scripts_[0].is_reachable = false;
  const auto session = Run(2);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->nodes(0).verdict(), proto::NODE_UNREACHED);
  EXPECT_EQ(session->nodes(0).detail(), "nobody there");
  EXPECT_TRUE(session->nodes(1).proves());
  scripts_[1].is_reachable = false;
  EXPECT_EQ(Run(2).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(EvaluatorPoolTest, OtherHardwareIsRefusedByName) {
  scripts_[1].hardware_id = "other-hardware";
  EXPECT_EQ(Run(2).status().message(),
            "the node n1 is of another hardware: other-hardware, expected "
            "scripted-hardware");
}

// The node that read finalists reads the rest of them, in whatever order the
// nodes are given then.
TEST_F(EvaluatorPoolTest, AProofGoesOnWhereItBegan) {
  setup_.journal_directory = folder_;
  scripts_[0].answers_until_gone = kFewestCalibrations + 12 + 6;
  ASSERT_FALSE(Run(2).ok());
  ASSERT_GT(scripts_[0].ranked, 0);
  std::swap(scripts_[0], scripts_[1]);
  for (Script& script : scripts_) script.answers_until_gone = -1;
  scripts_[0].ranked = scripts_[0].proved = 0;
  const auto session = Run(2);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(scripts_[0].ranked + scripts_[0].proved, 0);
  EXPECT_GT(scripts_[1].proved, 0);
  EXPECT_EQ(session->sittings(), 2);
  int proving = 0;
  for (const proto::MeasuringNode& node : session->nodes()) {
    proving += node.proves();
    EXPECT_TRUE(!node.proves() || node.host() == "host0");
  }
  EXPECT_EQ(proving, 1);
}

TEST_F(EvaluatorPoolTest, WithoutThatNodeTheSessionSaysWhatToDo) {
  setup_.journal_directory = folder_;
  scripts_[0].answers_until_gone = kFewestCalibrations + 12 + 6;
  ASSERT_FALSE(Run(2).ok());
  scripts_[0].answers_until_gone = -1;
  scripts_[0].host = "stranger";
  const absl::Status refused = Run(2).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("were read on host0, where the others have to be read, "
                        "too: none of the 2 nodes is host0; next: "));
}

// Its connection stalls without an end.
TEST_F(EvaluatorPoolTest, WhatASilentNodeHadGoesToAnotherOne) {
  class Silent : public Scripted {
   public:
    Silent(Script* script, FakeClock* clock)
        : Scripted(script), script_(script), clock_(clock) {}
    std::vector<Evaluation> Poll(absl::Duration wait) override {
      if (script_->searched < 3) return Scripted::Poll(wait);
      clock_->Advance(absl::Minutes(1));
      return {};
    }

   private:
    Script* const script_;
    FakeClock* const clock_;
  };
  // The other one answers now and then, so that somebody waits.
  class Slow : public Scripted {
   public:
    using Scripted::Scripted;
    std::vector<Evaluation> Poll(absl::Duration wait) override {
      if (++polls_ % 3 != 0) return {};
      return Scripted::Poll(wait);
    }

   private:
    int polls_ = 0;
  };
  std::vector<EvaluatorPool::Member> members;
  members.push_back({"n0", std::make_unique<Slow>(&scripts_[0])});
  members.push_back({"n1", std::make_unique<Silent>(&scripts_[1], &clock_)});
  EvaluatorPool pool(
      std::move(members), setup_.default_config, clock_,
      [this](const std::string& what) { said_.push_back(what); });
  const auto session = RunSession(setup_, pool, clock_);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->trials_size(), 24);
  EXPECT_EQ(scripts_[0].searched, 21);
  EXPECT_THAT(said_.back(),
              HasSubstr("n1 is left out from now on: it has been silent"));
}

// A connection that stalls: it answers so many requests, and then none, while
// each look at it takes a minute.
class Stalling : public Scripted {
 public:
  Stalling(Script* script, FakeClock* clock, int answers = 0)
      : Scripted(script), script_(script), clock_(clock), answers_(answers) {}
  std::vector<Evaluation> Poll(absl::Duration wait) override {
    if (script_->calibrated < answers_) return Scripted::Poll(wait);
    clock_->Advance(absl::Minutes(1));
    return {};
  }

 private:
  Script* const script_;
  FakeClock* const clock_;
  const int answers_;
};

TEST_F(EvaluatorPoolTest, ANodeThatStallsInCalibrationIsLeftOut) {
  for (const int answers : {0, 2}) {
    scripts_[1].calibrated = 0;
    std::vector<EvaluatorPool::Member> members;
    members.push_back({"n0", std::make_unique<Scripted>(&scripts_[0])});
    members.push_back(
        {"n1", std::make_unique<Stalling>(&scripts_[1], &clock_, answers)});
    EvaluatorPool pool(std::move(members), setup_.default_config, clock_, {});
    const auto offer = pool.Open(setup_.header.task());
    ASSERT_TRUE(offer.ok()) << offer.status();
    EXPECT_TRUE(offer->nodes(0).proves());
    EXPECT_EQ(offer->nodes(1).verdict(), proto::NODE_UNREACHED);
    EXPECT_EQ(offer->nodes(1).detail(),
              "no answer to the default config in 5m");
    EXPECT_FALSE(offer->nodes(1).searches());
    // A proof there would never end.
    EXPECT_FALSE(pool.ProveOn("host1", "").ok());
  }
}

TEST_F(EvaluatorPoolTest, WhenAllStallInCalibrationNobodyIsThere) {
  std::vector<EvaluatorPool::Member> members;
  members.push_back({"n0", std::make_unique<Stalling>(&scripts_[0], &clock_)});
  members.push_back({"n1", std::make_unique<Stalling>(&scripts_[1], &clock_)});
  EvaluatorPool pool(std::move(members), setup_.default_config, clock_, {});
  const absl::Status status = pool.Open(setup_.header.task()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(),
            "node n0 (host0): left out: no answer to the default config in 5m");
}

TEST_F(EvaluatorPoolTest, ASilentNodeIsFoundWhileTheOtherOneAnswers) {
  std::vector<EvaluatorPool::Member> members;
  members.push_back({"n0", std::make_unique<Scripted>(&scripts_[0])});
  members.push_back({"n1", std::make_unique<Stalling>(&scripts_[1], &clock_,
                                                      kFewestCalibrations)});
  scripts_[1].slower = 1;
  EvaluatorPool pool(
      std::move(members), setup_.default_config, clock_,
      [this](const std::string& what) { said_.push_back(what); });
  ASSERT_TRUE(pool.Open(setup_.header.task()).ok());
  Request request;
  *request.mutable_config() = setup_.default_config;
  request.set_purpose(Request::SEARCH);
  for (const int64_t ticket : {1, 2}) {
    request.set_ticket(ticket);
    pool.Submit(request);
  }
  std::set<int64_t> answered;
  // In each turn one node has an answer, so that nobody ever waits.
  for (int turn = 0; turn < 12; ++turn) {
    for (const Evaluation& answer : pool.Poll(absl::ZeroDuration())) {
      answered.insert(answer.ticket());
    }
    request.set_ticket(3 + turn);
    pool.Submit(request);
  }
  EXPECT_EQ(answered.count(1) + answered.count(2), 2);
  EXPECT_THAT(said_.back(),
              HasSubstr("n1 is left out from now on: it has been silent"));
}

// The record has the nodes of all sittings, and one of them proves.
TEST_F(EvaluatorPoolTest, NodesOfEverySittingAreKept) {
  setup_.journal_directory = folder_;
  const auto interrupted = [this](int count) {
    for (Script& script : scripts_) {
      script.answers_until_gone = kFewestCalibrations + 2;
    }
    ASSERT_FALSE(Run(count).ok());
    for (Script& script : scripts_) script.answers_until_gone = -1;
  };
  interrupted(2);
  scripts_[0].host = "second0";
  scripts_[1].host = "second1";
  interrupted(2);
  // A single worker goes on.
  scripts_[0].host = "third";
  const auto session = Run(1);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->sittings(), 3);
  std::vector<std::string> hosts, proving;
  for (const proto::MeasuringNode& node : session->nodes()) {
    hosts.push_back(node.host());
    EXPECT_TRUE(node.searches()) << node.host();
    if (node.proves()) proving.push_back(node.host());
  }
  EXPECT_THAT(hosts,
              ElementsAre("host0", "host1", "second0", "second1", "third"));
  EXPECT_THAT(proving, ElementsAre("third"));
}

// A worker cannot say before which device of its host it measures on.
TEST_F(EvaluatorPoolTest, AProofDoesNotGoOnAtAnotherDevice) {
  setup_.journal_directory = folder_;
  scripts_[0].device_uuid = "01";
  scripts_[0].answers_until_gone = 24 + 6;
  Scripted first(&scripts_[0]);
  ASSERT_FALSE(RunSession(setup_, first, clock_).ok());
  ASSERT_GT(scripts_[0].ranked, 0);
  scripts_[0].answers_until_gone = -1;
  scripts_[0].device_uuid = "02";
  Scripted second(&scripts_[0]);
  const absl::Status refused = RunSession(setup_, second, clock_).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("a reading is of host0, device 02, expected host0, "
                        "device 01; next: "));
  scripts_[0].device_uuid = "01";
  Scripted third(&scripts_[0]);
  EXPECT_TRUE(RunSession(setup_, third, clock_).ok());
}

TEST_F(EvaluatorPoolTest, ARefusedSittingLeavesNoRecord) {
  setup_.journal_directory = folder_;
  scripts_[0].answers_until_gone = kFewestCalibrations + 12 + 6;
  ASSERT_FALSE(Run(2).ok());
  scripts_[0].answers_until_gone = -1;
  scripts_[0].host = "stranger";
  ASSERT_FALSE(Run(2).ok());
  scripts_[0].host = "host0";
  const auto session = Run(2);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->sittings(), 2);
  EXPECT_EQ(session->nodes_size(), 2);
}

// Nodes open at the same time: that part of the time is unpaid once.
TEST_F(EvaluatorPoolTest, UnpaidTimeIsThatOfTheClock) {
  class Unpaid : public Scripted {
   public:
    using Scripted::Scripted;
    std::vector<Evaluation> Poll(absl::Duration wait) override {
      auto answers = Scripted::Poll(wait);
      for (Evaluation& answer : answers) answer.set_unpaid_ns(100);
      return answers;
    }
  };
  std::vector<EvaluatorPool::Member> members;
  for (int i = 0; i < 2; ++i) {
    members.push_back(
        {absl::StrCat("n", i), std::make_unique<Unpaid>(&scripts_[i])});
  }
  EvaluatorPool pool(std::move(members), setup_.default_config, clock_, {});
  ASSERT_TRUE(pool.Open(setup_.header.task()).ok());
  for (const int64_t ticket : {1, 2}) {
    Request request;
    request.set_ticket(ticket);
    request.set_purpose(Request::SEARCH);
    *request.mutable_config() = setup_.default_config;
    pool.Submit(request);
  }
  clock_.AdvanceNs(130);
  const std::vector<Evaluation> answers = pool.Poll(absl::InfiniteDuration());
  ASSERT_EQ(answers.size(), 2);
  EXPECT_EQ(answers[0].unpaid_ns(), 100);
  EXPECT_EQ(answers[1].unpaid_ns(), 0);
}

}  // namespace
}  // namespace optrail::tuning
