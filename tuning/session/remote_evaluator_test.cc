#include "tuning/session/remote_evaluator.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/process/socket.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"
#include "tuning/session/session.h"

namespace optrail::tuning {
namespace {

using ::testing::HasSubstr;

constexpr char kServeFlag[] = "--serve=";
constexpr char kSpace[] = R"(
knob { name: "tile"   pow2 { min: 1 max: 128 } }
knob { name: "unroll" ints: [1, 2, 3, 4, 5, 6, 7, 8] }
default { set { knob: "tile" int: 1 } set { knob: "unroll" int: 1 } }
)";

// The same answers wherever it runs.
class Scripted : public OneAtATime {
 public:
  Evaluation Evaluate(const Request& request) override {
    const std::string text = CanonicalText(request.config());
    uint64_t hash = 1469598103934665603u;
    for (const char c : absl::StrCat(
             text, "/",
             request.purpose() == Request::SEARCH ? 0 : request.round())) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    }
    Rng rng(hash);
    Evaluation answer;
    proto::Trial& trial = *answer.mutable_trial();
    trial.set_elapsed_ns(1'000'000);
    if (text == "tile=8,unroll=3") {
      trial.set_outcome(proto::CRASHED);
      trial.set_detail("scripted");
      return answer;
    }
    const double time_ns = 1e5 * (1 + hash % 7) * (1 + .01 * rng.UniformReal());
    trial.set_outcome(request.has_hopeless_above() &&
                              time_ns > request.hopeless_above()
                          ? proto::CENSORED
                          : proto::OK);
    trial.set_time_ns(time_ns);
    trial.add_measurements()->set_median_ns(time_ns);
    return answer;
  }
};

// Takes readings of a round at once: one that comes alone fails.
class Together : public Scripted {
 public:
  absl::StatusOr<Offer> Open(const proto::Task& task) override {
    Offer offer;
    offer.set_begins_ahead(true);
    return offer;
  }
  Evaluation Evaluate(const Request& request) override {
    Evaluation answer = Scripted::Evaluate(request);
    if (request.purpose() != Request::SEARCH && request.of_round() == 1) {
      answer.mutable_trial()->set_outcome(proto::CRASHED);
    }
    return answer;
  }
};

// Breaks the connection after so many answers.
class Breaking : public Scripted {
 public:
  explicit Breaking(int answers) : left_(answers) {}
  Evaluation Evaluate(const Request& request) override {
    if (left_-- == 0) _exit(0);
    return Scripted::Evaluate(request);
  }

 private:
  int left_;
};

proto::WorkerIdentity Who(const std::string& build) {
  proto::WorkerIdentity who;
  who.set_binary_fingerprint(build);
  who.mutable_hardware()->set_id("scripted-hardware");
  who.add_kernel_ids("matmul/cpu=1");
  who.set_host("scripted-host");
  return who;
}

// In the other process: serves on its standard streams, or on a socket, one
// connection (a process) after the other.
int Serve(const std::string& how) {
  DieWithParent();
  const std::vector<std::string> words = absl::StrSplit(how, ',');
  const proto::WorkerIdentity who = Who(words[1]);
  int answers = -1;
  OPTRAIL_CHECK(absl::SimpleAtoi(words[2], &answers));
  if (words[0] == "pipe" || words[0] == "together") {
    Scripted scripted;
    Together together;
    Scripted& served = words[0] == "pipe" ? scripted : together;
    auto channel = FrameChannel::TakeStandardStreams();
    return ServeEvaluator(**channel, served, who).ok() ? 0 : 1;
  }
  const auto listener = ListenOn(words[0]);
  if (!listener.ok()) return 1;
  while (true) {
    const auto fd = AcceptFrom(*listener);
    if (!fd.ok()) return 1;
    if (fork() == 0) {
      Breaking scripted(answers);
      FrameChannel channel(*fd, *fd);
      _exit(ServeEvaluator(channel, scripted, who).ok() ? 0 : 1);
    }
    close(*fd);
  }
}

