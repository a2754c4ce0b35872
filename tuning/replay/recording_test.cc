#include "tuning/replay/recording.h"

#include <zlib.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tuning {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kCache[] = R"({
  "device_name": "", "kernel_name": "k",
  "tune_params_keys": ["block", "mode"],
  "tune_params": {"block": [32, 64, 96], "mode": ["a", "b"]},
  "cache": {
    "64,a": {"block": 64, "mode": "a", "time": 2.0, "times": [1.5, 2.5], "compile_time": 7},
    "32,a": {"block": 32, "mode": "a", "time": 4.0, "times": [4.0]},
    "64,b": {"block": 64, "mode": "b", "time": "CompilationFailedConfig", "times": [1.0]},
    "32,b": {"block": 32, "mode": "b", "time": "RuntimeFailedConfig"}
  }})";

constexpr char kT4[] = R"({"metadata": {}, "results": [
  {"configuration": {"z": 2, "a": true}, "times": {"compilation": 5, "runtimes": [1.0, 3.0]},
   "invalidity": "correct", "measurements": [{"name": "energy", "value": 9}, {"name": "time", "value": 2.0}]},
  {"configuration": {"z": 1, "a": false}, "times": {"compilation": 5, "runtimes": []},
   "invalidity": "compile", "measurements": [{"name": "time", "value": 1.0}]},
  {"configuration": {"z": 1, "a": true}, "invalidity": "correct", "measurements": [{"name": "time", "value": -1.0}]}
]})";

std::string Message(const std::string& text) {
  return std::string(ParseRecording(text, "f.json").status().message());
}

std::string Replace(std::string text, const std::string& from,
                    const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  return text;
}

std::string Gzip(const std::string& text) {
  z_stream stream = {};
  deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(text.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = text.size();
  stream.next_out = reinterpret_cast<Bytef*>(&out[0]);
  stream.avail_out = out.size();
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST(ParseRecordingTest, ReadsAKernelTunerCache) {
  const auto recording = ParseRecording(kCache, "dir/conv_X.json");
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_EQ(recording->name, "conv_X");
  ASSERT_EQ(recording->knobs.size(), 2u);
  // 96 was never measured.
  EXPECT_THAT(recording->knobs[0].ints, ElementsAre(32, 64));
  EXPECT_TRUE(recording->knobs[0].ordinal);
  EXPECT_FALSE(recording->knobs[1].ordinal);
  ASSERT_EQ(recording->configs.size(), 4u);
  const RecordedConfig& slow = recording->configs[0];
  EXPECT_EQ(slow.levels, (Levels{0, 0}));
  EXPECT_EQ(slow.time_ms, 4.0);
  EXPECT_EQ(recording->configs[1].outcome, proto::LAUNCH_ERROR);
  EXPECT_EQ(recording->configs[2].compile_ms, 7);
  EXPECT_THAT(recording->configs[2].repeats_ms, ElementsAre(1.5, 2.5));
  EXPECT_EQ(recording->configs[3].outcome, proto::COMPILE_ERROR);
}

TEST(ParseRecordingTest, ReadsTheSameCacheByColumns) {
  const std::string columns = R"({"tune_params_keys": ["block", "mode"],
    "columns": {"block": [64, 32, 64, 32], "mode": ["a", "a", "b", "b"],
      "time": [2.0, 4.0, "CompilationFailedConfig", "RuntimeFailedConfig"],
      "times": [[1.5, 2.5], [4.0], [1.0], null],
      "compile_time": [7, null, null, null]}})";
  const auto by_columns = ParseRecording(columns, "f");
  const auto by_rows = ParseRecording(kCache, "f");
  ASSERT_TRUE(by_columns.ok()) << by_columns.status();
  ASSERT_TRUE(by_rows.ok()) << by_rows.status();
  ASSERT_EQ(by_columns->configs.size(), 4);
  for (size_t i = 0; i < 4; ++i) {
    const RecordedConfig& column = by_columns->configs[i];
    const RecordedConfig& row = by_rows->configs[i];
    EXPECT_EQ(column.levels, row.levels);
    EXPECT_EQ(column.outcome, row.outcome);
    EXPECT_EQ(column.time_ms, row.time_ms);
    EXPECT_EQ(column.repeats_ms, row.repeats_ms);
    EXPECT_EQ(column.compile_ms, row.compile_ms);
  }
  EXPECT_THAT(Message(Replace(columns, "[64, 32, 64, 32]", "3")),
              HasSubstr("columns[\"block\"]: expected a list"));
  EXPECT_THAT(Message(Replace(columns, "[64, 32, 64, 32]", "[64, 32, 64]")),
              HasSubstr("columns[3]: knob 'block' is missing"));
}

