#include "suites/graph/fed_timing.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>

#include "ops/device/cpu/device.h"

namespace optrail::suites {
namespace {

class ZerosSource : public graph::InputSource {
 public:
  int64_t samples() const override { return 10; }
  absl::StatusOr<std::vector<std::string>> Read(int64_t first,
                                                int64_t count) const override {
    return std::vector<std::string>(count);
  }
  absl::Status Parse(int64_t sample, absl::string_view text,
                     absl::Span<char* const> to) const override {
    std::memset(to[0], 0, sizeof(float));
    return absl::OkStatus();
  }
};

class OnePlace : public graph::Feeder {
 public:
  explicit OnePlace(std::vector<float>& x)
      : to_{reinterpret_cast<char*>(x.data())},
        bytes_(static_cast<int64_t>(x.size() * sizeof(float))) {}
  std::vector<int64_t> bytes() const override { return {bytes_}; }
  absl::StatusOr<absl::Span<char* const>> Next() override {
    return absl::Span<char* const>(to_);
  }
  absl::Status Send() override { return absl::OkStatus(); }

 private:
  std::vector<char*> to_;
  int64_t bytes_ = 0;
};

// A model that computes nothing waits for a loader whose reads take two
// milliseconds, however busy the machine is.
TEST(FedTimingTest, NamesASlowLoader) {
  const ZerosSource source;
  const auto slow = graph::WithReadLatency(source, absl::Milliseconds(2));
  std::vector<float> x(4);
  int calls = 0;
  FedModel model;
  model.compute = [&] {
    ++calls;
    return absl::OkStatus();
  };
  OnePlace feeder(x);
  model.feeder = &feeder;
  model.batch = 4;
  const auto device = *ops::MakeCpuDevice(1);
  const auto times =
      TimeFed(model, *slow, {{"x", {optrail::proto::ELEMENT_F32, {}}}},
              graph::LoaderOptions(), *device);
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_GT(calls, 0);
  EXPECT_TRUE(times->is_held_back()) << times->waits;
  EXPECT_LE(times->waits + times->copies, 1);
  EXPECT_NEAR(times->reads + times->parses + times->rests, 1, 1e-9);
  EXPECT_GT(times->reads, times->parses);
  if (!times->is_known()) return;  // the machine was too busy
  // A batch is four reads by one thread.
  EXPECT_GT(times->fed.time_ns, 8e6);
}

TEST(FedTimingTest, PassesOnTheErrorOfAModel) {
  const ZerosSource source;
  std::vector<float> x(1);
  FedModel model;
  model.compute = [] { return absl::InternalError("no luck"); };
  OnePlace feeder(x);
  model.feeder = &feeder;
  const auto device = *ops::MakeCpuDevice(1);
  const auto times =
      TimeFed(model, source, {{"x", {optrail::proto::ELEMENT_F32, {}}}},
              graph::LoaderOptions(), *device);
  EXPECT_EQ(times.status().message(), "no luck");
}

TEST(FedTimingTest, RefusesSamplesThatAreNoBatchOfTheModel) {
  const ZerosSource source;
  std::vector<float> x(3);
  OnePlace feeder(x);
  FedModel model;
  model.compute = [] { return absl::OkStatus(); };
  model.feeder = &feeder;
  model.batch = 4;
  const auto device = *ops::MakeCpuDevice(1);
  const auto times =
      TimeFed(model, source, {{"x", {optrail::proto::ELEMENT_F32, {}}}},
              graph::LoaderOptions(), *device);
  EXPECT_EQ(times.status().message(),
            "a batch of input \"x\" has 16 bytes; the model reads 12");
}

FedTimes Times(double waits, double reads, double parses, double rests) {
  FedTimes times;
  times.alone_ns = 1e6;
  times.fed.outcome = proto::OK;
  times.fed.time_ns = 1e6 / (1 - waits);
  times.waits = waits;
  times.reads = reads;
  times.parses = parses;
  times.rests = rests;
  return times;
}

TEST(HeldBackTextTest, TellsWhatToChange) {
  EXPECT_EQ(HeldBackText(Times(.01, .5, .2, .3), {}),
            "The loader does not hold the model back: it waits for input 1.0% "
            "of the time.");
  EXPECT_EQ(HeldBackText(Times(.8, .9, .08, .02), {}),
            "The loader holds the model back: it waits for input 80.0% of the "
            "time.\nThe loader's threads read for 90.0%, parse for 8.0% and "
            "rest for 2.0% of their time. Reading takes their time: read more "
            "samples at a time (--chunk), or start more of them (--workers).");
  EXPECT_NE(HeldBackText(Times(.8, .1, .85, .05), {}).find("Parsing takes"),
            std::string::npos);
  // Threads that rest have smaller chunks only where a chunk can be smaller and
  // those of the batches ahead are fewer than the threads.
  FedTimes rest = Times(.3, .4, .2, .4);
  rest.batch = 8;
  rest.loader.prefetch = 2;
  rest.loader.workers = 4;
  for (const auto& [chunk, next] :
       {std::make_pair(1, "read more samples at a time (--chunk)"),
        std::make_pair(4, "read more samples at a time (--chunk)"),
        std::make_pair(8, "smaller chunks (--chunk)")}) {
    rest.loader.chunk = chunk;
    const std::string text = HeldBackText(rest, {});
    EXPECT_NE(text.find("--prefetch"), std::string::npos) << text;
    EXPECT_NE(text.find(next), std::string::npos) << chunk << ": " << text;
  }
}

TEST(HeldBackTextTest, TellsLoaderAndCopiesOfAGpuApart) {
  graph::FeederOptions feeder;
  FedTimes times = Times(.4, .9, .08, .02);
  times.idle = .5;
  EXPECT_EQ(HeldBackText(times, feeder),
            "The loader holds the model back: the GPU computes nothing for "
            "50.0% of the time, and the thread that feeds it waits for the "
            "loader for 40.0%.\nThe loader's threads read for 90.0%, parse for "
            "8.0% and rest for 2.0% of their time. Reading takes their time: "
            "read more samples at a time (--chunk), or start more of them "
            "(--workers).");
  // The thread may wait as long as the GPU has something to compute.
  times.idle = .01;
  EXPECT_EQ(HeldBackText(times, feeder),
            "Its input does not hold the model back: the GPU computes nothing "
            "for 1.0% of the time.");
  times = Times(0, .5, .4, .1);
  times.idle = .3;
  feeder = {0, false};
  EXPECT_EQ(HeldBackText(times, feeder),
            "Copies hold the model back: the GPU computes nothing for 30.0% of "
            "the time; the thread that feeds it copies for 0.0% and waits for "
            "the loader for 0.0%; next: send batches while it computes "
            "(--sent_ahead=1).");
  feeder.sent_ahead = 1;
  EXPECT_NE(HeldBackText(times, feeder).find("(--pinned)"), std::string::npos);
  feeder.pinned = true;
  EXPECT_NE(HeldBackText(times, feeder).find("larger batches"),
            std::string::npos);
}

TEST(HeldBackTextTest, TellsThatTheCoresAreShared) {
  FedTimes times = Times(0, .5, .4, .1);
  times.fed.time_ns = 1.5e6;
  EXPECT_EQ(HeldBackText(times, {}),
            "The loader does not hold the model back: it waits for input 0.0% "
            "of the time.\nBeside the loader the model computes for 1.50 ms a "
            "batch, alone for 1.00 ms: they share the cores.");
}

}  // namespace
}  // namespace optrail::suites
