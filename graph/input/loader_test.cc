#include "graph/input/loader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"
#include "graph/reference/reference.h"
#include "graph/runner/runner.h"
#include "ops/device/cpu/device.h"

namespace optrail::graph {
namespace {

TensorType F32(const Dims& dims) { return {optrail::proto::ELEMENT_F32, dims}; }

// Sample s is the values s and s + 1/2.
class CountingSource : public InputSource {
 public:
  explicit CountingSource(int64_t samples, int64_t wrong = -1)
      : samples_(samples), wrong_(wrong) {}

  int64_t samples() const override { return samples_; }
  absl::StatusOr<std::vector<std::string>> Read(int64_t first,
                                                int64_t count) const override {
    EXPECT_GE(first, 0);
    EXPECT_GE(count, 1);
    EXPECT_LE(first + count, samples_);
    read_ += count;
    std::vector<std::string> texts;
    for (int64_t s = first; s < first + count; ++s) {
      texts.push_back(absl::StrCat(s));
    }
    return texts;
  }
  absl::Status Parse(int64_t sample, absl::string_view text,
                     absl::Span<char* const> to) const override {
    EXPECT_EQ(text, absl::StrCat(sample));
    if (sample == wrong_) return absl::InvalidArgumentError("it is wrong");
    const float values[] = {static_cast<float>(sample),
                            static_cast<float>(sample) + .5f};
    std::memcpy(to[0], values, sizeof(values));
    return absl::OkStatus();
  }

  int64_t read() const { return read_; }

