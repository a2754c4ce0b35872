// Real workers behind a socket, in processes of their own that are killed,
// replaced by others and spoken to in tongues.

#include "suites/tune/elsewhere.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/process/host_name.h"
#include "base/process/socket.h"
#include "base/process/subprocess.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/core/device_type.h"
#include "suites/stopwatch/stopwatch.h"
#include "suites/tune/tune_session.h"
#include "suites/worker/testing/one_by_one_evaluator.h"
#include "suites/worker/worker.h"
#include "suites/workload/tasks.h"

namespace optrail::suites {
namespace {

using ::testing::HasSubstr;

constexpr char kServeFlag[] = "--serve_at=";
constexpr char kDriveFlag[] = "--drive_and_die=";
constexpr int kTrials = 6;
constexpr int kTrialsUntilKilled = 3;

proto::SamplingOptions QuickSampling() {
  proto::SamplingOptions sampling = DefaultSamplingOptions();
  sampling.set_max_time_ns(3'000'000);
  return sampling;
}

// Called in the middle of a session.
using AtTrial = std::function<void(int64_t trials)>;

// The driver's side of a session of `add`, with its journal in `folder`.
class Driver {
 public:
  Driver(std::string address, std::string folder)
      : Driver(std::vector<std::string>{std::move(address)},
               std::move(folder)) {}
  Driver(std::vector<std::string> addresses, std::string folder)
      : addresses_(std::move(addresses)) {
    const proto::Hardware hardware = *ops::HardwareOf(proto::CPU);
    TaskSelection selection;
    selection.op_regex = "add";
    task_ = (*SelectTasks(selection, hardware))[0];
    space_ = *BindTask(task_, hardware);
    options_.strategy = "random";
    options_.budget.set_trials(kTrials);
    options_.finalists = 1;
    options_.rank_rounds = 1;
    options_.proof.max_rounds = 5;
    options_.sampling = QuickSampling();
    options_.journal_directory = std::move(folder);
  }

  absl::StatusOr<proto::Session> Run(AtTrial at_trial = {}) {
    // Nothing is measured here.
    class Nobody : public OneByOneEvaluator {
     public:
      Evaluation EvaluateOne(const proto::Config&,
                             const EvaluationOptions&) override {
        ADD_FAILURE() << "measured in the driver";
        return {};
      }
    } nobody;
    TuneSetup setup;
    *setup.header.mutable_task() = task_.task;
    setup.header.set_session_id("20261121T000000Z-1");
    setup.header.set_space_hash(space_.space->hash());
    setup.space = space_.bound.get();
    setup.elsewhere = [this] {
      return EvaluatorAt(
          addresses_,
          ExpectedOf(task_.task, options_.sampling, worker_options_),
          space_.bound->default_config());
    };
    options_.on_progress = [&](const tuning::TuneProgress& now) {
      if (at_trial) at_trial(now.trials);
    };
    return RunTuneSession(setup, options_, nobody, *Clock::Real());
  }

  TaskEntry task_;
  TaskSpace space_;
  TuneOptions options_;
  WorkerOptions worker_options_;
  const std::vector<std::string> addresses_;
};

// Sends each line to the parent, who waits for the first.
class Lines : public std::stringbuf {
 public:
  explicit Lines(FrameChannel& parent) : parent_(parent) {}
  int sync() override {
    const bool sent = parent_.Write(str()).ok();
    str("");
    return sent ? 0 : -1;
  }

