// This binary is its own worker: it says that it waits for its turn, and for
// how long its one argument tells; asks what is computed elsewhere; or is
// killed.

#include "suites/worker/exchange.h"

#include <csignal>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::suites {
namespace {

using ::testing::HasSubstr;

constexpr char kWaits[] = "--waits_ms", kHangs[] = "--hangs",
               kKilled[] = "--killed", kAsks[] = "--asks";
constexpr absl::Duration kDeadline = absl::Milliseconds(500);

int Serve(FrameChannel& channel, const char* how, int milliseconds) {
  if (!channel.Read().ok()) return 1;
  if (std::strcmp(how, kKilled) == 0) std::raise(SIGKILL);
  const auto tell = [&](proto::WorkerReply::Turn turn) {
    proto::WorkerReply reply;
    reply.set_turn(turn);
    (void)channel.Write(reply.SerializeAsString());
  };
  if (std::strcmp(how, kAsks) == 0) {
    std::string told;
    proto::WorkerReply reply;
    for (int contender = 0; contender < 2; ++contender) {
      reply.mutable_ask_elsewhere()->set_contender(contender);
      reply.mutable_ask_elsewhere()->set_calls(milliseconds);
      (void)channel.Write(reply.SerializeAsString());
      proto::WorkerRequest answer;
      if (const auto frame = channel.Read();
          !frame.ok() || !answer.ParseFromString(*frame)) {
        return 1;
      }
      absl::StrAppend(&told, answer.timed_elsewhere().elapsed_ns(), " ",
                      answer.timed_elsewhere().error(), "; ");
    }
    reply.clear_ask_elsewhere();
    *reply.add_evaluations() = EvaluationOf(proto::OK, told);
    (void)channel.Write(reply.SerializeAsString());
    return 0;
  }
  tell(proto::WorkerReply::WAITS);
  absl::SleepFor(absl::Milliseconds(milliseconds));
  tell(proto::WorkerReply::HAS_IT);
  if (std::strcmp(how, kHangs) == 0) absl::SleepFor(absl::Hours(1));
  proto::WorkerReply reply;
  *reply.add_evaluations() = EvaluationOf(proto::OK);
  (void)channel.Write(reply.SerializeAsString());
  return 0;
}

Exchanged Ask(const char* how, absl::Duration waits) {
  SubprocessOptions options;
  options.stderr_mode = StderrMode::kCapture;
  auto process = Subprocess::Start(
      {"/proc/self/exe", how, std::to_string(absl::ToInt64Milliseconds(waits))},
      options);
  EXPECT_TRUE(process.ok()) << process.status();
  return Exchange(proto::WorkerRequest(), kDeadline, int64_t{1} << 30,
                  **process);
}

// What becomes of a worker that is killed, while the kernel counts what it
// kills from `before` to `after`.
proto::Trial Killed(const std::string& before, const std::string& after) {
  SubprocessOptions options;
  options.kernel_counts = JoinPath(::testing::TempDir(), "vmstat");
  EXPECT_TRUE(WriteFileAtomically(options.kernel_counts, before).ok());
  auto process = Subprocess::Start({"/proc/self/exe", kKilled, "0"}, options);
  EXPECT_TRUE(process.ok()) << process.status();
  EXPECT_TRUE(WriteFileAtomically(options.kernel_counts, after).ok());
  return Exchange(proto::WorkerRequest(), kDeadline, int64_t{1} << 30,
                  **process)
      .evaluations[0]
      .trial();
}

TEST(Exchange, TellsWhatTheKernelKillsForWantOfMemoryFromACrash) {
  const proto::Trial killed = Killed("oom_kill 0\n", "oom_kill 1\n");
  EXPECT_EQ(killed.outcome(), proto::OUT_OF_MEMORY);
  EXPECT_THAT(killed.detail(),
              HasSubstr("the worker was killed by the kernel"));
  EXPECT_EQ(Killed("oom_kill 1\n", "oom_kill 1\n").outcome(), proto::CRASHED);
}

TEST(Exchange, NamesTheLimitOfMemory) {
  SubprocessOptions options;
  options.max_resident_bytes = 1 << 20;  // less than it begins with
  auto process = Subprocess::Start({"/proc/self/exe", kHangs, "0"}, options);
  ASSERT_TRUE(process.ok()) << process.status();
  const proto::Trial trial = Exchange(proto::WorkerRequest(), absl::Minutes(1),
                                      options.max_resident_bytes, **process)
                                 .evaluations[0]
                                 .trial();
  EXPECT_EQ(trial.outcome(), proto::OUT_OF_MEMORY);
  EXPECT_THAT(trial.detail(), HasSubstr("its memory limit of 1.00 MiB"));
}

TEST(Exchange, ADeadlineStandsStillWhileItWaitsForItsTurn) {
  const Exchanged exchanged = Ask(kWaits, 3 * kDeadline);
  EXPECT_TRUE(exchanged.answered);
  EXPECT_TRUE(IsOk(exchanged.evaluations[0]));
}

TEST(Exchange, AsksElsewhereWhatTheWorkerAsksWhileNoDeadlineRuns) {
  SubprocessOptions options;
  options.stderr_mode = StderrMode::kCapture;
  auto process = Subprocess::Start({"/proc/self/exe", kAsks, "7"}, options);
  ASSERT_TRUE(process.ok()) << process.status();
  const Exchanged exchanged =
      Exchange(proto::WorkerRequest(), kDeadline, int64_t{1} << 30, **process,
               [](int contender, int64_t calls) -> absl::StatusOr<int64_t> {
                 if (contender == 1) return absl::UnavailableError("gone");
                 absl::SleepFor(2 * kDeadline);
                 return 1000 * calls;
               });
  EXPECT_TRUE(exchanged.answered);
  EXPECT_EQ(exchanged.evaluations[0].trial().detail(),
            "7000 ; 0 UNAVAILABLE: gone;");
}

TEST(Exchange, NothingIsElsewhereUnlessItIsSaid) {
  SubprocessOptions options;
  options.stderr_mode = StderrMode::kCapture;
  auto process = Subprocess::Start({"/proc/self/exe", kAsks, "7"}, options);
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_THAT(
      Exchange(proto::WorkerRequest(), kDeadline, int64_t{1} << 30, **process)
          .evaluations[0]
          .trial()
          .detail(),
      HasSubstr("nothing is computed elsewhere"));
}

TEST(Exchange, AndGoesOnOnceItHasIt) {
  const Exchanged exchanged = Ask(kHangs, absl::ZeroDuration());
  EXPECT_FALSE(exchanged.answered);
  EXPECT_EQ(exchanged.evaluations[0].trial().outcome(), proto::TIMED_OUT);
  EXPECT_THAT(exchanged.evaluations[0].trial().detail(),
              HasSubstr("within 500ms"));
}

}  // namespace
}  // namespace optrail::suites

int main(int argc, char** argv) {
  using optrail::suites::kAsks;
  using optrail::suites::kHangs;
  using optrail::suites::kKilled;
  using optrail::suites::kWaits;
  if (argc == 3 &&
      (std::strcmp(argv[1], kWaits) == 0 || std::strcmp(argv[1], kHangs) == 0 ||
       std::strcmp(argv[1], kAsks) == 0 ||
       std::strcmp(argv[1], kKilled) == 0)) {
    optrail::DieWithParent();
    auto channel = optrail::FrameChannel::TakeStandardStreams();
    int milliseconds = 0;
    return channel.ok() && absl::SimpleAtoi(argv[2], &milliseconds)
               ? optrail::suites::Serve(**channel, argv[1], milliseconds)
               : 1;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