class RemoteEvaluatorTest : public ::testing::Test {
 protected:
  RemoteEvaluatorTest() {
    space_ = std::make_unique<Space>(*Space::Parse(kSpace, "test"));
    bound_ = *space_->Bind(*ParseShape("n=8/f32"), proto::Hardware());
    setup_.header.set_session_id("20261120T000000Z-1");
    setup_.header.mutable_task()->set_operator_name("scripted");
    setup_.header.mutable_task()->set_hardware_id("scripted-hardware");
    setup_.header.set_space_hash(space_->hash());
    setup_.header.set_strategy("default");
    setup_.header.set_seed(1);
    setup_.header.mutable_budget()->set_trials(16);
    setup_.default_config = bound_->default_config();
    setup_.propose = [this](const proto::Session& begun, int batch) {
      ProposerOptions options;
      options.batch = batch;
      return MakeProposer(*bound_, begun, options);
    };
    setup_.proof.max_rounds = 20;
    socket_ =
        absl::StrCat("unix:/tmp/optrail_test_", getpid(), "_", ++sockets_);
  }
  ~RemoteEvaluatorTest() override {
    for (const pid_t pid : children_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
    unlink(socket_.substr(5).c_str());
  }

  // Another process of this binary, its standard streams as given.
  void Start(const std::string& how, int in, int out) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (in >= 0) posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    if (out >= 0)
      posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    const std::string flag = absl::StrCat(kServeFlag, how);
    char name[] = "worker";
    char* const argv[] = {name, const_cast<char*>(flag.c_str()), nullptr};
    pid_t pid = -1;
    ASSERT_EQ(
        posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, argv, environ),
        0);
    posix_spawn_file_actions_destroy(&actions);
    children_.push_back(pid);
  }

  ConnectFunction ByPipe(const std::string& build,
                         const std::string& how = "pipe") {
    return [=]() -> absl::StatusOr<std::unique_ptr<FrameChannel>> {
      int to[2], from[2];
      OPTRAIL_CHECK(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0);
      Start(absl::StrCat(how, ",", build, ",-1"), to[0], from[1]);
      close(to[0]);
      close(from[1]);
      return std::make_unique<FrameChannel>(from[0], to[1]);
    };
  }

  ConnectFunction BySocket(const std::string& build, int answers = -1) {
    Start(absl::StrCat(socket_, ",", build, ",", answers), -1, -1);
    return [this]() -> absl::StatusOr<std::unique_ptr<FrameChannel>> {
      // It may not listen yet.
      absl::StatusOr<int> fd = ConnectTo(socket_);
      for (int i = 0; i < 2000 && !fd.ok(); ++i) {
        usleep(5000);
        fd = ConnectTo(socket_);
      }
      if (!fd.ok()) return fd.status();
      return std::make_unique<FrameChannel>(*fd, *fd);
    };
  }

  absl::StatusOr<proto::Session> Run(Evaluator& evaluator) {
    FakeClock clock;
    return RunSession(setup_, evaluator, clock);
  }

  static int sockets_;
  std::unique_ptr<Space> space_;
  std::unique_ptr<BoundSpace> bound_;
  SessionSetup setup_;
  std::string socket_;
  std::vector<pid_t> children_;
};

int RemoteEvaluatorTest::sockets_ = 0;

TEST_F(RemoteEvaluatorTest, PipeAndSocketGiveTheSameSessionToTheByte) {
  Scripted here;
  const auto expected = Run(here);
  ASSERT_TRUE(expected.ok()) << expected.status();
  EXPECT_TRUE(expected->has_winner());
  EXPECT_GE(expected->proof().rounds(), 5);

  RemoteEvaluator by_pipe("pipe", ByPipe("one"), Who("one"));
  const auto piped = Run(by_pipe);
  ASSERT_TRUE(piped.ok()) << piped.status();
  EXPECT_TRUE(piped->SerializeAsString() == expected->SerializeAsString());

  RemoteEvaluator by_socket("socket", BySocket("one"), Who("one"));
  const auto socketed = Run(by_socket);
  ASSERT_TRUE(socketed.ok()) << socketed.status();
  EXPECT_TRUE(socketed->SerializeAsString() == expected->SerializeAsString());
}