 private:
  FrameChannel& parent_;
};

int Serve(const std::string& address) {
  DieWithParent();
  auto parent = FrameChannel::TakeStandardStreams();
  Lines lines(**parent);
  std::ostream log(&lines);
  ServeOptions options;
  options.address = address;
  options.sampling = QuickSampling();
  const absl::Status status = ServeSessions(options, log);
  log << status.message() << std::endl;
  return 1;
}

// ADDRESS,FOLDER: a driver that is killed in the middle of its session.
int DriveAndDie(const std::string& where) {
  const size_t comma = where.find(',');
  Driver driver(where.substr(0, comma), where.substr(comma + 1));
  (void)driver.Run([](int64_t trials) {
    if (trials == kTrialsUntilKilled) kill(getpid(), SIGKILL);
  });
  return 0;
}

class ElsewhereTest : public ::testing::Test {
 protected:
  ElsewhereTest() {
    std::string folder = "/tmp/optrail_XXXXXX";
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    address_ = absl::StrCat("unix:", folder_, "/worker");
  }
  ~ElsewhereTest() override { std::filesystem::remove_all(folder_); }

  // A worker that is ready; its first words if it is not.
  std::unique_ptr<Subprocess> Start(const std::string& binary,
                                    std::string* words = nullptr) {
    return StartAt(address_, binary, words);
  }
  std::unique_ptr<Subprocess> StartAt(
      const std::string& address, const std::string& binary = "/proc/self/exe",
      std::string* words = nullptr) {
    auto started = Subprocess::Start(
        {binary, absl::StrCat(kServeFlag, address)}, SubprocessOptions());
    EXPECT_TRUE(started.ok()) << started.status();
    const auto line = (*started)->ReadFrame(absl::Minutes(1));
    EXPECT_TRUE(line.ok()) << line.status();
    if (words != nullptr) {
      *words = line.value_or("");
    } else {
      EXPECT_THAT(line.value_or(""),
                  HasSubstr(absl::StrCat("serves at ", address)));
    }
    return *std::move(started);
  }
  std::unique_ptr<Subprocess> Start() { return Start("/proc/self/exe"); }

  std::string folder_;
  std::string address_;
};

void ExpectWhole(const absl::StatusOr<proto::Session>& session, int sittings) {
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->trials_size(), kTrials);
  EXPECT_EQ(session->sittings(), sittings);
  EXPECT_TRUE(session->has_winner());
  for (const proto::Trial& trial : session->trials()) {
    // Measured, by whoever does that.
    if (trial.outcome() != proto::OK) continue;
    EXPECT_GT(trial.time_ns(), 0);
    EXPECT_GT(trial.measurements(0).sample_ns_size(), 0);
  }
}

TEST_F(ElsewhereTest, ASessionIsMeasuredInAnotherProcess) {
  const auto worker = Start();
  ExpectWhole(Driver(address_, folder_ + "/one").Run(), 1);
  // The next one is served, too.
  ExpectWhole(Driver(address_, folder_ + "/two").Run(), 1);
}

TEST_F(ElsewhereTest, WhoComesMeanwhileIsToldAndServedInTurn) {
  const auto worker = Start();
  // Holds the worker until it is closed.
  auto fd = ConnectTo(address_);
  ASSERT_TRUE(fd.ok()) << fd.status();
  auto first = std::make_unique<FrameChannel>(*fd, *fd);
  EXPECT_THAT(worker->ReadFrame(absl::Minutes(1)).value_or(""),
              HasSubstr("a session begins"));
  const auto said = [this](int sessions_before) {
    auto fd = ConnectTo(address_);
    EXPECT_TRUE(fd.ok()) << fd.status();
    auto channel = std::make_unique<FrameChannel>(*fd, *fd);
    proto::EvaluatorReply reply;
    EXPECT_TRUE(channel->WaitReadable(absl::Minutes(1)));
    EXPECT_TRUE(reply.ParseFromString(channel->Read().value_or("")));
    EXPECT_EQ(reply.waiting().sessions_before(), sessions_before);
    return channel;
  };
  auto second = said(1);
  auto third = said(2);
  first.reset();
  second.reset();
  third.reset();
  ExpectWhole(Driver(address_, folder_).Run(), 1);
}

// The driver says so, too, and waits.
TEST_F(ElsewhereTest, ADriverThatHasToWaitSaysSoAndIsServed) {
  const auto worker = Start();
  auto fd = ConnectTo(address_);
  ASSERT_TRUE(fd.ok()) << fd.status();
  auto first = std::make_unique<FrameChannel>(*fd, *fd);
  EXPECT_THAT(worker->ReadFrame(absl::Minutes(1)).value_or(""),
              HasSubstr("a session begins"));
  ::testing::internal::CaptureStderr();
  std::thread driver(
      [this] { ExpectWhole(Driver(address_, folder_).Run(), 1); });
  // Is in the queue once who comes next has one more before him.
  int before = 0;
  for (int probes = 0; before != probes + 1; ++probes) {
    auto fd = ConnectTo(address_);
    ASSERT_TRUE(fd.ok()) << fd.status();
    FrameChannel channel(*fd, *fd);
    proto::EvaluatorReply reply;
    ASSERT_TRUE(reply.ParseFromString(channel.Read().value_or("")));
    before = reply.waiting().sessions_before();
    // The worker tells of each of them, into a pipe that nobody reads.
    absl::SleepFor(absl::Milliseconds(10));
  }
  first.reset();
  driver.join();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("serves one session at a time; waiting for"));
}

