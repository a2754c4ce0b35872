// This binary is its own worker: it says that it waits for its turn, and for
// how long its one argument tells.

#include "suites/worker/exchange.h"

#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace optrail::suites {
namespace {

constexpr char kWaits[] = "--waits_ms", kHangs[] = "--hangs";
constexpr absl::Duration kDeadline = absl::Milliseconds(500);

int Serve(FrameChannel& channel, const char* how, int milliseconds) {
  if (!channel.Read().ok()) return 1;
  const auto tell = [&](proto::WorkerReply::Turn turn) {
    proto::WorkerReply reply;
    reply.set_turn(turn);
    (void)channel.Write(reply.SerializeAsString());
  };
  tell(proto::WorkerReply::WAITS);
  absl::SleepFor(absl::Milliseconds(milliseconds));
  tell(proto::WorkerReply::HAS_IT);
  if (std::strcmp(how, kHangs) == 0) absl::SleepFor(absl::Hours(1));
  proto::WorkerReply reply;
  reply.set_outcome(proto::OK);
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

TEST(Exchange, ADeadlineStandsStillWhileItWaitsForItsTurn) {
  const Exchanged exchanged = Ask(kWaits, 3 * kDeadline);
  EXPECT_TRUE(exchanged.answered);
  EXPECT_EQ(exchanged.reply.outcome(), proto::OK) << exchanged.reply.detail();
  EXPECT_EQ(exchanged.reply.turn(), proto::WorkerReply::TURN_UNSPECIFIED);
}

TEST(Exchange, AndGoesOnOnceItHasIt) {
  const Exchanged exchanged = Ask(kHangs, absl::ZeroDuration());
  EXPECT_FALSE(exchanged.answered);
  EXPECT_EQ(exchanged.reply.outcome(), proto::TIMED_OUT);
}

}  // namespace
}  // namespace optrail::suites

int main(int argc, char** argv) {
  using optrail::suites::kHangs;
  using optrail::suites::kWaits;
  if (argc == 3 && (std::strcmp(argv[1], kWaits) == 0 ||
                    std::strcmp(argv[1], kHangs) == 0)) {
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