TEST_F(RemoteEvaluatorTest, WhatIsReadTogetherIsAskedForAtOnceElsewhereToo) {
  Together here;
  const auto expected = Run(here);
  ASSERT_TRUE(expected.ok()) << expected.status();
  RemoteEvaluator there("pipe", ByPipe("one", "together"), Who("one"));
  const auto session = Run(there);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_GE(session->proof().rounds(), 5) << "none was read alone";
  EXPECT_TRUE(session->SerializeAsString() == expected->SerializeAsString());
}

TEST_F(RemoteEvaluatorTest, NothingOfARequestOrAnOfferIsLostOnTheWay) {
  class Recording : public OneAtATime {
   public:
    absl::StatusOr<Offer> Open(const proto::Task&) override { return offered; }
    Evaluation Evaluate(const Request& request) override {
      seen.push_back(request);
      return Evaluation();
    }
    Offer offered;
    std::vector<Request> seen;
  } there;
  there.offered.set_compile_ahead(3);
  there.offered.set_measure_slots(2);
  there.offered.set_begins_ahead(true);
  there.offered.add_costly_metrics("joules");
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  std::thread server([&] {
    FrameChannel channel(fds[1], fds[1]);
    EXPECT_TRUE(ServeEvaluator(channel, there, Who("one")).ok());
  });
  Request full;
  full.set_ticket(7);
  *full.mutable_config() = *ParseConfig("tile=8");
  full.set_purpose(Request::PROVE);
  full.set_round(3);
  full.set_of_round(2);
  full.add_metrics("time");
  full.add_metrics("joules");
  full.set_meter_below_ns(50);
  full.set_hopeless_above(60);
  full.set_expected(70);
  *full.mutable_best() = *ParseConfig("tile=16");
  {
    RemoteEvaluator here(
        "pair", [&] { return std::make_unique<FrameChannel>(fds[0], fds[0]); },
        Who("one"));
    absl::StatusOr<Offer> offer = here.Open({});
    ASSERT_TRUE(offer.ok()) << offer.status();
    EXPECT_EQ(offer->nodes(0).name(), "pair");
    offer->clear_nodes();
    EXPECT_EQ(offer->SerializeAsString(), there.offered.SerializeAsString());
    for (const Request& request : {full, Request()}) {
      here.Submit(request);
      EXPECT_EQ(here.Poll(absl::InfiniteDuration()).size(), 1);
    }
  }
  server.join();
  ASSERT_EQ(there.seen.size(), 2);
  EXPECT_EQ(there.seen[0].SerializeAsString(), full.SerializeAsString());
  EXPECT_EQ(there.seen[1].SerializeAsString(), "");
}