TEST_F(ElsewhereTest, AnotherBuildIsRefusedByName) {
  const std::string other = folder_ + "/other_build";
  const auto contents = ReadFile("/proc/self/exe");
  ASSERT_TRUE(contents.ok());
  ASSERT_TRUE(WriteFileAtomically(other, *contents + "x").ok());
  ASSERT_EQ(chmod(other.c_str(), 0700), 0);
  const auto worker = Start(other);
  const auto session = Driver(address_, folder_).Run();
  EXPECT_EQ(session.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      std::string(session.status().message()),
      HasSubstr(absl::StrCat("the worker ", address_, " is of another build")));
}

TEST_F(ElsewhereTest, OtherHardwareIsRefusedByName) {
  const auto worker = Start();
  Driver driver(address_, folder_);
  driver.task_.task.set_hardware_id("nvidia-h200");
  EXPECT_THAT(std::string(driver.Run().status().message()),
              HasSubstr("another hardware"));
}

TEST_F(ElsewhereTest, AnotherKernelIsRefusedByName) {
  const auto worker = Start();
  Driver driver(address_, folder_);
  driver.task_.task.set_kernel_id("0123456789abcdef");
  EXPECT_THAT(std::string(driver.Run().status().message()),
              HasSubstr("without add/cpu=0123456789abcdef"));
}

TEST_F(ElsewhereTest, OtherLimitsAreRefused) {
  const auto worker = Start();
  Driver driver(address_, folder_);
  driver.worker_options_.max_config_bytes /= 2;
  EXPECT_THAT(std::string(driver.Run().status().message()),
              HasSubstr("measures differently: expected max config"));
}

TEST_F(ElsewhereTest, AKilledWorkerIsNamedAndNothingIsLost) {
  auto worker = Start();
  Driver driver(address_, folder_ + "/journals");
  const auto broken = driver.Run([&](int64_t trials) {
    if (trials == kTrialsUntilKilled) (void)worker->KillAndWait();
  });
  EXPECT_EQ(broken.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(broken.status().message()), HasSubstr(address_));
  EXPECT_THAT(std::string(broken.status().message()),
              HasSubstr("goes on from the journal"));
  // At the same address, where the killed one's socket still lies.
  worker = Start();
  int64_t first = 0;
  const auto session = driver.Run([&](int64_t trials) {
    if (first == 0) first = trials;
  });
  ExpectWhole(session, 2);
  EXPECT_GT(first, kTrialsUntilKilled);
}

