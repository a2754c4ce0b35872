#include "suites/graph/peer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "suites/graph/paired_timing.h"

namespace optrail::suites {
namespace {

// A shell command that says a frame of fewer than 256 bytes.
std::string Frame(const std::string& text) {
  std::string length;
  for (const size_t byte : {text.size(), size_t{0}, size_t{0}, size_t{0}}) {
    absl::StrAppend(&length, "\\", byte / 64, byte / 8 % 8, byte % 8);
  }
  return absl::StrCat("printf '", length, "%s' '", text, "'; ");
}

std::string Shell(const std::string& script) {
  return absl::StrCat("sh -c \"", script, "cat > /dev/null\"");
}

TEST(PeerTest, SaysItsNameAndTimes) {
  const auto peer = Peer::Start(
      Shell(Frame("ready fast one") + Frame("2000 1500") + Frame("bytes")));
  ASSERT_TRUE(peer.ok()) << peer.status();
  EXPECT_EQ((*peer)->name(), "fast one");
  ASSERT_TRUE((*peer)->Prepare(2).ok());
  EXPECT_EQ(*(*peer)->TimeNs(), 2000);
  EXPECT_EQ((*peer)->WorkedNs(), 1500);
  EXPECT_EQ(*(*peer)->Output(0), "bytes");
}

TEST(PeerTest, APeerThatIsNotReadyIsAnErrorWithItsReason) {
  for (const std::string& said :
       {Frame("error no such package"), std::string("exit 3; ")}) {
    const auto peer = Peer::Start(Shell(said));
    ASSERT_FALSE(peer.ok());
    EXPECT_NE(peer.status().message().find("expected \"ready NAME\""),
              std::string::npos)
        << peer.status();
  }
}

TEST(PeerTest, WhatIsNoTimeIsAnError) {
  for (const char* said : {"fast", "1 2 3", "-5 3", "0 0"}) {
    const auto peer = Peer::Start(Shell(Frame("ready x") + Frame(said)));
    ASSERT_TRUE(peer.ok()) << peer.status();
    EXPECT_FALSE((*peer)->TimeNs().ok()) << said;
  }
}

TEST(PeerTest, APeerThatEndsIsAnError) {
  const auto peer =
      Peer::Start(absl::StrCat("sh -c \"", Frame("ready x"), "true\""));
  ASSERT_TRUE(peer.ok()) << peer.status();
  EXPECT_FALSE((*peer)->TimeNs().ok());
}

// Takes what it is told, slower by and by.
class FakeTimer : public ops::Timer {
 public:
  explicit FakeTimer(double ns, bool knows_work)
      : ns_(ns), knows_(knows_work) {}

  absl::Status Prepare(int64_t calls) override {
    calls_ = calls;
    return absl::OkStatus();
  }
  absl::StatusOr<int64_t> TimeNs() override {
    ++batches_;
    // Every fifth waits for a core: that is no work.
    const double waits = batches_ % 5 == 0 ? 3 : 1;
    return static_cast<int64_t>(waits * Worked());
  }
  absl::optional<int64_t> WorkedNs() const override {
    if (!knows_) return absl::nullopt;
    return static_cast<int64_t>(Worked());
  }

 private:
  double Worked() const {
    return ns_ * static_cast<double>(calls_) *
           (1 + 0.004 * std::sin(batches_ * 1.7 + ns_));
  }

  const double ns_;
  const bool knows_;
  int64_t calls_ = 1;
  int batches_ = 0;
};

TEST(PairedTimingTest, TellsTheRatioOfProcessorTimes) {
  FakeTimer first(3e6, true), second(2e6, true);
  const auto times = TimePairs(first, second, {});
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_TRUE(times->of_processor);
  EXPECT_LT(times->low(), 1.5);
  EXPECT_GT(times->high(), 1.5);
  EXPECT_LT(times->high() / times->low(), 1.03);
  EXPECT_NEAR(times->first_ns, 3e6, 3e4);
}

TEST(PairedTimingTest, ComparesClocksWhereOneSideDoesNotKnowItsWork) {
  FakeTimer first(3e6, true), second(2e6, false);
  const auto times = TimePairs(first, second, {});
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_FALSE(times->of_processor);
  EXPECT_NEAR(times->ratio(), 1.5, 0.05);
}

TEST(PairedTimingTest, ShortCallsAreBatched) {
  FakeTimer first(1000, true), second(1100, true);
  const auto times = TimePairs(first, second, {});
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_NEAR(times->first_ns, 1000, 10);
  EXPECT_NEAR(times->second_ns, 1100, 10);
}

}  // namespace
}  // namespace optrail::suites