TEST_F(RemoteEvaluatorTest, AWorkerOfAnotherBuildIsRefusedByName) {
  RemoteEvaluator evaluator("gpu7", BySocket("two"), Who("one"));
  const auto session = Run(evaluator);
  EXPECT_EQ(session.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(session.status().message(),
            "the worker gpu7 is of another build: two, expected one");
}

TEST_F(RemoteEvaluatorTest, SoIsOneOfOtherHardwareOrWithoutTheKernel) {
  setup_.header.mutable_task()->set_hardware_id("other-hardware");
  proto::WorkerIdentity expected;
  RemoteEvaluator other("gpu7", BySocket("one"), expected);
  EXPECT_THAT(std::string(Run(other).status().message()),
              HasSubstr("another hardware: scripted-hardware, expected other"));
  setup_.header.mutable_task()->set_hardware_id("scripted-hardware");
  expected.add_kernel_ids("matmul/cpu=2");
  RemoteEvaluator lacking("gpu7", BySocket("one"), expected);
  EXPECT_THAT(std::string(Run(lacking).status().message()),
              HasSubstr("without matmul/cpu=2"));
}

TEST_F(RemoteEvaluatorTest, WhatABrokenConnectionLosesIsSubmittedAgain) {
  Scripted here;
  const auto expected = Run(here);
  ASSERT_TRUE(expected.ok()) << expected.status();
  // Each connection answers four times.
  RemoteEvaluator evaluator("socket", BySocket("one", 4), Who("one"));
  const auto session = Run(evaluator);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_TRUE(session->SerializeAsString() == expected->SerializeAsString());
}

// A session that read finalists elsewhere does not go on here.
TEST_F(RemoteEvaluatorTest, AProofGoesOnAtItsHostAlone) {
  RemoteEvaluator evaluator("gpu7:7070", BySocket("one"), Who("one"));
  ASSERT_TRUE(evaluator.Open(setup_.header.task()).ok());
  EXPECT_TRUE(evaluator.ProveOn("scripted-host", "").ok());
  const absl::Status refused = evaluator.ProveOn("gpu8", "");
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused.message(),
            "the worker gpu7:7070 is scripted-host, expected gpu8");
}

// The worker restarts, and another session is served there first. That one may
// be waiting for a worker that this one holds.
TEST_F(RemoteEvaluatorTest, WhoHoldsOtherWorkersDoesNotWaitForThisOneAgain) {
  int connections = 0;
  std::vector<std::unique_ptr<FrameChannel>> theirs;
  std::thread first;
  const auto connect = [&]() -> absl::StatusOr<std::unique_ptr<FrameChannel>> {
    int fds[2];
    OPTRAIL_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    auto channel = std::make_unique<FrameChannel>(fds[1], fds[1]);
    if (++connections == 1) {
      first = std::thread([served = std::move(channel)] {
        // The first one waits for its turn, and then breaks.
        EXPECT_TRUE(TellToWait(*served, 1).ok());
        EXPECT_TRUE(served->Read().ok());
        proto::EvaluatorReply reply;
        *reply.mutable_opened()->mutable_who() = Who("one");
        EXPECT_TRUE(served->Write(reply.SerializeAsString()).ok());
      });
    } else {
      EXPECT_TRUE(TellToWait(*channel, 1).ok());
      theirs.push_back(std::move(channel));
    }
    return std::make_unique<FrameChannel>(fds[0], fds[0]);
  };
  RemoteEvaluator evaluator("gpu7", connect, Who("one"), {}, IfOccupied::kLose);
  ASSERT_TRUE(evaluator.Open(setup_.header.task()).ok());
  first.join();
  Request request;
  for (const int64_t ticket : {1, 2}) {
    request.set_ticket(ticket);
    evaluator.Submit(request);
    const std::vector<Evaluation> answers = evaluator.Poll(absl::Seconds(10));
    ASSERT_EQ(answers.size(), 1);
    EXPECT_TRUE(answers[0].lost());
    if (connections < 2) continue;
    EXPECT_EQ(answers[0].trial().detail(),
              "the worker gpu7: serves another session since the connection "
              "broke");
  }
  EXPECT_EQ(connections, 2);
}

TEST_F(RemoteEvaluatorTest, NobodyThereIsAnErrorThatNamesTheAddress) {
  RemoteEvaluator evaluator(
      "nobody",
      [this]() -> absl::StatusOr<std::unique_ptr<FrameChannel>> {
        const auto fd = ConnectTo(socket_);
        return fd.status();
      },
      {});
  EXPECT_THAT(std::string(Run(evaluator).status().message()),
              HasSubstr(socket_));
}

}  // namespace
}  // namespace optrail::tuning

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  if (first.rfind(optrail::tuning::kServeFlag, 0) == 0) {
    return optrail::tuning::Serve(
        first.substr(sizeof(optrail::tuning::kServeFlag) - 1));
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