TEST(ParseRecordingTest, ReadsDifferencesToTheLeastRepeat) {
  const auto recording = ParseRecording(
      R"({"tune_params_keys": ["block"], "columns": {"block": [1, 2, 3, 4],
      "time": [null, null, "RuntimeFailedConfig", 0.5],
      "least": [0.21274, 24.5, null, 0.4], "above_1": [195, 0, null, 0],
      "above_2": [0, null, null, 20000], "above_3": [115, null, null, 1]}})",
      "f");
  ASSERT_TRUE(recording.ok()) << recording.status();
  const auto& configs = recording->configs;
  EXPECT_THAT(configs[0].repeats_ms, ElementsAre(0.21469, 0.21274, 0.21389));
  EXPECT_EQ(configs[0].time_ms, 0.21377);
  EXPECT_THAT(configs[1].repeats_ms, ElementsAre(24.5));
  EXPECT_EQ(configs[1].time_ms, 24.5);
  EXPECT_EQ(configs[2].outcome, proto::LAUNCH_ERROR);
  EXPECT_THAT(configs[3].repeats_ms, ElementsAre(0.4, 0.6, 0.40001));
  EXPECT_EQ(configs[3].time_ms, 0.5) << "a time that is given counts";
}

TEST(ParseRecordingTest, ReadsT4WithKnobsInTheirOrder) {
  const auto recording = ParseRecording(kT4, "conv_T4.json");
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_EQ(recording->name, "conv");
  EXPECT_EQ(recording->knobs[0].name, "z");
  EXPECT_THAT(recording->knobs[1].labels, ElementsAre("false", "true"));
  ASSERT_EQ(recording->configs.size(), 3u);
  EXPECT_EQ(recording->configs[0].outcome, proto::COMPILE_ERROR);
  // A negative time is no time.
  EXPECT_EQ(recording->configs[1].outcome, proto::WRONG_RESULT);
  EXPECT_EQ(recording->configs[2].time_ms, 2.0);
  EXPECT_THAT(recording->configs[2].repeats_ms, ElementsAre(1.0, 3.0));
}

TEST(ParseRecordingTest, ReadsGzip) {
  const auto plain = ParseRecording(kCache, "a.json");
  const auto packed = ParseRecording(Gzip(kCache), "a.json.gz");
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_EQ(packed->configs.size(), plain->configs.size());
  EXPECT_EQ(packed->name, "a");
}

TEST(ParseRecordingTest, TakesNanInfinityAndZeroForFailures) {
  for (const char* time : {"NaN", "Infinity", "-Infinity", "0", "-1", "null"}) {
    const auto recording = ParseRecording(
        Replace(kCache, "\"time\": 4.0", std::string("\"time\": ") + time),
        "f.json");
    ASSERT_TRUE(recording.ok()) << time << recording.status();
    EXPECT_EQ(recording->configs[0].outcome, proto::WRONG_RESULT) << time;
  }
}

TEST(ParseRecordingTest, LeavesNanInsideStringsAlone) {
  const auto recording =
      ParseRecording(Replace(Replace(kCache, "\"mode\": \"a\", \"time\": 4.0",
                                     "\"mode\": \"NaN\", \"time\": 4.0"),
                             "[4.0]", "[NaN]"),
                     "f.json");
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_THAT(recording->knobs[1].labels, ElementsAre("NaN", "a", "b"));
  EXPECT_TRUE(recording->configs[0].repeats_ms.empty());
}

TEST(ParseRecordingTest, EveryTruncationIsAnErrorThatNamesTheFile) {
  const std::string text = kCache;
  for (size_t length = 0; length < text.size(); length += 7) {
    const std::string message = Message(text.substr(0, length));
    EXPECT_THAT(message, HasSubstr("f.json: ")) << length;
    EXPECT_THAT(message, HasSubstr("expected")) << length;
  }
}

TEST(ParseRecordingTest, TruncatedOrDamagedGzipIsAnError) {
  const std::string packed = Gzip(kCache);
  EXPECT_THAT(Message(packed.substr(0, packed.size() / 2)),
              HasSubstr("f.json: gzip data is truncated"));
  std::string damaged = packed;
  for (size_t i = 20; i < 60; ++i) damaged[i] = 'x';
  EXPECT_THAT(Message(damaged), HasSubstr("f.json: gzip data is"));
}

TEST(ParseRecordingTest, SaysWhatIsMissing) {
  EXPECT_THAT(Message("[1, 2]"), HasSubstr("expected an object with 'cache'"));
  EXPECT_THAT(Message(R"({"cache": {}})"), HasSubstr("tune_params_keys"));
  EXPECT_THAT(Message(R"({"results": 3})"), HasSubstr("expected a list"));
  EXPECT_THAT(Message(R"({"results": []})"), HasSubstr("no configs"));
  EXPECT_THAT(Message(Replace(kCache, "\"mode\": \"a\", \"time\": 4.0",
                              "\"time\": 4.0")),
              HasSubstr("cache[\"32,a\"]: knob 'mode' is missing"));
  EXPECT_THAT(Message(Replace(kCache, "\"time\": 4.0, ", "")),
              HasSubstr("cache[\"32,a\"]: 'time' is missing"));
  EXPECT_THAT(Message(Replace(kCache, "\"block\": 32, \"mode\": \"a\"",
                              "\"block\": [1], \"mode\": \"a\"")),
              HasSubstr("knob 'block': expected a 64-bit integer"));
}

TEST(ParseRecordingTest, RefusesARecordingInWhichNothingSucceeded) {
  EXPECT_THAT(Message(R"({"results": [{"configuration": {"a": 1},
                          "invalidity": "runtime"}]})"),
              HasSubstr("no config succeeded"));
}

TEST(ReadRecordingTest, NamesAFileThatIsNotThere) {
  EXPECT_EQ(ReadRecording("no/such.json").status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace optrail::tuning