TEST_F(ElsewhereTest, AKilledDriverIsForgottenByItsWorkerAndLosesNothing) {
  const auto worker = Start();
  const std::string folder = folder_ + "/journals";
  auto dying = Subprocess::Start(
      {"/proc/self/exe", absl::StrCat(kDriveFlag, address_, ",", folder)},
      SubprocessOptions());
  ASSERT_TRUE(dying.ok()) << dying.status();
  EXPECT_FALSE((*dying)->ReadFrame(absl::Minutes(1)).ok());
  dying->reset();
  int64_t first = 0;
  const auto session = Driver(address_, folder).Run([&](int64_t trials) {
    if (first == 0) first = trials;
  });
  ExpectWhole(session, 2);
  EXPECT_GT(first, kTrialsUntilKilled);
}

TEST_F(ElsewhereTest, WhoSpeaksInTonguesIsLeftAndTheNextIsServed) {
  const auto worker = Start();
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(4, '\xff'),
        std::string("\0\0", 2), std::string("\4\0\0\0junk", 8)}) {
    const auto fd = ConnectTo(address_);
    ASSERT_TRUE(fd.ok()) << fd.status();
    EXPECT_EQ(write(*fd, bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
    close(*fd);
  }
  ExpectWhole(Driver(address_, folder_).Run(), 1);
}

TEST_F(ElsewhereTest, AnAddressIsServedByOne) {
  const auto worker = Start();
  std::string words;
  const auto second = Start("/proc/self/exe", &words);
  EXPECT_THAT(words, HasSubstr(absl::StrCat("listening on ", address_)));
  struct stat socket = {};
  ASSERT_EQ(stat(address_.c_str() + 5, &socket), 0);
  EXPECT_EQ(socket.st_mode & 0777, 0600);
  ExpectWhole(Driver(address_, folder_).Run(), 1);
}

// Two nodes of one machine, as two workers.
class TwoWorkersTest : public ElsewhereTest {
 protected:
  TwoWorkersTest() : addresses_{address_ + "1", address_ + "2"} {
    for (const std::string& address : addresses_) {
      workers_.push_back(StartAt(address));
    }
  }

  std::vector<std::string> addresses_;
  std::vector<std::unique_ptr<Subprocess>> workers_;
};

TEST_F(TwoWorkersTest, ASessionSearchesOnBothAndItsSamplesSayWhere) {
  Driver driver(addresses_, folder_ + "/journals");
  const auto session = driver.Run();
  ExpectWhole(session, 1);
  ASSERT_EQ(session->nodes_size(), 2);
  int searching = 0, proving = 0;
  for (const proto::MeasuringNode& node : session->nodes()) {
    EXPECT_EQ(node.host(), HostName());
    EXPECT_EQ(node.hardware_id(), driver.task_.task.hardware_id());
    EXPECT_NE(node.verdict(), proto::NODE_VERDICT_UNSPECIFIED);
    searching += node.searches();
    proving += node.proves();
  }
  // On a machine that others use the two may differ, and be told apart.
  EXPECT_GE(searching, 1);
  EXPECT_EQ(proving, 1);
  for (const proto::Trial& trial : session->trials()) {
    for (const proto::Measurement& measurement : trial.measurements()) {
      EXPECT_EQ(measurement.conditions().host(), HostName());
    }
  }
}

TEST_F(TwoWorkersTest, AWorkerThatIsKilledLeavesTheRestToTheOther) {
  Driver driver(addresses_, folder_ + "/journals");
  const auto session = driver.Run([&](int64_t trials) {
    // The first one proves, unless the machine made the two differ.
    if (trials == kTrialsUntilKilled) (void)workers_[1]->KillAndWait();
  });
  if (session.ok()) {
    ExpectWhole(session, 1);
    return;
  }
  // The second one was to prove: the session waits for it to come back.
  EXPECT_EQ(session.status().code(), absl::StatusCode::kUnavailable);
  workers_[1] = StartAt(addresses_[1]);
  ExpectWhole(driver.Run(), 2);
}

TEST_F(TwoWorkersTest, AWorkerThatIsNotThereIsReportedAndLeftOut) {
  (void)workers_[0]->KillAndWait();
  ::testing::internal::CaptureStderr();
  const auto session = Driver(addresses_, folder_ + "/journals").Run();
  const std::string said = ::testing::internal::GetCapturedStderr();
  ExpectWhole(session, 1);
  EXPECT_EQ(session->nodes(0).verdict(), proto::NODE_UNREACHED);
  EXPECT_TRUE(session->nodes(1).proves());
  EXPECT_THAT(said, HasSubstr(addresses_[0] + ": left out"));
}

// ".invalid" is a name that no resolver knows (RFC 6761).
TEST_F(TwoWorkersTest, AnUnknownNameIsLeftOutLikeAWorkerThatIsNotThere) {
  const auto session =
      Driver({"gpu7.invalid:7070", addresses_[1]}, folder_ + "/journals").Run();
  ExpectWhole(session, 1);
  EXPECT_EQ(session->nodes(0).verdict(), proto::NODE_UNREACHED);
  EXPECT_THAT(session->nodes(0).detail(), HasSubstr("gpu7.invalid"));
  EXPECT_TRUE(session->nodes(1).proves());
  const auto none =
      Driver(std::vector<std::string>{"gpu7.invalid:7070", "gpu8.invalid:7070"},
             folder_ + "/none")
          .Run();
  EXPECT_EQ(none.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("gpu7.invalid"));
}

// Both want both workers, and neither holds one while it waits for the other.
TEST_F(TwoWorkersTest, TwoSessionsOverTheSameWorkersTakeTurns) {
  std::thread other([this] {
    ExpectWhole(Driver({addresses_[1], addresses_[0]}, folder_ + "/one").Run(),
                1);
  });
  ExpectWhole(Driver(addresses_, folder_ + "/two").Run(), 1);
  other.join();
}

TEST(AddressTest, SeveralArePartedByCommasAndEachIsThereOnce) {
  EXPECT_THAT(*ParseWorkerAddresses("unix:/tmp/a, gpu7:7070"),
              ::testing::ElementsAre("unix:/tmp/a", "gpu7:7070"));
  EXPECT_THAT(*ParseWorkerAddresses(""), ::testing::IsEmpty());
  EXPECT_THAT(std::string(ParseWorkerAddresses(":70,:70").status().message()),
              HasSubstr("\":70\" is there twice"));
  EXPECT_FALSE(ParseWorkerAddresses("unix:/tmp/a,").ok());
}

TEST(AddressTest, APortIsANumberFrom1To65535) {
  EXPECT_TRUE(CheckAddress(":1").ok());
  EXPECT_TRUE(CheckAddress("gpu7:65535").ok());
  for (const char* port :
       {"0", "65536", "70000", "abc", "7070x", "-1", "+1", "", "99999999999"}) {
    const absl::Status status = CheckAddress(absl::StrCat("gpu7:", port));
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << port;
    EXPECT_THAT(
        std::string(status.message()),
        HasSubstr(absl::StrCat("the port '", port,
                               "': expected a number from 1 to 65535")));
  }
}

TEST(AddressTest, WhatOthersCanReachIsForeign) {
  EXPECT_FALSE(IsForeign("unix:/tmp/worker"));
  EXPECT_FALSE(IsForeign(":7070"));
  EXPECT_FALSE(IsForeign("127.0.0.1:7070"));
  EXPECT_TRUE(IsForeign("0.0.0.0:7070"));
  EXPECT_TRUE(IsForeign("192.0.2.1:7070"));
}

}  // namespace
}  // namespace optrail::suites

int main(int argc, char** argv) {
  using optrail::suites::kDriveFlag;
  using optrail::suites::kServeFlag;
  if (optrail::suites::IsWorker(argc, argv)) {
    return optrail::suites::RunWorker(argc, argv);
  }
  absl::string_view first = argc > 1 ? argv[1] : "";
  if (absl::ConsumePrefix(&first, kServeFlag)) {
    return optrail::suites::Serve(std::string(first));
  }
  if (absl::ConsumePrefix(&first, kDriveFlag)) {
    return optrail::suites::DriveAndDie(std::string(first));
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