 private:
  const int64_t samples_, wrong_;
  mutable std::atomic<int64_t> read_{0};
};

const std::vector<SampleInput>& Inputs() {
  static const auto* const inputs =
      new std::vector<SampleInput>{{"x", F32({2})}};
  return *inputs;
}

LoaderOptions Options(int workers, int64_t prefetch, int64_t chunk) {
  LoaderOptions options;
  options.workers = workers;
  options.prefetch = prefetch;
  options.chunk = chunk;
  return options;
}

TEST(LoaderTest, BatchesComeInOrderHoweverTheyAreLoaded) {
  constexpr int64_t kSamples = 11;
  const CountingSource source(kSamples);
  for (const int workers : {1, 2, 5}) {
    for (const int64_t prefetch : {1, 3}) {
      for (const int64_t chunk : {1, 3, 8, 40}) {
        for (const int64_t batch : {1, 4, 7}) {
          SCOPED_TRACE(absl::StrCat(workers, " workers, ", prefetch, " ahead, ",
                                    chunk, " a chunk, ", batch, " a batch"));
          const auto loader = Loader::Start(source, Inputs(), batch,
                                            Options(workers, prefetch, chunk));
          ASSERT_TRUE(loader.ok()) << loader.status();
          std::vector<float> x(2 * batch);
          char* const to[] = {reinterpret_cast<char*>(x.data())};
          int64_t next = 0;
          for (int b = 0; b < 30; ++b) {
            ASSERT_TRUE((*loader)->Next(to).ok());
            for (int64_t s = 0; s < batch; ++s, ++next) {
              const auto first = static_cast<float>(next % kSamples);
              ASSERT_EQ(x[2 * s], first);
              ASSERT_EQ(x[2 * s + 1], first + .5f);
            }
          }
        }
      }
    }
  }
}

TEST(LoaderTest, AWrongSampleFailsItsBatchAndNotThoseBefore) {
  const CountingSource source(100, /*wrong=*/9);
  for (const int workers : {1, 4}) {
    const auto loader =
        Loader::Start(source, Inputs(), 4, Options(workers, 8, 1));
    ASSERT_TRUE(loader.ok());
    std::vector<float> x(8);
    char* const to[] = {reinterpret_cast<char*>(x.data())};
    EXPECT_TRUE((*loader)->Next(to).ok());
    EXPECT_TRUE((*loader)->Next(to).ok());
    EXPECT_EQ((*loader)->Next(to).message(), "it is wrong");
    EXPECT_EQ((*loader)->Next(to).message(), "it is wrong");
  }
}

TEST(LoaderTest, LoadsNoFurtherAheadThanItsRingIsLong) {
  for (const int64_t chunk : {1, 3}) {
    const CountingSource source(1000);
    int64_t capacity = 0;
    {
      const auto loader =
          Loader::Start(source, Inputs(), 4, Options(3, 2, chunk));
      ASSERT_TRUE(loader.ok());
      capacity = (*loader)->capacity();
      EXPECT_GE(capacity, 8);
      // All that fits is loaded before anybody asks.
      while (source.read() < capacity / chunk * chunk) {
        std::this_thread::yield();
      }
    }
    EXPECT_EQ(source.read(), capacity / chunk * chunk);
  }
}

TEST(LoaderTest, CountsTheTimesOfItsThreads) {
  const CountingSource source(50);
  const auto loader = Loader::Start(source, Inputs(), 4, Options(2, 2, 1));
  ASSERT_TRUE(loader.ok());
  std::vector<float> x(8);
  char* const to[] = {reinterpret_cast<char*>(x.data())};
  for (int b = 0; b < 200; ++b) ASSERT_TRUE((*loader)->Next(to).ok());
  const LoaderTimes times = (*loader)->times();
  EXPECT_GT(times.reading_ns, 0);
  EXPECT_GT(times.parsing_ns, 0);
  EXPECT_GT(times.waited_ns, 0);
  EXPECT_GT(times.copied_ns, 0);
}

TEST(LoaderTest, RefusesOptionsThatMakeNoSense) {
  const CountingSource source(5);
  const auto message = [&](const LoaderOptions& options) {
    return std::string(
        Loader::Start(source, Inputs(), 4, options).status().message());
  };
  EXPECT_EQ(message(Options(0, 1, 1)), "workers is 0; expected 1 to 1024");
  EXPECT_EQ(message(Options(1, 0, 1)), "prefetch is 0; expected 1 to 1048576");
  EXPECT_EQ(message(Options(1, 1, -3)), "chunk is -3; expected 1 to 1048576");
  const std::vector<SampleInput> huge = {{"x", F32({int64_t{1} << 38})}};
  EXPECT_EQ(Loader::Start(source, huge, 4, Options(1, 1, 1)).status().code(),
            absl::StatusCode::kResourceExhausted);
}

// A model that a loader feeds computes the same as the reference from the same
// samples.
TEST(LoaderTest, FeedsAModel) {
  constexpr int64_t kBatch = 3, kSamples = 7;
  Graph graph;
  const int x = graph.AddInput("x", F32({kBatch, 2}));
  const int w = graph.AddConstant("w", F32({2, 5}),
                                  graph::Constant{nullptr, /*seed=*/1, 0.3});
  graph.outputs = {*graph.AddNode("product", "matmul", {x, w})};
  const auto device = *ops::MakeCpuDevice(1);
  const auto runner = Runner::Create(graph, *device);
  ASSERT_TRUE(runner.ok()) << runner.status();
  const CountingSource source(kSamples);
  const auto inputs = SampleInputs(graph);
  ASSERT_TRUE(inputs.ok());
  const auto loader = Loader::Start(source, *inputs, kBatch, Options(2, 2, 2));
  ASSERT_TRUE(loader.ok());
  const auto feeder = (*runner)->MakeFeeder({});
  ASSERT_TRUE(feeder.ok()) << feeder.status();
  for (int b = 0; b < 10; ++b) {
    const auto to = (*feeder)->Next();
    ASSERT_TRUE(to.ok()) << to.status();
    ASSERT_TRUE((*loader)->Next(*to).ok());
    ASSERT_TRUE((*feeder)->Send().ok());
    ASSERT_TRUE((*runner)->Run().ok());
    const auto ours = (*runner)->Outputs();
    ASSERT_TRUE(ours.ok());
    std::vector<double> values;
    for (int64_t s = b * kBatch; s < (b + 1) * kBatch; ++s) {
      values.push_back(static_cast<double>(s % kSamples));
      values.push_back(static_cast<double>(s % kSamples) + .5);
    }
    const auto expected = RunReference(
        graph,
        {Array::Reals(optrail::proto::ELEMENT_F32, {kBatch, 2}, values)});
    ASSERT_TRUE(expected.ok());
    const Difference difference = Compare((*ours)[0], (*expected)[0]);
    EXPECT_EQ(difference.problem, "");
    EXPECT_LT(difference.relative, 1e-5);
  }
}

}  // namespace
}  // namespace optrail::graph
